#include "qualify/policy/people.hpp"

#include <algorithm>
#include <filesystem>
#include <set>

#include "gate_reading.hpp"

namespace qualify::policy {

namespace {

/// Names that are shown on terminals and stand in signed statements: nothing in them needs quoting.
void check_plain_name(const std::string& what, const std::string& name, spec::Fields& entry) {
  const bool plain = !name.empty() && name.size() <= 64 && name[0] != '.' && name[0] != '-' &&
                     name.find_first_not_of(
                         "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._@-") ==
                         std::string::npos;
  if (plain) return;
  entry.fault(entry.mark(), what + " name '" + name + "' is not usable",
              "letters, digits, '.', '_', '@' and '-', at most 64, not starting with '.' or '-'");
}

std::string place(const std::string& file, spec::Mark mark) {
  return file + ":" + std::to_string(mark.line) + ":" + std::to_string(mark.column);
}

std::optional<Time> read_time(spec::Fields& fields, const std::string& key) {
  if (!fields.has(key)) return std::nullopt;
  const auto time = parse_time(fields.required_text(key));
  if (time) return *time;
  fields.fault(fields.mark(key), time.error().message, time.error().hint);
  return std::nullopt;
}

/// A key travels beside the file that names it, into every export: so it lies below it.
void check_key_file(spec::Fields& fields, const std::string& file) {
  const std::filesystem::path path(file);
  const bool outside = std::any_of(path.begin(), path.end(),
                                   [](const auto& part) { return part == ".." || part == "."; });
  if (!file.empty() && (path.is_absolute() || outside || !path.has_filename())) {
    fields.fault(fields.mark("file"), "a key must lie beside this file or below it: '" + file + "'",
                 "copy the public key there and name it, such as keys/ana.pub");
  }
}

void read_person(const std::string& file, const std::string& name, spec::Fields& entry,
                 Qualification& to) {
  check_plain_name("person", name, entry);
  Person person;
  person.name = name;
  entry.each("keys", "key of person '" + name + "'", [&](spec::Fields& fields) {
    DeclaredKey key;
    key.file = fields.required_text("file");
    check_key_file(fields, key.file);
    key.from = read_time(fields, "from");
    key.until = read_time(fields, "until");
    key.where = place(file, fields.mark("file"));
    if (key.from && key.until && *key.from >= *key.until) {
      fields.fault(fields.mark("until"), "the key is valid for no time at all",
                   "'until' must be later than 'from'");
    }
    person.keys.push_back(std::move(key));
  });
  if (person.keys.empty()) {
    entry.fault(entry.mark("keys"), "person '" + name + "' has no key",
                "keys: [{file: keys/" + name + ".pub}]");
  }
  to.people.push_back(std::move(person));
}

/// Texts of a list, each a known name, none twice.
void check_names(spec::Fields& fields, const std::string& key,
                 const std::vector<std::string>& names, const std::vector<std::string>& known,
                 const std::string& what) {
  const spec::Node* list = fields.child(key);
  std::set<std::string> seen;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const spec::Mark at =
        list != nullptr && i < list->items.size() ? list->items[i].mark : fields.mark(key);
    if (std::find(known.begin(), known.end(), names[i]) == known.end()) {
      const std::string near = spec::nearest(names[i], known);
      fields.fault(at, "there is no " + what + " '" + names[i] + "'",
                   near.empty() ? std::string() : "did you mean '" + near + "'?");
    }
    if (!seen.insert(names[i]).second) {
      fields.fault(at, what + " '" + names[i] + "' is there twice");
    }
  }
}

void read_role(const std::string& name, spec::Fields& fields, Qualification& to) {
  Role role;
  role.name = name;
  role.people = fields.texts("people");
  std::vector<std::string> known;
  for (const Person& person : to.people) known.push_back(person.name);
  check_names(fields, "people", role.people, known, "person");
  role.needed = static_cast<std::uint32_t>(fields.integer("needed", 1, 1, 1000));
  if (role.people.empty()) {
    fields.fault(fields.mark("people"), "role '" + name + "' has nobody",
                 "people: [NAME, …], each declared below 'people:'");
  } else if (role.needed > role.people.size()) {
    fields.fault(fields.mark("needed"), "role '" + name + "' needs " + std::to_string(role.needed) +
                                            " people and has " +
                                            std::to_string(role.people.size()));
  }
  to.roles.push_back(std::move(role));
}

void read_release(const std::string& name, spec::Fields& entry, Qualification& to) {
  check_plain_name("release", name, entry);
  Release release;
  release.name = name;
  release.description = entry.text("description");
  release.gates = entry.texts("gates");
  std::vector<std::string> known;
  for (const Gate& gate : to.gates) known.push_back(gate.name);
  check_names(entry, "gates", release.gates, known, "gate");
  if (release.gates.empty()) {
    entry.fault(entry.mark("gates"), "release '" + name + "' needs no gate",
                "gates: [NAME, …], each declared below 'gates:'");
  }
  to.releases.push_back(std::move(release));
}

}  // namespace

void read_people(spec::Fields& fields, const std::string& file, Qualification& to) {
  fields.each_named("people", "person", [&](const std::string& name, spec::Fields& entry) {
    read_person(file, name, entry, to);
  });
  fields.section("roles", "the roles", [&](spec::Fields& roles) {
    for (const char* name : kRoles) {
      roles.section(name, std::string("role '") + name + "'",
                    [&](spec::Fields& entry) { read_role(name, entry, to); });
    }
  });
  fields.each_named("releases", "release", [&](const std::string& name, spec::Fields& entry) {
    read_release(name, entry, to);
  });
}

const Release* Qualification::release(const std::string& name) const {
  const auto found = std::find_if(releases.begin(), releases.end(),
                                  [&](const Release& each) { return each.name == name; });
  return found == releases.end() ? nullptr : &*found;
}

const Role* Qualification::role(const std::string& name) const {
  const auto found =
      std::find_if(roles.begin(), roles.end(), [&](const Role& each) { return each.name == name; });
  return found == roles.end() ? nullptr : &*found;
}

}  // namespace qualify::policy
