#include <nlohmann/json.hpp>

#include "folder.hpp"
#include "qualify/base/files.hpp"
#include "qualify/ledger/dsse.hpp"
#include "qualify/ledger/log.hpp"
#include "qualify/signoff/signoff.hpp"

namespace qualify::signoff {

namespace {

/// Below the folder's own names a key file would replace one of them.
bool clashes(const std::string& file) {
  const fs::path first = *fs::path(file).begin();
  for (const char* own : {"qualification.yaml", "state.pub", "log.vkey", "checkpoint", "records",
                          "report.txt", "signoff.sigstore.json"}) {
    if (first == own) return true;
  }
  return false;
}

}  // namespace

Result<void> export_release(run::State& state, const ledger::Record& signoff,
                            const std::filesystem::path& wanted) {
  const fs::path target = wanted.has_filename() ? wanted : wanted.parent_path();
  if (fs::exists(fs::symlink_status(target))) {
    return fail(Errc::already_exists, "something is there already", target.string(),
                "name a folder that does not exist yet");
  }
  auto package = gather(state, signoff);
  if (!package) return tl::unexpected(package.error());
  if (auto faults = check(*package); !faults.empty()) return fail_all(std::move(faults));
  const auto verifier = run::log_verifier(state.paths);
  if (!verifier) return tl::unexpected(verifier.error());
  const ledger::Log log(state.database);
  const auto latest = log.latest();
  if (!latest) return tl::unexpected(latest.error());
  if (!*verifier || !*latest ||
      (*latest)->checkpoint.size <= static_cast<std::uint64_t>(signoff.index)) {
    return fail(Errc::refused, "no checkpoint of the log covers the sign-off", target.string(),
                "qualify log checkpoint");
  }

  // Under another name first: a folder of the wanted name is whole.
  std::string beside = target.string() + ".XXXXXX";
  if (::mkdtemp(beside.data()) == nullptr) {
    return fail_errno(errno, "cannot create a folder beside", target.string());
  }
  const Folder folder{beside};
  struct Removal {
    fs::path root;
    ~Removal() {
      std::error_code ignored;
      if (!root.empty()) fs::remove_all(root, ignored);
    }
  } unfinished{folder.root};
  if (auto made = make_folders(folder.records()); !made) return made;
  const auto write_record = [&](const ledger::Record& record,
                                const fs::path& file) -> Result<void> {
    const auto entry = log.entry(record, **latest, **verifier);
    if (!entry) return tl::unexpected(entry.error());
    return write_file_atomic(file, ledger::sigstore_bundle(record.envelope, *entry).dump(2) + "\n");
  };
  std::vector<std::pair<fs::path, std::string>> files = {
      {folder.qualification(), package->qualification},
      {folder.state_key(), package->state_key.pem()},
      {folder.log_key(), (*verifier)->text() + "\n"},
      {folder.checkpoint(), (*latest)->note},
      {folder.report(), report_of(*package)}};
  for (const auto& [file, pem] : package->key_files) {
    if (clashes(file)) {
      return fail(Errc::invalid_input,
                  "a key file has the name of one of the export's own: " + file,
                  folder.qualification().string(), "move the keys to a folder keys/");
    }
    files.emplace_back(folder.root / file, pem);
  }
  for (const auto& [file, content] : files) {
    if (auto made = make_folders(file.parent_path()); !made) return made;
    if (auto written = write_file_atomic(file, content); !written) return written;
  }
  if (auto written = write_record(signoff, folder.signoff()); !written) return written;
  for (const auto& [id, record] : package->records) {
    if (auto written = write_record(record, folder.records() / (id + kRecordEnd)); !written) {
      return written;
    }
  }
  std::error_code failed;
  fs::permissions(folder.root, fs::perms(0755), failed);
  if (!failed) fs::rename(folder.root, target, failed);
  if (failed) return fail_errno(failed.value(), "cannot create", target.string());
  unfinished.root.clear();
  return sync_folder(target.has_parent_path() ? target.parent_path() : fs::path("."));
}

}  // namespace qualify::signoff
