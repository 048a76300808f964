// A sealed file as an Arrow IPC file: schema, record batches, then the dictionaries (the file
// format finds them through the footer), then the footer with the summary in its metadata.

#include <fcntl.h>
#include <openssl/evp.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <vector>

#include "arrow_generated.h"
#include "bytes.hpp"
#include "frames.hpp"
#include "layout.hpp"
#include "qualify/base/files.hpp"
#include "qualify/traces/sealed_file.hpp"
#include "unsettled.hpp"

namespace qualify::traces {

namespace {

namespace fb = flatbuffers;
using layout::Column;
using layout::kColumns;

constexpr std::uint32_t kContinuation = 0xFFFFFFFF;

std::string base64(std::string_view text) {
  std::string out(4 * ((text.size() + 2) / 3) + 1, '\0');
  const int size = EVP_EncodeBlock(reinterpret_cast<unsigned char*>(out.data()),
                                   reinterpret_cast<const unsigned char*>(text.data()),
                                   static_cast<int>(text.size()));
  out.resize(static_cast<std::size_t>(size));
  return out;
}

fb::Offset<arrow::Int> int_type(fb::FlatBufferBuilder& builder, layout::Type type) {
  const bool is_unsigned =
      type == layout::Type::uint16 || type == layout::Type::uint32 || type == layout::Type::uint64;
  return arrow::CreateInt(builder, static_cast<int>(8 * layout::width_of(type)), !is_unsigned);
}

fb::Offset<arrow::Schema> schema_of(fb::FlatBufferBuilder& builder) {
  std::vector<fb::Offset<arrow::Field>> fields;
  for (const Column& column : kColumns) {
    const auto name = builder.CreateString(column.name);
    arrow::Type type = arrow::Type::Int;
    fb::Offset<void> of_type;
    fb::Offset<arrow::DictionaryEncoding> dictionary;
    if (column.dictionary != layout::plain) {
      dictionary = arrow::CreateDictionaryEncoding(builder, column.dictionary,
                                                   int_type(builder, column.type));
      type = arrow::Type::Utf8;
      of_type = arrow::CreateUtf8(builder).Union();
    } else if (column.type == layout::Type::bytes16) {
      type = arrow::Type::FixedSizeBinary;
      of_type = arrow::CreateFixedSizeBinary(builder, 16).Union();
    } else {
      of_type = int_type(builder, column.type).Union();
    }
    const auto children = builder.CreateVector(std::vector<fb::Offset<arrow::Field>>());
    fields.push_back(
        arrow::CreateField(builder, name, column.nullable, type, of_type, dictionary, children));
  }
  return arrow::CreateSchema(builder, arrow::Endianness::Little, builder.CreateVector(fields));
}

/// What a buffer holds.
enum class Holds : std::uint8_t {
  repeats,  ///< often the same as in the batch before
  fresh,    ///< times and digests: never
};

/// Buffers of one message, compressed one by one as they come.
class Body {
 public:
  explicit Body(Frames& frames) : frames_(frames) {}

  void add(std::string_view raw, Holds holds = Holds::repeats) {
    const std::size_t begin = bytes_.size();
    if (!raw.empty()) {
      bytes::put(bytes_, static_cast<std::int64_t>(raw.size()));
      bytes_ += holds == Holds::repeats ? frames_.of(raw, place_) : frames_.once(raw);
    }
    ++place_;
    buffers_.emplace_back(static_cast<std::int64_t>(begin),
                          static_cast<std::int64_t>(bytes_.size() - begin));
    bytes_.resize((bytes_.size() + 7) / 8 * 8);
  }
  void column(std::size_t length, std::size_t nulls) {
    nodes_.emplace_back(static_cast<std::int64_t>(length), static_cast<std::int64_t>(nulls));
  }
  fb::Offset<arrow::RecordBatch> batch(fb::FlatBufferBuilder& builder, std::size_t length) const {
    const auto nodes = builder.CreateVectorOfStructs(nodes_);
    const auto buffers = builder.CreateVectorOfStructs(buffers_);
    const auto compression = arrow::CreateBodyCompression(builder, arrow::CompressionType::ZSTD);
    return arrow::CreateRecordBatch(builder, static_cast<std::int64_t>(length), nodes, buffers,
                                    compression);
  }
  [[nodiscard]] const std::string& bytes() const { return bytes_; }
  /// `first_place`: of its buffers, among those of all messages of a file.
  void clear(std::size_t first_place) {
    place_ = first_place;
    bytes_.clear();
    buffers_.clear();
    nodes_.clear();
  }

 private:
  Frames& frames_;
  std::size_t place_ = 0;
  std::string bytes_;
  std::vector<arrow::Buffer> buffers_;
  std::vector<arrow::FieldNode> nodes_;
};

}  // namespace

struct SealedWriter::State {
  fs::path path;
  fs::path temporary;
  Fd fd;
  std::int64_t rank = 0;
  std::string out;              ///< not yet written
  std::uint64_t written = 0;    ///< bytes handed to the file
  std::unique_ptr<Frames> own;  ///< where the caller has none
  Body body;
  fb::FlatBufferBuilder builder{8192};
  Events rows;  ///< of the batch
  RankSummary summary;
  Summariser summariser{summary};
  std::vector<std::uint32_t> first_at;  ///< (batch, offset) of each iteration, flat
  std::int64_t iteration = -1;
  std::vector<std::uint32_t> local;  ///< by number in the caller's Strings: place in `used` + 1
  std::vector<std::uint32_t> used;
  std::vector<arrow::Block> batches;
  std::vector<arrow::Block> dictionaries;
  std::string bitmap;
  std::string data;

  explicit State(Frames* frames)
      : own(frames == nullptr ? std::make_unique<Frames>() : nullptr),
        body(frames == nullptr ? *own : *frames) {}
  ~State() {
    if (fd.valid()) ::unlink(temporary.c_str());
  }

  Result<void> flush(std::size_t above) {
    if (out.size() <= above) return {};
    if (auto done = write_all(fd.get(), std::as_bytes(std::span(out)), temporary); !done)
      return done;
    written += out.size();
    out.clear();
    return {};
  }

  /// Writes the finished message in `builder` and its body.
  arrow::Block message() {
    const auto offset = static_cast<std::int64_t>(written + out.size());
    const std::size_t padded = (std::size_t{builder.GetSize()} + 7) / 8 * 8;
    bytes::put(out, kContinuation);
    bytes::put(out, static_cast<std::int32_t>(padded));
    out.append(reinterpret_cast<const char*>(builder.GetBufferPointer()), builder.GetSize());
    out.append(padded - builder.GetSize(), '\0');
    out += body.bytes();
    return {offset, static_cast<std::int32_t>(padded + 8),
            static_cast<std::int64_t>(body.bytes().size())};
  }
  template <class T>
  void finish_message(arrow::MessageHeader type, fb::Offset<T> header) {
    builder.Finish(arrow::CreateMessage(builder, arrow::MetadataVersion::V5, type, header.Union(),
                                        static_cast<std::int64_t>(body.bytes().size())));
  }

  std::int32_t place(std::uint32_t text) {
    if (text >= local.size()) local.resize(text + 64);
    if (local[text] == 0) {
      used.push_back(text);
      local[text] = static_cast<std::uint32_t>(used.size());
    }
    return static_cast<std::int32_t>(local[text]) - 1;
  }

  /// One column: `value(event)` is its value, `is_null(event)` whether there is none.
  template <class Value, class IsNull>
  void column(layout::At at, const Value& value, const IsNull& is_null) {
    using T = std::decay_t<decltype(value(rows[0]))>;
    data.assign(rows.size() * sizeof(T), '\0');
    bitmap.assign((rows.size() + 7) / 8, '\0');
    std::size_t nulls = 0;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      if (is_null(rows[i])) {
        ++nulls;
        continue;
      }
      bitmap[i / 8] = static_cast<char>(bitmap[i / 8] | (1 << (i % 8)));
      const T one = value(rows[i]);
      std::memcpy(data.data() + i * sizeof(T), &one, sizeof one);
    }
    const bool digest = at == layout::digest_lo || at == layout::digest_hi ||
                        at == layout::multiset_digest || at == layout::digest_tail;
    body.column(rows.size(), nulls);
    body.add(nulls == 0 ? std::string_view() : bitmap);
    const bool time = at == layout::time_ns || at == layout::duration_ns;
    body.add(data, time || (digest && 4 * nulls < rows.size()) ? Holds::fresh : Holds::repeats);
  }
  template <class Value>
  void column(layout::At at, const Value& value) {
    column(at, value, [](const Event&) { return false; });
  }
  void texts(layout::At at, std::uint32_t Event::*member, bool nullable) {
    column(
        at, [&](const Event& e) { return place(e.*member); },
        [&](const Event& e) { return nullable && e.*member == 0; });
  }
  template <class Enum>
  void names(layout::At at, Enum Event::*member, bool nullable) {
    column(
        at, [&](const Event& e) { return static_cast<std::int8_t>(e.*member); },
        [&](const Event& e) { return nullable && e.*member == Enum::none; });
  }
  template <class T>
  void numbers(layout::At at, T Event::*member, T null) {
    column(
        at, [&](const Event& e) { return e.*member; },
        [&](const Event& e) { return e.*member == null; });
  }

  void write_batch() {
    if (rows.empty()) return;
    const auto no_digest = [](const Event& e) { return !e.has_digest(); };
    body.clear(0);
    column(layout::rank, [&](const Event&) { return static_cast<std::int32_t>(rank); });
    column(layout::iteration, [](const Event& e) { return e.iteration; });
    numbers(layout::microbatch, &Event::microbatch, -1);
    numbers(layout::vpp_chunk, &Event::vpp_chunk, std::int16_t{-1});
    texts(layout::phase, &Event::phase, false);
    texts(layout::site, &Event::site, false);
    texts(layout::op, &Event::op, true);
    column(layout::kind, [](const Event& e) { return static_cast<std::int8_t>(e.kind); });
    column(layout::occurrence, [](const Event& e) { return e.occurrence; });
    column(layout::rank_seq, [](const Event& e) { return e.rank_seq; });
    texts(layout::group, &Event::group, true);
    numbers(layout::group_seq, &Event::group_seq, std::int64_t{-1});
    names(layout::role, &Event::role, true);
    numbers(layout::peer, &Event::peer, -1);
    texts(layout::shape, &Event::shape, true);
    texts(layout::dtype, &Event::dtype, true);
    numbers(layout::bytes, &Event::bytes, std::int64_t{-1});
    column(
        layout::value_bits, [](const Event& e) { return e.value_bits; },
        [](const Event& e) { return e.value_type == ValueType::none; });
    names(layout::value_dtype, &Event::value_type, true);
    column(
        layout::digest_lo, [](const Event& e) { return e.digest_lo; }, no_digest);
    column(
        layout::digest_hi, [](const Event& e) { return e.digest_hi; }, no_digest);
    column(
        layout::digest_tail, [](const Event& e) { return e.tail; },
        [](const Event& e) { return e.algorithm != Algorithm::sha256; });
    names(layout::digest_algorithm, &Event::algorithm, true);
    column(
        layout::multiset_digest, [](const Event& e) { return e.multiset; },
        [](const Event& e) { return !e.has_multiset; });
    column(layout::coverage, [](const Event& e) { return static_cast<std::int8_t>(e.coverage); });
    column(layout::flags, [](const Event& e) { return e.flags; });
    numbers(layout::time_ns, &Event::time_ns, kNoTime);
    numbers(layout::duration_ns, &Event::duration_ns, kNoTime);
    builder.Clear();
    finish_message(arrow::MessageHeader::RecordBatch, body.batch(builder, rows.size()));
    batches.push_back(message());
    rows.clear();
  }

  template <class Text>
  void write_dictionary(std::int64_t id, std::size_t count, const Text& text) {
    std::string offsets;
    data.clear();
    bytes::put(offsets, std::int32_t{0});
    for (std::size_t i = 0; i < count; ++i) {
      data += text(i);
      bytes::put(offsets, static_cast<std::int32_t>(data.size()));
    }
    body.clear(2 * kColumns.size() + 3 * static_cast<std::size_t>(id));
    body.column(count, 0);
    body.add({});
    body.add(offsets);
    body.add(data);
    builder.Clear();
    finish_message(arrow::MessageHeader::DictionaryBatch,
                   arrow::CreateDictionaryBatch(builder, id, body.batch(builder, count)));
    dictionaries.push_back(message());
  }

  void write_footer(const Source& source) {
    bytes::put(out, kContinuation);  // the end of the stream
    bytes::put(out, std::int32_t{0});
    builder.Clear();
    std::vector<fb::Offset<arrow::KeyValue>> metadata;
    const auto add = [&](const char* key, const std::string& value) {
      metadata.push_back(arrow::CreateKeyValueDirect(builder, key, value.c_str()));
    };
    add(layout::kFormatKey, layout::kFormat);
    add(layout::kRankKey, std::to_string(rank));
    add(layout::kSchemaKey, source.schema);
    add(layout::kBytesKey, std::to_string(source.bytes));
    add(layout::kLinesKey, std::to_string(source.lines));
    add(layout::kSequenceKey, std::to_string(source.last_sequence));
    std::string faults;
    bytes::put(faults, static_cast<std::uint32_t>(source.faults.size()));
    for (const Fault& fault : source.faults) {
      bytes::put_text(faults, fault.code);
      bytes::put_text(faults, fault.message);
      bytes::put_text(faults, fault.where);
    }
    add(layout::kFaultsKey, base64(faults));
    add(layout::kSummaryKey, base64(pack(summary)));
    const auto schema = schema_of(builder);
    const auto of_dictionaries = builder.CreateVectorOfStructs(dictionaries);
    const auto of_batches = builder.CreateVectorOfStructs(batches);
    const auto of_metadata = builder.CreateVector(metadata);
    builder.Finish(arrow::CreateFooter(builder, arrow::MetadataVersion::V5, schema, of_dictionaries,
                                       of_batches, of_metadata));
    out.append(reinterpret_cast<const char*>(builder.GetBufferPointer()), builder.GetSize());
    bytes::put(out, static_cast<std::int32_t>(builder.GetSize()));
    out.append(layout::kMagic, layout::kMagicBytes);
  }
};

SealedWriter::SealedWriter(std::unique_ptr<State> state) : state_(std::move(state)) {}
SealedWriter::SealedWriter(SealedWriter&&) noexcept = default;
SealedWriter& SealedWriter::operator=(SealedWriter&&) noexcept = default;
SealedWriter::~SealedWriter() = default;

Result<SealedWriter> SealedWriter::create(const fs::path& path, std::int64_t rank, Frames* frames) {
  auto state = std::make_unique<State>(frames);
  state->path = path;
  state->temporary = path.string() + ".unsealed";
  state->rank = rank;
  Fd fd(::open(state->temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
  if (!fd.valid()) return fail_errno(errno, "cannot write", state->temporary.string());
  state->fd = std::move(fd);
  state->out.append(layout::kMagic, layout::kMagicBytes).append(2, '\0');
  state->finish_message(arrow::MessageHeader::Schema, schema_of(state->builder));
  (void)state->message();
  return SealedWriter(std::move(state));
}

Result<void> SealedWriter::append(const Event& event, const Strings& strings) {
  State& s = *state_;
  const bool fresh = event.iteration != s.iteration;
  if ((fresh && s.rows.size() >= layout::kBatchRows) || s.rows.size() >= layout::kMostRows) {
    s.write_batch();
    if (auto done = s.flush(1U << 20U); !done) return done;
  }
  if (fresh) {
    s.first_at.push_back(static_cast<std::uint32_t>(s.batches.size()));
    s.first_at.push_back(static_cast<std::uint32_t>(s.rows.size()));
    s.iteration = event.iteration;
  }
  s.rows.push_back(event);
  s.summariser.add(event, strings);
  return {};
}

Result<RankSummary> SealedWriter::finish(const Strings& strings, const Source& source,
                                         Unsettled* later) {
  State& s = *state_;
  s.write_batch();
  s.summariser.finish();
  for (std::size_t i = 0; i < s.summary.iterations.size(); ++i) {
    s.summary.iterations[i].batch = s.first_at[2 * i];
    s.summary.iterations[i].offset = s.first_at[2 * i + 1];
  }
  s.write_dictionary(layout::texts, s.used.size(),
                     [&](std::size_t i) { return strings.text(s.used[i]); });
  for (std::int8_t id = layout::kinds; id <= layout::values; ++id) {
    const auto dictionary = static_cast<layout::Dictionary>(id);
    s.write_dictionary(id, layout::fixed_size(dictionary), [&](std::size_t i) {
      return std::string_view(layout::fixed_name(dictionary, i));
    });
  }
  s.write_footer(source);
  if (auto done = s.flush(0); !done) return tl::unexpected(done.error());
  bytes_ = s.written;
  Unsettled own;
  Unsettled& files = later == nullptr ? own : *later;
  if (auto done = files.add(std::move(s.fd), s.temporary, s.path); !done) {
    return tl::unexpected(done.error());
  }
  if (auto done = own.settle(); !done) return tl::unexpected(done.error());
  return std::move(s.summary);
}

}  // namespace qualify::traces
