#include "qualify/standing/people.hpp"

#include <nlohmann/json.hpp>
#include <set>

#include "qualify/base/files.hpp"

namespace qualify::standing {

namespace {

constexpr std::uint64_t kMaxKeyFile = 64U << 10U;  // bytes

Json or_null(const std::optional<Time>& time) {
  return time ? Json(format_time(*time)) : Json(nullptr);
}

}  // namespace

ReadKey keys_beside(const std::filesystem::path& file) {
  return [folder = file.parent_path()](const std::string& name) {
    return read_file(folder / name, kMaxKeyFile);
  };
}

Result<ledger::Trust> load_people(const policy::Qualification& qualification, const ReadKey& read) {
  std::vector<Error> faults;
  std::vector<ledger::Person> people;
  for (const policy::Person& declared : qualification.people) {
    ledger::Person person{declared.name, {}};
    for (const policy::DeclaredKey& key : declared.keys) {
      const auto note = [&](const Error& error) {
        faults.push_back({error.code,
                          "key of " + declared.name + ": " + error.message,
                          key.where,
                          error.hint,
                          {}});
      };
      const auto pem = read(key.file);
      if (!pem) {
        note(pem.error());
        continue;
      }
      auto parsed = ledger::PublicKey::parse_pem(*pem);
      if (!parsed) {
        note(parsed.error());
        continue;
      }
      person.keys.push_back({std::move(*parsed), key.from, key.until});
    }
    people.push_back(std::move(person));
  }
  if (!faults.empty()) return fail_all(std::move(faults));
  std::vector<ledger::Role> roles;
  for (const policy::Role& role : qualification.roles) {
    roles.push_back({role.name, role.people, role.needed});
  }
  auto trust = ledger::Trust::make(std::move(people), std::move(roles));
  if (!trust) {
    Error error = trust.error();
    error.context = qualification.file.string() +
                    (error.context.empty() ? std::string() : ": " + error.context);
    return Unexpected(std::move(error));
  }
  return trust;
}

Digest people_digest(const ledger::Trust& people) {
  Json persons = Json::object();
  for (const ledger::Person& person : people.persons()) {
    std::set<Json> keys;
    for (const ledger::TrustedKey& key : person.keys) {
      // Said to be an object: braces alone would insert three pairs, each without its key.
      keys.insert(Json::object(
          {{"key", key.key.key_id()}, {"from", or_null(key.from)}, {"until", or_null(key.until)}}));
    }
    persons[person.name] = keys;
  }
  Json roles = Json::object();
  for (const ledger::Role& role : people.roles()) {
    const std::set<std::string> members(role.persons.begin(), role.persons.end());
    roles[role.name] = {{"people", members}, {"needed", role.threshold}};
  }
  return digest_of({{"people", std::move(persons)}, {"roles", std::move(roles)}});
}

}  // namespace qualify::standing
