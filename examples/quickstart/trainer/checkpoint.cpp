#include "checkpoint.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <bit>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "errors.hpp"
#include "sha256.hpp"

namespace quickstart {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

static_assert(std::endian::native == std::endian::little, "safetensors are little-endian");

constexpr const char* kLatest = "latest_checkpointed_iteration.txt";
constexpr const char* kMetadata = "metadata.json";

fs::path share_file(const fs::path& folder, unsigned rank) {
  return folder / fmt::format("rank_{:06}.safetensors", rank);
}

/// A reader sees the old file, none, or all of the new one; never half of it, not after a power
/// cut either.
void write_whole(const fs::path& file, std::string_view bytes) {
  const fs::path temporary = file.string() + ".tmp";
  const auto refuse = [&] {
    throw OutputError("the checkpoint file " + file.string() +
                      " cannot be written: " + std::strerror(errno));
  };
  const int fd = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (fd < 0) {
    refuse();
  }
  bool ok = true;
  while (ok && !bytes.empty()) {
    const ssize_t written = ::write(fd, bytes.data(), bytes.size());
    ok = written >= 0 || errno == EINTR;
    bytes.remove_prefix(written > 0 ? static_cast<std::size_t>(written) : 0);
  }
  ok = ok && ::fsync(fd) == 0;
  ok = ::close(fd) == 0 && ok;
  if (!ok || ::rename(temporary.c_str(), file.c_str()) != 0) {
    refuse();
  }
}

std::optional<std::string> read_whole(const fs::path& file) {
  std::ifstream stream(file, std::ios::binary);
  std::string bytes((std::istreambuf_iterator<char>(stream)), std::istreambuf_iterator<char>());
  return stream ? std::optional(std::move(bytes)) : std::nullopt;
}

std::string sha256_of(const std::string& bytes) {
  return sha256_hex({std::as_bytes(std::span(bytes))});
}

struct Part {
  const char* prefix;
  std::span<float> ReplicaState::*buffer;
};
constexpr std::array<Part, 3> kParts = {{{"", &ReplicaState::weights},
                                         {"optimizer.mean.", &ReplicaState::mean},
                                         {"optimizer.square.", &ReplicaState::square}}};

[[noreturn]] void refuse(const fs::path& file, const std::string& why) {
  throw InputError("the checkpoint " + file.string() + " " + why);
}

json parse_object(const fs::path& file, std::string_view text) {
  json value = json::parse(text, nullptr, false);
  if (!value.is_object()) {
    refuse(file, "is not well-formed");
  }
  return value;
}

fs::path resolve(const fs::path& where) {
  if (fs::exists(where / kMetadata)) {
    return where;
  }
  const auto text = read_whole(where / kLatest);
  if (!text) {
    throw InputError("--resume: no complete checkpoint at " + where.string() +
                     "\n  It must be a folder with " + kLatest + ", or one with " + kMetadata);
  }
  std::int64_t iteration = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), iteration);
  if (error != std::errc() || iteration < 1 ||
      std::string_view(end).find_first_not_of(" \n") != std::string_view::npos) {
    refuse(where / kLatest, "does not hold the number of an iteration");
  }
  return checkpoint_folder(where, iteration);
}

}  // namespace

json identity_of(const Settings& s, const ModelShape& shape, const std::string& text_sha256) {
  return {{"clip-grad", s.clip_grad},
          {"context", shape.context},
          {"embedding", shape.embedding},
          {"hidden", shape.hidden},
          {"lr", s.lr},
          {"lr-warmup-iters", s.lr_warmup_iters},
          {"micro-batch-size", s.micro_batch_size},
          {"min-lr", s.min_lr},
          {"ranks", s.ranks},
          {"seed", s.seed},
          {"text sha256", text_sha256},
          {"train-iters", s.train_iters},
          {"vocabulary", shape.vocabulary}};
}

fs::path checkpoint_folder(const fs::path& root, std::int64_t iteration) {
  return root / fmt::format("iter_{:07}", iteration);
}

void save_share(const fs::path& folder, unsigned rank, unsigned ranks,
                const std::vector<Parameter>& parameters, const ReplicaState& state) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) {
    throw OutputError("the folder " + folder.string() + " cannot be made: " + error.message());
  }
  json header = json::object();
  std::string data;
  for (std::size_t index = rank; index < parameters.size(); index += ranks) {
    const Parameter& p = parameters[index];
    for (const Part& part : kParts) {
      const auto values = (state.*part.buffer).subspan(p.offset, p.size);
      const std::size_t from = data.size();
      data.append(reinterpret_cast<const char*>(values.data()), values.size_bytes());
      header[part.prefix + p.name] = {
          {"data_offsets", {from, data.size()}}, {"dtype", "F32"}, {"shape", p.shape}};
    }
  }
  std::string text = header.dump();
  text.append((8 - text.size() % 8) % 8, ' ');  // the format allows it, for aligned tensors
  std::string bytes(8, '\0');
  const std::uint64_t length = text.size();
  std::memcpy(bytes.data(), &length, sizeof length);
  write_whole(share_file(folder, rank), bytes + text + data);
}

void complete_checkpoint(const fs::path& root, std::int64_t iteration, unsigned ranks,
                         const json& identity) {
  const fs::path folder = checkpoint_folder(root, iteration);
  json files = json::object();
  for (unsigned rank = 0; rank < ranks; ++rank) {
    const fs::path file = share_file(folder, rank);
    const auto bytes = read_whole(file);
    if (!bytes) {
      throw OutputError("the checkpoint file " + file.string() + " cannot be read back");
    }
    files[file.filename().string()] = {{"bytes", bytes->size()}, {"sha256", sha256_of(*bytes)}};
  }
  const json metadata = {{"files", files},
                         {"format", "quickstart-checkpoint"},
                         {"identity", identity},
                         {"iteration", iteration},
                         {"schema_version", 1}};
  write_whole(folder / kMetadata, metadata.dump(1) + "\n");
  write_whole(root / kLatest, std::to_string(iteration) + "\n");
}

Checkpoint open_checkpoint(const fs::path& where, const json& identity) {
  const fs::path folder = resolve(where);
  const fs::path file = folder / kMetadata;
  const auto text = read_whole(file);
  if (!text) {
    refuse(folder, std::string("is incomplete: it has no ") + kMetadata);
  }
  const json metadata = parse_object(file, *text);
  if (metadata.value("format", json()) != "quickstart-checkpoint" ||
      metadata.value("schema_version", json()) != 1 || !metadata.contains("iteration") ||
      !metadata["iteration"].is_number_integer() ||
      !metadata.value("identity", json()).is_object() ||
      !metadata.value("files", json()).is_object()) {
    refuse(file, "is not one of this program, version 1");
  }
  for (const auto& [name, value] : identity.items()) {
    const json& saved = metadata["identity"].value(name, json());
    if (saved != value) {
      refuse(folder,
             "was made with " + name + " " + saved.dump() + "; this run has " + value.dump());
    }
  }
  const json& files = metadata["files"];
  const auto ranks = identity.at("ranks").get<unsigned>();
  for (unsigned rank = 0; rank < ranks; ++rank) {
    const fs::path share = share_file(folder, rank);
    const auto bytes = read_whole(share);
    if (!bytes) {
      refuse(share, "is missing");
    }
    const json entry = files.value(share.filename().string(), json::object());
    if (entry.value("sha256", json()) != sha256_of(*bytes)) {
      refuse(share, "does not have the digest that metadata.json gives: it has changed");
    }
  }
  return {folder, metadata["iteration"].get<std::int64_t>(), ranks};
}

void load_checkpoint(const Checkpoint& checkpoint, const std::vector<Parameter>& parameters,
                     const ReplicaState& state) {
  for (unsigned rank = 0; rank < checkpoint.ranks; ++rank) {
    const fs::path file = share_file(checkpoint.folder, rank);
    const std::string bytes = read_whole(file).value_or("");
    std::uint64_t length = 0;
    if (bytes.size() < sizeof length) {
      refuse(file, "is cut off");
    }
    std::memcpy(&length, bytes.data(), sizeof length);
    if (length > bytes.size() - sizeof length) {
      refuse(file, "is cut off");
    }
    const json header = parse_object(file, std::string_view(bytes).substr(sizeof length, length));
    const std::string_view data = std::string_view(bytes).substr(sizeof length + length);
    for (std::size_t index = rank; index < parameters.size(); index += checkpoint.ranks) {
      const Parameter& p = parameters[index];
      for (const Part& part : kParts) {
        const json entry = header.value(part.prefix + p.name, json::object());
        const json offsets = entry.value("data_offsets", json());
        const auto values = (state.*part.buffer).subspan(p.offset, p.size);
        if (entry.value("dtype", json()) != "F32" || entry.value("shape", json()) != p.shape ||
            !offsets.is_array() || offsets.size() != 2 || !offsets[0].is_number_unsigned() ||
            offsets[0].get<std::uint64_t>() > data.size() ||
            data.size() - offsets[0].get<std::uint64_t>() < values.size_bytes()) {
          refuse(file, "has no " + (part.prefix + p.name) + " of the model's shape");
        }
        std::memcpy(values.data(), data.data() + offsets[0].get<std::uint64_t>(),
                    values.size_bytes());
      }
    }
  }
}

}  // namespace quickstart
