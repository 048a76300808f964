#include "digests.hpp"

#include <openssl/evp.h>

#include <array>
#include <cmath>
#include <cstring>
#include <memory>
#include <stdexcept>

namespace qualify::tracer {

namespace {

constexpr std::uint64_t kOne = 0x9E3779B97F4A7C15U;
constexpr std::uint64_t kTwo = 0xC2B2AE3D27D4EB4FU;

struct Lanes {
  std::uint64_t one = 0;
  std::uint64_t two = 0;
  std::uint64_t multiset = 0;
};

template <class Bits>
std::uint64_t bits_at(const void* data, std::size_t i) {
  Bits bits;
  std::memcpy(&bits, static_cast<const char*>(data) + i * sizeof bits, sizeof bits);
  return bits;
}

/// Every value, or with `kSampled` every `step`-th, of which nobody asks for a multiset.
template <class Bits, bool kSampled>
void add_all(Lanes& lanes, const void* data, std::size_t count, std::size_t step) {
  for (std::size_t i = 0; i < count; i += kSampled ? step : 1) {
    const std::uint64_t bits = bits_at<Bits>(data, i);
    const std::uint64_t place = i + 1;
    lanes.one += mix64(bits ^ (place * kOne));
    lanes.two += mix64(bits ^ (place * kTwo));
    if constexpr (!kSampled) lanes.multiset += mix64(bits);
  }
}

/// Type and shape come first: equal bytes of another shape are another value.
Lanes begin(qtrace_dtype dtype, const std::int64_t* shape, std::size_t dims) {
  std::uint64_t header = mix64(static_cast<std::uint64_t>(dtype) + 1);
  for (std::size_t i = 0; i < dims; ++i)
    header = mix64(header ^ static_cast<std::uint64_t>(shape[i])) + i;
  return {mix64(header ^ kOne), mix64(header ^ kTwo), 0};
}

/// kMost: of values that are looked at; 0: all.
template <std::size_t kMost>
Lanes digest(qtrace_dtype dtype, const void* data, const std::int64_t* shape, std::size_t dims) {
  constexpr bool kSampled = kMost > 0;
  Lanes lanes = begin(dtype, shape, dims);
  const std::size_t count = elements_of(shape, dims);
  std::size_t step = 1;
  if constexpr (kSampled) step = count > kMost ? (count + kMost - 1) / kMost : 1;
  switch (size_of(dtype)) {
    case 1:
      add_all<std::uint8_t, kSampled>(lanes, data, count, step);
      break;
    case 2:
      add_all<std::uint16_t, kSampled>(lanes, data, count, step);
      break;
    case 4:
      add_all<std::uint32_t, kSampled>(lanes, data, count, step);
      break;
    default:
      add_all<std::uint64_t, kSampled>(lanes, data, count, step);
  }
  return lanes;
}

template <class Float>
bool finite(const void* data, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    Float value;
    std::memcpy(&value, static_cast<const char*>(data) + i * sizeof value, sizeof value);
    if (!std::isfinite(value)) return false;
  }
  return true;
}

/// Half formats: an exponent of ones is infinite or NaN.
bool finite_half(const void* data, std::size_t count, std::uint16_t exponent) {
  for (std::size_t i = 0; i < count; ++i) {
    if ((bits_at<std::uint16_t>(data, i) & exponent) == exponent) return false;
  }
  return true;
}

}  // namespace

std::size_t size_of(qtrace_dtype dtype) {
  switch (dtype) {
    case QTRACE_UINT8:
      return 1;
    case QTRACE_FLOAT16:
    case QTRACE_BFLOAT16:
      return 2;
    case QTRACE_FLOAT32:
    case QTRACE_INT32:
      return 4;
    case QTRACE_FLOAT64:
    case QTRACE_INT64:
      break;
  }
  return 8;
}

const char* name_of(qtrace_dtype dtype) {
  constexpr std::array names = {"float32", "float64", "float16", "bfloat16",
                                "int32",   "int64",   "uint8"};
  return names[static_cast<std::size_t>(dtype)];
}

std::size_t elements_of(const std::int64_t* shape, std::size_t dims) {
  std::size_t count = 1;
  for (std::size_t i = 0; i < dims; ++i) count *= static_cast<std::size_t>(shape[i]);
  return count;
}

std::string shape_json(const std::int64_t* shape, std::size_t dims) {
  std::string text = "[";
  for (std::size_t i = 0; i < dims; ++i) {
    if (i > 0) text += ',';
    text += std::to_string(shape[i]);
  }
  return text + "]";
}

std::string full_digest(const qtrace_value& value) {
  // Fetched once: looking the algorithm up costs more than hashing a scalar.
  static const std::unique_ptr<EVP_MD, void (*)(EVP_MD*)> algorithm(
      EVP_MD_fetch(nullptr, "SHA256", nullptr), EVP_MD_free);
  const std::unique_ptr<EVP_MD_CTX, void (*)(EVP_MD_CTX*)> context(EVP_MD_CTX_new(),
                                                                   EVP_MD_CTX_free);
  std::string header =
      std::string("{\"dtype\":\"") + name_of(value.dtype) +
      "\",\"mode\":\"full\",\"schema_version\":1,\"shape\":" + shape_json(value.shape, value.dims) +
      "}";
  header += '\0';
  std::array<unsigned char, 32> raw{};
  const std::size_t size = elements_of(value.shape, value.dims) * size_of(value.dtype);
  const bool good = algorithm && context &&
                    EVP_DigestInit_ex2(context.get(), algorithm.get(), nullptr) == 1 &&
                    EVP_DigestUpdate(context.get(), header.data(), header.size()) == 1 &&
                    EVP_DigestUpdate(context.get(), value.data, size) == 1 &&
                    EVP_DigestFinal_ex(context.get(), raw.data(), nullptr) == 1;
  if (!good) throw std::runtime_error("OpenSSL cannot compute SHA-256");
  std::string hex;
  for (const unsigned char byte : raw) {
    hex += "0123456789abcdef"[byte >> 4U];
    hex += "0123456789abcdef"[byte & 15U];
  }
  return hex;
}

bool all_finite(const qtrace_value& value) {
  const std::size_t count = elements_of(value.shape, value.dims);
  switch (value.dtype) {
    case QTRACE_FLOAT32:
      return finite<float>(value.data, count);
    case QTRACE_FLOAT64:
      return finite<double>(value.data, count);
    case QTRACE_FLOAT16:
      return finite_half(value.data, count, 0x7C00);
    case QTRACE_BFLOAT16:
      return finite_half(value.data, count, 0x7F80);
    default:
      return true;
  }
}

}  // namespace qualify::tracer

extern "C" {

uint64_t qtrace_device_digest(qtrace_dtype dtype, const void* data, const int64_t* shape,
                              size_t dims, uint64_t lanes[2]) {
  const auto digest = qualify::tracer::digest<0>(dtype, data, shape, dims);
  lanes[0] = digest.one;
  lanes[1] = digest.two;
  return digest.multiset;
}

void qtrace_sample_digest(qtrace_dtype dtype, const void* data, const int64_t* shape, size_t dims,
                          uint64_t lanes[2]) {
  constexpr std::size_t kSamples = 64;
  const auto digest = qualify::tracer::digest<kSamples>(dtype, data, shape, dims);
  lanes[0] = digest.one;
  lanes[1] = digest.two;
}
}
