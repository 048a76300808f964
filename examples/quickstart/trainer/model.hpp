#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "data.hpp"

namespace quickstart {

struct ModelShape {
  unsigned vocabulary = 0;
  unsigned context = 0;
  unsigned embedding = 0;
  unsigned hidden = 0;
  bool operator==(const ModelShape&) const = default;
};

/// A named parameter within the model's one flat buffer; row-major.
struct Parameter {
  std::string name;
  std::vector<std::size_t> shape;
  std::size_t offset = 0;  ///< floats
  std::size_t size = 0;    ///< floats
};

[[nodiscard]] std::vector<Parameter> parameters_of(const ModelShape& shape);

/// Neural probabilistic language model (Bengio et al., JMLR 3, 2003), with ReLU: the context's
/// embeddings, concatenated, through one hidden layer to a softmax over the vocabulary.
///   x = [E[c_1] … E[c_n]]    h = max(0, x W1 + b1)    p = softmax(h W2 + b2)
/// One replica of one rank; not thread-safe. All sums run in a fixed order (float32, no
/// contraction), so that loss and gradient are pure functions of weights and batch.
class Model {
 public:
  /// Weights are pure functions of (shape, seed): uniform, He-scaled; biases 0.
  Model(const ModelShape& shape, std::uint64_t seed);

  /// Mean cross-entropy of the batch, nats. Throws InputError when the batch has another context.
  float forward(const Batch& batch);
  /// Gradient of the last forward's loss, into gradient().
  void backward(const Batch& batch);

  [[nodiscard]] const std::vector<Parameter>& parameters() const { return parameters_; }
  [[nodiscard]] std::span<float> weights() { return weights_; }
  [[nodiscard]] std::span<const float> weights() const { return weights_; }
  [[nodiscard]] std::span<float> gradient() { return gradient_; }

 private:
  [[nodiscard]] std::span<float> of(std::vector<float>& flat, std::size_t parameter) const;

  ModelShape shape_;
  std::vector<Parameter> parameters_;
  std::vector<float> weights_;
  std::vector<float> gradient_;
  // Activations of the last forward, [batch, …].
  std::vector<float> x_;
  std::vector<float> h_;
  std::vector<float> p_;
  // Scratch of backward, kept to spare allocations.
  std::vector<float> dh_;
  std::vector<float> dx_;
  std::vector<float> transposed_;
};

}  // namespace quickstart
