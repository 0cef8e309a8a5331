// Norms, activations, pooling, embedding, AdamW against plain loops.
#include <cstring>

#include "rotrnn/kernels/block/activations.h"
#include "rotrnn/kernels/block/embedding.h"
#include "rotrnn/kernels/block/norm.h"
#include "rotrnn/kernels/block/pooling.h"
#include "rotrnn/kernels/optimiser/adamw.h"
#include "rotrnn/kernels/oracle/block_reference.h"
#include "tests/kernels/test_util.h"

namespace rotrnn::kernels::testing {
namespace {

TEST(Norm, BatchStatisticsKeepDigitsFarFromZero) {
  for_each_target([] {
    for (size_t n : {1, 5, 130, 5000}) {
      for (size_t D : {1, 7, 40}) {
        Floats x = normal(n * D, 9);
        for (float& v : x) v += 1000;
        Doubles one(1 + 2 * D), many(1 + 2 * D);
        batch_statistics(x.data(), n, D, one.data(), 1);
        batch_statistics(x.data(), n, D, many.data(), 3);
        EXPECT_EQ(one, many);
        for (size_t c = 0; c < D; ++c) {
          double sum = 0, square = 0;
          for (size_t t = 0; t < n; ++t) sum += x[t * D + c];
          const double mean = sum / static_cast<double>(n);
          for (size_t t = 0; t < n; ++t) square += std::pow(x[t * D + c] - mean, 2);
          const double got = one[1 + c] / one[0];
          const double variance = one[1 + D + c] / one[0] - got * got;
          EXPECT_NEAR(got, mean, 1e-4);
          EXPECT_NEAR(variance, square / static_cast<double>(n), 2e-3);
        }
      }
    }
  });
}

TEST(Norm, LayerNormMatchesOracle) {
  for_each_target([] {
    for (size_t D : {1, 5, 16, 33}) {
      const size_t n = 301;
      const Floats x = normal(n * D, 1), w = normal(D, 2), b = normal(D, 3), g = normal(n * D, 4);
      Floats out(n * D), dx(n * D), dw(D), db(D);
      layer_norm_forward(x.data(), w.data(), b.data(), 1e-5f, out.data(), n, D, 2);
      layer_norm_backward(x.data(), w.data(), 1e-5f, g.data(), dx.data(), dw.data(), db.data(), n,
                          D, 3);
      const auto run = [&]<class T>(T) {
        const auto as = [](const Floats& v) { return std::vector<T>(v.begin(), v.end()); };
        std::vector<T> dweight(D), dbias(D);
        const auto f =
            reference::normalise(as(x), n, D, Norm::layer, false, T(1e-5f), as(w), as(b));
        auto back = reference::normalise_backward(f, as(g), n, D, Norm::layer, false, as(w),
                                                  dweight, dbias);
        return std::vector<std::vector<T>>{f.out, back, dweight, dbias};
      };
      const auto exact = run(double());
      const auto plain = run(float());
      expect_close("out", out, plain[0], exact[0]);
      expect_close("dx", dx, plain[1], exact[1]);
      expect_close("dweight", dw, plain[2], exact[2]);
      expect_close("dbias", db, plain[3], exact[3]);
    }
  });
}

TEST(Activations, GeluOverTheWholeRange) {
  for_each_target([] {
    Floats x;
    for (float v = -40; v < 40; v += 0.01f) x.push_back(v);
    x.insert(x.end(), {-1e30f, 1e30f, 0.0f, -0.0f, 100.0f, -100.0f});
    Floats y(x.size()), slope(x.size()), one(x.size(), 1.0f);
    gelu_forward(x.data(), y.data(), x.size());
    gelu_backward(x.data(), one.data(), slope.data(), x.size());
    for (size_t i = 0; i < x.size(); ++i) {
      const double exact = reference::gelu(static_cast<double>(x[i]));
      EXPECT_NEAR(y[i], exact, 4e-7 * (1 + std::abs(exact))) << x[i];
      if (std::abs(x[i]) > 1e3f) continue;  // the cubic overflows in float, not in the product
      EXPECT_NEAR(slope[i], reference::gelu_slope(static_cast<double>(x[i])), 2e-6) << x[i];
    }
    // The exact form, whose negative tail keeps its digits: the exponent's rounding is y²/2·2^-24.
    gelu_forward(x.data(), y.data(), x.size(), true);
    gelu_backward(x.data(), one.data(), slope.data(), x.size(), true);
    for (size_t i = 0; i < x.size(); ++i) {
      const double exact = reference::exact_gelu(static_cast<double>(x[i]));
      const double square = static_cast<double>(x[i]) * x[i];
      EXPECT_NEAR(y[i], exact, 4e-7 * std::abs(exact) * (1 + square / 4) + 1e-36) << x[i];
      EXPECT_NEAR(slope[i], reference::exact_gelu_slope(static_cast<double>(x[i])), 1e-6) << x[i];
    }
  });
}

TEST(Pooling, MeanAndLast) {
  for_each_target([] {
    const std::vector<int64_t> offsets{0, 1, 1, 300, 307};
    const PackedSequences sequences{offsets.data(), 4};
    const size_t D = 11, n = 307;
    const Floats x = normal(n * D, 1), g = normal(4 * D, 2);
    Floats mean(4 * D), last(4 * D), other(4 * D), dmean(n * D, NAN), dlast(n * D, NAN);
    pool_mean(sequences, x.data(), D, mean.data(), 1);
    pool_mean(sequences, x.data(), D, other.data(), 3);
    EXPECT_EQ(mean, other);
    pool_last(sequences, x.data(), D, last.data());
    pool_mean_backward(sequences, g.data(), D, dmean.data(), 2);
    pool_last_backward(sequences, g.data(), D, dlast.data(), 2);
    for (size_t i = 0; i < 4; ++i) {
      const size_t begin = sequences.begin(i), end = sequences.end(i);
      for (size_t c = 0; c < D; ++c) {
        double sum = 0;
        for (size_t t = begin; t < end; ++t) {
          sum += x[t * D + c];
          EXPECT_FLOAT_EQ(dmean[t * D + c], g[i * D + c] / static_cast<float>(end - begin));
          EXPECT_EQ(dlast[t * D + c], t + 1 == end ? g[i * D + c] : 0.0f);
        }
        const double length = static_cast<double>(end - begin);
        EXPECT_NEAR(mean[i * D + c], begin == end ? 0 : sum / length, 1e-6);
        EXPECT_EQ(last[i * D + c], begin == end ? 0.0f : x[(end - 1) * D + c]);
      }
    }
  });
}

TEST(Embedding, GatherAndGradient) {
  for_each_target([] {
    for (size_t n : {0, 1, 5000}) {
      const size_t D = 13, vocabulary = 18;
      std::vector<int64_t> tokens;
      for (size_t i = 0; i < n; ++i) tokens.push_back(static_cast<int64_t>(i * i % 17));
      const Floats w = normal(vocabulary * D, 1), g = normal(n * D, 2);
      Floats out(n * D), one(vocabulary * D, NAN), many(vocabulary * D, NAN);
      embedding_forward(tokens.data(), n, w.data(), D, out.data(), 2);
      embedding_backward(tokens.data(), n, g.data(), D, vocabulary, one.data(), 1);
      embedding_backward(tokens.data(), n, g.data(), D, vocabulary, many.data(), 3);
      EXPECT_EQ(one, many);
      Doubles exact(vocabulary * D);
      for (size_t i = 0; i < n * D; ++i) {
        const size_t at = static_cast<size_t>(tokens[i / D]) * D + i % D;
        EXPECT_EQ(out[i], w[at]);
        exact[at] += g[i];
      }
      EXPECT_LE(max_difference(one, exact), 1e-6 * (1 + max_value(exact)));
    }
  });
}

TEST(AdamW, MatchesTheEquations) {
  for_each_target([] {
    for (size_t n : {1, 37, 70001}) {
      Floats w = normal(n, 1), m(n), v(n);
      Doubles W = widen(w), M(n), V(n);
      const AdamW s{1e-2, 0.9, 0.999, 1e-8, 0.05};
      for (int64_t step = 1; step <= 5; ++step) {
        const Floats g = normal(n, 10 + static_cast<uint64_t>(step));
        adamw(s, step, w.data(), g.data(), m.data(), v.data(), n, 2);
        for (size_t i = 0; i < n; ++i) {
          W[i] *= 1 - s.lr * s.decay;
          M[i] = s.beta1 * M[i] + (1 - s.beta1) * g[i];
          V[i] = s.beta2 * V[i] + (1 - s.beta2) * g[i] * g[i];
          const double mean = M[i] / (1 - std::pow(s.beta1, step));
          const double square = V[i] / (1 - std::pow(s.beta2, step));
          W[i] -= s.lr * mean / (std::sqrt(square) + s.eps);
        }
      }
      EXPECT_LE(max_difference(w, W), 2e-6);
    }
  });
}

}  // namespace
}  // namespace rotrnn::kernels::testing
