#include "qualify/tracer/tracer.h"

#include <charconv>
#include <chrono>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <exception>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "digests.hpp"
#include "plan.hpp"

namespace {

namespace fs = std::filesystem;
using namespace qualify::tracer;

const char* text_of(qtrace_kind kind) {
  constexpr const char* names[] = {"metric", "phase", "collective", "p2p",    "tensor",
                                   "state",  "rng",   "data",       "control"};
  return names[kind];
}

const char* text_of(qtrace_role role) {
  constexpr const char* names[] = {"none", "input", "output", "send", "recv"};
  return names[role];
}

std::string_view view(const char* text) {
  return text == nullptr ? "" : text;
}

/// Names hardly ever need an escape: up to each of these a text goes over as it is.
void quote(std::string& to, std::string_view text) {
  to += '"';
  std::size_t from = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c != '"' && c != '\\' && static_cast<unsigned char>(c) >= 0x20) continue;
    to.append(text, from, i - from);
    from = i + 1;
    if (c == '"' || c == '\\') {
      to += '\\';
      to += c;
    } else {
      char escape[8];
      std::snprintf(escape, sizeof escape, "\\u%04x", static_cast<unsigned>(c));
      to += escape;
    }
  }
  to.append(text, from);
  to += '"';
}

void number(std::string& to, std::int64_t value) {
  char digits[24];
  to.append(digits, std::to_chars(digits, digits + sizeof digits, value).ptr);
}

void hex(std::string& to, std::uint64_t value) {
  char digits[16];
  for (std::size_t i = 0; i < 8; ++i) {
    const auto byte = static_cast<unsigned>((value >> (8 * i)) & 0xFFU);
    digits[2 * i] = "0123456789abcdef"[byte >> 4U];
    digits[2 * i + 1] = "0123456789abcdef"[byte & 15U];
  }
  to.append(digits, sizeof digits);
}

void tell(const std::string& message, char* error, std::size_t size) {
  if (error == nullptr || size == 0) return;
  std::snprintf(error, size, "%s", message.c_str());
}

/// What a phase's samples of one kind or class of collectives add up to.
struct Summary {
  qtrace_kind kind = QTRACE_TENSOR;
  std::string op;
  std::string group;
  std::int64_t group_seq = -1;
  std::int64_t values = 0;
  std::uint64_t one = 0;
  std::uint64_t two = 0;
};

}  // namespace

struct qtrace {
  fs::path file;
  std::ofstream stream;
  std::int64_t rank = 0;
  bool times = false;
  Plan plan;
  std::string error;
  std::int64_t sequence = 0;
  std::int64_t iteration = -1;
  std::string phase;  ///< that the summaries are of
  std::vector<Summary> summaries;
  std::unordered_map<std::string, std::int64_t> occurrences;  ///< of this iteration
  std::string key;
  std::string summary_name;
  std::string line;
  std::string buffer;

  std::int64_t occurrence(const qtrace_where& where, const char* event, std::string_view name) {
    key.assign(view(where.phase));
    key += '\0';
    key += event;
    key += '\0';
    number(key, where.microbatch);
    key += '\0';
    key += name;
    return occurrences[key]++;
  }

  /// Summaries end with their phase.
  void at(const qtrace_where& where) {
    if (where.iteration == iteration && view(where.phase) == phase) return;
    flush_summaries();
    if (where.iteration != iteration) {
      iteration = where.iteration;
      occurrences.clear();
    }
    phase = view(where.phase);
  }

  void flush_summaries() {
    for (const Summary& summary : summaries) {
      summary_name.assign("summary.").append(text_of(summary.kind));
      if (!summary.op.empty()) summary_name.append(1, '.').append(summary.op);
      const qtrace_where where{iteration, -1, phase.c_str()};
      qtrace_value value{};
      value.kind = summary.kind;
      value.op = summary.op.empty() ? nullptr : summary.op.c_str();
      value.group = summary.group.empty() ? nullptr : summary.group.c_str();
      value.group_seq = summary.group_seq;
      value.peer = -1;
      begin_tensor(where, value);
      begin_name(where, "tensor", summary_name);
      line += ",\"tensor\":{\"digest\":\"";
      hex(line, summary.one);
      hex(line, summary.two);
      line += "\",\"mode\":\"sample\",\"shape\":[";
      number(line, summary.values);
      line += "]}}\n";
      write();
    }
    summaries.clear();
  }

  void write() { buffer += line; }

  /// Up to and with the metadata.
  void begin_tensor(const qtrace_where& where, const qtrace_value& value) {
    line = "{\"event\":\"tensor\",\"iteration\":";
    number(line, where.iteration);
    line += ",\"metadata\":{";
    if (view(value.group) != "") {
      line += "\"group\":";
      quote(line, value.group);
      if (value.group_seq >= 0) {
        line += ",\"group_seq\":";
        number(line, value.group_seq);
      }
      line += ',';
    }
    line += "\"kind\":\"";
    line += text_of(value.kind);
    line += '"';
    if (view(value.op) != "") {
      line += ",\"op\":";
      quote(line, value.op);
    }
    if (value.peer >= 0) {
      line += ",\"peer\":";
      number(line, value.peer);
    }
    if (value.role != QTRACE_NO_ROLE) {
      line += ",\"role\":\"";
      line += text_of(value.role);
      line += '"';
    }
    if (value.dims == 0 && value.data != nullptr) line += ",\"semantic_type\":\"scalar\"";
    put_time();
    line += '}';
  }

  /// From microbatch to sequence.
  void begin_name(const qtrace_where& where, const char* event, std::string_view name) {
    line += ",\"microbatch\":";
    if (where.microbatch < 0) {
      line += "null";
    } else {
      number(line, where.microbatch);
    }
    line += ",\"name\":";
    quote(line, name);
    line += ",\"occurrence\":";
    number(line, occurrence(where, event, name));
    line += ",\"phase\":";
    quote(line, view(where.phase));
    line += ",\"rank\":";
    number(line, rank);
    line += ",\"schema_version\":1,\"sequence\":";
    number(line, sequence++);
  }

  void put_time() {
    if (!times) return;
    line += ",\"time_ns\":";
    number(line, now());
  }

  /// `value`: JSON, or empty.
  void event(const qtrace_where& where, const char* name, qtrace_kind kind,
             const std::string& value) {
    at(where);
    line = "{\"event\":\"event\",\"fields\":{\"kind\":\"";
    line += text_of(kind);
    line += '"';
    put_time();
    if (!value.empty()) line.append(",\"value\":").append(value);
    line += "},\"iteration\":";
    number(line, where.iteration);
    begin_name(where, "event", view(name));
    line += "}\n";
    write();
  }

  void record(const qtrace_where& where, const qtrace_value& value) {
    at(where);
    switch (plan.at(rank, where.iteration, view(where.phase), view(value.name))) {
      case QTRACE_L0:
        return summarise(where, value);
      case QTRACE_L1:
        return digest(where, value);
      case QTRACE_L2:
        return full(where, value);
    }
  }

  void summarise(const qtrace_where& where, const qtrace_value& value) {
    if (value.kind == QTRACE_METRIC && value.dims == 0) return scalar(where, value);
    std::uint64_t lanes[2];
    qtrace_sample_digest(value.dtype, value.data, value.shape, value.dims, lanes);
    const bool talks = value.kind == QTRACE_COLLECTIVE || value.kind == QTRACE_P2P;
    const std::string_view op = talks ? view(value.op) : "";
    const std::string_view group = talks ? view(value.group) : "";
    Summary* to = nullptr;
    for (Summary& summary : summaries) {
      if (summary.kind == value.kind && summary.op == op && summary.group == group) to = &summary;
    }
    if (to == nullptr) {
      summaries.push_back({value.kind, std::string(op), std::string(group), -1, 0, 0, 0});
      to = &summaries.back();
    }
    ++to->values;
    if (talks) to->group_seq = value.group_seq;
    to->one = mix64(to->one ^ lanes[0]);
    to->two = mix64(to->two + lanes[1]);
  }

  /// Bits, as an event: cheaper than any digest, and it says more.
  void scalar(const qtrace_where& where, const qtrace_value& value) {
    char text[32];
    std::uint64_t bits = 0;
    std::memcpy(&bits, value.data, size_of(value.dtype));
    if (value.dtype == QTRACE_FLOAT32) {
      std::snprintf(text, sizeof text, "\"0x%08" PRIx64 "\"", bits);
    } else if (value.dtype == QTRACE_FLOAT64) {
      std::snprintf(text, sizeof text, "\"0x%016" PRIx64 "\"", bits);
    } else {
      std::snprintf(text, sizeof text, "%" PRIu64, bits);
    }
    event(where, value.name, QTRACE_METRIC, text);
  }

  void digest(const qtrace_where& where, const qtrace_value& value) {
    std::uint64_t lanes[2];
    const std::uint64_t multiset =
        qtrace_device_digest(value.dtype, value.data, value.shape, value.dims, lanes);
    begin_tensor(where, value);
    begin_name(where, "tensor", view(value.name));
    line += ",\"tensor\":{\"digest\":\"";
    hex(line, lanes[0]);
    hex(line, lanes[1]);
    line += "\",\"dtype\":\"";
    line += name_of(value.dtype);
    line += "\",\"mode\":\"device\",\"multiset\":\"";
    hex(line, multiset);
    line += "\",\"shape\":" + shape_json(value.shape, value.dims) + "}}\n";
    write();
  }

  /// The public schema's "full" mode, every member of it.
  void full(const qtrace_where& where, const qtrace_value& value) {
    begin_tensor(where, value);
    begin_name(where, "tensor", view(value.name));
    const std::string count = std::to_string(elements_of(value.shape, value.dims));
    std::string stride = "]";
    std::int64_t step = 1;
    for (std::size_t i = value.dims; i-- > 0;) {
      stride.insert(0, (i > 0 ? "," : "") + std::to_string(step));
      step *= value.shape[i];
    }
    line += ",\"tensor\":{\"all_finite\":";
    line += all_finite(value) ? "true" : "false";
    line +=
        ",\"captured_numel\":" + count + ",\"device_type\":\"cpu\",\"dtype\":\"" +
        name_of(value.dtype) +
        "\",\"exact_value_certificate\":true,\"layout\":\"strided\",\"mode\":\"full\",\"numel\":" +
        count + ",\"requires_grad\":false,\"sha256\":\"" + full_digest(value) +
        "\",\"shape\":" + shape_json(value.shape, value.dims) + ",\"stride\":[" + stride +
        ",\"value_observed\":true}}\n";
    write();
  }

  static std::int64_t now() {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(
               std::chrono::steady_clock::now().time_since_epoch())
        .count();
  }

  /// What fails in recording is kept and told by flush: training goes on.
  template <class Work>
  void guarded(Work&& work) noexcept {
    try {
      work();
    } catch (const std::exception& caught) {
      if (error.empty()) error = caught.what();
    }
  }

  int flush() {
    guarded([&] {
      flush_summaries();
      stream.write(buffer.data(), static_cast<std::streamsize>(buffer.size()));
      buffer.clear();
      if (!stream.flush())
        throw std::runtime_error("the trace " + file.string() + " cannot be written");
    });
    return error.empty() ? 0 : -1;
  }
};

extern "C" {

qtrace* qtrace_open(const char* folder, int64_t rank, const qtrace_options* options, char* error,
                    size_t error_size) {
  try {
    auto trace = std::make_unique<qtrace>();
    char name[32];
    std::snprintf(name, sizeof name, "rank_%06" PRId64 ".jsonl", rank);
    trace->file = fs::path(folder) / name;
    trace->rank = rank;
    trace->times = options->times != 0;
    trace->plan = read_plan(*options);
    if (fs::exists(trace->file))
      throw std::runtime_error("the trace " + trace->file.string() + " is there already");
    trace->stream.open(trace->file, std::ios::binary);
    if (!trace->stream)
      throw std::runtime_error("the trace " + trace->file.string() + " cannot be written");
    return trace.release();
  } catch (const std::exception& caught) {
    tell(caught.what(), error, error_size);
    return nullptr;
  }
}

int qtrace_close(qtrace* trace) {
  if (trace == nullptr) return 0;
  const int result = trace->flush();
  delete trace;
  return result;
}

int qtrace_flush(qtrace* trace) {
  return trace->flush();
}

const char* qtrace_error(const qtrace* trace) {
  return trace->error.c_str();
}

qtrace_level qtrace_level_at(const qtrace* trace, const qtrace_where* where, const char* name) {
  return trace->plan.at(trace->rank, where->iteration, view(where->phase), view(name));
}

void qtrace_event(qtrace* trace, const qtrace_where* where, const char* name, qtrace_kind kind) {
  trace->guarded([&] { trace->event(*where, name, kind, ""); });
}

void qtrace_count(qtrace* trace, const qtrace_where* where, const char* name, int64_t value) {
  trace->guarded([&] { trace->event(*where, name, QTRACE_METRIC, std::to_string(value)); });
}

void qtrace_number(qtrace* trace, const qtrace_where* where, const char* name, double value) {
  trace->guarded([&] {
    // As every JSON library prints it; what JSON cannot hold goes as its bits.
    std::string text = nlohmann::json(value).dump();
    if (text == "null") {
      std::uint64_t bits = 0;
      std::memcpy(&bits, &value, sizeof bits);
      char raw[24];
      std::snprintf(raw, sizeof raw, "\"0x%016" PRIx64 "\"", bits);
      text = raw;
    }
    trace->event(*where, name, QTRACE_METRIC, text);
  });
}

void qtrace_record(qtrace* trace, const qtrace_where* where, const qtrace_value* value) {
  trace->guarded([&] { trace->record(*where, *value); });
}

int qtrace_write_manifest(const char* folder, const qtrace_manifest* manifest,
                          const qtrace_options* options, char* error, size_t error_size) {
  try {
    const Plan plan = read_plan(*options);
    constexpr const char* algorithms[] = {"sample", "device", "sha256"};
    nlohmann::json json = {{"schema_version", 1},
                           {"world_size", manifest->world_size},
                           {"capture_level", name_of(plan.level)},
                           {"digest_algorithm", algorithms[plan.level]}};
    if (!plan.digest.empty()) json["capture_plan"] = plan.digest;
    if (manifest->resumed_from >= 0) json["resumed_from"] = manifest->resumed_from;
    for (std::size_t i = 0; i < manifest->inputs; ++i)
      json[manifest->names[i]] = manifest->values[i];
    for (std::size_t i = 0; i < manifest->group_count; ++i) {
      const qtrace_group& group = manifest->groups[i];
      json["groups"][group.name] = std::vector<std::int64_t>(group.ranks, group.ranks + group.size);
    }
    const fs::path path = fs::path(folder) / "manifest.json";
    std::ofstream file(path, std::ios::binary);
    file << json.dump(1) << '\n';
    file.close();
    if (!file) throw std::runtime_error("cannot write " + path.string());
    return 0;
  } catch (const std::exception& caught) {
    tell(caught.what(), error, error_size);
    return -1;
  }
}
}
