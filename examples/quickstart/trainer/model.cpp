#include "model.hpp"

#include <algorithm>
#include <cmath>

#include "errors.hpp"

namespace quickstart {
namespace {

enum ParameterIndex : std::size_t { kEmbedding, kHiddenWeight, kHiddenBias, kOutWeight, kOutBias };

// The three products below have the output's row as innermost loop: it vectorises without changing
// the order in which any element's terms are added, which a dot product would not.

/// out[m,n] += a[m,k] b[k,n]
void add_product(float* __restrict out, const float* __restrict a, const float* __restrict b,
                 std::size_t m, std::size_t k, std::size_t n) {
  for (std::size_t i = 0; i < m; ++i) {
    for (std::size_t j = 0; j < k; ++j) {
      const float factor = a[i * k + j];
      for (std::size_t c = 0; c < n; ++c) {
        out[i * n + c] += factor * b[j * n + c];
      }
    }
  }
}

/// out[k,n] = sum over i of a[i,k] b[i,n]: weight gradients.
void set_transposed_product(float* __restrict out, const float* __restrict a,
                            const float* __restrict b, std::size_t m, std::size_t k,
                            std::size_t n) {
  std::fill(out, out + k * n, 0.0F);
  for (std::size_t i = 0; i < m; ++i) {
    for (std::size_t j = 0; j < k; ++j) {
      const float factor = a[i * k + j];
      for (std::size_t c = 0; c < n; ++c) {
        out[j * n + c] += factor * b[i * n + c];
      }
    }
  }
}

/// out[n] = sum over i of b[i,n]: bias gradients.
void set_column_sums(float* __restrict out, const float* __restrict b, std::size_t m,
                     std::size_t n) {
  std::fill(out, out + n, 0.0F);
  for (std::size_t i = 0; i < m; ++i) {
    for (std::size_t c = 0; c < n; ++c) {
      out[c] += b[i * n + c];
    }
  }
}

void transpose(std::vector<float>& out, std::span<const float> in, std::size_t rows,
               std::size_t columns) {
  out.resize(rows * columns);
  for (std::size_t r = 0; r < rows; ++r) {
    for (std::size_t c = 0; c < columns; ++c) {
      out[c * rows + r] = in[r * columns + c];
    }
  }
}

/// Each row starts as `bias`.
void set_rows(std::vector<float>& out, std::span<const float> bias, std::size_t rows) {
  out.resize(rows * bias.size());
  for (std::size_t r = 0; r < rows; ++r) {
    std::copy(bias.begin(), bias.end(), out.begin() + static_cast<std::ptrdiff_t>(r * bias.size()));
  }
}

}  // namespace

std::vector<Parameter> parameters_of(const ModelShape& s) {
  const std::size_t inputs = std::size_t{s.context} * s.embedding;
  std::vector<Parameter> all = {
      {"embedding.weight", {s.vocabulary, s.embedding}},
      {"hidden.weight", {inputs, s.hidden}},
      {"hidden.bias", {s.hidden}},
      {"output.weight", {s.hidden, s.vocabulary}},
      {"output.bias", {s.vocabulary}},
  };
  std::size_t offset = 0;
  for (Parameter& p : all) {
    p.size = 1;
    for (const std::size_t extent : p.shape) {
      p.size *= extent;
    }
    p.offset = offset;
    offset += p.size;
  }
  return all;
}

Model::Model(const ModelShape& shape, std::uint64_t seed)
    : shape_(shape), parameters_(parameters_of(shape)) {
  const Parameter& last = parameters_.back();
  weights_.assign(last.offset + last.size, 0.0F);
  gradient_.assign(weights_.size(), 0.0F);
  for (std::size_t index = 0; index < parameters_.size(); ++index) {
    const Parameter& p = parameters_[index];
    if (p.shape.size() < 2) {
      continue;  // biases
    }
    // Uniform in ±sqrt(6 / fan-in) for the layers (He et al., 2015); ±1 for the embedding.
    const float limit =
        index == kEmbedding ? 1.0F : std::sqrt(6.0F / static_cast<float>(p.shape[0]));
    for (std::size_t i = 0; i < p.size; ++i) {
      // 24 bits: every such number is a float32.
      const auto bits = static_cast<float>(mix64(mix64(~seed) ^ (p.offset + i)) >> 40U);
      weights_[p.offset + i] = limit * (bits * 0x1p-23F - 1.0F);
    }
  }
}

std::span<float> Model::of(std::vector<float>& flat, std::size_t parameter) const {
  return std::span(flat).subspan(parameters_[parameter].offset, parameters_[parameter].size);
}

float Model::forward(const Batch& batch) {
  if (batch.context != shape_.context) {
    throw InputError("a batch of another context than the model's");
  }
  const std::size_t rows = batch.size;
  const std::size_t width = shape_.embedding;
  const std::size_t inputs = shape_.context * width;
  const auto embedding = of(weights_, kEmbedding);
  x_.resize(rows * inputs);
  for (std::size_t i = 0; i < batch.inputs.size(); ++i) {
    const auto row = embedding.subspan(static_cast<std::size_t>(batch.inputs[i]) * width, width);
    std::copy(row.begin(), row.end(), x_.begin() + static_cast<std::ptrdiff_t>(i * width));
  }

  set_rows(h_, of(weights_, kHiddenBias), rows);
  add_product(h_.data(), x_.data(), of(weights_, kHiddenWeight).data(), rows, inputs,
              shape_.hidden);
  for (float& value : h_) {
    value = value < 0.0F ? 0.0F : value;  // keeps NaN
  }

  const std::size_t vocabulary = shape_.vocabulary;
  set_rows(p_, of(weights_, kOutBias), rows);
  add_product(p_.data(), h_.data(), of(weights_, kOutWeight).data(), rows, shape_.hidden,
              vocabulary);

  float loss = 0.0F;
  for (std::size_t r = 0; r < rows; ++r) {
    const auto row = std::span(p_).subspan(r * vocabulary, vocabulary);
    const float most = *std::max_element(row.begin(), row.end());
    const float target = row[static_cast<std::size_t>(batch.targets[r])] - most;
    float total = 0.0F;
    for (float& value : row) {
      value = std::exp(value - most);
      total += value;
    }
    for (float& value : row) {
      value /= total;
    }
    loss += std::log(total) - target;
  }
  return loss / static_cast<float>(rows);
}

void Model::backward(const Batch& batch) {
  const std::size_t rows = batch.size;
  const std::size_t vocabulary = shape_.vocabulary;
  const std::size_t hidden = shape_.hidden;
  const std::size_t width = shape_.embedding;
  const std::size_t inputs = shape_.context * width;

  // d loss / d logits = (p - onehot) / rows, in place of p.
  for (std::size_t r = 0; r < rows; ++r) {
    p_[r * vocabulary + static_cast<std::size_t>(batch.targets[r])] -= 1.0F;
  }
  for (float& value : p_) {
    value /= static_cast<float>(rows);
  }
  set_transposed_product(of(gradient_, kOutWeight).data(), h_.data(), p_.data(), rows, hidden,
                         vocabulary);
  set_column_sums(of(gradient_, kOutBias).data(), p_.data(), rows, vocabulary);

  dh_.assign(rows * hidden, 0.0F);
  transpose(transposed_, of(weights_, kOutWeight), hidden, vocabulary);
  add_product(dh_.data(), p_.data(), transposed_.data(), rows, vocabulary, hidden);
  for (std::size_t i = 0; i < dh_.size(); ++i) {
    dh_[i] = h_[i] > 0.0F ? dh_[i] : 0.0F;
  }
  set_transposed_product(of(gradient_, kHiddenWeight).data(), x_.data(), dh_.data(), rows, inputs,
                         hidden);
  set_column_sums(of(gradient_, kHiddenBias).data(), dh_.data(), rows, hidden);

  dx_.assign(rows * inputs, 0.0F);
  transpose(transposed_, of(weights_, kHiddenWeight), inputs, hidden);
  add_product(dx_.data(), dh_.data(), transposed_.data(), rows, hidden, inputs);
  const auto embedding = of(gradient_, kEmbedding);
  std::fill(embedding.begin(), embedding.end(), 0.0F);
  for (std::size_t i = 0; i < batch.inputs.size(); ++i) {
    float* row = &embedding[static_cast<std::size_t>(batch.inputs[i]) * width];
    for (std::size_t c = 0; c < width; ++c) {
      row[c] += dx_[i * width + c];
    }
  }
}

}  // namespace quickstart
