#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "text_numbers.hpp"
#include "trace_record.hpp"

/// Training writes few kinds of lines, each again and again with the same members in the same
/// order. A shape is such a line, and where in it the values stand that change: a line that is the
/// same but for these is read without looking for its members.
///
/// A shape is learned from a line that was read as JSON. A line that is equal to it outside of the
/// places, and in these has plain values of the same type (whole numbers without a sign, printable
/// ASCII without escapes, hexadecimal digests of the same length), has the same structure: reading
/// it as JSON would give the same record. Whatever is in doubt is no match, and read as JSON.
/// Internal to this module.
namespace qualify::traces {

/// Places of values that change from line to line; other members tell one shape from another.
enum class Slot : std::uint8_t {
  iteration,
  rank,
  sequence,
  microbatch,
  occurrence,
  group_seq,
  bytes,
  peer,
  vpp_chunk,
  time_ns,
  duration_ns,
  site,
  phase,
  group,
  shape,
  digest,
  multiset,
  value,
  none
};

class LineShapes {
 public:
  explicit LineShapes(TextNumbers& texts) : texts_(texts) {}

  /// True: `record` is what reading `line` as JSON gives. The line must be readable for 8 bytes
  /// behind its end.
  [[nodiscard]] bool read(std::string_view line, Record& record);

  /// Before a line is read as JSON.
  void begin(std::string_view line);
  /// A member was read from these bytes of the line, as they stand there.
  void saw(Slot slot, std::string_view token);
  /// The line is none to learn from.
  void refuse() { good_ = false; }
  /// After it was read, and gave `record`.
  void learn(const Record& record);
  /// Lines that had a known shape.
  [[nodiscard]] std::size_t matched() const { return matched_; }

 private:
  enum class Form : std::uint8_t { number, text, extents, hex, bits, real, whole, end };
  /// Bytes that are the same in each line, then a place.
  struct Part {
    std::uint32_t at = 0;  ///< in the shape's text
    std::uint32_t size = 0;
    Slot slot = Slot::none;
    Form form = Form::end;
    std::uint32_t length = 0;  ///< of hexadecimal digits
    std::string last;          ///< text or extents that stood here last, up to their end
    std::uint32_t last_id = 0;
  };
  struct Shape {
    std::string text;
    std::vector<Part> parts;
    Event event;  ///< what is the same in each
    bool has_occurrence = false;
    Schema schema = Schema::none;
    Role name_role = Role::none;
  };
  struct Seen {
    Slot slot;
    std::size_t at;
    std::size_t size;
  };
  [[nodiscard]] bool worthwhile() const;
  [[nodiscard]] std::uint8_t& guess();
  void came(std::size_t shape);
  [[nodiscard]] bool match(Shape& shape, std::string_view line, Record& record);
  [[nodiscard]] bool texts(const Shape& shape, Part& part, const char*& at, const char* end,
                           Event& event);
  [[nodiscard]] static Form form_of(Slot slot, std::string_view token);

  TextNumbers& texts_;
  std::vector<Shape> shapes_;
  /// The shapes of the 32 lines before, mixed, and by that the shape that came after such lines
  /// last: each iteration has the same.
  std::uint64_t before_ = 0;
  std::vector<std::uint8_t> after_ = std::vector<std::uint8_t>(8192);
  std::size_t lines_ = 0;
  std::size_t matched_ = 0;
  // The line that is being read as JSON.
  std::string_view line_;
  std::vector<Seen> seen_;
  std::uint32_t slots_ = 0;  ///< that it had, as bits
  bool good_ = false;
};

}  // namespace qualify::traces
