#include "support/trace_generator.hpp"

#include <fmt/format.h>

#include <cstring>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <stdexcept>

namespace qualify::test {

namespace {

using traces::Algorithm;
using traces::Coverage;
using traces::Event;
using traces::Kind;
using traces::Role;
using traces::Strings;
using traces::ValueType;

std::uint64_t mix(std::uint64_t x) {
  x = (x ^ (x >> 30U)) * 0xBF58476D1CE4E5B9U;
  x = (x ^ (x >> 27U)) * 0x94D049BB133111EBU;
  return x ^ (x >> 31U);
}

struct Layout {
  explicit Layout(const TraceShape& of) : shape(of) {}
  const TraceShape& shape;
  // Megatron's order: tp varies fastest, then dp, then pp.
  [[nodiscard]] std::int64_t rank(std::int64_t t, std::int64_t d, std::int64_t p) const {
    return (p * shape.dp + d) * shape.tp + t;
  }
  [[nodiscard]] std::int64_t t(std::int64_t rank) const { return rank % shape.tp; }
  [[nodiscard]] std::int64_t d(std::int64_t rank) const { return rank / shape.tp % shape.dp; }
  [[nodiscard]] std::int64_t p(std::int64_t rank) const { return rank / shape.tp / shape.dp; }

  struct Group {
    std::string name;
    std::vector<std::int64_t> ranks;
  };
  [[nodiscard]] std::vector<Group> groups(const std::string& kind) const {
    std::vector<Group> all;
    const auto add = [&](std::vector<std::int64_t> ranks) {
      all.push_back({kind + "." + std::to_string(all.size()), std::move(ranks)});
    };
    std::vector<std::int64_t> ranks;
    const auto flush = [&] {
      add(std::move(ranks));
      ranks = {};
    };
    if (kind == "world") {
      for (std::int64_t r = 0; r < shape.ranks(); ++r) ranks.push_back(r);
      flush();
    }
    for (std::int64_t p = 0; p < shape.pp && kind != "world" && kind != "pp"; ++p) {
      if (kind == "tp") {
        for (std::int64_t d = 0; d < shape.dp; ++d) {
          for (std::int64_t t = 0; t < shape.tp; ++t) ranks.push_back(rank(t, d, p));
          flush();
        }
        continue;
      }
      for (std::int64_t t = 0; t < shape.tp; ++t) {
        for (std::int64_t d = 0; d < shape.dp; ++d) {
          ranks.push_back(rank(t, d, p));
          if (kind == "ep" && (d + 1) % shape.ep == 0) flush();
        }
        if (kind == "dp") flush();
      }
    }
    for (std::int64_t d = 0; kind == "pp" && d < shape.dp; ++d) {
      for (std::int64_t t = 0; t < shape.tp; ++t) {
        for (std::int64_t p = 0; p < shape.pp; ++p) ranks.push_back(rank(t, d, p));
        flush();
      }
    }
    return all;
  }
};

class Run {
 public:
  Run(const TraceShape& shape, const std::vector<Plant>& plants, const EachTraceEvent& each)
      : s_(shape), layout_(shape), plants_(plants), each_(each) {
    const auto count = static_cast<std::size_t>(s_.ranks());
    sequence_.resize(count);
    weights_.resize(count);
    x_.resize(count * static_cast<std::size_t>(s_.microbatches));
    for (std::size_t r = 0; r < count; ++r) {
      // Weights are the same on all data-parallel members of a (tp, pp) place.
      const auto rank = static_cast<std::int64_t>(r);
      weights_[r] = mix(static_cast<std::uint64_t>(layout_.t(rank) * 1000 + layout_.p(rank)) + 99);
    }
    for (const char* kind : {"tp", "dp", "ep", "pp", "world"}) {
      auto& comms = comms_[kind];
      comms.of_rank.resize(count);
      for (auto& group : layout_.groups(kind)) {
        Comm comm;
        const std::string text = group.name + "@" + traces::ranks_text(group.ranks);
        comm.text = strings_.id(text);
        comm.ranks = std::move(group.ranks);
        for (const auto rank : comm.ranks) {
          comms.of_rank[static_cast<std::size_t>(rank)] = comms.all.size();
        }
        comms.all.push_back(std::move(comm));
      }
    }
  }

  void run() {
    for (std::int64_t n = 0; n < s_.iterations; ++n) iteration(s_.first_iteration + n);
  }

 private:
  struct Comm {
    std::uint32_t text = 0;
    std::vector<std::int64_t> ranks;
    std::int64_t sequence = 0;
  };
  struct Comms {
    std::vector<Comm> all;
    std::vector<std::size_t> of_rank;
  };

  std::uint64_t& x(std::int64_t rank, std::int64_t mb) {
    return x_[static_cast<std::size_t>(rank * s_.microbatches + mb)];
  }
  std::uint32_t id(const std::string& text) {
    const auto [found, fresh] = ids_.try_emplace(text, 0);
    if (fresh) found->second = strings_.id(text);
    return found->second;
  }
  [[nodiscard]] const Plant* planted(Planted what, std::int64_t rank, std::int64_t mb,
                                     std::int64_t layer) const {
    for (const Plant& plant : plants_) {
      if (plant.what == what && plant.iteration == it_ && plant.rank == rank &&
          (mb < 0 || plant.microbatch == mb) && (layer < 0 || plant.layer == layer)) {
        return &plant;
      }
    }
    return nullptr;
  }
  [[nodiscard]] bool planted_in(Planted what, const Comm& comm, std::int64_t mb,
                                std::int64_t layer) const {
    for (const auto rank : comm.ranks) {
      if (planted(what, rank, mb, layer) != nullptr) return true;
    }
    return false;
  }

  Event base(std::uint32_t phase, std::uint32_t site, Kind kind, std::int64_t mb) {
    Event event;
    event.iteration = it_;
    event.phase = phase;
    event.site = site;
    event.kind = kind;
    event.microbatch = static_cast<std::int32_t>(mb);
    return event;
  }
  void digest(Event& event, std::uint64_t value, std::uint64_t multiset) {
    event.algorithm = Algorithm::device;
    event.coverage = Coverage::full;
    event.digest_lo = mix(value + 1);
    event.digest_hi = mix(value ^ 0x5555);
    event.multiset = mix(multiset + 2);
    event.has_multiset = true;
    event.dtype = id("bfloat16");
    event.shape = id("4096x1024");
    event.bytes = 4096 * 1024 * 2;
  }
  void emit(std::int64_t rank, Event event) {
    const auto at = static_cast<std::size_t>(rank);
    event.rank_seq = sequence_[at]++;
    if (s_.times) {
      event.time_ns = event.rank_seq * 1000 + rank;
      event.duration_ns = 500 + rank % 7;
    }
    each_(rank, event, strings_);
  }
  void tensor(std::int64_t rank, std::uint32_t phase, std::uint32_t site, Role role,
              std::int64_t mb, std::uint64_t value) {
    Event event = base(phase, site, Kind::tensor, mb);
    event.role = role;
    digest(event, value, value);
    emit(rank, event);
  }
  void metric(std::int64_t rank, const char* name, std::uint32_t phase, std::int64_t mb,
              std::uint64_t bits) {
    Event event = base(phase, id(name), Kind::metric, mb);
    event.value_bits = bits;
    event.value_type = ValueType::float64;
    event.coverage = Coverage::scalar;
    emit(rank, event);
  }

  /// All groups of a kind (or those of one stage) do one collective: inputs are x, outputs go to x.
  /// `shares`: every member gets its own part (reduce-scatter, all-to-all).
  void collective(const std::string& kind, std::int64_t stage, const char* op,
                  const std::string& site, std::uint32_t phase, std::int64_t mb, std::int64_t layer,
                  std::int64_t occurrence, bool shares) {
    const std::uint32_t of_op = id(op);
    const std::uint32_t of_site = id(site);
    std::uint64_t site_value = 0;
    std::memcpy(&site_value, strings_.hash(of_site).data(), sizeof site_value);
    for (Comm& comm : comms_[kind].all) {
      if (stage >= 0 && layout_.p(comm.ranks.front()) != stage) continue;
      std::uint64_t sum = mix(site_value + static_cast<std::uint64_t>(it_) * 7919);
      for (const auto rank : comm.ranks) sum = mix(sum ^ x(rank, std::max<std::int64_t>(mb, 0)));
      if (planted_in(Planted::collective_bit, comm, mb, layer) && occurrence == 0 &&
          of_op == watched_)
        sum ^= 1;
      for (std::size_t i = 0; i < comm.ranks.size(); ++i) {
        const std::int64_t rank = comm.ranks[i];
        std::uint64_t& own = x(rank, std::max<std::int64_t>(mb, 0));
        Event event = base(phase, of_site, Kind::collective, mb);
        event.op = of_op;
        event.group = comm.text;
        event.group_seq = comm.sequence;
        event.occurrence = static_cast<std::uint32_t>(occurrence);
        event.role = Role::input;
        digest(event, own, own);
        emit(rank, event);
        own = shares ? mix(sum + i) : sum;
        if (planted(Planted::one_member_bit, rank, mb, layer) != nullptr && occurrence == 0 &&
            of_op == watched_)
          own ^= 1;
        event.role = Role::output;
        digest(event, own, own);
        emit(rank, event);
      }
      ++comm.sequence;
    }
  }

  void p2p(std::int64_t from_stage, std::int64_t to_stage, std::uint32_t phase, std::int64_t mb) {
    for (std::int64_t d = 0; d < s_.dp; ++d) {
      for (std::int64_t t = 0; t < s_.tp; ++t) {
        const std::int64_t from = layout_.rank(t, d, from_stage);
        const std::int64_t to = layout_.rank(t, d, to_stage);
        Comm& comm = comms_["pp"].all[comms_["pp"].of_rank[static_cast<std::size_t>(from)]];
        Event event = base(phase, id("pipeline"), Kind::p2p, mb);
        event.op = id("send");
        event.role = Role::send;
        event.peer = static_cast<std::int32_t>(to);
        event.group = comm.text;
        event.group_seq = comm.sequence;
        digest(event, x(from, mb), x(from, mb));
        emit(from, event);
        x(to, mb) = mix(x(from, mb));
        if (planted(Planted::transport_bit, to, mb, -1) != nullptr && phase == id("forward"))
          x(to, mb) ^= 1;
        event.op = id("recv");
        event.role = Role::recv;
        event.peer = static_cast<std::int32_t>(from);
        digest(event, x(to, mb), x(to, mb));
        emit(to, event);
        ++comm.sequence;
      }
    }
  }

  void attention(std::int64_t rank, std::int64_t mb, std::int64_t layer, const std::string& name,
                 std::uint32_t phase) {
    std::uint64_t& own = x(rank, mb);
    tensor(rank, phase, id(name + ".attention"), Role::input, mb, own);
    if (planted(Planted::dropped_event, rank, mb, layer) == nullptr || phase != forward_) {
      own = mix(own ^ weights_[static_cast<std::size_t>(rank)]);
      if (phase == forward_ && planted(Planted::tensor_bit, rank, mb, layer) != nullptr) own ^= 1;
      const bool heals =
          phase == forward_ && planted(Planted::healing_bit, rank, mb, layer) != nullptr;
      tensor(rank, phase, id(name + ".attention"), Role::output, mb, heals ? own ^ 1 : own);
    } else {
      own = mix(own ^ weights_[static_cast<std::size_t>(rank)]);
    }
    if (phase == forward_ && planted(Planted::inserted_event, rank, mb, layer) != nullptr) {
      tensor(rank, phase, id(name + ".attention.retry"), Role::output, mb, own);
    }
  }

  void route(std::int64_t rank, std::int64_t mb, std::int64_t layer, const std::string& name) {
    std::uint64_t decision = mix(x(rank, mb) ^ 77);
    if (planted(Planted::routing, rank, mb, layer) != nullptr) {
      decision ^= 1;
      x(rank, mb) ^= 2;
    }
    Event event = base(forward_, id(name + ".router"), Kind::control, mb);
    event.value_bits = decision % 4096;
    event.value_type = ValueType::int64;
    event.coverage = Coverage::scalar;
    emit(rank, event);
  }

  void expert(std::int64_t rank, std::int64_t mb, std::int64_t layer, const std::string& name) {
    std::uint64_t& own = x(rank, mb);
    Event event = base(forward_, id(name + ".experts"), Kind::tensor, mb);
    event.role = Role::input;
    const bool permuted = planted(Planted::permuted, rank, mb, layer) != nullptr;
    digest(event, permuted ? own ^ 1 : own, own);
    emit(rank, event);
    own = mix(own ^ weights_[static_cast<std::size_t>(rank)] ^ 5);
    tensor(rank, forward_, id(name + ".experts"), Role::output, mb, own);
  }

  void forward_layer(std::int64_t stage, std::int64_t mb, std::int64_t layer) {
    const std::string name = fmt::format("decoder.layers.{}", stage * s_.layers + layer);
    for (std::int64_t r = first(stage); r < first(stage + 1); ++r)
      attention(r, mb, layer, name, forward_);
    watched_ = id("all-reduce");
    collective("tp", stage, "all-reduce", name + ".attention.proj", forward_, mb, layer, 0, false);
    for (std::int64_t r = first(stage); r < first(stage + 1); ++r) route(r, mb, layer, name);
    collective("ep", stage, "all-to-all", name + ".dispatch", forward_, mb, layer, 0, true);
    for (std::int64_t r = first(stage); r < first(stage + 1); ++r) expert(r, mb, layer, name);
    collective("ep", stage, "all-to-all", name + ".combine", forward_, mb, layer, 0, true);
  }

  [[nodiscard]] std::int64_t first(std::int64_t stage) const { return stage * s_.dp * s_.tp; }

  void begin() {
    const std::uint32_t train = id("train");
    for (std::int64_t r = 0; r < s_.ranks(); ++r) {
      emit(r, base(train, id("iteration.begin"), Kind::phase, -1));
      if (s_.resumed && it_ == s_.first_iteration) {
        std::uint64_t& own = weights_[static_cast<std::size_t>(r)];
        if (planted(Planted::wrong_checkpoint, r, -1, -1) != nullptr) own ^= 1;
        Event event = base(id("load"), id("checkpoint.weights"), Kind::state, -1);
        digest(event, own, own);
        emit(r, event);
      }
      Event rng = base(train, id("rng.state"), Kind::rng, -1);
      const bool wrong = planted(Planted::wrong_rng, r, -1, -1) != nullptr;
      const std::uint64_t state = static_cast<std::uint64_t>(it_ * 31 + r) ^ (wrong ? 1U : 0U);
      digest(rng, state, state);
      emit(r, rng);
      for (std::int64_t mb = 0; mb < s_.microbatches; ++mb) {
        // Every member of a tensor- and pipeline-parallel set sees the same samples.
        std::uint64_t data = mix(static_cast<std::uint64_t>((it_ * 1000 + layout_.d(r)) * 64 + mb));
        if (planted(Planted::wrong_data, r, mb, -1) != nullptr) data ^= 1;
        Event event = base(id("data"), id("tokens"), Kind::data, mb);
        digest(event, data, data);
        event.dtype = id("int32");
        emit(r, event);
        x(r, mb) = mix(data ^ (wrong ? 1U : 0U));
      }
    }
  }

  void backward_layer(std::int64_t stage, std::int64_t mb, std::int64_t layer) {
    const std::string name = fmt::format("decoder.layers.{}", stage * s_.layers + layer);
    for (std::int64_t r = first(stage); r < first(stage + 1); ++r)
      attention(r, mb, layer, name, backward_);
    watched_ = id("reduce-scatter");
    collective("tp", stage, "all-reduce", name + ".attention.proj", backward_, mb, layer, 0, false);
  }

  void reduce_gradients() {
    const std::uint32_t phase = id("grad-reduce");
    watched_ = 0;
    bool swapped = false;
    for (std::int64_t r = 0; r < s_.ranks(); ++r) {
      for (std::int64_t mb = 1; mb < s_.microbatches; ++mb) x(r, 0) = mix(x(r, 0) ^ x(r, mb));
    }
    for (const Plant& plant : plants_) {
      swapped = swapped || (plant.what == Planted::reordered && plant.iteration == it_);
    }
    for (std::int64_t b = 0; b < s_.buckets; ++b) {
      const std::int64_t bucket = swapped ? s_.buckets - 1 - b : b;
      collective("dp", -1, "reduce-scatter", fmt::format("bucket.{}", bucket), phase, -1, -1, 0,
                 true);
    }
  }

  void end() {
    const std::uint32_t phase = id("optimizer");
    collective("world", -1, "all-reduce", "grad-norm", phase, -1, -1, 0, false);
    for (std::int64_t r = 0; r < s_.ranks(); ++r) {
      const auto at = static_cast<std::size_t>(r);
      weights_[at] = mix(weights_[at] ^ x(r, 0));
      Event event = base(phase, id("weights"), Kind::state, -1);
      digest(event, weights_[at], weights_[at]);
      emit(r, event);
      const std::uint64_t fraction = x(r, 0) >> 12U;
      const bool nan = planted(Planted::nan_payload, r, -1, -1) != nullptr;
      const std::uint64_t loss =
          nan_metric() ? 0x7FF8000000000000U | (nan ? 1U : 0U) : 0x4000000000000000U | fraction;
      metric(r, "lm loss", id("train"), -1, loss);
      metric(r, "grad-norm", id("train"), -1, 0x3FF0000000000000U | fraction);
      emit(r, base(id("train"), id("iteration.end"), Kind::phase, -1));
    }
  }
  /// Iteration 3's loss is NaN in every generated run, as a skipped iteration's is.
  [[nodiscard]] bool nan_metric() const { return it_ == 3; }

  void iteration(std::int64_t number) {
    it_ = number;
    forward_ = id("forward");
    backward_ = id("backward");
    begin();
    for (std::int64_t mb = 0; mb < s_.microbatches; ++mb) {
      for (std::int64_t stage = 0; stage < s_.pp; ++stage) {
        if (stage > 0) p2p(stage - 1, stage, forward_, mb);
        for (std::int64_t layer = 0; layer < s_.layers; ++layer) forward_layer(stage, mb, layer);
      }
    }
    for (std::int64_t mb = 0; mb < s_.microbatches; ++mb) {
      for (std::int64_t stage = s_.pp; stage-- > 0;) {
        if (stage + 1 < s_.pp) p2p(stage + 1, stage, backward_, mb);
        for (std::int64_t layer = s_.layers; layer-- > 0;) backward_layer(stage, mb, layer);
      }
    }
    reduce_gradients();
    end();
  }

  const TraceShape& s_;
  Layout layout_;
  const std::vector<Plant>& plants_;
  const EachTraceEvent& each_;
  Strings strings_;
  std::map<std::string, std::uint32_t> ids_;
  std::map<std::string, Comms> comms_;
  std::vector<std::int64_t> sequence_;
  std::vector<std::uint64_t> weights_;
  std::vector<std::uint64_t> x_;  ///< what each rank holds, by microbatch
  std::int64_t it_ = 0;
  std::uint32_t forward_ = 0;
  std::uint32_t backward_ = 0;
  std::uint32_t watched_ = 0;  ///< operation that bits are planted in
};

void append_hex(std::uint64_t value, std::string& to) {
  // Digests are bytes: the low lane's first byte comes first.
  for (int i = 0; i < 8; ++i) {
    constexpr char digits[] = "0123456789abcdef";
    const auto byte = static_cast<unsigned>((value >> (8 * i)) & 0xFFU);
    to += digits[byte >> 4U];
    to += digits[byte & 15U];
  }
}

}  // namespace

const char* name_of(Planted planted) {
  constexpr const char* names[] = {"nothing",
                                   "tensor bit",
                                   "healing bit",
                                   "permuted rows",
                                   "dropped event",
                                   "inserted event",
                                   "reordered collectives",
                                   "collective bit",
                                   "one member's bit",
                                   "transport bit",
                                   "routing",
                                   "NaN payload",
                                   "wrong data",
                                   "wrong random state",
                                   "wrong checkpoint"};
  return names[static_cast<std::size_t>(planted)];
}

traces::Manifest manifest_of(const TraceShape& shape) {
  traces::Manifest manifest;
  manifest.present = true;
  manifest.inputs = {{"model", "generated"}, {"data", "generated"}, {"seed", "1234"}};
  manifest.world_size = shape.ranks();
  manifest.capture_level = "L1";
  manifest.digest_algorithm = "device";
  if (shape.resumed) manifest.resumed_from = shape.first_iteration - 1;
  const Layout layout(shape);
  for (const char* kind : {"tp", "dp", "ep", "pp", "world"}) {
    for (const auto& group : layout.groups(kind)) manifest.groups[group.name] = group.ranks;
  }
  for (std::int64_t rank = 0; rank < shape.ranks(); ++rank) {
    traces::Coordinates c;
    c.tp = layout.t(rank);
    c.pp = layout.p(rank);
    c.dp = layout.d(rank);
    c.ep = layout.d(rank) % shape.ep;
    manifest.coordinates.push_back(c);
  }
  return manifest;
}

void generate_trace(const TraceShape& shape, const std::vector<Plant>& plants,
                    const EachTraceEvent& each) {
  Run(shape, plants, each).run();
}

void append_json_line(std::int64_t rank, const Event& event, const Strings& strings,
                      std::string& to) {
  const auto out = std::back_inserter(to);
  const bool tensor = event.has_digest();
  to += tensor ? R"({"event":"tensor","iteration":)" : R"({"event":"event","fields":{)";
  const auto attributes = [&] {
    fmt::format_to(out, R"("kind":"{}")", traces::name_of(event.kind));
    if (event.bytes >= 0) fmt::format_to(out, R"(,"bytes":{})", event.bytes);
    if (event.duration_ns != traces::kNoTime)
      fmt::format_to(out, R"(,"duration_ns":{})", event.duration_ns);
    if (event.group != 0) {
      const std::string_view group = strings.text(event.group);
      fmt::format_to(out, R"(,"group":"{}","group_seq":{})", group.substr(0, group.find('@')),
                     event.group_seq);
    }
    if (event.op != 0) fmt::format_to(out, R"(,"op":"{}")", strings.text(event.op));
    if (event.peer >= 0) fmt::format_to(out, R"(,"peer":{})", event.peer);
    if (event.role != Role::none)
      fmt::format_to(out, R"(,"role":"{}")", traces::name_of(event.role));
    if (event.time_ns != traces::kNoTime) fmt::format_to(out, R"(,"time_ns":{})", event.time_ns);
  };
  if (!tensor) {
    attributes();
    if (event.value_type == ValueType::float64)
      fmt::format_to(out, R"(,"value":"0x{:016x}")", event.value_bits);
    if (event.value_type == ValueType::int64)
      fmt::format_to(out, R"(,"value":{})", event.value_bits);
    to += R"(},"iteration":)";
  }
  fmt::format_to(out, "{}", event.iteration);
  if (tensor) {
    to += R"(,"metadata":{)";
    attributes();
    to += '}';
  }
  if (event.microbatch >= 0) {
    fmt::format_to(out, R"(,"microbatch":{})", event.microbatch);
  } else {
    to += R"(,"microbatch":null)";
  }
  fmt::format_to(out, R"(,"name":"{}","occurrence":{},"phase":"{}","rank":{},"schema_version":1,)",
                 strings.text(event.site), event.occurrence, strings.text(event.phase), rank);
  fmt::format_to(out, R"("sequence":{})", event.rank_seq);
  if (tensor) {
    to += R"(,"tensor":{"digest":")";
    append_hex(event.digest_lo, to);
    append_hex(event.digest_hi, to);
    fmt::format_to(out, R"(","dtype":"{}","mode":"device","multiset":")",
                   strings.text(event.dtype));
    append_hex(event.multiset, to);
    to += R"(","shape":[)";
    for (const char c : strings.text(event.shape)) to += c == 'x' ? ',' : c;
    to += "]}";
  }
  to += '}';
}

void write_trace(const std::filesystem::path& folder, const TraceShape& shape,
                 const std::vector<Plant>& plants) {
  std::filesystem::create_directories(folder);
  std::vector<std::string> buffers(static_cast<std::size_t>(shape.ranks()));
  const auto flush = [&](std::size_t rank) {
    std::ofstream file(folder / fmt::format("rank_{:06}.jsonl", rank),
                       std::ios::binary | std::ios::app);
    file.write(buffers[rank].data(), static_cast<std::streamsize>(buffers[rank].size()));
    if (!file) throw std::runtime_error("cannot write " + folder.string());
    buffers[rank].clear();
  };
  generate_trace(shape, plants, [&](std::int64_t rank, const Event& event, const Strings& strings) {
    std::string& buffer = buffers[static_cast<std::size_t>(rank)];
    append_json_line(rank, event, strings, buffer);
    buffer += '\n';
    if (buffer.size() > 256U << 10U) flush(static_cast<std::size_t>(rank));
  });
  for (std::size_t rank = 0; rank < buffers.size(); ++rank) flush(rank);
  std::ofstream manifest(folder / traces::kManifestName);
  manifest << traces::to_json(manifest_of(shape)).dump(1) << '\n';
}

}  // namespace qualify::test
