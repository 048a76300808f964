#include <nlohmann/json.hpp>

#include "qualify/base/files.hpp"
#include "qualify/signoff/signoff.hpp"

namespace qualify::signoff {

namespace {

Result<std::string> kept_bytes(const run::State& state, const Digest& digest,
                               const std::string& what) {
  auto bytes = state.evidence.read(digest);
  if (bytes) return bytes;
  Error error = bytes.error();
  error.message = what + ": " + error.message;
  return Unexpected(std::move(error));
}

}  // namespace

Result<Package> gather(run::State& state, const ledger::Record& signoff) {
  const auto says = certify::read_signoff(signoff);
  if (!says) return tl::unexpected(says.error());
  auto state_key = ledger::load_public_key(state.paths.signing_key().string() + ".pub");
  if (!state_key) return tl::unexpected(state_key.error());
  Package package{signoff, {}, {}, {}, std::move(*state_key)};
  auto text = kept_bytes(state, says->qualification_file, "qualification.yaml as it was");
  if (!text) return tl::unexpected(text.error());
  package.qualification = std::move(*text);
  for (const auto& [file, digest] : says->key_files) {
    auto pem = kept_bytes(state, digest, file + " as it was");
    if (!pem) return tl::unexpected(pem.error());
    package.key_files.emplace(file, std::move(*pem));
  }
  std::vector<std::string> cited = says->content.records();
  cited.insert(cited.end(), says->approvals.begin(), says->approvals.end());
  const ledger::Ledger ledger(state.database);
  for (const std::string& id : cited) {
    auto record = ledger.find(id);
    if (record) {
      package.records.emplace(record->id, std::move(*record));
    } else if (record.error().code != Errc::not_found) {
      return tl::unexpected(record.error());
    }  // check() names what is missing
  }
  return package;
}

std::string report_of(const Package& package) {
  const auto says = certify::read_signoff(package.signoff);
  if (!says) return {};
  std::string text = "Release " + says->content.release + "\n";
  text += "signed off " + format_time(package.signoff.time) + ", " +
          std::to_string(says->people.size()) + " of " + std::to_string(says->needed) + " needed:";
  for (const std::string& person : says->people) text += " " + person;
  text += "\nsign-off " + package.signoff.id + "\n\nbundles\n";
  for (const auto& [name, bundle] : says->content.bundles) {
    text += "  " + name + "  " + bundle.str() + "\n";
  }
  text += "\ngates\n";
  for (const auto& gate : says->content.gates) {
    text += "  " + gate.gate + "\n    policy " + gate.policy.str() + "\n";
    const auto cite = [&](const char* what, const std::string& id) {
      const auto record = package.records.find(id);
      text += std::string("    ") + what + " " + id +
              (record == package.records.end() ? std::string()
                                               : "  " + format_time(record->second.time)) +
              "\n";
    };
    if (!gate.certificate.empty()) cite("certificate", gate.certificate);
    for (const std::string& id : gate.decisions) {
      cite("decision", id);
      const auto record = package.records.find(id);
      if (record == package.records.end()) continue;
      if (const auto decision = certify::read_decision(record->second)) {
        text += std::string("      ") + name_of(decision->what) + ": " +
                Json(decision->reason).dump(-1, ' ', true) + "\n";
      }
    }
    for (const std::string& id : gate.waivers) {
      cite("waiver", id);
      const auto record = package.records.find(id);
      if (record == package.records.end()) continue;
      if (const auto waiver = certify::read_waiver(record->second)) {
        text += "      until " + format_time(waiver->until) + ": " +
                Json(waiver->reason).dump(-1, ' ', true) + "\n";
      }
    }
    for (const std::string& id : gate.rests_on) cite("rests on", id);
  }
  text += "\napprovals\n";
  for (std::size_t i = 0; i < says->approvals.size(); ++i) {
    text +=
        "  " + says->approvals[i] + "  " + (i < says->people.size() ? says->people[i] : "") + "\n";
  }
  return text;
}

}  // namespace qualify::signoff
