// trace_generate DIR RANKS ITERATIONS [KIND ITERATION RANK]: JSON Lines of a run with about 100
// rows a rank and iteration (tp 8, pp 4, the rest dp, ep 8), with a planted divergence of KIND (a
// number of test::Planted) where there is one.

#include <fmt/format.h>

#include <cstdlib>

#include "support/trace_generator.hpp"

int main(int argc, char** argv) {
  if (argc != 4 && argc != 7) return 2;
  const auto number = [&](int at) { return std::strtol(argv[at], nullptr, 10); };
  qualify::test::TraceShape shape;
  shape.tp = 8;
  shape.pp = 4;
  shape.dp = number(2) / (shape.tp * shape.pp);
  shape.ep = shape.dp % 8 == 0 ? 8 : 1;
  shape.layers = 2;
  shape.microbatches = 2;
  shape.buckets = 12;
  shape.iterations = number(3);
  if (shape.ranks() != number(2)) return 2;
  std::vector<qualify::test::Plant> plants;
  if (argc == 7) {
    plants.push_back({static_cast<qualify::test::Planted>(number(4)), number(5), number(6), 0, 0});
  }
  qualify::test::write_trace(argv[1], shape, plants);
  return 0;
}
