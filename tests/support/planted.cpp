#include "support/planted.hpp"

#include <cctype>
#include <ostream>
#include <random>

#include "qualify/traces/manifest.hpp"

namespace qualify::test {

namespace {

using traces::Cause;
using traces::Difference;

constexpr int kKinds = static_cast<int>(Planted::wrong_checkpoint);

/// Members of the tensor-parallel group of a rank: consecutive ranks.
std::vector<std::int64_t> tp_group(const TraceShape& shape, std::int64_t rank) {
  std::vector<std::int64_t> ranks;
  for (std::int64_t t = 0; t < shape.tp; ++t) ranks.push_back(rank / shape.tp * shape.tp + t);
  return ranks;
}

Case expected(TraceShape shape, Plant plant) {
  Case out;
  out.ranks = {plant.rank};
  out.phase = "forward";
  const std::int64_t stage = plant.rank / (shape.tp * shape.dp);
  const std::string layer = "decoder.layers." + std::to_string(stage * shape.layers + plant.layer);
  switch (plant.what) {
    case Planted::nothing:
      break;
    case Planted::tensor_bit:
      out.site = layer + ".attention";
      break;
    case Planted::healing_bit:
      out.site = layer + ".attention";
      out.heals = plant.iteration < shape.first_iteration + shape.iterations - 1;
      break;
    case Planted::permuted:
      out.cause = Cause::permutation;
      out.difference = Difference::permutation;
      out.site = layer + ".experts";
      out.one_event = false;
      out.heals = plant.iteration < shape.first_iteration + shape.iterations - 1;
      break;
    case Planted::dropped_event:
      out.cause = Cause::control_flow;
      out.difference = Difference::dropped;
      out.site = layer + ".attention";
      out.one_event = false;
      out.heals = plant.iteration < shape.first_iteration + shape.iterations - 1;
      break;
    case Planted::inserted_event:
      out.cause = Cause::control_flow;
      out.difference = Difference::inserted;
      out.site = layer + ".attention.retry";
      out.one_event = false;
      out.heals = plant.iteration < shape.first_iteration + shape.iterations - 1;
      break;
    case Planted::reordered:
      out.cause = Cause::control_flow;
      out.difference = Difference::moved;
      out.site = "bucket.0";
      out.phase = "grad-reduce";
      out.one_event = false;
      out.ranks.clear();
      for (std::int64_t r = 0; r < shape.ranks(); ++r) out.ranks.push_back(r);
      break;
    case Planted::collective_bit:
      out.cause = Cause::collective;
      out.site = layer + ".attention.proj";
      out.ranks = tp_group(shape, plant.rank);
      break;
    case Planted::one_member_bit:
      out.cause = Cause::collective;
      out.site = layer + ".attention.proj";
      break;
    case Planted::transport_bit:
      out.cause = Cause::transport;
      out.site = "pipeline";
      break;
    case Planted::routing:
      out.cause = Cause::routing;
      out.site = layer + ".router";
      out.one_event = false;
      break;
    case Planted::nan_payload:
      out.difference = Difference::nan_payload;
      out.site = "lm loss";
      out.phase = "train";
      out.one_event = false;
      out.heals = shape.first_iteration + shape.iterations - 1 > 3;
      break;
    case Planted::wrong_data:
      out.cause = Cause::data;
      out.site = "tokens";
      out.phase = "data";
      break;
    case Planted::wrong_rng:
      out.cause = Cause::rng;
      out.site = "rng.state";
      out.phase = "train";
      // Of later stages nothing depends on it here.
      out.heals = stage > 0 && plant.iteration < shape.first_iteration + shape.iterations - 1;
      break;
    case Planted::wrong_checkpoint:
      out.cause = Cause::checkpoint;
      out.site = "checkpoint.weights";
      out.phase = "load";
      break;
  }
  out.shape = shape;
  out.plant = plant;
  return out;
}

/// What the kind asks of the place.
void adapt(TraceShape& shape, Plant& plant) {
  if (plant.what == Planted::nan_payload) plant.iteration = 3;
  if (plant.what == Planted::wrong_data) {
    plant.iteration = shape.first_iteration;
    plant.rank %= shape.tp * shape.dp;  // later stages get theirs from the first
  }
  if (plant.what == Planted::wrong_checkpoint) {
    shape.resumed = true;
    shape.first_iteration = 101;
    plant.iteration = 101;
  }
  if (plant.what == Planted::transport_bit) {  // the first stage receives nothing
    const std::int64_t stage = shape.tp * shape.dp;
    if (plant.rank < stage) plant.rank += stage;
  }
}

}  // namespace

std::vector<Case> one_of_each() {
  std::vector<Case> cases;
  for (int kind = 1; kind <= kKinds; ++kind) {
    TraceShape shape;
    Plant plant{static_cast<Planted>(kind), 2, 5, 1, 1};
    adapt(shape, plant);
    cases.push_back(expected(shape, plant));
  }
  return cases;
}

std::vector<Case> many_of_each(const TraceShape& of, std::size_t count, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto draw = [&](std::int64_t below) {
    return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(below));
  };
  std::vector<Case> cases;
  for (int kind = 1; kind <= kKinds; ++kind) {
    for (std::size_t i = 0; i < count; ++i) {
      TraceShape shape = of;
      Plant plant{static_cast<Planted>(kind), shape.first_iteration + draw(shape.iterations),
                  draw(shape.ranks()), draw(shape.layers), draw(shape.microbatches)};
      adapt(shape, plant);
      cases.push_back(expected(shape, plant));
    }
  }
  return cases;
}

std::string verdict(const Case& planted, const traces::Localization& found) {
  if (found.outcome != traces::Outcome::differs) return "not found";
  if (found.frontier.size() != 1)
    return std::to_string(found.frontier.size()) + " events in the frontier";
  const traces::FrontierEvent& event = found.frontier.front();
  if (event.place.iteration != planted.plant.iteration) return "wrong iteration";
  if (event.ranks != planted.ranks) return "wrong ranks: " + traces::ranks_text(event.ranks);
  if (event.place.phase != planted.phase) return "wrong phase: " + event.place.phase;
  if (event.place.site != planted.site) return "wrong site: " + event.place.site;
  if (event.difference != planted.difference)
    return std::string("wrong difference: ") + name_of(event.difference);
  if (event.cause != planted.cause) return std::string("wrong class: ") + name_of(event.cause);
  if (event.one_event != planted.one_event) return "wrong interval";
  if (found.heals != planted.heals) return "healing missed, or seen where there is none";
  return "";
}

std::string test_name(const Case& planted) {
  std::string name;
  bool upper = true;
  for (const char c : std::string(name_of(planted.plant.what))) {
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) {
      upper = true;
      continue;
    }
    name += upper ? static_cast<char>(std::toupper(static_cast<unsigned char>(c))) : c;
    upper = false;
  }
  return name;
}

void PrintTo(const Case& planted, std::ostream* out) {
  *out << test_name(planted);
}

}  // namespace qualify::test
