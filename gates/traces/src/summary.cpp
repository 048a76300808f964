#include "qualify/traces/summary.hpp"

#include <cstring>

#include "bytes.hpp"

namespace qualify::traces {

namespace {

constexpr std::uint64_t kCollectives = std::uint64_t{1} << 63U;

std::string_view text_of(const Hash& hash) {
  return {reinterpret_cast<const char*>(hash.data()), hash.size()};
}

}  // namespace

std::string collective_class(const Event& event, const Strings& strings) {
  std::string_view group = strings.text(event.group);
  group = group.substr(0, group.find('@'));
  // "dp.5" and "dp-group 5" are groups of one kind.
  group = group.substr(0, group.find_last_not_of("0123456789") + 1);
  while (!group.empty() && std::string_view(".-_: ").find(group.back()) != std::string_view::npos) {
    group.remove_suffix(1);
  }
  std::string text(strings.text(event.op));
  if (text.empty()) text = name_of(event.kind);
  if (!group.empty()) text.append(" ").append(group);
  return text;
}

Summariser::Chain& Summariser::chain_of(NodeKind kind, std::uint64_t key, const Event& event,
                                        const Strings& strings) {
  auto found = names_.find(key);
  if (found == names_.end()) {
    const std::string text = kind == NodeKind::phase ? std::string(strings.text(event.phase))
                                                     : collective_class(event, strings);
    std::uint32_t name = 0;
    while (name < to_.names.size() && to_.names[name] != text) ++name;
    if (name == to_.names.size()) to_.names.push_back(text);
    found = names_.emplace(key, name).first;
  }
  const std::uint32_t name = found->second;
  for (std::size_t i = 0; i < used_; ++i) {
    if (chains_[i].name == name && chains_[i].kind == kind) return chains_[i];
  }
  if (used_ == chains_.size()) chains_.push_back({});
  Chain& chain = chains_[used_++];
  chain.kind = kind;
  chain.name = name;
  chain.rows = 0;
  chain.leaves.clear();
  return chain;
}

void Summariser::add(const Event& event, const Strings& strings) {
  if (event.iteration != iteration_) finish();
  iteration_ = event.iteration;
  ++rows_;
  Chain& phase = chain_of(NodeKind::phase, event.phase, event, strings);
  append_leaf(event, strings, phase.leaves);
  ++phase.rows;
  const std::uint32_t name = phase.name;
  // chain_of may move what `phase` refers to.
  const std::size_t chain_of_phase = static_cast<std::size_t>(&phase - chains_.data());
  if (event.kind == Kind::collective || event.kind == Kind::p2p) {
    const std::uint64_t key = kCollectives |
                              (static_cast<std::uint64_t>(event.kind == Kind::p2p) << 62U) |
                              (static_cast<std::uint64_t>(event.op) << 31U) | event.group;
    Chain& chain = chain_of(NodeKind::collectives, key, event, strings);
    const std::string& leaves = chains_[chain_of_phase].leaves;
    chain.leaves.append(leaves, leaves.size() - kLeafBytes, kLeafBytes);
    ++chain.rows;
  }
  if (run_ > 0 && name != last_phase_) {
    bytes::put_text(order_, to_.names[last_phase_]);
    bytes::put(order_, run_);
    run_ = 0;
  }
  last_phase_ = name;
  ++run_;
}

void Summariser::finish() {
  if (rows_ == 0) return;
  bytes::put_text(order_, to_.names[last_phase_]);
  bytes::put(order_, run_);
  IterationSummary summary;
  summary.iteration = iteration_;
  summary.rows = rows_;
  std::string all;
  bytes::put(all, iteration_);
  bytes::put(all, rows_);
  for (std::size_t i = 0; i < used_; ++i) {
    Chain& chain = chains_[i];
    std::string head;
    bytes::put(head, static_cast<std::uint8_t>(chain.kind));
    bytes::put_text(head, to_.names[chain.name]);
    bytes::put(head, chain.rows);
    chain.leaves += head;
    const Hash hash = hash128(chain.leaves);
    summary.nodes.push_back({chain.kind, chain.name, chain.rows, hash});
    all += text_of(hash);
  }
  all += order_;
  summary.root = hash128(all);
  to_.iterations.push_back(std::move(summary));
  used_ = 0;
  rows_ = 0;
  run_ = 0;
  order_.clear();
}

std::string pack(const RankSummary& summary) {
  std::string out;
  bytes::put(out, static_cast<std::uint32_t>(summary.names.size()));
  for (const std::string& name : summary.names) bytes::put_text(out, name);
  bytes::put(out, static_cast<std::uint32_t>(summary.iterations.size()));
  for (const IterationSummary& iteration : summary.iterations) {
    bytes::put(out, iteration.iteration);
    bytes::put(out, iteration.rows);
    out += text_of(iteration.root);
    bytes::put(out, iteration.batch);
    bytes::put(out, iteration.offset);
    bytes::put(out, static_cast<std::uint32_t>(iteration.nodes.size()));
    for (const Node& node : iteration.nodes) {
      bytes::put(out, static_cast<std::uint8_t>(node.kind));
      bytes::put(out, node.name);
      bytes::put(out, node.rows);
      out += text_of(node.hash);
    }
  }
  return out;
}

Result<RankSummary> unpack(std::string_view packed) {
  bytes::Cursor in{packed};
  RankSummary summary;
  const auto names = in.get<std::uint32_t>();
  for (std::uint32_t i = 0; i < names && in.good; ++i) summary.names.emplace_back(in.text());
  const auto iterations = in.get<std::uint32_t>();
  for (std::uint32_t i = 0; i < iterations && in.good; ++i) {
    IterationSummary iteration;
    iteration.iteration = in.get<std::int64_t>();
    iteration.rows = in.get<std::uint64_t>();
    iteration.root = in.get<Hash>();
    iteration.batch = in.get<std::uint32_t>();
    iteration.offset = in.get<std::uint32_t>();
    const auto nodes = in.get<std::uint32_t>();
    for (std::uint32_t n = 0; n < nodes && in.good; ++n) {
      Node node;
      node.kind = static_cast<NodeKind>(in.get<std::uint8_t>());
      node.name = in.get<std::uint32_t>();
      node.rows = in.get<std::uint32_t>();
      node.hash = in.get<Hash>();
      in.good = in.good && node.name < summary.names.size() &&
                (node.kind == NodeKind::phase || node.kind == NodeKind::collectives);
      iteration.nodes.push_back(node);
    }
    in.good = in.good && (summary.iterations.empty() ||
                          summary.iterations.back().iteration < iteration.iteration);
    summary.iterations.push_back(std::move(iteration));
  }
  if (!in.good || !in.rest.empty()) {
    return fail(Errc::integrity, "the summary is not one that sealing wrote");
  }
  return summary;
}

Hash root_of(const RankSummary& summary) {
  std::string all;
  for (const IterationSummary& iteration : summary.iterations) all += text_of(iteration.root);
  return hash128(all);
}

}  // namespace qualify::traces
