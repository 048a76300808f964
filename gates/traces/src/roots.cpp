#include "qualify/traces/roots.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "bytes.hpp"
#include "qualify/base/files.hpp"

namespace qualify::traces {

namespace {

constexpr std::string_view kMagic = "QTROOTS1";
constexpr std::uint64_t kMost = std::uint64_t{4} << 30U;  ///< bytes; 3,072 x 50 take 2.5 MB

bool ascends(const std::vector<std::int64_t>& numbers) {
  return std::adjacent_find(numbers.begin(), numbers.end(), std::greater_equal<>()) ==
         numbers.end();
}

std::string_view view(const Digest& digest) {
  return {reinterpret_cast<const char*>(digest.bytes().data()), Digest::kBytes};
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
  const Digest digest = sha256(out);
  out += view(digest);
  return out;
}

Result<Roots> unpack_roots(std::string_view text, const std::string& context) {
  const auto bad = [&](const char* what) {
    return fail(Errc::integrity, std::string("the roots are damaged: ") + what, context,
                "seal the trace again");
  };
  if (!text.starts_with(kMagic) || text.size() < kMagic.size() + Digest::kBytes) {
    return bad("not a file of roots, or cut off");
  }
  const std::string_view content = text.substr(0, text.size() - Digest::kBytes);
  if (view(sha256(content)) != text.substr(content.size())) return bad("their SHA-256 is another");
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
  roots.hashes.resize(ranks * iterations);
  std::memcpy(roots.hashes.data(), in.rest.data(), in.rest.size());
  return roots;
}

Result<Roots> read_roots(const std::filesystem::path& folder) {
  const auto text = read_file(folder / kRootsName, kMost);
  if (!text) return tl::unexpected(text.error());
  return unpack_roots(*text, (folder / kRootsName).string());
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
