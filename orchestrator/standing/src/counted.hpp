#pragma once

#include <map>
#include <string>
#include <vector>

#include "qualify/standing/standing.hpp"

/// Which of the records that people signed count. Pure.
namespace qualify::standing {

/// What people said about one thing, and why something that was said does not count.
struct Word {
  std::vector<std::string> records;  ///< those that count; empty = not enough people said it
  std::vector<std::string> people;
  Time since;                      ///< of the record with which it was enough
  std::vector<std::string> notes;  ///< "accepted by ana: 1 of 2", "… does not count: …"
};

class Counted {
 public:
  explicit Counted(const Facts& facts);

  [[nodiscard]] const std::map<std::string, Revoked>& revoked() const { return revoked_; }
  [[nodiscard]] const Facts& facts() const { return *facts_; }

  /// Why a certificate is worth nothing: itself damaged, or it or something that it rests on
  /// revoked or missing. Empty = it stands.
  [[nodiscard]] std::string why_not(const std::string& certificate) const;
  /// Why a record of people is worth nothing: revoked. Empty = it stands.
  [[nodiscard]] std::string why_revoked(const std::string& record) const;

  struct Decided {
    std::optional<certify::Decision::What> what;  ///< nothing: not decided
    Word word;
  };
  /// On exactly this qualification of a gate: bundle, policy, judgement and interval must be its.
  [[nodiscard]] Decided decided(const GateFacts& gate) const;

  struct Waived {
    std::optional<certify::Waiver> waiver;  ///< nothing: none that counts now
    Word word;
  };
  /// Of this version of a gate, for this bundle or for any.
  [[nodiscard]] Waived waived(const std::string& gate, const Digest& policy,
                              const std::optional<Digest>& bundle, Time now) const;

  /// Of one release's content.
  /// Whether approvals count whose sign-off was revoked: for that sign-off itself, not for another.
  enum class Spent { no, yes };
  [[nodiscard]] Word approved(const certify::ReleaseContent& content, Spent spent) const;

 private:
  /// Who signed a record in which `named` speaks, if that counts; otherwise a note goes to `word`.
  [[nodiscard]] std::optional<std::string> signer(const ledger::Record& record, const char* role,
                                                  const std::string& named, Word& word) const;
  [[nodiscard]] std::uint32_t needed(const char* role) const;

  const Facts* facts_;
  std::map<std::string, Revoked> revoked_;
};

/// "8 days", "3h 20m".
[[nodiscard]] std::string age_text(Duration age);
/// "2026-11-30 04:45 UTC"
[[nodiscard]] std::string time_text(Time time);
/// The first 12 digits of an id.
[[nodiscard]] std::string brief(const std::string& id);
[[nodiscard]] std::string joined(const std::vector<std::string>& texts);

}  // namespace qualify::standing
