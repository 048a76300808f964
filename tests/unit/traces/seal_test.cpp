#include "qualify/traces/seal.hpp"

#include <gmock/gmock.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "qualify/base/files.hpp"
#include "qualify/traces/sealed_file.hpp"
#include "qualify/traces/trace_set.hpp"
#include "support/temp_folder.hpp"
#include "support/trace_generator.hpp"

namespace qualify::traces {
namespace {

using ::testing::Contains;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const fs::path kData = fs::path(QUALIFY_TEST_DATA) / "traces";

auto code(const char* text) {
  return Field("code", &Fault::code, text);
}

class Sealing : public ::testing::Test {
 protected:
  Sealed seal_to(const fs::path& from, const char* name, std::int64_t window = 0,
                 bool running = false) {
    SealOptions options;
    options.to = folder / name;
    options.window = window;
    options.still_running = running;
    auto sealed = seal(from, options);
    EXPECT_TRUE(sealed) << sealed.error().describe();
    return sealed ? *sealed : Sealed{};
  }
  Roots roots_of_raw(const fs::path& from) { return TraceSet::open(from, {}).value().roots(); }
  void write(const std::string& name, const std::string& content) {
    fs::create_directories((folder / name).parent_path());
    std::ofstream(folder / name) << content;
  }
  /// Lines of one rank in the schema of pull request 6610.
  static std::string lines(int count, int rank = 0, const std::string& name = "loss") {
    std::string text;
    for (int i = 0; i < count; ++i) {
      text += R"({"event":"event","fields":{"value":1.5},"iteration":)" + std::to_string(1 + i) +
              R"(,"microbatch":null,"name":")" + name +
              R"(","occurrence":0,"phase":"train","rank":)" + std::to_string(rank) +
              R"(,"schema_version":1,"sequence":)" + std::to_string(i) + "}\n";
    }
    return text;
  }
  Faults faults_of(const char* name) {
    const auto set = TraceSet::open(folder / name, {});
    EXPECT_TRUE(set) << set.error().describe();
    const Faults raw = set ? set->faults().value() : Faults{};
    const Sealed sealed = seal_to(folder / name, (std::string("sealed-") + name).c_str());
    EXPECT_EQ(sealed.faults.empty(), raw.empty());
    EXPECT_FALSE(sealed.roots->complete && !raw.empty());
    return raw;
  }
  test::TempFolder folder;
};

TEST_F(Sealing, BothPublicSchemasAreToldByTheirShape) {
  for (const char* name : {"pr6610_v1/run_a", "fork_v1/run_a"}) {
    fs::remove_all(folder / "s");
    const Sealed sealed = seal_to(kData / name, "s");
    EXPECT_THAT(sealed.faults, IsEmpty()) << name;
    EXPECT_EQ(sealed.ranks, 2U) << name;
    const auto set = TraceSet::open(folder / "s", {}).value();
    EXPECT_TRUE(set.sealed());
    EXPECT_EQ(set.schema().value(), name[0] == 'p' ? "trace-pr6610" : "trace-fork");
    EXPECT_EQ(set.roots().hashes, roots_of_raw(kData / name).hashes) << name;
  }
}

TEST_F(Sealing, RootsTellTheSamplesApart) {
  const auto root = [&](const char* name) { return run_root(roots_of_raw(kData / name)); };
  EXPECT_EQ(root("pr6610_v1/run_a"), root("pr6610_v1/run_b_identical"));
  EXPECT_NE(root("pr6610_v1/run_a"), root("pr6610_v1/run_c_rank1_iter2_diverges"));
  EXPECT_NE(root("fork_v1/run_a"), root("fork_v1/run_b_iter2_rank1_diverges"));
}

TEST_F(Sealing, RootsOfTwoAreReadAsThoseOfEach) {
  for (const char* name : {"one", "same"}) seal_to(kData / "pr6610_v1/run_a", name);
  seal_to(kData / "pr6610_v1/run_c_rank1_iter2_diverges", "other");
  const auto alone = TraceSet::open(folder / "one", {}).value();
  for (const char* name : {"same", "other"}) {
    const auto [one, second] = TraceSet::open_both(folder / "one", folder / name, {}).value();
    EXPECT_EQ(one.roots().hashes, alone.roots().hashes);
    EXPECT_EQ(second.folder(), folder / name);
    EXPECT_EQ(second.roots().ranks, alone.roots().ranks);
    EXPECT_EQ(second.roots().hashes, TraceSet::open(folder / name, {}).value().roots().hashes);
  }
  EXPECT_EQ(TraceSet::open_both(folder / "one", kData / "pr6610_v1/run_a", {})
                .value()
                .second.roots()
                .hashes,
            alone.roots().hashes)
      << "sealed and raw";
  EXPECT_EQ(TraceSet::open_both(folder / "one", folder / "none", {}).error().code, Errc::not_found);
  Roots changed = alone.roots();
  changed.hashes[0][0] ^= 1;  // a copy, not the file
  EXPECT_NE(changed.hashes[0], alone.roots().hashes[0]);
  EXPECT_EQ(changed.hashes[1], alone.roots().hashes[1]);
}

TEST_F(Sealing, RootsOfWhichAnyBitIsAnotherAreDamaged) {
  for (const char* name : {"one", "a", "b"}) seal_to(kData / "pr6610_v1/run_a", name);
  std::string bytes = read_file(folder / "one" / kRootsName).value();
  const auto expect_damage = [&](std::size_t at) {
    for (const char* name : {"a", "b"})
      std::ofstream(folder / name / kRootsName, std::ios::binary) << bytes;
    const auto [whole, beside_whole] = read_both_roots(folder / "one", folder / "a");
    const auto [both, of_both] = read_both_roots(folder / "a", folder / "b");
    EXPECT_TRUE(whole) << at;
    for (const auto& roots : {read_roots(folder / "a"), beside_whole, both, of_both}) {
      ASSERT_FALSE(roots) << at;
      EXPECT_EQ(roots.error().code, Errc::integrity) << at;
    }
  };
  for (std::size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
    bytes[bit / 8] ^= static_cast<char>(1U << bit % 8);
    expect_damage(bit);
    bytes[bit / 8] ^= static_cast<char>(1U << bit % 8);
  }
  while (!bytes.empty()) {
    bytes.pop_back();
    expect_damage(bytes.size());
  }
}

TEST_F(Sealing, GivesTheEventsThatWereGenerated) {
  test::TraceShape shape;
  test::write_trace(folder / "raw", shape);
  EXPECT_THAT(seal_to(folder / "raw", "s").faults, IsEmpty());
  const auto set = TraceSet::open(folder / "s", {}).value();
  Strings strings;
  const Events rank3 = set.read(3, 2, strings).value().events;
  std::size_t at = 0;
  test::generate_trace(shape, {}, [&](std::int64_t rank, const Event& event, const Strings& from) {
    if (rank != 3 || event.iteration != 2) return;
    ASSERT_LT(at, rank3.size());
    EXPECT_TRUE(equal(event, from, rank3[at], strings)) << from.text(event.site);
    EXPECT_EQ(event.duration_ns, rank3[at].duration_ns);
    ++at;
  });
  EXPECT_EQ(at, rank3.size());
}

TEST_F(Sealing, SealsWindowsBesideTrainingAndEndsAtTheSameRoots) {
  test::TraceShape shape;
  shape.iterations = 9;
  test::write_trace(folder / "whole", shape);
  seal_to(folder / "whole", "at-once", 2);
  // Training writes: some lines more each time, the last one often cut off.
  std::vector<std::string> ranks;
  for (int r = 0; r < 16; ++r) {
    char name[32];
    std::snprintf(name, sizeof name, "rank_%06d.jsonl", r);
    ranks.push_back(read_file(folder / "whole" / name).value());
  }
  fs::create_directories(folder / "raw");
  fs::copy_file(folder / "whole" / kManifestName, folder / "raw" / kManifestName);
  std::size_t written = 0;
  std::size_t before = 0;
  for (const double share : {0.1, 0.37, 0.6, 0.99, 1.0}) {
    for (std::size_t r = 0; r < ranks.size(); ++r) {
      char name[32];
      std::snprintf(name, sizeof name, "rank_%06d.jsonl", static_cast<int>(r));
      std::ofstream(folder / "raw" / name)
          << ranks[r].substr(0, static_cast<std::size_t>(share * double(ranks[r].size())));
    }
    const Sealed sealed = seal_to(folder / "raw", "s", 2, share < 1);
    EXPECT_THAT(sealed.faults, IsEmpty()) << share;
    EXPECT_EQ(sealed.files_kept, before) << share;
    written += sealed.files_written;
    before = written;
    EXPECT_EQ(TraceSet::open(folder / "s", {}).has_value(), share == 1.0) << share;
  }
  EXPECT_EQ(written, 16U * 5U);
  EXPECT_EQ(read_file(folder / "s/roots.bin").value(),
            read_file(folder / "at-once/roots.bin").value());
  const Sealed again = seal_to(folder / "raw", "s", 2);
  EXPECT_EQ(again.files_written, 0U);
  EXPECT_EQ(again.source_bytes, 0U);
}

TEST_F(Sealing, NodesMaySealTheirOwnRanks) {
  test::TraceShape shape;
  test::write_trace(folder / "raw", shape);
  SealOptions options;
  options.to = folder / "s";
  options.ranks = {0, 1, 2, 3};
  EXPECT_EQ(seal(folder / "raw", options)->files_written, 4U);
  EXPECT_EQ(TraceSet::open(folder / "s", {}).error().code, Errc::refused);
  const Sealed rest = seal_to(folder / "raw", "s");
  EXPECT_EQ(rest.files_kept, 4U);
  EXPECT_EQ(rest.files_written, 12U);
  EXPECT_EQ(rest.roots->hashes, roots_of_raw(folder / "raw").hashes);
}

TEST_F(Sealing, RefusesAFolderThatHoldsAnotherRun) {
  write("long/rank_000000.jsonl", lines(9));
  write("short/rank_000000.jsonl", lines(2));
  seal_to(folder / "long", "s");
  SealOptions options;
  options.to = folder / "s";
  const auto sealed = seal(folder / "short", options);
  ASSERT_FALSE(sealed);
  EXPECT_EQ(sealed.error().code, Errc::refused);
}

TEST_F(Sealing, NamesWhatIsWrongWithItsInput) {
  write("missing/rank_000000.jsonl", lines(2));
  write("missing/rank_000002.jsonl", lines(2, 2));
  EXPECT_THAT(faults_of("missing"), Contains(code("missing-rank")));

  write("duplicate/rank_000000.jsonl", lines(2));
  write("duplicate/rank_0.jsonl", lines(2));
  EXPECT_THAT(faults_of("duplicate"), Contains(code("duplicate-rank")));

  write("surplus/rank_000000.jsonl", lines(2));
  write("surplus/rank_000001.jsonl", lines(2, 1));
  write("surplus/manifest.json", R"({"world_size":1})");
  EXPECT_THAT(faults_of("surplus"), Contains(code("surplus-rank")));

  write("cut/rank_000000.jsonl", lines(3).substr(0, lines(3).size() - 30));
  EXPECT_THAT(faults_of("cut"), Contains(code("truncated")));

  std::string gap = lines(3);
  gap.replace(gap.find("\"sequence\":1"), 12, "\"sequence\":0");
  write("gap/rank_000000.jsonl", gap);
  EXPECT_THAT(faults_of("gap"), Contains(code("sequence-gap")));

  // With a manifest, sequences have no holes.
  gap = lines(3);
  gap.replace(gap.find("\"sequence\":2"), 12, "\"sequence\":3");
  write("hole/rank_000000.jsonl", gap);
  EXPECT_THAT(faults_of("hole"), IsEmpty());
  fs::remove_all(folder / "sealed-hole");
  write("hole/manifest.json", R"({"world_size":1})");
  EXPECT_THAT(faults_of("hole"), Contains(code("sequence-gap")));

  std::string twice = lines(3);
  twice.replace(twice.find("\"iteration\":2"), 13, "\"iteration\":1");
  write("twice/rank_000000.jsonl", twice);
  EXPECT_THAT(faults_of("twice"), Contains(code("duplicate-key")));

  write("mixed/rank_000000.jsonl",
        lines(1) + R"({"iteration":1,"kind":"phase","name":"x","payload":{},"rank":0,"sequence":1})"
                   "\n");
  EXPECT_THAT(faults_of("mixed"), Contains(code("mixed-schema")));

  write("two/rank_000000.jsonl", lines(1));
  write("two/rank_000001.jsonl",
        R"({"iteration":1,"kind":"phase","name":"x","payload":{},"rank":1,"sequence":0})"
        "\n");
  EXPECT_THAT(faults_of("two"), Contains(code("mixed-schema")));

  write("wrong/rank_000000.jsonl", lines(2, 5));
  EXPECT_THAT(faults_of("wrong"), Contains(code("wrong-rank")));

  write("garbage/rank_000000.jsonl", lines(2) + "{\"event\":\n" + "[1,2]\n");
  EXPECT_THAT(faults_of("garbage"), Contains(code("malformed")));

  write("short/rank_000000.jsonl", lines(3));
  write("short/rank_000001.jsonl", lines(2, 1));
  EXPECT_THAT(faults_of("short"), Contains(code("truncated")));

  write("long-name/rank_000000.jsonl", lines(2, 0, std::string(4096, 'n')));
  EXPECT_THAT(faults_of("long-name"), IsEmpty());
}

TEST_F(Sealing, ARecordMayHoldAnyNumberOfValues) {
  std::string fields = R"("value":1)";
  for (int i = 0; i < 40; ++i) fields += ",\"field" + std::to_string(i) + "\":" + std::to_string(i);
  write("many/rank_000000.jsonl",
        R"({"event":"event","fields":{)" + fields +
            R"(},"iteration":1,"name":"n","phase":"p","rank":0,"sequence":0})"
            "\n");
  EXPECT_THAT(faults_of("many"), IsEmpty());
  const auto set = TraceSet::open(folder / "many", {}).value();
  Strings strings;
  const Events events = set.read(0, 1, strings).value().events;
  ASSERT_EQ(events.size(), 41U);
  EXPECT_EQ(strings.text(events[40].site), "n.field39");
  EXPECT_EQ(events[40].value_bits, 39U);
  EXPECT_EQ(strings.text(events[40].phase), "p");
}

TEST_F(Sealing, ASymlinkLoopIsAnErrorAndNoHang) {
  fs::create_directories(folder / "raw");
  fs::create_symlink("rank_000000.jsonl", folder / "raw/rank_000000.jsonl");
  SealOptions options;
  options.to = folder / "s";
  const auto sealed = seal(folder / "raw", options);
  ASSERT_FALSE(sealed);
  EXPECT_THAT(sealed.error().describe(), HasSubstr("rank_000000.jsonl"));
  // A folder that holds itself.
  write("self/rank_000000.jsonl", lines(2));
  fs::create_directory_symlink(".", folder / "self/iter_0000001");
  EXPECT_FALSE(faults_of("self").empty());
}

TEST_F(Sealing, ASummaryThatLiesIsFoundWhenItIsRead) {
  test::TraceShape shape;
  test::write_trace(folder / "raw", shape);
  seal_to(folder / "raw", "s");
  Roots roots = read_roots(folder / "s").value();
  roots.hashes[5][0] ^= 1;  // rank 1, iteration 2
  ASSERT_TRUE(write_file_atomic(folder / "s" / kRootsName, pack_roots(roots)));
  const auto set = TraceSet::open(folder / "s", {}).value();
  Strings strings;
  EXPECT_TRUE(set.read(0, 2, strings));
  const auto lying = set.read(1, 2, strings);
  ASSERT_FALSE(lying);
  EXPECT_EQ(lying.error().code, Errc::integrity);
}

TEST(Ranks, AreWrittenAsRanges) {
  for (const char* text : {"", "0", "0-3", "0-3064:8", "1,5-6,9", "3,1-2", "0-4:2,7"}) {
    EXPECT_EQ(ranks_text(parse_ranks(text).value()), text);
  }
  for (const char* text : {"-", "a", "3-1", "0-9:0", "0-99999999999", "1,,2", "1-2-3"}) {
    EXPECT_FALSE(parse_ranks(text)) << text;
  }
}

}  // namespace
}  // namespace qualify::traces
