#include <gmock/gmock.h>

#include <bit>
#include <cmath>
#include <fstream>
#include <limits>

#include "crc32c.hpp"
#include "event_file.pb.h"
#include "qualify/base/files.hpp"
#include "qualify/evidence/metrics.hpp"
#include "support/temp_folder.hpp"

namespace qualify::evidence {
namespace {

void append_raw(std::string& to, const void* from, std::size_t size) {
  to.append(static_cast<const char*>(from), size);
}

std::string framed(const std::string& data) {
  std::string out;
  const std::uint64_t length = data.size();
  append_raw(out, &length, 8);
  std::uint32_t crc = mask_crc(crc32c(std::as_bytes(std::span(out))));
  append_raw(out, &crc, 4);
  out += data;
  crc = mask_crc(crc32c(std::as_bytes(std::span(data))));
  append_raw(out, &crc, 4);
  return out;
}

std::string header(double wall) {
  wire::Event event;
  event.set_wall_time(wall);
  event.set_file_version("brain.Event:2");
  return framed(event.SerializeAsString());
}

std::string scalar(const std::string& tag, std::int64_t step, float value, double wall) {
  wire::Event event;
  event.set_wall_time(wall);
  event.set_step(step);
  auto* one = event.mutable_summary()->add_value();
  one->set_tag(tag);
  one->set_simple_value(value);
  return framed(event.SerializeAsString());
}

RunMetrics read(const fs::path& path) {
  auto run = read_metrics(path);
  EXPECT_TRUE(run) << (run ? "" : run.error().describe());
  return run ? std::move(*run) : RunMetrics{};
}

void write(const fs::path& path, const std::string& content) {
  ASSERT_TRUE(make_folders(path.parent_path()));
  std::ofstream(path, std::ios::binary) << content;
}

std::vector<std::string> codes(const RunMetrics& run) {
  std::vector<std::string> all;
  for (const auto& fault : run.faults) all.push_back(fault.code);
  return all;
}

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// RFC 3720 appendix B.4.
TEST(Crc32c, TheExamplesOfTheRfc) {
  std::string bytes(32, '\0');
  EXPECT_EQ(crc32c(std::as_bytes(std::span(bytes))), 0x8A9136AAU);
  bytes.assign(32, '\xFF');
  EXPECT_EQ(crc32c(std::as_bytes(std::span(bytes))), 0x62A8AB43U);
  for (std::size_t i = 0; i < 32; ++i) bytes[i] = static_cast<char>(i);
  EXPECT_EQ(crc32c(std::as_bytes(std::span(bytes))), 0x46DD794EU);
}

TEST(EventFile, KeepsEveryBitOfAFloat) {
  const test::TempFolder folder;
  std::string content = header(1);
  const std::uint32_t patterns[] = {0x7FC00001, 0xFFC12345, 0x80000000, 0x00000001,
                                    0x7F800000, 0xFF800000, 0x3F800001};
  std::int64_t step = 0;
  for (const auto bits : patterns) {
    ++step;
    content += scalar("lm loss", step, std::bit_cast<float>(bits), static_cast<double>(step));
  }
  write(folder / "any-name", content);
  const auto run = read(folder.path());
  step = 0;
  for (const auto bits : patterns) EXPECT_EQ(run.series.at("lm loss").values.at(++step).bits, bits);
  EXPECT_THAT(run.faults, IsEmpty());
}

TEST(EventFile, FilesOfARestartedRunAreOneRun) {
  const test::TempFolder folder;
  // Names sort against time: the first record's time is what orders them.
  write(folder / "z.tfevents.1", header(10) + scalar("lm loss", 1, 1.F, 11) +
                                     scalar("lm loss", 2, 2.F, 12) + scalar("lm loss", 3, 3.F, 13));
  write(folder / "b.tfevents.2", header(20));
  write(folder / "a.tfevents.3",
        header(30) + scalar("lm loss", 3, 3.F, 31) + scalar("lm loss", 4, 4.F, 32));
  const auto run = read(folder.path());
  EXPECT_EQ(run.series.at("lm loss").values.size(), 4U);
  EXPECT_THAT(run.faults, IsEmpty());
  EXPECT_EQ(run.sources.size(), 3U);
}

TEST(EventFile, ARepeatedStepThatDiffersAfterARestartIsAFault) {
  const test::TempFolder folder;
  write(folder / "a.tfevents.1",
        header(10) + scalar("lm loss", 3, 3.F, 11) + scalar("grad-norm", 3, 3.F, 12));
  write(folder / "b.tfevents.2",
        header(30) + scalar("lm loss", 3, 3.5F, 31) + scalar("grad-norm", 3, 3.F, 32));
  EXPECT_THAT(codes(read(folder.path())), ElementsAre("duplicate-step"));
}

TEST(EventFile, TheSameStepTwiceInOneFileIsAFaultEvenIfEqual) {
  const test::TempFolder folder;
  write(folder / "a.tfevents",
        header(1) + scalar("lm loss", 3, 3.F, 2) + scalar("lm loss", 3, 3.F, 3));
  EXPECT_THAT(codes(read(folder.path())), ElementsAre("duplicate-step"));
}

TEST(EventFile, ACopyBesideItIsNotASecondPart) {
  const test::TempFolder folder;
  const auto content = header(1) + scalar("lm loss", 1, 3.F, 2) + scalar("lm loss", 2, 3.F, 3);
  write(folder / "a.tfevents", content);
  write(folder / "b.tfevents", content);
  EXPECT_THAT(codes(read(folder.path())), ElementsAre("copied-file"));
}

TEST(EventFile, EveryCutLeavesAFaultOrWholeRecords) {
  const test::TempFolder folder;
  const auto first = header(1);
  const auto second = scalar("lm loss", 1, 3.F, 2);
  const auto content = first + second;
  for (std::size_t size = 0; size <= content.size(); ++size) {
    write(folder / "a.tfevents", content.substr(0, size));
    const bool whole = size == first.size() || size == content.size();
    EXPECT_EQ(read(folder / "a.tfevents").faults.empty(), whole) << size;
  }
}

TEST(EventFile, EveryFlippedBitIsFound) {
  const test::TempFolder folder;
  const auto content = header(1) + scalar("lm loss", 1, 3.F, 2) + scalar("lm loss", 2, 4.F, 3);
  for (std::size_t bit = 0; bit < content.size() * 8; ++bit) {
    auto damaged = content;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ static_cast<char>(1 << (bit % 8)));
    write(folder / "a.tfevents", damaged);
    EXPECT_FALSE(read(folder / "a.tfevents").faults.empty()) << bit;
  }
}

TEST(EventFile, ADamagedFileInAFolderIsNeverPassedOver) {
  const test::TempFolder folder;
  write(folder / "good.tfevents.1", header(1) + scalar("lm loss", 1, 3.F, 2));
  write(folder / "events.out.tfevents.2", "not an event file at all");
  write(folder / "weights.pt", std::string("PK\x03\x04\0\0\0", 7));
  EXPECT_THAT(codes(read(folder.path())), ElementsAre("bad-crc"));
}

TEST(EventFile, TwinsBySamplesAreLeftOutWhenTheyAgreeAndAFaultWhenNot) {
  const test::TempFolder folder;
  write(folder / "a.tfevents",
        header(1) + scalar("lm loss", 1, 3.F, 2) + scalar("lm loss vs samples", 16, 3.F, 2) +
            scalar("lm loss", 2, 4.F, 2) + scalar("lm loss vs samples", 32, 4.F, 2));
  auto run = read(folder.path());
  EXPECT_EQ(run.series.size(), 1U);
  EXPECT_THAT(run.faults, IsEmpty());
  write(folder / "a.tfevents",
        header(1) + scalar("lm loss", 1, 3.F, 2) + scalar("lm loss vs samples", 16, 3.5F, 2) +
            scalar("lm loss", 2, 4.F, 2) + scalar("lm loss vs samples", 32, 4.F, 2));
  EXPECT_THAT(codes(read(folder.path())), ElementsAre("twin-differs"));
}

}  // namespace
}  // namespace qualify::evidence
