#include "qualify/traces/roots.hpp"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <array>
#include <bit>
#include <memory>
#include <optional>

#include "bytes.hpp"
#include "mapping.hpp"

namespace qualify::traces {

namespace {

constexpr std::string_view kMagic = "QTROOTS2";

/// XXH3 of 128 bits (https://github.com/Cyan4973/xxHash, doc/xxhash_spec.md), as its canonical
/// bytes. It finds damage; whoever can write the file can write a new one, as with any other sum.
using Sum = std::array<char, sizeof(XXH128_canonical_t)>;

Sum canonical(XXH128_hash_t hash) {
  XXH128_canonical_t bytes;
  XXH128_canonicalFromHash(&bytes, hash);
  return std::bit_cast<Sum>(bytes);
}

Sum sum_of(std::string_view content) {
  return canonical(XXH3_128bits(content.data(), content.size()));
}

std::string_view view(const Sum& sum) {
  return {sum.data(), sum.size()};
}

/// All of a file but its sum.
std::string_view content_of(std::string_view file) {
  return file.substr(0, file.size() - std::min(file.size(), sizeof(Sum)));
}

/// Where both files are the same: the sum of their content. Each byte is fetched from memory once.
std::optional<Sum> sum_of_same(std::string_view a, std::string_view b) {
  constexpr std::size_t kPiece = 64U << 10U;  // stays in the cache for the second look at it
  if (a.size() != b.size()) return std::nullopt;
  const std::unique_ptr<XXH3_state_t, decltype(&XXH3_freeState)> state(XXH3_createState(),
                                                                       &XXH3_freeState);
  if (!state || XXH3_128bits_reset(state.get()) != XXH_OK) return std::nullopt;
  const std::size_t content = content_of(a).size();
  for (std::size_t at = 0; at < a.size(); at += kPiece) {
    const std::string_view piece = a.substr(at, kPiece);
    if (piece != b.substr(at, kPiece)) return std::nullopt;
    if (at >= content) continue;
    XXH3_128bits_update(state.get(), piece.data(), std::min(piece.size(), content - at));
  }
  return canonical(XXH3_128bits_digest(state.get()));
}

bool ascends(const std::vector<std::int64_t>& numbers) {
  return std::adjacent_find(numbers.begin(), numbers.end(), std::greater_equal<>()) ==
         numbers.end();
}

std::string_view view(const Digest& digest) {
  return {reinterpret_cast<const char*>(digest.bytes().data()), Digest::kBytes};
}

/// `sum` is that of the text's content; `holder`, where there is one, keeps the text.
Result<Roots> parse(std::string_view text, const Sum& sum, const std::string& context,
                    std::shared_ptr<const void> holder) {
  const auto bad = [&](const char* what) {
    return fail(Errc::integrity, std::string("the roots are damaged: ") + what, context,
                "seal the trace again");
  };
  const std::string_view content = content_of(text);
  if (!content.starts_with(kMagic)) {
    return bad("not a file of roots, one of another version, or cut off");
  }
  if (view(sum) != text.substr(content.size())) return bad("their sum is another");
  bytes::Cursor in{content.substr(kMagic.size())};
  Roots roots;
  roots.complete = in.get<std::uint64_t>() != 0;
  roots.manifest = Digest(in.get<Digest::Bytes>());
  roots.window = in.get<std::int64_t>();
  const auto ranks = in.get<std::uint64_t>();
  const auto iterations = in.get<std::uint64_t>();
  const std::uint64_t most = content.size() / 8;
  if (!in.good || ranks > most || iterations > most || roots.window < 0 ||
      in.rest.size() != 8 * (ranks + iterations) + ranks * iterations * sizeof(Hash)) {
    return bad("their length is another than they say");
  }
  roots.ranks.reserve(ranks);
  for (std::uint64_t i = 0; i < ranks; ++i) roots.ranks.push_back(in.get<std::int64_t>());
  for (std::uint64_t i = 0; i < iterations; ++i) roots.iterations.push_back(in.get<std::int64_t>());
  if (!ascends(roots.ranks) || !ascends(roots.iterations)) return bad("they are out of order");
  const std::size_t count = ranks * iterations;
  if (holder) {
    // Bytes without alignment, of which a hash is an array.
    const auto* first = reinterpret_cast<const Hash*>(in.rest.data());
    roots.hashes = Hashes(std::move(holder), first, count);
  } else if (count > 0) {
    roots.hashes.reset(count);
    std::memcpy(&roots.hashes[0], in.rest.data(), in.rest.size());
  }
  return roots;
}

struct File {
  std::string path;
  std::shared_ptr<const Mapping> holder;
  std::string_view text;

  static Result<File> open(const std::filesystem::path& folder) {
    const std::filesystem::path path = folder / kRootsName;
    auto mapping = map_file(path, true);
    if (!mapping) return tl::unexpected(mapping.error());
    auto holder = std::make_shared<const Mapping>(std::move(*mapping));
    const std::string_view text = holder->bytes();
    return File{path.string(), std::move(holder), text};
  }
  [[nodiscard]] Result<Roots> roots() const { return roots(sum_of(content_of(text))); }
  [[nodiscard]] Result<Roots> roots(const Sum& sum) const { return parse(text, sum, path, holder); }
};

}  // namespace

std::string pack_roots(const Roots& roots) {
  std::string out(kMagic);
  bytes::put(out, std::uint64_t{roots.complete ? 1U : 0U});
  out += view(roots.manifest);
  bytes::put(out, roots.window);
  bytes::put(out, static_cast<std::uint64_t>(roots.ranks.size()));
  bytes::put(out, static_cast<std::uint64_t>(roots.iterations.size()));
  for (const std::int64_t rank : roots.ranks) bytes::put(out, rank);
  for (const std::int64_t iteration : roots.iterations) bytes::put(out, iteration);
  out.append(reinterpret_cast<const char*>(roots.hashes.data()),
             roots.hashes.size() * sizeof(Hash));
  const Sum sum = sum_of(out);
  out += view(sum);
  return out;
}

Result<Roots> unpack_roots(std::string_view text, const std::string& context) {
  return parse(text, sum_of(content_of(text)), context, nullptr);
}

Result<Roots> read_roots(const std::filesystem::path& folder) {
  return File::open(folder).and_then([](const File& file) { return file.roots(); });
}

std::pair<Result<Roots>, Result<Roots>> read_both_roots(const std::filesystem::path& a,
                                                        const std::filesystem::path& b) {
  const auto file_a = File::open(a);
  const auto file_b = File::open(b);
  if (file_a && file_b) {
    if (const auto sum = sum_of_same(file_a->text, file_b->text)) {
      auto roots = file_a->roots(*sum);
      return {roots, roots};
    }
  }
  const auto roots_of = [](const Result<File>& file) {
    return file ? file->roots() : Result<Roots>(tl::unexpected(file.error()));
  };
  return {roots_of(file_a), roots_of(file_b)};
}

Hash run_root(const Roots& roots) {
  return hash128(
      {reinterpret_cast<const char*>(roots.hashes.data()), roots.hashes.size() * sizeof(Hash)});
}

std::string sealed_name(std::int64_t rank, std::int64_t iteration, std::int64_t window) {
  const std::int64_t first =
      window > 0 ? (iteration - (iteration > 0 ? 1 : 0)) / window * window + (iteration > 0 ? 1 : 0)
                 : 0;
  return fmt::format("rank_{:06}.iter_{:07}.arrow", rank, first);
}

}  // namespace qualify::traces
