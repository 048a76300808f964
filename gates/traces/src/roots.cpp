#include "qualify/traces/roots.hpp"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <array>
#include <bit>

#include "bytes.hpp"
#include "mapping.hpp"

namespace qualify::traces {

namespace {

constexpr std::string_view kMagic = "QTROOTS2";

/// XXH3 of 128 bits (https://github.com/Cyan4973/xxHash, doc/xxhash_spec.md), as its canonical
/// bytes. It finds damage; whoever can write the file can write a new one, as with any other sum.
using Sum = std::array<char, sizeof(XXH128_canonical_t)>;

Sum sum_of(std::string_view content) {
  XXH128_canonical_t canonical;
  XXH128_canonicalFromHash(&canonical, XXH3_128bits(content.data(), content.size()));
  return std::bit_cast<Sum>(canonical);
}

std::string_view view(const Sum& sum) {
  return {sum.data(), sum.size()};
}

bool ascends(const std::vector<std::int64_t>& numbers) {
  return std::adjacent_find(numbers.begin(), numbers.end(), std::greater_equal<>()) ==
         numbers.end();
}

std::string_view view(const Digest& digest) {
  return {reinterpret_cast<const char*>(digest.bytes().data()), Digest::kBytes};
}

/// `holder`, where there is one, keeps `text`.
Result<Roots> parse(std::string_view text, const std::string& context,
                    std::shared_ptr<const void> holder) {
  const auto bad = [&](const char* what) {
    return fail(Errc::integrity, std::string("the roots are damaged: ") + what, context,
                "seal the trace again");
  };
  if (!text.starts_with(kMagic) || text.size() < kMagic.size() + sizeof(Sum)) {
    return bad("not a file of roots, one of another version, or cut off");
  }
  const std::string_view content = text.substr(0, text.size() - sizeof(Sum));
  if (view(sum_of(content)) != text.substr(content.size())) return bad("their sum is another");
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
  for (std::uint64_t i = 0; i < ranks; ++i) roots.ranks.push_back(in.get<std::int64_t>());
  for (std::uint64_t i = 0; i < iterations; ++i) roots.iterations.push_back(in.get<std::int64_t>());
  if (!ascends(roots.ranks) || !ascends(roots.iterations)) return bad("they are out of order");
  const std::size_t count = ranks * iterations;
  if (holder) {
    // Bytes without alignment, of which a hash is an array.
    roots.hashes = Hashes(holder, reinterpret_cast<const Hash*>(in.rest.data()), count);
    roots.file = text;
    roots.file_holder = std::move(holder);
  } else if (count > 0) {
    roots.hashes.reset(count);
    std::memcpy(&roots.hashes[0], in.rest.data(), in.rest.size());
  }
  return roots;
}

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
  return parse(text, context, nullptr);
}

Result<Roots> read_roots(const std::filesystem::path& folder, const Roots* like) {
  const std::filesystem::path path = folder / kRootsName;
  auto file = map_file(path, true);
  if (!file) return tl::unexpected(file.error());
  const auto held = std::make_shared<const Mapping>(std::move(*file));
  const std::string_view text = held->bytes();
  if (like != nullptr && !text.empty() && text == like->file) return *like;
  return parse(text, path.string(), held);
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
