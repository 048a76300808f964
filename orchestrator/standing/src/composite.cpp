#include <algorithm>

#include "gate_standing.hpp"

namespace qualify::standing {

namespace {

/// What one part says against the composite certificate that was issued on it; empty: nothing. A
/// newer certificate of the part is no fault: the older one still stands, while it is young enough.
std::string part_moved_on(const Part& part, const Standing& now, const Certificate& composite,
                          const Counted& counted, Duration max_age, Time time) {
  const auto cites = [&](const std::string& id) {
    return !id.empty() && std::find(composite.rests_on.begin(), composite.rests_on.end(), id) !=
                              composite.rests_on.end();
  };
  if (cites(part.certificate)) return {};
  if (!part.records.empty() && std::all_of(part.records.begin(), part.records.end(), cites)) {
    return {};
  }
  for (const std::string& id : composite.rests_on) {
    const auto cited = counted.facts().certificates.find(id);
    if (cited == counted.facts().certificates.end() || cited->second.gate != part.gate) continue;
    const Certificate& earlier = cited->second;
    if (max_age > Duration::zero() && earlier.time + max_age <= time) {
      return "rests there on a certificate of " + time_text(earlier.time) + ", which is too old";
    }
    if (earlier.policy != now.policy) return "is another version of its gate now";
    if (earlier.bundles.size() == 1 && now.bundle &&
        earlier.bundles.front().second != *now.bundle) {
      return "is closed for another bundle now";
    }
    return {};
  }
  return "was closed since by something else";
}

std::size_t rank(Status status) {
  // What a person should see first.
  constexpr Status order[] = {
      Status::fail,  Status::needs_decision, Status::blocked, Status::inconclusive,
      Status::stale, Status::running,        Status::armed,   Status::open};
  return static_cast<std::size_t>(std::find(std::begin(order), std::end(order), status) -
                                  std::begin(order));
}

}  // namespace

Standing of_composite(const policy::Gate& gate, const Counted& counted, Time now,
                      const std::function<const Standing&(const std::string& gate)>& standing_of) {
  Standing to;
  to.gate = gate.name;
  to.kind = gate.kind;
  to.policy = policy_digest(gate);
  const Part* worst = nullptr;
  std::size_t closed = 0;
  for (const policy::GatePart& declared : policy::parts_of(gate)) {
    const Standing& of = standing_of(declared.gate);
    Part part{declared.name,      declared.gate,  of.status,
              of.reasons.front(), of.certificate, of.records};
    // Its parts must be as young as the whole asks for, whatever they ask for themselves.
    if (of.status == Status::pass && of.judged && gate.max_age > Duration::zero()) {
      const Time until = *of.judged + gate.max_age;
      to.until = std::min(to.until.value_or(until), until);
      if (now >= until) {
        part.status = Status::stale;
        part.why = "older than " + age_text(gate.max_age) + ": of " + time_text(*of.judged);
      }
    }
    if (of.status == Status::pass && of.until) {
      to.until = std::min(to.until.value_or(*of.until), *of.until);
    }
    to.parts.push_back(std::move(part));
  }
  for (const Part& part : to.parts) {
    if (part.status == Status::pass) {
      ++closed;
    } else if (worst == nullptr || rank(part.status) < rank(worst->status)) {
      worst = &part;
    }
  }

  const Certificate* certificate = nullptr;
  std::string against;  // what speaks against the newest certificate
  if (const auto facts = counted.facts().gates.find(gate.name);
      facts != counted.facts().gates.end() && !facts->second.certificate.empty()) {
    const std::string& id = facts->second.certificate;
    against = counted.why_not(id);
    const auto found = counted.facts().certificates.find(id);
    if (found != counted.facts().certificates.end()) certificate = &found->second;
  }
  if (certificate != nullptr) {
    to.certificate = certificate->id;
    to.since = certificate->time;
    if (against.empty() && certificate->policy != to.policy) {
      against = "the gate is another version: its policy was changed after the certificate";
    }
    for (const Part& part : to.parts) {
      if (!against.empty() || part.status != Status::pass) continue;
      const std::string moved =
          part_moved_on(part, standing_of(part.gate), *certificate, counted, gate.max_age, now);
      if (!moved.empty()) against = part.name + " " + moved;
    }
  }

  const std::string count =
      std::to_string(closed) + " of " + std::to_string(to.parts.size()) + " are closed";
  if (worst != nullptr) {
    // A part that went stale takes the whole with it, once the whole was certified.
    to.status = worst->status == Status::waived ? Status::open : worst->status;
    if (certificate != nullptr && rank(Status::stale) < rank(worst->status)) {
      to.status = Status::stale;
    }
    to.reasons.push_back(count);
    for (const Part& part : to.parts) {
      if (part.status != Status::pass) {
        to.reasons.push_back(part.name + " (" + part.gate + ") is " + name_of(part.status) + ": " +
                             part.why);
      }
    }
    const Standing& of = standing_of(worst->gate);
    to.next = of.next.empty() ? "qualify run " + worst->gate + " --bundle BUNDLE" : of.next;
  } else if (certificate == nullptr) {
    to.status = Status::open;
    to.reasons.push_back(count + "; no certificate says so yet");
    to.next = "qualify run " + gate.name;
  } else if (!against.empty()) {
    to.status = Status::stale;
    to.reasons.push_back(against);
    to.next = "qualify run " + gate.name;
  } else {
    to.status = Status::pass;
    to.reasons.push_back(count);
  }
  if (to.status != Status::pass) {
    to.certificate.clear();
    if (!against.empty() && to.reasons.front() != against) to.reasons.push_back(against);
  }
  if (const auto facts = counted.facts().gates.find(gate.name);
      facts != counted.facts().gates.end() && facts->second.armed) {
    to.reasons.push_back("armed: " + describe(*facts->second.armed));
  }
  apply_waiver(counted, now, to);
  return to;
}

}  // namespace qualify::standing
