#include "model.hpp"

#include <gmock/gmock.h>

#include <cmath>

#include "errors.hpp"
#include "optimizer.hpp"
#include "small_run.hpp"

namespace quickstart {
namespace {

using test::small_text;

struct Small {
  Text text{small_text()};
  ModelShape shape{text.vocabulary(), 4, 5, 7};
  Model model{shape, 7};
  Batch batch = text.batch(7, 0, 6, 4);
};

TEST(Model, GradientIsTheSlopeOfTheLoss) {
  Small s;
  s.model.forward(s.batch);
  s.model.backward(s.batch);
  const std::vector<float> gradient(s.model.gradient().begin(), s.model.gradient().end());
  for (const Parameter& p : s.model.parameters()) {
    double difference = 0;
    double size = 0;
    for (std::size_t i = p.offset; i < p.offset + p.size; ++i) {
      float& weight = s.model.weights()[i];
      const float kept = weight;
      constexpr float kStep = 0x1p-8F;  // a power of two: added without rounding at this size
      weight = kept + kStep;
      const double above = s.model.forward(s.batch);
      weight = kept - kStep;
      const double below = s.model.forward(s.batch);
      weight = kept;
      const double slope = (above - below) / (2 * static_cast<double>(kStep));
      difference += std::pow(slope - static_cast<double>(gradient[i]), 2);
      size += slope * slope;
    }
    EXPECT_GT(size, 1e-6) << p.name;
    EXPECT_LT(std::sqrt(difference / size), 5e-3) << p.name;
  }
}

TEST(Model, StartsNearAGuessAmongAllCharacters) {
  Small s;
  EXPECT_NEAR(s.model.forward(s.batch), std::log(static_cast<double>(s.text.vocabulary())), 2.0);
}

TEST(Model, SameSeedGivesSameWeightsAndAnotherSeedOthers) {
  Small a;
  Small b;
  const Model other(a.shape, 8);
  EXPECT_TRUE(std::ranges::equal(a.model.weights(), b.model.weights()));
  EXPECT_FALSE(std::ranges::equal(std::as_const(a.model).weights(), other.weights()));
}

TEST(Model, LayoutHasNoGapAndNoOverlap) {
  std::size_t next = 0;
  for (const Parameter& p : parameters_of({30, 4, 5, 7})) {
    EXPECT_EQ(p.offset, next) << p.name;
    next += p.size;
  }
  EXPECT_EQ(next, std::size_t{30 * 5 + 20 * 7 + 7 + 7 * 30 + 30});
}

TEST(Text, SampleDependsOnSeedAndNumberAlone) {
  const Text text(small_text());
  const Batch all = text.batch(1, 0, 6, 4);
  const Batch tail = text.batch(1, 3, 3, 4);
  EXPECT_TRUE(std::equal(tail.inputs.begin(), tail.inputs.end(), all.inputs.begin() + 12));
  EXPECT_NE(text.batch(2, 0, 6, 4).inputs, all.inputs);
}

TEST(Text, TooShortForTheContextIsRefused) {
  EXPECT_THROW(static_cast<void>(Text("abcd").batch(1, 0, 1, 4)), InputError);
}

TEST(LearningRate, RisesToTheLargestAndEndsAtTheSmallest) {
  Settings s;
  s.lr = 1.0;
  s.min_lr = 0.25;
  s.lr_warmup_iters = 4;
  s.train_iters = 12;
  EXPECT_EQ(learning_rate(s, 1), 0.25);
  EXPECT_EQ(learning_rate(s, 4), 1.0);
  EXPECT_DOUBLE_EQ(learning_rate(s, 8), 0.625);
  EXPECT_DOUBLE_EQ(learning_rate(s, 12), 0.25);
}

TEST(Adam, FirstStepIsTheLearningRateInTheGradientsDirection) {
  Adam adam(2);
  std::vector<float> weights = {1.0F, 1.0F};
  const std::vector<float> gradient = {0.5F, -2.0F};
  adam.step(weights, gradient, 0.125, 1.0F, 1);
  EXPECT_NEAR(weights[0], 0.875, 1e-6);
  EXPECT_NEAR(weights[1], 1.125, 1e-6);
}

TEST(GradientFacts, CountsBothZerosAndTakesTheEuclideanNorm) {
  const std::vector<float> gradient = {3.0F, 0.0F, -0.0F, 4.0F};
  EXPECT_EQ(facts_of(gradient).norm, 5.0F);
  EXPECT_EQ(facts_of(gradient).zeros, 2);
}

}  // namespace
}  // namespace quickstart
