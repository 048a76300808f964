#pragma once

#include <simdjson.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "qualify/traces/event.hpp"
#include "qualify/traces/manifest.hpp"

/// One line of either public schema as events. Internal to this module.
namespace qualify::traces {

enum class Schema : std::uint8_t { none, pr6610, fork };
[[nodiscard]] const char* name_of(Schema schema);

/// What one line holds; memory is used again from line to line.
struct Record {
  std::int64_t iteration = -1;
  std::int64_t rank = -1;
  std::int64_t sequence = -1;
  bool has_occurrence = false;
  Schema schema = Schema::none;  ///< that its members belong to
  Events events;                 ///< the record itself, then its further values
};

class RecordParser {
 public:
  RecordParser(const Manifest& manifest, Strings& strings)
      : manifest_(manifest), strings_(strings) {}

  /// `line` must be readable for simdjson's padding behind its end. False: not one JSON object.
  [[nodiscard]] bool parse(std::string_view line, std::size_t padding, Record& record);

 private:
  using Object = simdjson::ondemand::object;
  using Value = simdjson::ondemand::value;
  bool top(Object object, Record& record);
  bool tensor(Value& value, Record& record);
  /// `metadata` of a tensor, `fields` of an event, `payload`: attributes go into columns; other
  /// scalars into rows of their own where `values` is true.
  bool attributes(Value& value, Record& record, bool values);
  bool attribute(std::string_view key, Value& value, Event& event, bool& known);
  bool scalar(std::string_view key, Value& value, Record& record);
  bool outputs(Value& value, Record& record);
  void infer(Record& record, bool has_tensor);
  /// Through a few words of memory: the same texts come in the same places of every line.
  std::uint32_t intern(std::string_view text);
  std::uint32_t group_id(std::string_view name);

  const Manifest& manifest_;
  Strings& strings_;
  simdjson::ondemand::parser parser_;
  struct Known {
    std::string text;
    std::uint32_t id = 0;
  };
  std::vector<Known> recent_{256};
  std::unordered_map<std::string, std::uint32_t> groups_;
  std::string last_group_;
  std::uint32_t last_group_id_ = 0;
  std::string name_;
  std::string scratch_;
  std::vector<std::pair<std::string, Event>> extra_;  ///< further values by field
  std::size_t extras_ = 0;
  bool kind_given_ = false;
  bool scalar_tensor_ = false;
};

}  // namespace qualify::traces
