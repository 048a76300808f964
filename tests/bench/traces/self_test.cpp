// trace_self_test [CASES] [SEED]: plants divergences of every kind at places drawn at random, into
// runs of 48 ranks (tp 2, pp 3, dp 8, ep 4), localises each from raw and from sealed traces, and
// prints the confusion table of docs/gates/localization.md. Exit 1 where one is not found as it was
// planted.

#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <map>
#include <string>

#include "qualify/traces/seal.hpp"
#include "support/planted.hpp"

namespace {

namespace fs = std::filesystem;
using namespace qualify;

traces::Localization localize(const fs::path& a, const fs::path& b) {
  const auto in_a = traces::TraceSet::open(a, {}).value();
  const auto in_b = traces::TraceSet::open(b, {}).value();
  return traces::localize(in_a, in_b, {}).value();
}

fs::path sealed(const fs::path& raw) {
  traces::SealOptions options;
  options.to = raw.string() + ".sealed";
  (void)traces::seal(raw, options).value();
  return options.to;
}

struct Row {
  std::size_t cases = 0;
  std::size_t right = 0;
  std::map<std::string, std::size_t> classes;
  std::map<std::string, std::size_t> wrong;
};

}  // namespace

int main(int argc, char** argv) {
  const std::size_t count = argc > 1 ? std::strtoul(argv[1], nullptr, 10) : 10;
  const std::uint64_t seed = argc > 2 ? std::strtoul(argv[2], nullptr, 10) : 1;
  test::TraceShape shape;
  shape.tp = 2;
  shape.pp = 3;
  shape.dp = 8;
  shape.ep = 4;
  shape.iterations = 5;
  std::string folder = (fs::temp_directory_path() / "qualify-self-test.XXXXXX").string();
  if (::mkdtemp(folder.data()) == nullptr) return 2;
  const fs::path root = folder;
  std::map<int, Row> rows;
  std::size_t number = 0;
  // What a run is held against depends on its shape alone: ordinary, or resumed.
  std::map<bool, fs::path> plain;
  for (const test::Case& planted : test::many_of_each(shape, count, seed)) {
    if (!plain.contains(planted.shape.resumed)) {
      const fs::path a = root / (planted.shape.resumed ? "resumed" : "plain");
      test::write_trace(a, planted.shape);
      (void)sealed(a);
      plain[planted.shape.resumed] = a;
    }
    const fs::path& a = plain[planted.shape.resumed];
    const fs::path b = root / std::to_string(number++);
    test::write_trace(b, planted.shape, {planted.plant});
    Row& row = rows[static_cast<int>(planted.plant.what)];
    for (const bool seal : {false, true}) {
      const auto found = seal ? localize(a.string() + ".sealed", sealed(b)) : localize(a, b);
      const std::string wrong = test::verdict(planted, found);
      ++row.cases;
      if (wrong.empty()) ++row.right;
      if (!wrong.empty()) ++row.wrong[wrong];
      ++row.classes[found.frontier.empty() ? std::string("none")
                                           : std::string(name_of(found.frontier.front().cause)) +
                                                 ", " + name_of(found.frontier.front().difference)];
    }
    fs::remove_all(b);
    fs::remove_all(b.string() + ".sealed");
  }
  // Nothing planted, nothing found.
  Row& nothing = rows[0];
  for (const auto& [resumed, a] : plain) {
    nothing.cases += 2;
    const auto raw = localize(a, a.string() + ".sealed");
    const auto by_roots = localize(a.string() + ".sealed", a.string() + ".sealed");
    for (const auto& found : {raw, by_roots}) {
      nothing.right += found.outcome == traces::Outcome::equal ? 1 : 0;
      ++nothing.classes[name_of(found.outcome)];
    }
  }
  fs::remove_all(root);

  bool all = true;
  fmt::print(
      "| planted | cases | right place, class and interval | found as |\n|---|---|---|---|\n");
  for (const auto& [kind, row] : rows) {
    std::string classes;
    for (const auto& [name, n] : row.classes)
      classes += fmt::format("{}{} ({})", classes.empty() ? "" : "; ", name, n);
    fmt::print("| {} | {} | {} | {} |\n", test::name_of(static_cast<test::Planted>(kind)),
               row.cases, row.right, classes);
    all = all && row.right == row.cases;
    for (const auto& [what, n] : row.wrong)
      fmt::print(stderr, "{}: {} ({})\n", test::name_of(static_cast<test::Planted>(kind)), what, n);
  }
  return all ? 0 : 1;
}
