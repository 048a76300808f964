#include "folder.hpp"

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>
#include <set>

#include "qualify/base/files.hpp"
#include "qualify/base/text.hpp"
#include "qualify/ledger/dsse.hpp"
#include "qualify/ledger/log.hpp"
#include "qualify/signoff/signoff.hpp"
#include "qualify/standing/people.hpp"

namespace qualify::signoff {

namespace {

constexpr std::uint64_t kMaxFile = 16ULL << 20U;  // bytes

class FolderCheck {
 public:
  FolderCheck(const fs::path& root, const Known& known) : folder_{root}, known_(known) {}

  Checked run() {
    if (read_keys() && read_policy() && read_records()) {
      for (Error& fault : check(*package_)) add(std::move(fault));
      if (const auto report = read(folder_.report()); report && *report != report_of(*package_)) {
        wrong("it does not say what was signed", "report.txt");
      }
      const auto says = certify::read_signoff(package_->signoff);
      if (says) {
        result_.release = says->content.release;
        result_.people = says->people;
      }
      result_.time = package_->signoff.time;
      result_.records = package_->records.size() + 1;
      hold_against_known();
      unknown_files();  // only then are all names known
    }
    return std::move(result_);
  }

 private:
  void add(Error error) { result_.faults.push_back(std::move(error)); }
  void wrong(const std::string& what, const std::string& where) {
    add({Errc::integrity, what, where, {}, {}});
  }
  template <class Value>
  std::optional<Value> take(Result<Value> result, const std::string& where) {
    if (result) return std::move(*result);
    Error error = result.error();
    error.context =
        where + (error.context.empty() || error.context.starts_with('/') ? std::string()
                                                                         : ": " + error.context);
    add(std::move(error));
    return std::nullopt;
  }
  std::string relative(const fs::path& file) const {
    return file.lexically_relative(folder_.root).string();
  }
  /// The same for a message, on one line: names in the folder are whoever's who made it.
  std::string name(const fs::path& file) const { return printable(to_utf8(relative(file))); }
  std::optional<std::string> read(const fs::path& file) {
    expected_.insert(relative(file));
    // What a link points to travels with nobody, and what is no file may never end.
    std::error_code failed;
    const auto status = fs::symlink_status(file, failed);
    if (fs::exists(status) && !fs::is_regular_file(status)) {
      wrong(fs::is_symlink(status) ? "is a symbolic link" : "is no regular file", name(file));
      return std::nullopt;
    }
    return take(read_file(file, kMaxFile), name(file));
  }

  bool read_keys() {
    const auto pem = read(folder_.state_key());
    auto vkey = read(folder_.log_key());
    const auto note = read(folder_.checkpoint());
    if (!pem || !vkey || !note) return false;
    auto key = take(ledger::PublicKey::parse_pem(*pem), "state.pub");
    while (!vkey->empty() && vkey->back() == '\n') vkey->pop_back();
    verifier_ = take(ledger::LogVerifier::parse(*vkey), "log.vkey");
    if (!key || !verifier_) return false;
    result_.log_key = verifier_->text();
    result_.keys["state"] = key->key_id();
    keys_.emplace(key->key_id(), *key);
    package_.emplace(Package{{}, {}, {}, {}, std::move(*key)});
    checkpoint_ = take(ledger::open_checkpoint(*note, *verifier_), "checkpoint");
    if (!checkpoint_) return false;
    result_.checkpoint = checkpoint_->origin + ", " + std::to_string(checkpoint_->size) +
                         " records, root " + checkpoint_->root.hex();
    return true;
  }

  bool read_policy() {
    auto text = read(folder_.qualification());
    if (!text) return false;
    package_->qualification = std::move(*text);
    const auto qualification =
        take(policy::parse_qualification(package_->qualification, "qualification.yaml"),
             "qualification.yaml");
    if (!qualification) return false;
    for (const policy::Person& person : qualification->people) {
      for (const policy::DeclaredKey& declared : person.keys) {
        auto pem = read(folder_.root / declared.file);
        if (!pem) continue;
        if (const auto key = ledger::PublicKey::parse_pem(*pem)) {
          keys_.emplace(key->key_id(), *key);
          auto& shown = result_.keys[person.name];
          shown += (shown.empty() ? "" : ", ") + key->key_id();
        }
        package_->key_files[declared.file] = std::move(*pem);
      }
    }
    return true;
  }

  /// A record as its bundle has it. What the ledger's columns would say is in the signed statement.
  std::optional<ledger::Record> read_record(const fs::path& file) {
    const std::string where = name(file);
    const auto text = read(file);
    if (!text) return std::nullopt;
    const auto bundle = take(parse_json(*text, where), where);
    if (!bundle) return std::nullopt;
    const auto envelope = take(ledger::envelope_from_sigstore_bundle(*bundle), where);
    if (!envelope) return std::nullopt;
    const auto key = keys_.find(envelope->key_id);
    if (key == keys_.end()) {
      wrong("signed by the key " + envelope->key_id.substr(0, 12) + ", which is nobody's", where);
      return std::nullopt;
    }
    ledger::Record record;
    record.envelope = *envelope;
    record.public_key_pem = key->second.pem();
    record.id = sha256(envelope->payload).hex();
    try {
      const Json statement = parse_json(envelope->payload, where).value();
      const Json& about = statement.at("predicate").at("record");
      record.kind = ledger::parse_record_kind(about.at("kind").get<std::string>()).value();
      record.gate = about.at("gate").get<std::string>();
      if (!about.at("bundle").is_null()) {
        record.bundle = Digest::parse(about.at("bundle").get<std::string>()).value();
      }
      record.time = parse_time(about.at("time").get<std::string>()).value();
      const Json& entries = bundle->at("verificationMaterial").at("tlogEntries");
      if (entries.empty()) {
        wrong("there is no proof that it is in the log", where);
        return std::nullopt;
      }
      const auto proven = ledger::verify_entry(entries[0], *envelope, key->second, *verifier_);
      if (!proven) {
        (void)take(Result<ledger::Checkpoint>(tl::unexpected(proven.error())), where);
        return std::nullopt;
      }
      if (*proven != *checkpoint_) wrong("its proof is under another checkpoint", where);
      record.index = std::stoll(entries[0].at("logIndex").get<std::string>());
    } catch (const std::exception& error) {
      wrong(std::string("not a record: ") + error.what(), where);
      return std::nullopt;
    }
    return record;
  }

  bool read_records() {
    auto signoff = read_record(folder_.signoff());
    std::vector<fs::path> files;
    std::error_code failed;
    for (const auto& entry : fs::directory_iterator(folder_.records(), failed)) {
      if (entry.path().string().ends_with(kRecordEnd)) files.push_back(entry.path());
    }
    if (failed) wrong("cannot be read: " + failed.message(), "records");
    std::sort(files.begin(), files.end());
    for (const fs::path& file : files) {
      auto record = read_record(file);
      if (!record) continue;
      std::string id = file.filename().string();
      id.resize(id.size() - std::string(kRecordEnd).size());
      // Under the name of its file: check() holds that against what it is.
      package_->records.insert_or_assign(std::move(id), std::move(*record));
    }
    if (!signoff) return false;
    if (signoff->kind != ledger::RecordKind::signoff) {
      wrong(std::string("it is a ") + ledger::name_of(signoff->kind), name(folder_.signoff()));
    }
    package_->signoff = std::move(*signoff);
    return true;
  }

  void hold_against_known() {
    if (known_.log && *known_.log != result_.log_key) {
      wrong("is not the key that was given for the log", "log.vkey");
    }
    for (const std::string& note : known_.checkpoints) {
      const auto other =
          take(ledger::open_checkpoint(note, *verifier_), "checkpoint that was kept");
      if (other && other->size == checkpoint_->size && other->root != checkpoint_->root) {
        wrong("contradicts the one that was kept: two logs of one size", "checkpoint");
      }
    }
    if (!known_.qualification) return;
    const std::string where = known_.qualification->string();
    const auto own = take(policy::read_qualification(*known_.qualification), where);
    if (!own) return;
    const auto people = take(standing::load_people(*own, standing::keys_beside(own->file)), where);
    const auto says = certify::read_signoff(package_->signoff);
    if (!people || !says) return;
    // Without the log's key whoever made the folder could have made log and state too.
    result_.anchored = known_.log.has_value();
    if (standing::people_digest(*people) != says->content.people) {
      wrong("people, keys or roles are not those of " + where, "qualification.yaml");
    }
    const policy::Release* release = own->release(says->content.release);
    if (release == nullptr) {
      return wrong("the release '" + says->content.release + "' is not declared in " + where,
                   "qualification.yaml");
    }
    std::vector<std::string> gates;
    const auto theirs = policy::parse_qualification(package_->qualification, "qualification.yaml");
    std::set<std::string> seen;
    const std::function<void(const std::string&)> hold = [&](const std::string& gate) {
      if (!seen.insert(gate).second) return;
      const policy::Gate* mine = own->gate(gate);
      const policy::Gate* declared = theirs ? theirs->gate(gate) : nullptr;
      if (mine == nullptr || declared == nullptr ||
          policy_digest(*mine) != policy_digest(*declared)) {
        return wrong("gate " + gate + " is not the one of " + where, "qualification.yaml");
      }
      for (const policy::GatePart& part : policy::parts_of(*mine)) hold(part.gate);
    };
    for (const auto& gate : says->content.gates) {
      gates.push_back(gate.gate);
      hold(gate.gate);
    }
    if (gates != release->gates) {
      wrong("the gates of the release are not those of " + where, "qualification.yaml");
    }
  }

  /// A folder that is handed on holds what was signed, and nothing that only looks like it.
  void unknown_files() {
    std::error_code failed;
    for (auto entry = fs::recursive_directory_iterator(folder_.root, failed);
         !failed && entry != fs::recursive_directory_iterator(); entry.increment(failed)) {
      std::error_code unreadable;
      if (fs::is_directory(entry->symlink_status(unreadable))) continue;
      if (!expected_.contains(relative(entry->path()))) {
        wrong("nothing that was signed names it", name(entry->path()));
      }
    }
    if (failed) wrong("cannot be read: " + failed.message(), folder_.root.string());
  }

  Folder folder_;
  const Known& known_;
  std::optional<Package> package_;
  std::optional<ledger::LogVerifier> verifier_;
  std::optional<ledger::Checkpoint> checkpoint_;
  std::map<std::string, ledger::PublicKey> keys_;
  std::set<std::string> expected_;
  Checked result_;
};

}  // namespace

Result<Checked> verify_folder(const std::filesystem::path& folder, const Known& known) {
  if (!fs::is_directory(folder)) {
    return fail(Errc::not_found, "no such folder", folder.string(),
                "an exported release is one: qualify signoff RELEASE --export DIR");
  }
  return FolderCheck(folder, known).run();
}

}  // namespace qualify::signoff
