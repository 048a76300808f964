#include "qualify/ledger/trust.hpp"

#include <algorithm>
#include <map>
#include <set>

namespace qualify::ledger {

namespace {

std::vector<Error> faults_of(const std::vector<Person>& persons, const std::vector<Role>& roles) {
  std::vector<Error> faults;
  const auto add = [&](std::string message, std::string context) {
    faults.push_back({Errc::invalid_input, std::move(message), std::move(context), {}, {}});
  };
  std::set<std::string> names;
  std::map<std::string, std::string> owner_of_key;
  for (const Person& person : persons) {
    const std::string where = "person " + person.name;
    if (person.name.empty()) add("a person without a name", "signers");
    if (!names.insert(person.name).second) add("the name is there twice", where);
    if (person.keys.empty()) add("has no key", where);
    for (const TrustedKey& each : person.keys) {
      const auto [owner, fresh] = owner_of_key.emplace(each.key.key_id(), person.name);
      if (!fresh && owner->second != person.name) {
        add("has the key of " + owner->second + " (" + each.key.key_id().substr(0, 12) + ")",
            where);
      }
      if (each.from && each.until && *each.from >= *each.until) {
        add("a key is valid for no time at all", where);
      }
    }
  }
  std::set<std::string> role_names;
  for (const Role& role : roles) {
    const std::string where = "role " + role.name;
    if (!role_names.insert(role.name).second) add("the role is there twice", where);
    std::set<std::string> members;
    for (const std::string& person : role.persons) {
      if (names.count(person) == 0) add("names " + person + ", who is no signer", where);
      if (!members.insert(person).second) add("names " + person + " twice", where);
    }
    if (role.threshold == 0) add("needs nobody: a threshold is at least 1", where);
    if (role.threshold > members.size()) {
      add("needs " + std::to_string(role.threshold) + " persons and has " +
              std::to_string(members.size()),
          where);
    }
  }
  return faults;
}

bool covers(const TrustedKey& key, Time time) {
  return (!key.from || *key.from <= time) && (!key.until || time < *key.until);
}

}  // namespace

Result<Trust> Trust::make(std::vector<Person> persons, std::vector<Role> roles) {
  std::vector<Error> faults = faults_of(persons, roles);
  if (!faults.empty()) return fail_all(std::move(faults));
  Trust trust;
  trust.persons_ = std::move(persons);
  trust.roles_ = std::move(roles);
  return trust;
}

Result<const Role*> Trust::role(const std::string& name) const {
  const auto found = std::find_if(roles_.begin(), roles_.end(),
                                  [&](const Role& each) { return each.name == name; });
  if (found == roles_.end()) return fail(Errc::not_found, "no role '" + name + "' is declared");
  return &*found;
}

std::uint32_t Trust::threshold(const std::string& name) const {
  const auto declared = role(name);
  return declared ? (*declared)->threshold : 1;
}

Result<std::string> Trust::person_of(const std::string& key_id, Time time,
                                     const std::string& role_name) const {
  const auto wanted = role(role_name);
  if (!wanted) return tl::unexpected(wanted.error());
  for (const Person& person : persons_) {
    bool theirs = false;
    bool then = false;
    for (const TrustedKey& each : person.keys) {
      if (each.key.key_id() != key_id) continue;
      theirs = true;
      then = then || covers(each, time);
    }
    if (!theirs) continue;
    if (!then) {
      return fail(Errc::refused, "the key " + key_id.substr(0, 12) + " was not " + person.name +
                                     "'s at " + format_time(time));
    }
    const auto& members = (*wanted)->persons;
    if (std::find(members.begin(), members.end(), person.name) == members.end()) {
      return fail(Errc::refused, person.name + " does not have the role " + role_name);
    }
    return person.name;
  }
  return fail(Errc::refused, "the key " + key_id.substr(0, 12) + " is nobody's", {},
              "signers are declared in qualification.yaml");
}

Result<std::string> Trust::signer_of(const Record& record, const std::string& role_name) const {
  const auto wanted = role(role_name);
  if (!wanted) return tl::unexpected(wanted.error());
  if (auto whole = verify_record(record); !whole) return tl::unexpected(whole.error());
  auto person = person_of(record.envelope.key_id, record.time, role_name);
  if (!person) {
    Error error = person.error();
    error.context = "record " + record.id.substr(0, 12);
    return tl::unexpected(std::move(error));
  }
  return person;
}

}  // namespace qualify::ledger
