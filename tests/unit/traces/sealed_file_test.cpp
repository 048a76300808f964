#include "qualify/traces/sealed_file.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <fstream>

#include "qualify/base/files.hpp"
#include "support/temp_folder.hpp"
#include "support/trace_generator.hpp"

namespace qualify::traces {
namespace {

/// Rank 0's events of a small generated run.
Events generated(Strings& strings, std::int64_t iterations = 4) {
  Events events;
  test::TraceShape shape;
  shape.iterations = iterations;
  test::generate_trace(shape, {}, [&](std::int64_t rank, const Event& event, const Strings& from) {
    if (rank != 0) return;
    Event own = event;
    for (auto member :
         {&Event::phase, &Event::site, &Event::op, &Event::group, &Event::shape, &Event::dtype}) {
      own.*member = strings.id(from.text(event.*member));
    }
    events.push_back(own);
  });
  return events;
}

RankSummary write(const fs::path& path, const Events& events, const Strings& strings) {
  auto writer = SealedWriter::create(path, 0).value();
  for (const Event& event : events) EXPECT_TRUE(writer.append(event, strings));
  return writer.finish(strings, {1000, 10, 9, "trace-pr6610", {}}).value();
}

bool same(const Events& a, const Strings& a_strings, const Events& b, const Strings& b_strings) {
  return a.size() == b.size() &&
         std::equal(a.begin(), a.end(), b.begin(), [&](const Event& x, const Event& y) {
           return equal(x, a_strings, y, b_strings) && x.rank_seq == y.rank_seq &&
                  x.time_ns == y.time_ns && x.duration_ns == y.duration_ns;
         });
}

TEST(SealedFile, GivesBackWhatWasWritten) {
  test::TempFolder folder;
  Strings strings;
  const Events events = generated(strings);
  const RankSummary summary = write(folder / "a.arrow", events, strings);
  const auto file = SealedFile::open(folder / "a.arrow").value();
  Strings other;
  EXPECT_TRUE(same(file.read_all(other).value(), other, events, strings));
  EXPECT_EQ(file.rows(), events.size());
  EXPECT_EQ(pack(file.summary()), pack(summary));
  EXPECT_EQ(file.source().bytes, 1000U);
  EXPECT_TRUE(file.check());
}

TEST(SealedFile, EveryColumnSurvives) {
  test::TempFolder folder;
  Strings strings;
  Event event;
  event.iteration = 7;
  event.rank_seq = 11;
  event.group_seq = 3;
  event.bytes = 1 << 20;
  event.time_ns = 5;
  event.duration_ns = 0;
  event.value_bits = 0x7FF8000000000001;
  event.value_type = ValueType::float64;
  event.digest_lo = 1;
  event.digest_hi = 2;
  event.algorithm = Algorithm::sha256;
  event.tail.fill(9);
  event.multiset = 0;
  event.has_multiset = true;
  event.phase = strings.id("backward");
  event.site = strings.id(std::string(4096, 'n'));
  event.op = strings.id("all-reduce");
  event.group = strings.id("dp.0@0-3");
  event.shape = strings.id("4x8");
  event.dtype = strings.id("float32");
  event.occurrence = 4;
  event.microbatch = 0;
  event.peer = 2;
  event.vpp_chunk = 1;
  event.flags = kRecompute | kCudaGraph;
  event.kind = Kind::collective;
  event.role = Role::output;
  event.coverage = Coverage::full;
  Event nulls;
  nulls.iteration = 8;
  nulls.phase = nulls.site = strings.id("x");
  write(folder / "a.arrow", {event, nulls}, strings);
  const auto file = SealedFile::open(folder / "a.arrow").value();
  Strings other;
  const Events read = file.read_all(other).value();
  EXPECT_TRUE(same(read, other, {event, nulls}, strings));
  EXPECT_EQ(file.read(8, other).value().size(), 1U);
  EXPECT_EQ(file.read(9, other).value().size(), 0U);
}

TEST(SealedFile, ReadsOneIterationAcrossBatches) {
  test::TempFolder folder;
  Strings strings;
  Events events = generated(strings, 40);
  write(folder / "a.arrow", events, strings);
  const auto file = SealedFile::open(folder / "a.arrow").value();
  for (const std::int64_t iteration : {1, 13, 27, 40}) {
    Strings other;
    Events expected;
    for (const Event& event : events) {
      if (event.iteration == iteration) expected.push_back(event);
    }
    EXPECT_TRUE(same(file.read(iteration, other).value(), other, expected, strings)) << iteration;
  }
}

TEST(SealedFile, OneIterationMayBeLargerThanABatch) {
  test::TempFolder folder;
  Strings strings;
  Events events(70'000);
  for (std::size_t i = 0; i < events.size(); ++i) {
    events[i].iteration = 1;
    events[i].site = strings.id("s");
    events[i].value_bits = i;
    events[i].value_type = ValueType::int64;
  }
  write(folder / "a.arrow", events, strings);
  const auto file = SealedFile::open(folder / "a.arrow").value();
  Strings other;
  EXPECT_TRUE(same(file.read(1, other).value(), other, events, strings));
}

TEST(SealedFile, CutAnywhereItMatchesNothing) {
  test::TempFolder folder(test::memory_folder());
  Strings strings;
  write(folder / "a.arrow", generated(strings, 1), strings);
  const std::string whole = read_file(folder / "a.arrow").value();
  for (std::size_t size = 0; size < whole.size(); size += 1 + whole.size() / 97) {
    ASSERT_TRUE(write_file_atomic(folder / "cut.arrow", whole.substr(0, size)));
    const auto file = SealedFile::open(folder / "cut.arrow");
    ASSERT_FALSE(file) << size;
    EXPECT_EQ(file.error().code, Errc::integrity) << size;
  }
}

TEST(SealedFile, AFooterOutOfPlaceIsDamage) {
  test::TempFolder folder(test::memory_folder());
  Strings strings;
  write(folder / "a.arrow", generated(strings, 1), strings);
  std::string moved = read_file(folder / "a.arrow").value();
  std::int32_t footer = 0;
  std::memcpy(&footer, &moved[moved.size() - 10], sizeof footer);
  // Numbers of 8 bytes are read where they lie; everything else of the file is as it was.
  for (int by = 1; by < 8; ++by) {
    moved.insert(moved.size() - 10 - static_cast<std::size_t>(footer), 1, '\0');
    ASSERT_TRUE(write_file_atomic(folder / "moved.arrow", moved));
    const auto file = SealedFile::open(folder / "moved.arrow");
    ASSERT_FALSE(file) << by;
    EXPECT_EQ(file.error().code, Errc::integrity) << by;
  }
}

TEST(SealedFile, AnyChangedByteOfAValueIsFound) {
  test::TempFolder folder(test::memory_folder());
  Strings strings;
  const Events events = generated(strings, 1);
  write(folder / "a.arrow", events, strings);
  const std::string whole = read_file(folder / "a.arrow").value();
  int accepted = 0;
  for (std::size_t at = 8; at < whole.size(); at += 41) {
    std::string changed = whole;
    changed[at] = static_cast<char>(changed[at] ^ 0x10);
    ASSERT_TRUE(write_file_atomic(folder / "changed.arrow", changed));
    const auto file = SealedFile::open(folder / "changed.arrow");
    if (!file || !file->check()) continue;
    // What is not part of equality may change: times, padding, the stream's own copy of the schema.
    Strings other;
    const Events read = file->read_all(other).value();
    ASSERT_EQ(read.size(), events.size()) << at;
    for (std::size_t i = 0; i < read.size(); ++i) {
      ASSERT_TRUE(equal(read[i], other, events[i], strings)) << at;
    }
    ++accepted;
  }
  EXPECT_GT(accepted, 0);
}

TEST(SealedFile, ValuesAreComparedWithoutTimes) {
  test::TempFolder folder;
  Strings strings;
  Events events = generated(strings);
  write(folder / "a.arrow", events, strings);
  for (Event& event : events) event.time_ns += 1000 * (event.rank_seq % 3);
  write(folder / "times.arrow", events, strings);
  events[20].digest_hi ^= 1;
  write(folder / "bit.arrow", events, strings);
  const auto a = SealedFile::open(folder / "a.arrow").value();
  const auto times = SealedFile::open(folder / "times.arrow").value();
  const auto bit = SealedFile::open(folder / "bit.arrow").value();
  EXPECT_TRUE(SealedFile::same_values(a, times).value());
  EXPECT_FALSE(SealedFile::same_values(a, bit).value());
  EXPECT_EQ(root_of(a.summary()), root_of(times.summary()));
  EXPECT_NE(root_of(a.summary()), root_of(bit.summary()));
}

TEST(SealedFile, WhereIterationsBeginIsChecked) {
  test::TempFolder folder(test::memory_folder());
  Strings strings;
  const Events events = generated(strings);
  write(folder / "a.arrow", events, strings);
  const std::string whole = read_file(folder / "a.arrow").value();
  // Base64 in the footer: whatever byte of it changes, every iteration is read as it was or not at
  // all.
  const std::size_t begin = whole.rfind("qualify.summary");
  for (std::size_t at = begin - 4000; at < begin; ++at) {
    std::string changed = whole;
    changed[at] = changed[at] == 'A' ? 'B' : 'A';
    std::ofstream(folder / "changed.arrow", std::ios::binary) << changed;
    const auto file = SealedFile::open(folder / "changed.arrow");
    if (!file || !file->check()) continue;
    Strings other;
    for (std::int64_t iteration = 1; iteration <= 4; ++iteration) {
      const auto read = file->read(iteration, other);
      ASSERT_TRUE(read) << at;
      ASSERT_EQ(read->size(), events.size() / 4) << at;
    }
  }
}

TEST(SealedFile, NothingIsLeftOfAWriterThatStopped) {
  test::TempFolder folder;
  Strings strings;
  {
    auto writer = SealedWriter::create(folder / "a.arrow", 0).value();
    for (const Event& event : generated(strings)) ASSERT_TRUE(writer.append(event, strings));
  }
  EXPECT_TRUE(fs::is_empty(folder.path()));
}

}  // namespace
}  // namespace qualify::traces
