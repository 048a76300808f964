#include "qualify/traces/localize.hpp"

#include <gmock/gmock.h>
#include <openssl/evp.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "frontier.hpp"
#include "qualify/base/files.hpp"
#include "qualify/traces/seal.hpp"
#include "qualify/traces/sealed_file.hpp"
#include "support/planted.hpp"
#include "support/temp_folder.hpp"
#include "support/trace_generator.hpp"

namespace qualify::traces {
namespace {

using test::Plant;
using test::Planted;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class Localizing : public ::testing::Test {
 protected:
  void write(const std::string& name, const std::vector<Plant>& plants,
             const test::TraceShape& shape = {}) {
    test::write_trace(folder / name, shape, plants);
  }
  void seal_all(std::initializer_list<const char*> names) {
    for (const char* name : names) {
      SealOptions options;
      options.to = folder / (std::string(name) + ".sealed");
      options.window = 3;
      ASSERT_TRUE(seal(folder / name, options));
    }
  }
  Result<Localization> find(const std::string& a, const std::string& b, bool full = false) {
    const auto in_a = TraceSet::open(folder / a, {});
    if (!in_a) return tl::unexpected(in_a.error());
    const auto in_b = TraceSet::open(folder / b, {});
    if (!in_b) return tl::unexpected(in_b.error());
    LocalizeOptions options;
    options.full = full;
    return localize(*in_a, *in_b, options);
  }
  /// Hand-made traces of one rank: a record for each name and value.
  void write_rank(const std::string& name, std::int64_t rank,
                  const std::vector<std::pair<std::string, int>>& events) {
    fs::create_directories(folder / name);
    char file[32];
    std::snprintf(file, sizeof file, "rank_%06d.jsonl", static_cast<int>(rank));
    std::ofstream out(folder / name / file);
    int sequence = 0;
    for (const auto& [site, value] : events) {
      out << Json{{"event", "event"},      {"fields", {{"value", value}}},
                  {"iteration", 1},        {"microbatch", nullptr},
                  {"name", site},          {"phase", "train"},
                  {"rank", rank},          {"schema_version", 1},
                  {"sequence", sequence++}}
                 .dump()
          << '\n';
    }
  }
  static std::string base64(const std::string& text) {
    std::string out(4 * ((text.size() + 2) / 3) + 1, '\0');
    const int size = EVP_EncodeBlock(reinterpret_cast<unsigned char*>(out.data()),
                                     reinterpret_cast<const unsigned char*>(text.data()),
                                     static_cast<int>(text.size()));
    out.resize(static_cast<std::size_t>(size));
    return out;
  }
  test::TempFolder folder{test::memory_folder()};
};

/// Every plant, raw and sealed: the right place and the right class.
class Plants : public Localizing, public ::testing::WithParamInterface<test::Case> {};

TEST_P(Plants, AreFoundWhereTheyArePlanted) {
  const test::Case& planted = GetParam();
  write("a", {}, planted.shape);
  write("b", {planted.plant}, planted.shape);
  seal_all({"a", "b"});
  for (const auto& [a, b] :
       {std::pair("a", "b"), std::pair("a.sealed", "b.sealed"), std::pair("a", "b.sealed")}) {
    const auto found = find(a, b);
    ASSERT_TRUE(found) << found.error().describe();
    EXPECT_EQ(test::verdict(planted, *found), "") << to_json(*found).dump(1);
  }
}

INSTANTIATE_TEST_SUITE_P(Each, Plants, ::testing::ValuesIn(test::one_of_each()),
                         [](const auto& of) { return test::test_name(of.param); });

TEST_F(Localizing, RunsThatAreEqualAreEqual) {
  write("a", {});
  write("b", {});
  seal_all({"a", "b"});
  EXPECT_EQ(find("a", "b")->outcome, Outcome::equal);
  const auto by_roots = find("a.sealed", "b.sealed");
  EXPECT_EQ(by_roots->outcome, Outcome::equal);
  EXPECT_THAT(by_roots->reasons, ElementsAre(HasSubstr("by the sealed roots")));
  EXPECT_EQ(by_roots->events_read, 0U);
  const auto full = find("a.sealed", "b.sealed", true);
  EXPECT_EQ(full->outcome, Outcome::equal);
  EXPECT_TRUE(full->full);
  EXPECT_THAT(full->reasons, IsEmpty());
}

TEST_F(Localizing, FirstIsBySequenceAndNotByName) {
  write_rank("a", 0, {{"m", 0}, {"n", 0}, {"z", 1}, {"k", 0}, {"a", 1}});
  write_rank("b", 0, {{"m", 0}, {"n", 0}, {"z", 2}, {"k", 0}, {"a", 2}});
  const auto found = find("a", "b").value();
  ASSERT_EQ(found.frontier.size(), 1U);
  EXPECT_EQ(found.frontier[0].place.site, "z");
  EXPECT_EQ(found.frontier[0].last_equal->site, "n");
  EXPECT_EQ(found.frontier[0].differing, 2U);
}

TEST_F(Localizing, WhereEachOfTwoRanksWasReachedByTheOtherBothAreNamed) {
  // One batch of exchanges, the receive posted first on both.
  for (const auto& [name, value] : {std::pair("a", 1), std::pair("b", 2)}) {
    fs::create_directories(folder / name);
    for (int rank = 0; rank < 2; ++rank) {
      std::ofstream out(folder / name / ("rank_00000" + std::to_string(rank) + ".jsonl"));
      int sequence = 0;
      for (const auto& [role, number] : {std::pair("recv", 1 - rank), std::pair("send", rank)}) {
        out << Json{{"event", "tensor"},
                    {"fields",
                     {{"kind", "p2p"},
                      {"op", "sendrecv"},
                      {"role", role},
                      {"peer", 1 - rank},
                      {"group", "pp"},
                      {"group_seq", number},
                      {"value", value}}},
                    {"iteration", 1},
                    {"microbatch", 0},
                    {"name", "x" + std::to_string(number)},
                    {"phase", "forward"},
                    {"rank", rank},
                    {"schema_version", 1},
                    {"sequence", sequence++}}
                   .dump()
            << '\n';
      }
    }
  }
  const auto found = find("a", "b").value();
  EXPECT_EQ(found.outcome, Outcome::differs);
  ASSERT_FALSE(found.frontier.empty());
  std::vector<std::int64_t> ranks;
  for (const FrontierEvent& event : found.frontier) {
    ranks.insert(ranks.end(), event.ranks.begin(), event.ranks.end());
  }
  EXPECT_THAT(ranks, ::testing::UnorderedElementsAre(0, 1));
  EXPECT_THAT(found.followers, IsEmpty());
}

TEST_F(Localizing, SequencesOfUnequalLengthAreAlignedAndNotZipped) {
  std::vector<std::pair<std::string, int>> all;
  std::vector<std::pair<std::string, int>> some;
  for (int i = 0; i < 313; ++i) {
    all.emplace_back("op" + std::to_string(i), i);
    if (i < 100 || i >= 166) some.emplace_back(all.back());
  }
  write_rank("a", 0, all);
  write_rank("b", 0, some);
  const auto found = find("a", "b").value();
  ASSERT_EQ(found.frontier.size(), 1U);
  EXPECT_EQ(found.frontier[0].difference, Difference::dropped);
  EXPECT_EQ(found.frontier[0].place.site, "op100");
  EXPECT_EQ(found.frontier[0].differing, 66U);
  const auto back = find("b", "a").value();
  EXPECT_EQ(back.frontier[0].difference, Difference::inserted);
  EXPECT_EQ(back.frontier[0].place.site, "op100");
}

TEST_F(Localizing, TheOneOfSeveralThatIsGoneIsTold) {
  write_rank("a", 0, {{"op", 1}, {"op", 2}, {"op", 3}, {"op", 4}});
  write_rank("b", 0, {{"op", 1}, {"op", 3}, {"op", 4}});
  const auto found = find("a", "b").value();
  EXPECT_EQ(found.frontier[0].difference, Difference::dropped);
  EXPECT_EQ(found.frontier[0].place.occurrence, 1);
}

TEST_F(Localizing, TwoIndependentOriginsAreBothInTheFrontier) {
  // Ranks of different pipelines and data-parallel places, one microbatch each.
  write("a", {});
  write("b", {{Planted::tensor_bit, 2, 0, 0, 0}, {Planted::tensor_bit, 2, 6, 0, 1}});
  const auto found = find("a", "b").value();
  ASSERT_EQ(found.frontier.size(), 2U) << to_json(found).dump(1);
  EXPECT_THAT(found.frontier[0].ranks, ElementsAre(0));
  EXPECT_THAT(found.frontier[1].ranks, ElementsAre(6));
  EXPECT_EQ(found.followers.size(), 14U);
}

TEST_F(Localizing, WhatComesFromARankThatWasNotRecordedIsUpstream) {
  const Plant plant{Planted::transport_bit, 2, 9, 0, 0};
  write("a", {});
  write("b", {plant});
  for (const char* run : {"a", "b"}) fs::remove(folder / run / "rank_000001.jsonl");
  const auto found = find("a", "b").value();
  EXPECT_EQ(found.outcome, Outcome::differs);
  ASSERT_FALSE(found.frontier.empty());
  EXPECT_EQ(found.frontier[0].cause, Cause::upstream);
  EXPECT_EQ(found.frontier[0].place.peer, 1);
}

TEST_F(Localizing, EqualButIncompleteIsInconclusive) {
  write("a", {});
  write("b", {});
  fs::remove(folder / "b/rank_000003.jsonl");
  const auto missing = find("a", "b").value();
  EXPECT_EQ(missing.outcome, Outcome::inconclusive);
  EXPECT_THAT(missing.reasons, Not(IsEmpty()));
  write("c", {});
  const std::string whole = read_file(folder / "c/rank_000002.jsonl").value();
  std::ofstream(folder / "c/rank_000002.jsonl") << whole.substr(0, whole.size() - 40);
  const auto cut = find("a", "c").value();
  // The last iteration differs in what is left of it, or nothing does; never equal.
  EXPECT_NE(cut.outcome, Outcome::equal);
  seal_all({"a", "c"});
  EXPECT_NE(find("a.sealed", "c.sealed")->outcome, Outcome::equal);
}

TEST_F(Localizing, RefusesRunsThatAreNotOfOneThing) {
  write("a", {});
  for (const auto& [member, value] :
       std::vector<std::pair<std::string, Json>>{{"seed", "1"},
                                                 {"capture_plan", "other"},
                                                 {"capture_level", "L2"},
                                                 {"digest_algorithm", "sha256"},
                                                 {"groups", Json::object()}}) {
    fs::remove_all(folder / "b");
    write("b", {});
    Json manifest = Json::parse(read_file(folder / "b/manifest.json").value());
    manifest[member] = value;
    std::ofstream(folder / "b/manifest.json") << manifest.dump();
    const auto found = find("a", "b");
    ASSERT_FALSE(found) << member;
    EXPECT_EQ(found.error().code, Errc::refused) << member;
  }
  fs::remove(folder / "b/manifest.json");
  EXPECT_EQ(find("a", "b").error().code, Errc::refused);
}

TEST_F(Localizing, DigestsOfDifferentAlgorithmsAreRefused) {
  const std::string record =
      R"({"event":"tensor","iteration":1,"metadata":{},"microbatch":0,"name":"w","occurrence":0,)"
      R"("phase":"forward","rank":0,"schema_version":1,"sequence":0,"tensor":{"dtype":"float32",)";
  fs::create_directories(folder / "a");
  fs::create_directories(folder / "b");
  std::ofstream(folder / "a/rank_000000.jsonl") << record << R"("digest":")" << std::string(32, '1')
                                                << R"(","mode":"device","shape":[2]}})" << '\n';
  std::ofstream(folder / "b/rank_000000.jsonl") << record << R"("sha256":")" << std::string(64, '1')
                                                << R"(","mode":"full","shape":[2]}})" << '\n';
  const auto found = find("a", "b");
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().code, Errc::refused);
  EXPECT_THAT(found.error().message, HasSubstr("device in A, sha256 in B"));
}

TEST_F(Localizing, AFileCutWithinAFrameIsAnIntegrityFault) {
  write("a", {});
  write("b", {{Planted::tensor_bit, 2, 5, 0, 0}});
  seal_all({"a", "b"});
  const fs::path file = folder / "b.sealed/rank_000005.iter_0000001.arrow";
  const std::string whole = read_file(file).value();
  std::ofstream(file) << whole.substr(0, whole.size() / 2);
  EXPECT_EQ(find("a.sealed", "b.sealed").error().code, Errc::integrity);
  // Damage within a frame, everything else in its place.
  std::string damaged = whole;
  const std::size_t frame = damaged.find("\x28\xb5\x2f\xfd");
  ASSERT_NE(frame, std::string::npos);
  for (std::size_t i = frame + 6; i < frame + 12; ++i) damaged[i] = static_cast<char>(~damaged[i]);
  std::ofstream(file) << damaged;
  EXPECT_EQ(find("a.sealed", "b.sealed").error().code, Errc::integrity);
}

TEST_F(Localizing, ASummaryThatLiesIsFound) {
  write("a", {});
  write("b", {{Planted::tensor_bit, 2, 5, 0, 0}});
  seal_all({"a", "b"});
  // b's roots say that b is a: equal by roots, and found out by --full.
  Roots roots = read_roots(folder / "a.sealed").value();
  ASSERT_TRUE(write_file_atomic(folder / "b.sealed" / kRootsName, pack_roots(roots)));
  EXPECT_EQ(find("a.sealed", "b.sealed")->outcome, Outcome::equal);
  EXPECT_EQ(find("a.sealed", "b.sealed", true).error().code, Errc::integrity);
  // b's roots differ where its rows do not: the verdict rests on it, and it is read.
  roots.hashes[3][3] ^= 1;
  write("c", {});
  seal_all({"c"});
  ASSERT_TRUE(write_file_atomic(folder / "c.sealed" / kRootsName, pack_roots(roots)));
  EXPECT_EQ(find("a.sealed", "c.sealed").error().code, Errc::integrity);
}

TEST_F(Localizing, ASummaryThatLiesUnderRootsThatAgreeWithItIsFound) {
  write("a", {});
  write("b", {{Planted::tensor_bit, 2, 5, 0, 0}});
  seal_all({"a", "b"});
  // b's rows of rank 5 behind a's summary, under a's roots.
  const char* name = "rank_000005.iter_0000001.arrow";
  const auto in_footer = [&](const char* which) {
    return base64(pack(SealedFile::open(folder / which / name)->summary()));
  };
  const std::string own = in_footer("b.sealed");
  const std::string other = in_footer("a.sealed");
  std::string file = read_file(folder / "b.sealed" / name).value();
  ASSERT_NE(own, other);
  ASSERT_EQ(own.size(), other.size());
  ASSERT_NE(file.find(own), std::string::npos);
  file.replace(file.find(own), own.size(), other);
  for (const auto& entry : fs::directory_iterator(folder / "a.sealed")) {
    fs::copy(entry.path(), folder / "b.sealed" / entry.path().filename(),
             fs::copy_options::overwrite_existing);
  }
  std::ofstream(folder / "b.sealed" / name) << file;
  EXPECT_EQ(find("a.sealed", "b.sealed")->outcome, Outcome::equal) << "nothing rests on rows yet";
  const auto full = find("a.sealed", "b.sealed", true);
  ASSERT_FALSE(full);
  EXPECT_EQ(full.error().code, Errc::integrity);
  EXPECT_THAT(full.error().describe(), HasSubstr(name));
  // Where a verdict rests on it, it is read and found out as well.
  write("c", {{Planted::tensor_bit, 2, 5, 1, 0}});
  seal_all({"c"});
  const auto resting = find("c.sealed", "b.sealed");
  ASSERT_FALSE(resting);
  EXPECT_EQ(resting.error().code, Errc::integrity);
}

TEST_F(Localizing, RunsOfTwoSchemasAreRefused) {
  fs::create_directories(folder / "a");
  fs::create_directories(folder / "b");
  std::ofstream(folder / "a/rank_000000.jsonl")
      << R"({"event":"event","fields":{"value":1},"iteration":1,"name":"loss","phase":"train",)"
      << R"("rank":0,"sequence":0})" << '\n';
  std::ofstream(folder / "b/rank_000000.jsonl")
      << R"({"iteration":1,"kind":"scalar","name":"loss","payload":{"value":2},"phase":"train",)"
      << R"("rank":0,"sequence":0})" << '\n';
  const auto refused = [&](const char* a, const char* b) {
    const auto found = find(a, b);
    return !found && found.error().code == Errc::refused;
  };
  EXPECT_TRUE(refused("a", "b"));
  seal_all({"a", "b"});
  EXPECT_TRUE(refused("a.sealed", "b.sealed"));
}

TEST_F(Localizing, NamesOfFourKilobytesAreToldApart) {
  const std::string longest(4096, 'n');
  write_rank("a", 0, {{longest + "a", 1}, {longest + "b", 1}});
  write_rank("b", 0, {{longest + "a", 1}, {longest + "b", 2}});
  seal_all({"a", "b"});
  for (const char* suffix : {"", ".sealed"}) {
    const auto found = find(std::string("a") + suffix, std::string("b") + suffix);
    ASSERT_TRUE(found) << found.error().describe();
    ASSERT_EQ(found->frontier.size(), 1U);
    EXPECT_EQ(found->frontier[0].place.site, longest + "b");
  }
}

TEST_F(Localizing, ThePlanGetsFinerUntilNothingIsLeft) {
  // Loss differs, and nothing between it and the iteration's beginning was recorded.
  write_rank("a", 0, {{"loss", 1}});
  write_rank("b", 0, {{"loss", 2}});
  const auto found = find("a", "b").value();
  ASSERT_TRUE(found.capture_plan);
  EXPECT_EQ(found.capture_plan->level, Level::L1);
  EXPECT_EQ(found.capture_plan->first_iteration, 1);
  const auto read = parse_capture_plan(to_json(*found.capture_plan), "test");
  EXPECT_EQ(*read, *found.capture_plan);
  // Sums over a phase have no module to look into.
  write_rank("c", 0, {{"summary.data", 1}, {"summary.tensor", 1}});
  write_rank("d", 0, {{"summary.data", 1}, {"summary.tensor", 2}});
  EXPECT_THAT(find("c", "d")->capture_plan->sites, IsEmpty());
}

TEST(Arrivals, FollowCollectivesAndNotTime) {
  // Three ranks; rank 0 differs at 5; operation 1 joins 0 and 1, operation 2 joins 1 and 2.
  const std::vector<Crossing> crossings = {{1, 0, 11, 12, true, true},
                                           {1, 1, 3, 4, true, true},
                                           {2, 1, 8, 9, true, true},
                                           {2, 2, 1, 2, true, true}};
  EXPECT_THAT(earliest_arrivals({5, kNever, kNever}, crossings), ElementsAre(kNever, 4, 2));
  // Operation 2 before operation 1 on rank 1: nothing reaches rank 2.
  const std::vector<Crossing> other = {{1, 0, 11, 12, true, true},
                                       {1, 1, 8, 9, true, true},
                                       {2, 1, 3, 4, true, true},
                                       {2, 2, 1, 2, true, true}};
  EXPECT_THAT(earliest_arrivals({5, kNever, kNever}, other), ElementsAre(kNever, 9, kNever));
  // A receiver gives nothing back.
  const std::vector<Crossing> sent = {{1, 0, 11, 11, true, false}, {1, 1, 3, 3, false, true}};
  EXPECT_THAT(earliest_arrivals({kNever, 1}, sent), ElementsAre(kNever, kNever));
  EXPECT_THAT(earliest_arrivals({1, kNever}, sent), ElementsAre(kNever, 3));
}

}  // namespace
}  // namespace qualify::traces
