// The paper's lemmas on the norms of the states.

#include <numbers>

#include "tests/layers/rotrnn/oracle.h"

namespace rotrnn::testing {
namespace {

LayerOptions sizes(int64_t width, int64_t state, int64_t heads) {
  LayerOptions o;
  o.width = width;
  o.state = state;
  o.rotrnn.heads = heads;
  o.rotrnn.init.theta_max = 2 * std::numbers::pi;
  return o;
}

void set_gamma(const DoubleLayer& layer, std::initializer_list<double> gamma) {
  const std::span<float> logs = layer.of("gamma_log");
  for (size_t h = 0; h < logs.size(); ++h) {
    logs[h] = static_cast<float>(std::log(-std::log(gamma.begin()[h % gamma.size()])));
  }
}

// As the layer has it: its logarithm is kept in float32.
double gamma_of(const DoubleLayer& layer, size_t head) {
  return std::exp(-std::exp(static_cast<double>(layer.of("gamma_log")[head])));
}

// x_t is linear in independent unit inputs, so E‖x_t‖² is a sum of squares of the response to an
// impulse: run the layer on the D impulses at time 1 and add up. Exact, no sampling.
TEST(RotrnnNorms, ExpectedSquareIsOneMinusGammaToThe2t) {
  const size_t D = 3, T = 300, H = 2;
  for (const double gamma : {0.5, 0.9, 0.99, 0.999}) {
    for (const bool stationary : {false, true}) {
      // Response at lag k: ‖A^k ξB‖²_F per head, [T, H], from an impulse at time 1 of every
      // channel.
      const auto response = [&](bool start) {
        LayerOptions o = sizes(D, 10, H);
        o.rotrnn.stationary_start = start;
        DoubleLayer layer(o);
        set_gamma(layer, {gamma});
        DoubleBatch batch{{0}, Doubles(D * T * D), {}};
        for (size_t i = 0; i < D; ++i) {
          batch.u[i * T * D + i] = 1;
          batch.offsets.push_back(static_cast<int64_t>((i + 1) * T));
        }
        const Doubles norms = head_norms(layer, layer.forward(batch).z);
        Doubles squares(T * H);
        for (size_t i = 0; i < norms.size(); ++i) squares[i % (T * H)] += norms[i] * norms[i];
        return squares;
      };
      DoubleLayer kept(sizes(D, 10, H));
      set_gamma(kept, {gamma});
      // Input t = 1 may be scaled by the start; all later ones are plain.
      const Doubles first = response(stationary), plain = response(false);
      for (size_t h = 0; h < H; ++h) {
        double later = 0;
        for (size_t t = 1; t <= T; ++t) {
          const double square = std::pow(gamma_of(kept, h), 2.0 * static_cast<double>(t));
          EXPECT_NEAR(first[(t - 1) * H + h] + later, stationary ? 1.0 : 1.0 - square, 1e-10)
              << "gamma " << gamma << " t " << t;
          later += plain[(t - 1) * H + h];
        }
      }
    }
  }
}

TEST(RotrnnNorms, MonteCarloAgrees) {
  const size_t D = 8, T = 40, runs = 4000, H = 3;
  DoubleLayer layer(sizes(D, 12, H));
  set_gamma(layer, {0.5, 0.9, 0.99});
  const DoubleBatch batch = noise(std::vector<int64_t>(runs, T), D, 123);
  const Doubles norms = head_norms(layer, layer.forward(batch).z);
  for (const size_t t : {1, 2, 10, 40}) {
    for (size_t h = 0; h < H; ++h) {
      Doubles squares;
      for (size_t i = 0; i < runs; ++i) {
        squares.push_back(std::pow(norms[(i * T + t - 1) * H + h], 2));
      }
      const double expected = 1 - std::pow(gamma_of(layer, h), 2.0 * static_cast<double>(t));
      const double error = standard_deviation(squares) / std::sqrt(static_cast<double>(runs));
      // 12 comparisons at 4.5 standard errors: a right layer fails with probability below 1e-4, and
      // the seed is fixed.
      EXPECT_LE(std::abs(mean(squares) - expected) / error, 4.5) << "t " << t;
    }
  }
}

TEST(RotrnnNorms, AlphaForgetsAndXiRemembers) {
  // The response to the first input after 50 steps, relative to the first response.
  const auto remembered = [](Normalisation normalisation) {
    LayerOptions o = sizes(4, 8, 2);
    o.rotrnn.normalisation = normalisation;
    DoubleLayer layer(o);
    set_gamma(layer, {0.999});
    DoubleBatch batch{{0, 50}, Doubles(200), {}};
    std::fill_n(batch.u.begin(), 4, 1.0);
    const Doubles norms = head_norms(layer, layer.forward(batch).z);
    return std::min(norms[98] / norms[0], norms[99] / norms[1]);
  };
  EXPECT_GT(remembered(Normalisation::xi), 0.9);
  EXPECT_LT(remembered(Normalisation::alpha), 1e-6);
}

}  // namespace
}  // namespace rotrnn::testing
