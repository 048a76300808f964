#include "composite_check.hpp"

#include <algorithm>

#include "qualify/certify/records.hpp"

namespace qualify::verify {

namespace {

std::string brief(const std::string& id) {
  return id.substr(0, 12);
}

}  // namespace

std::vector<std::string> composite_faults(const certify::Certified& says,
                                          const CitedCertificate& own, const Citable& citable) {
  std::vector<std::string> faults;
  const policy::Gate& gate = *says.composite;
  const auto declared = policy::parts_of(gate);
  if (declared.size() != says.parts.size()) {
    faults.push_back("it cites " + std::to_string(says.parts.size()) + " parts, its gate has " +
                     std::to_string(declared.size()));
    return faults;
  }
  if (own.gate != gate.name) faults.push_back("it is of gate " + own.gate + ", not " + gate.name);
  for (std::size_t i = 0; i < declared.size(); ++i) {
    const certify::PartCitation& part = says.parts[i];
    const auto wrong = [&](const std::string& what) { faults.push_back(part.name + ": " + what); };
    // Parts are recorded by name: an object's order is no one's.
    const bool known = std::any_of(declared.begin(), declared.end(), [&](const auto& each) {
      return each.name == part.name && each.gate == part.gate;
    });
    if (!known) wrong("its gate has no such part");
    if (part.certificate.empty() && part.decisions.empty()) wrong("nothing closes it");
    const auto revoked_then = [&](const std::string& id) {
      const auto found = citable.revoked.find(id);
      return found != citable.revoked.end() && found->second.index < own.index;
    };
    for (const std::string& id : part.decisions) {
      const auto found = citable.decisions.find(id);
      if (found == citable.decisions.end()) {
        wrong("decision " + brief(id) + " is not in the ledger");
      } else if (found->second.gate != part.gate || found->second.index > own.index) {
        wrong("decision " + brief(id) + " is on another gate, or came later");
      } else if (const auto said = certify::read_decision(found->second); !said) {
        wrong("decision " + brief(id) + ": " + said.error().message);
      } else if (said->what == certify::Decision::What::reject) {
        wrong("decision " + brief(id) + " rejects it");
      }
      if (revoked_then(id)) wrong("decision " + brief(id) + " was revoked already");
    }
    if (part.certificate.empty()) continue;
    const std::string what = "certificate " + brief(part.certificate);
    const auto found = citable.certificates.find(part.certificate);
    if (found == citable.certificates.end()) {
      wrong(what + " is not in the ledger");
      continue;
    }
    const CitedCertificate& cited = found->second;
    if (cited.gate != part.gate) wrong(what + " is of gate " + cited.gate);
    if (cited.verdict != "pass") wrong(what + " is no pass");
    if (cited.index > own.index) wrong(what + " came later");
    if (revoked_then(part.certificate)) wrong(what + " was revoked already");
    if (gate.max_age > Duration::zero() && cited.time + gate.max_age <= own.time) {
      wrong(what + " was too old");
    }
    for (const Digest& bundle : cited.subjects) {
      if (std::find(own.subjects.begin(), own.subjects.end(), bundle) == own.subjects.end()) {
        wrong("bundle " + bundle.brief() + " is none of its subjects");
      }
    }
  }
  return faults;
}

}  // namespace qualify::verify
