// Reads what sealed_writer.cpp wrote, trusting none of it: every offset is checked against the
// file, every table is verified, every decompressed size is compared with what it must be.

#include <fcntl.h>
#include <openssl/evp.h>
#include <zstd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <vector>

#include "arrow_generated.h"
#include "bytes.hpp"
#include "layout.hpp"
#include "mapping.hpp"
#include "qualify/base/files.hpp"
#include "qualify/traces/sealed_file.hpp"

namespace qualify::traces {

namespace {

namespace fb = flatbuffers;
using layout::kColumns;

/// No buffer of a batch of kMostRows is larger; a footer that says so lies. Texts may be longer.
constexpr std::uint64_t kLargestBuffer = 256U << 20U;

std::optional<std::string> from_base64(std::string_view text) {
  if (text.size() % 4 != 0 || text.size() > INT32_MAX) return std::nullopt;
  std::string out(text.size() / 4 * 3, '\0');
  if (text.empty()) return out;
  const int size = EVP_DecodeBlock(reinterpret_cast<unsigned char*>(out.data()),
                                   reinterpret_cast<const unsigned char*>(text.data()),
                                   static_cast<int>(text.size()));
  if (size < 0) return std::nullopt;
  std::size_t padding = 0;
  while (padding < 2 && text[text.size() - 1 - padding] == '=') ++padding;
  out.resize(static_cast<std::size_t>(size) - padding);
  return out;
}

/// A record batch of which everything lies within the file.
struct Batch {
  const arrow::RecordBatch* table = nullptr;
  std::string_view body;
  std::size_t rows = 0;
};

/// Thread's own: contexts and memory that is used again.
struct Scratch {
  std::unique_ptr<ZSTD_DCtx, decltype(&ZSTD_freeDCtx)> zstd{ZSTD_createDCtx(), &ZSTD_freeDCtx};
  std::string bitmap;
  std::string data;
};

Scratch& scratch() {
  thread_local Scratch own;
  return own;
}

template <class T>
T load(const char* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

// What flatbuffers' verifier leaves out: a buffer, and the structs in it, stand where numbers of 8
// bytes can be read in place.

bool aligned(const char* buffer) {
  return reinterpret_cast<std::uintptr_t>(buffer) % 8 == 0;
}
template <class Struct>
bool aligned(const fb::Vector<const Struct*>& structs) {
  return reinterpret_cast<std::uintptr_t>(structs.Data()) % alignof(Struct) == 0;
}

}  // namespace

struct SealedFile::State {
  std::filesystem::path path;
  Mapping mapping;
  std::string_view bytes;
  const arrow::Footer* footer = nullptr;
  std::int64_t rank = -1;
  SealedWriter::Source source;
  RankSummary summary;
  std::uint64_t rows = 0;

  [[nodiscard]] Unexpected damaged(const std::string& what) const {
    return fail(Errc::integrity, "the sealed trace is damaged: " + what, path.string(),
                "seal it again from its source, or fetch it again; it matches nothing as it is");
  }

  Result<void> read_footer() {
    constexpr std::size_t kEnd = layout::kMagicBytes + 4;
    const std::string_view magic(layout::kMagic, layout::kMagicBytes);
    if (bytes.size() < 8 + kEnd || !bytes.starts_with(magic) || !bytes.ends_with(magic)) {
      return fail(Errc::integrity, "not a whole sealed trace: it is cut off or was never finished",
                  path.string(), "seal it again; until then it matches nothing");
    }
    const auto size = load<std::int32_t>(bytes.data() + bytes.size() - kEnd);
    if (size <= 0 || static_cast<std::size_t>(size) > bytes.size() - 8 - kEnd) {
      return damaged("its footer is larger than the file");
    }
    const char* at = bytes.data() + bytes.size() - kEnd - size;
    if (!aligned(at)) return damaged("its footer is out of place");
    fb::Verifier verifier(reinterpret_cast<const std::uint8_t*>(at), static_cast<std::size_t>(size),
                          64, 100'000'000);
    if (!verifier.VerifyBuffer<arrow::Footer>(nullptr)) return damaged("its footer is no footer");
    footer = fb::GetRoot<arrow::Footer>(at);
    if (footer->schema() == nullptr || footer->dictionaries() == nullptr ||
        footer->record_batches() == nullptr || footer->custom_metadata() == nullptr) {
      return damaged("its footer lacks a part");
    }
    if (!aligned(*footer->dictionaries()) || !aligned(*footer->record_batches())) {
      return damaged("its footer is out of place");
    }
    return {};
  }

  [[nodiscard]] std::string_view metadata(const char* key) const {
    for (const arrow::KeyValue* pair : *footer->custom_metadata()) {
      if (pair->key() != nullptr && pair->value() != nullptr && pair->key()->string_view() == key)
        return pair->value()->string_view();
    }
    return {};
  }
  template <class T>
  bool number(const char* key, T& to) const {
    const std::string_view text = metadata(key);
    const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), to);
    return error == std::errc{} && stop == text.data() + text.size();
  }

  Result<void> read_metadata() {
    if (metadata(layout::kFormatKey) != layout::kFormat) {
      return fail(Errc::unsupported,
                  "an Arrow file that is no sealed trace of format " + std::string(layout::kFormat),
                  path.string());
    }
    const auto* fields = footer->schema()->fields();
    bool same = fields != nullptr && fields->size() == kColumns.size();
    for (fb::uoffset_t i = 0; same && i < kColumns.size(); ++i) {
      const auto* name = fields->Get(i)->name();
      same = name != nullptr && name->string_view() == kColumns[i].name;
    }
    if (!same) return damaged("its columns are others than format 1 has");
    const auto packed = from_base64(metadata(layout::kSummaryKey));
    if (!number(layout::kRankKey, rank) || !number(layout::kBytesKey, source.bytes) ||
        !number(layout::kLinesKey, source.lines) ||
        !number(layout::kSequenceKey, source.last_sequence) || rank < 0 || !packed) {
      return damaged("its metadata is incomplete");
    }
    source.schema = metadata(layout::kSchemaKey);
    const auto faults = from_base64(metadata(layout::kFaultsKey));
    if (!faults) return damaged("its metadata is incomplete");
    bytes::Cursor in{*faults};
    const auto count = in.get<std::uint32_t>();
    for (std::uint32_t i = 0; i < count && in.good; ++i) {
      std::string code(in.text());
      std::string message(in.text());
      source.faults.push_back({std::move(code), std::move(message), std::string(in.text())});
    }
    if (!in.good) return damaged("its metadata is incomplete");
    auto unpacked = unpack(*packed);
    if (!unpacked) return damaged(unpacked.error().message);
    summary = std::move(*unpacked);
    for (const auto& iteration : summary.iterations) rows += iteration.rows;
    return {};
  }

  /// Null: the block or its tables are not sound.
  [[nodiscard]] const arrow::Message* message(const arrow::Block& block,
                                              std::string_view& body) const {
    const std::int64_t offset = block.offset();
    const std::int64_t head = block.metadata_length();
    const auto size = static_cast<std::int64_t>(bytes.size());
    if (offset < 8 || head < 8 || block.body_length() < 0 || offset > size ||
        head > size - offset || block.body_length() > size - offset - head) {
      return nullptr;
    }
    const char* at = bytes.data() + offset + 8;
    if (!aligned(at)) return nullptr;
    fb::Verifier verifier(reinterpret_cast<const std::uint8_t*>(at),
                          static_cast<std::size_t>(head - 8));
    if (!verifier.VerifyBuffer<arrow::Message>(nullptr)) return nullptr;
    body = bytes.substr(static_cast<std::size_t>(offset + head),
                        static_cast<std::size_t>(block.body_length()));
    return fb::GetRoot<arrow::Message>(at);
  }

  static bool sound(const arrow::RecordBatch* table, std::size_t nodes, std::size_t buffers) {
    return table != nullptr && table->nodes() != nullptr && table->buffers() != nullptr &&
           table->nodes()->size() == nodes && table->buffers()->size() == buffers &&
           aligned(*table->nodes()) && aligned(*table->buffers()) &&
           table->compression() != nullptr &&
           table->compression()->codec() == arrow::CompressionType::ZSTD && table->length() >= 0;
  }

  Result<Batch> batch(std::size_t number) const {
    Batch found;
    const auto at = static_cast<fb::uoffset_t>(number);
    if (number >= footer->record_batches()->size()) return damaged("a batch is missing");
    const auto* header = message(*footer->record_batches()->Get(at), found.body);
    if (header == nullptr) return damaged("a batch points outside of the file");
    found.table = header->header_as_RecordBatch();
    if (!sound(found.table, kColumns.size(), 2 * kColumns.size()) ||
        found.table->length() > static_cast<std::int64_t>(layout::kMostRows)) {
      return damaged("a batch has not the parts of a batch");
    }
    found.rows = static_cast<std::size_t>(found.table->length());
    return found;
  }

  /// The stored bytes of a buffer, its length in front. Null: it points outside.
  static std::optional<std::string_view> stored(const arrow::RecordBatch* table,
                                                std::string_view body, std::size_t number) {
    const arrow::Buffer* buffer = table->buffers()->Get(static_cast<fb::uoffset_t>(number));
    const auto size = static_cast<std::int64_t>(body.size());
    if (buffer->offset() < 0 || buffer->length() < 0 || buffer->offset() > size ||
        buffer->length() > size - buffer->offset()) {
      return std::nullopt;
    }
    return body.substr(static_cast<std::size_t>(buffer->offset()),
                       static_cast<std::size_t>(buffer->length()));
  }

  /// The buffer's content, decompressed into `to`. Null: not `expected` bytes.
  static std::optional<std::string_view> content(std::string_view raw, std::string& to,
                                                 std::optional<std::size_t> expected) {
    if (raw.empty()) {
      if (expected.value_or(0) != 0) return std::nullopt;
      return raw;
    }
    if (raw.size() < 8) return std::nullopt;
    const auto size = load<std::int64_t>(raw.data());
    raw.remove_prefix(8);
    if (size < 0 || static_cast<std::uint64_t>(size) > kLargestBuffer ||
        (expected && static_cast<std::size_t>(size) != *expected)) {
      return std::nullopt;
    }
    if (to.size() < static_cast<std::size_t>(size)) to.resize(static_cast<std::size_t>(size));
    const std::size_t done = ZSTD_decompressDCtx(
        scratch().zstd.get(), to.data(), static_cast<std::size_t>(size), raw.data(), raw.size());
    if (ZSTD_isError(done) != 0 || done != static_cast<std::size_t>(size)) return std::nullopt;
    return std::string_view(to.data(), done);
  }

  /// The file's own texts as numbers of `strings`.
  Result<std::vector<std::uint32_t>> texts(Strings& strings) const {
    for (const arrow::Block* block : *footer->dictionaries()) {
      std::string_view body;
      const auto* header = message(*block, body);
      if (header == nullptr) return damaged("a dictionary points outside of the file");
      const auto* dictionary = header->header_as_DictionaryBatch();
      if (dictionary == nullptr || !sound(dictionary->data(), 1, 3)) {
        return damaged("a dictionary has not the parts of one");
      }
      if (dictionary->id() != layout::texts) continue;
      const auto* table = dictionary->data();
      const auto count = static_cast<std::uint64_t>(table->length());
      if (count > kLargestBuffer / 4) return damaged("a dictionary is too large");
      const auto raw_offsets = stored(table, body, 1);
      const auto raw_data = stored(table, body, 2);
      if (!raw_offsets || !raw_data) return damaged("a dictionary points outside of the file");
      std::string offsets_memory;
      std::string data_memory;
      const auto offsets = content(*raw_offsets, offsets_memory, 4 * (count + 1));
      const auto data = content(*raw_data, data_memory, std::nullopt);
      if (!offsets || !data) return damaged("a dictionary does not decompress");
      std::vector<std::uint32_t> numbers;
      numbers.reserve(count);
      std::int32_t begin = load<std::int32_t>(offsets->data());
      for (std::uint64_t i = 0; i < count; ++i) {
        const auto end = load<std::int32_t>(offsets->data() + 4 * (i + 1));
        if (begin < 0 || end < begin || static_cast<std::size_t>(end) > data->size()) {
          return damaged("a dictionary's texts overlap");
        }
        numbers.push_back(strings.id(
            data->substr(static_cast<std::size_t>(begin), static_cast<std::size_t>(end - begin))));
        begin = end;
      }
      return numbers;
    }
    return damaged("it has no dictionary of texts");
  }

  /// Calls each(row, address of the value) for the rows from `from` that are not null.
  template <class Each>
  bool column(const Batch& batch, layout::At at, std::size_t from, std::size_t count,
              const Each& each) const {
    Scratch& own = scratch();
    const std::size_t width = layout::width_of(kColumns[at].type);
    const auto raw_bitmap = stored(batch.table, batch.body, std::size_t{2} * at);
    const auto raw = stored(batch.table, batch.body, std::size_t{2} * at + 1);
    if (!raw || !raw_bitmap) return false;
    const auto values = content(*raw, own.data, batch.rows * width);
    if (!values) return false;
    if (raw_bitmap->empty()) {
      for (std::size_t i = 0; i < count; ++i) {
        if (!each(i, values->data() + (from + i) * width)) return false;
      }
      return true;
    }
    const auto bitmap = content(*raw_bitmap, own.bitmap, (batch.rows + 7) / 8);
    if (!bitmap) return false;
    for (std::size_t i = 0; i < count; ++i) {
      const std::size_t row = from + i;
      if (((static_cast<unsigned char>((*bitmap)[row / 8]) >> (row % 8)) & 1U) == 0) continue;
      if (!each(i, values->data() + row * width)) return false;
    }
    return true;
  }

  Result<void> append(const Batch& batch, std::size_t from, std::size_t count,
                      const std::vector<std::uint32_t>& texts, Events& to) const {
    const std::size_t base = to.size();
    to.resize(base + count);
    const auto number = [&](layout::At at, auto Event::*member) {
      return column(batch, at, from, count, [&](std::size_t row, const char* value) {
        std::memcpy(&(to[base + row].*member), value, sizeof(to[base + row].*member));
        return true;
      });
    };
    const auto text = [&](layout::At at, std::uint32_t Event::*member) {
      return column(batch, at, from, count, [&](std::size_t row, const char* value) {
        const auto place = load<std::uint32_t>(value);
        if (place >= texts.size()) return false;
        to[base + row].*member = texts[place];
        return true;
      });
    };
    const auto name = [&](layout::At at, auto Event::*member) {
      const std::size_t most = layout::fixed_size(kColumns[at].dictionary);
      return column(batch, at, from, count, [&, most](std::size_t row, const char* value) {
        const auto place = static_cast<unsigned char>(*value);
        to[base + row].*member = static_cast<std::decay_t<decltype(to[base + row].*member)>>(place);
        return place < most;
      });
    };
    const auto own_rank = [&](std::size_t, const char* value) {
      return load<std::int32_t>(value) == rank;
    };
    const bool good =
        column(batch, layout::rank, from, count, own_rank) &&
        number(layout::iteration, &Event::iteration) &&
        number(layout::microbatch, &Event::microbatch) &&
        number(layout::vpp_chunk, &Event::vpp_chunk) && text(layout::phase, &Event::phase) &&
        text(layout::site, &Event::site) && text(layout::op, &Event::op) &&
        name(layout::kind, &Event::kind) && number(layout::occurrence, &Event::occurrence) &&
        number(layout::rank_seq, &Event::rank_seq) && text(layout::group, &Event::group) &&
        number(layout::group_seq, &Event::group_seq) && name(layout::role, &Event::role) &&
        number(layout::peer, &Event::peer) && text(layout::shape, &Event::shape) &&
        text(layout::dtype, &Event::dtype) && number(layout::bytes, &Event::bytes) &&
        number(layout::value_bits, &Event::value_bits) &&
        name(layout::value_dtype, &Event::value_type) &&
        number(layout::digest_lo, &Event::digest_lo) &&
        number(layout::digest_hi, &Event::digest_hi) && number(layout::digest_tail, &Event::tail) &&
        name(layout::digest_algorithm, &Event::algorithm) &&
        column(batch, layout::multiset_digest, from, count,
               [&](std::size_t row, const char* value) {
                 to[base + row].multiset = load<std::uint64_t>(value);
                 to[base + row].has_multiset = true;
                 return true;
               }) &&
        name(layout::coverage, &Event::coverage) && number(layout::flags, &Event::flags) &&
        number(layout::time_ns, &Event::time_ns) &&
        number(layout::duration_ns, &Event::duration_ns);
    if (!good) return damaged("a batch does not decompress to what its schema says");
    return {};
  }
};

SealedFile::SealedFile(std::unique_ptr<State> state) : state_(std::move(state)) {}
SealedFile::SealedFile(SealedFile&&) noexcept = default;
SealedFile& SealedFile::operator=(SealedFile&&) noexcept = default;
SealedFile::~SealedFile() = default;

Result<SealedFile> SealedFile::open(const std::filesystem::path& path) {
  auto mapping = map_file(path);
  if (!mapping) return tl::unexpected(mapping.error());
  auto state = std::make_unique<State>();
  state->path = path;
  state->mapping = std::move(*mapping);
  state->bytes = state->mapping.bytes();
  if (auto good = state->read_footer(); !good) return tl::unexpected(good.error());
  if (auto good = state->read_metadata(); !good) return tl::unexpected(good.error());
  return SealedFile(std::move(state));
}

std::int64_t SealedFile::rank() const {
  return state_->rank;
}
const RankSummary& SealedFile::summary() const {
  return state_->summary;
}
const SealedWriter::Source& SealedFile::source() const {
  return state_->source;
}
std::uint64_t SealedFile::rows() const {
  return state_->rows;
}

Result<Events> SealedFile::read(std::int64_t iteration, Strings& strings) const {
  const auto& all = state_->summary.iterations;
  const auto found = std::lower_bound(
      all.begin(), all.end(), iteration,
      [](const IterationSummary& one, std::int64_t number) { return one.iteration < number; });
  Events events;
  if (found == all.end() || found->iteration != iteration) return events;
  const auto texts = state_->texts(strings);
  if (!texts) return tl::unexpected(texts.error());
  std::size_t offset = found->offset;
  for (std::size_t number = found->batch; events.size() < found->rows; ++number) {
    const auto batch = state_->batch(number);
    if (!batch) return tl::unexpected(batch.error());
    if (offset >= batch->rows) return state_->damaged("an iteration begins behind its batch");
    const auto count = std::min<std::size_t>(batch->rows - offset, found->rows - events.size());
    if (auto good = state_->append(*batch, offset, count, *texts, events); !good)
      return tl::unexpected(good.error());
    offset = 0;
  }
  return events;
}

Result<Events> SealedFile::read_all(Strings& strings) const {
  const auto texts = state_->texts(strings);
  if (!texts) return tl::unexpected(texts.error());
  Events events;
  for (std::size_t number = 0; number < state_->footer->record_batches()->size(); ++number) {
    const auto batch = state_->batch(number);
    if (!batch) return tl::unexpected(batch.error());
    if (auto good = state_->append(*batch, 0, batch->rows, *texts, events); !good)
      return tl::unexpected(good.error());
  }
  return events;
}

Result<void> SealedFile::check() const {
  Strings strings;
  const auto events = read_all(strings);
  if (!events) return tl::unexpected(events.error());
  RankSummary fresh;
  Summariser summariser(fresh);
  for (const Event& event : *events) summariser.add(event, strings);
  summariser.finish();
  std::vector<std::uint64_t> begins{0};  // rows before each batch
  for (std::size_t number = 0; number < state_->footer->record_batches()->size(); ++number) {
    const auto batch = state_->batch(number);
    if (!batch) return tl::unexpected(batch.error());
    begins.push_back(begins.back() + batch->rows);
  }
  const auto lies = [&](const std::string& what) {
    return fail(Errc::integrity, "the summary is not that of the rows: " + what,
                state_->path.string(),
                "seal it again from its source; it matches nothing as it is");
  };
  const RankSummary& kept = state_->summary;
  std::uint64_t row = 0;
  for (std::size_t i = 0; i < std::max(fresh.iterations.size(), kept.iterations.size()); ++i) {
    if (i >= fresh.iterations.size() || i >= kept.iterations.size() ||
        fresh.iterations[i].iteration != kept.iterations[i].iteration) {
      return lies("it has other iterations");
    }
    const IterationSummary& a = fresh.iterations[i];
    const IterationSummary& b = kept.iterations[i];
    const std::string at = "iteration " + std::to_string(a.iteration);
    for (std::size_t n = 0; n < std::max(a.nodes.size(), b.nodes.size()); ++n) {
      if (n >= a.nodes.size() || n >= b.nodes.size()) return lies(at + " has other phases");
      if (a.nodes[n].hash != b.nodes[n].hash ||
          fresh.names[a.nodes[n].name] != kept.names[b.nodes[n].name]) {
        return lies(at + ", " + fresh.names[a.nodes[n].name]);
      }
    }
    if (a.root != b.root || a.rows != b.rows) return lies(at);
    // Where it says that its rows are is part of no hash.
    if (std::uint64_t{b.batch} + 1 >= begins.size() || begins[b.batch] + b.offset != row ||
        row >= begins[b.batch + std::size_t{1}]) {
      return lies(at + " begins elsewhere");
    }
    row += b.rows;
  }
  return {};
}

Result<bool> SealedFile::same_bytes(const std::filesystem::path& a,
                                    const std::filesystem::path& b) {
  const auto one = map_file(a);
  if (!one) return tl::unexpected(one.error());
  const auto other = map_file(b);
  if (!other) return tl::unexpected(other.error());
  const std::string_view magic(layout::kMagic, layout::kMagicBytes);
  const std::string_view bytes = one->bytes();
  return bytes.starts_with(magic) && bytes.ends_with(magic) && bytes == other->bytes();
}

Result<bool> SealedFile::same_values(const SealedFile& a, const SealedFile& b) {
  const State& x = *a.state_;
  const State& y = *b.state_;
  if (x.bytes == y.bytes) return true;
  // Times differ in every two runs: the buffers of the other columns.
  const auto count = x.footer->record_batches()->size();
  bool alike = count == y.footer->record_batches()->size();
  for (std::size_t number = 0; alike && number < count; ++number) {
    const auto p = x.batch(number);
    const auto q = y.batch(number);
    if (!p) return tl::unexpected(p.error());
    if (!q) return tl::unexpected(q.error());
    alike = p->rows == q->rows;
    for (std::size_t at = 0; alike && at < kColumns.size(); ++at) {
      if (!kColumns[at].compared) continue;
      for (std::size_t buffer = 2 * at; alike && buffer < 2 * at + 2; ++buffer) {
        const auto one = State::stored(p->table, p->body, buffer);
        const auto other = State::stored(q->table, q->body, buffer);
        alike = one && other && *one == *other;
      }
    }
  }
  for (fb::uoffset_t i = 0; alike && i < x.footer->dictionaries()->size(); ++i) {
    std::string_view one;
    std::string_view other;
    alike = i < y.footer->dictionaries()->size() &&
            x.message(*x.footer->dictionaries()->Get(i), one) != nullptr &&
            y.message(*y.footer->dictionaries()->Get(i), other) != nullptr && one == other;
  }
  if (alike) return true;
  // Bytes differ: by another order of texts, or truly.
  Strings strings;
  const auto p = a.read_all(strings);
  if (!p) return tl::unexpected(p.error());
  const auto q = b.read_all(strings);
  if (!q) return tl::unexpected(q.error());
  return p->size() == q->size() &&
         std::equal(p->begin(), p->end(), q->begin(), [&](const Event& one, const Event& other) {
           return equal(one, strings, other, strings);
         });
}

}  // namespace qualify::traces
