#pragma once

#include <simdjson.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "line_shapes.hpp"
#include "qualify/traces/event.hpp"
#include "qualify/traces/manifest.hpp"
#include "text_numbers.hpp"
#include "trace_record.hpp"

/// One line of either public schema as events. Internal to this module.
namespace qualify::traces {

class RecordParser {
 public:
  RecordParser(const Manifest& manifest, Strings& strings)
      : texts_(manifest, strings), shapes_(texts_) {}

  /// `line` must be readable for simdjson's padding behind its end. False: not one JSON object.
  [[nodiscard]] bool parse(std::string_view line, std::size_t padding, Record& record);
  /// How many lines were read without looking for their members.
  [[nodiscard]] std::size_t lines_by_shape() const { return shapes_.matched(); }

 private:
  using Object = simdjson::ondemand::object;
  using Value = simdjson::ondemand::value;
  [[nodiscard]] bool read_json(std::string_view line, std::size_t padding, Record& record);
  bool top(Object object, Record& record);
  bool tensor(Value& value, Record& record);
  /// `metadata` of a tensor, `fields` of an event, `payload`: attributes go into columns; other
  /// scalars into rows of their own where `values` is true.
  bool attributes(Value& value, Record& record, bool values);
  bool attribute(std::string_view key, Value& value, Event& event, bool& known);
  bool scalar(std::string_view key, Value& value, Record& record);
  bool outputs(Value& value, Record& record);
  void infer(Record& record, bool has_tensor);
  /// Reads a whole number, or `null` where the member is null, and tells the shapes of it.
  template <class T>
  bool number_at(Value& value, Slot slot, T& to, T null);
  bool text_at(Value& value, Slot slot, std::string_view& text);

  TextNumbers texts_;
  LineShapes shapes_;
  simdjson::ondemand::parser parser_;
  std::string name_;
  std::string scratch_;
  std::vector<std::pair<std::string, Event>> extra_;  ///< further values by field
  std::size_t extras_ = 0;
  bool kind_given_ = false;
  bool scalar_tensor_ = false;
};

}  // namespace qualify::traces
