// A RotRNN as an LRU: the same outputs, from double and from the layer that takes the parameters.

#include "rotrnn/layers/rotrnn/to_lru.h"

#include <numbers>

#include "rotrnn/network/single_layer.h"
#include "rotrnn/network/tensors.h"
#include "rotrnn/training/optimiser.h"
#include "tests/layers/double_layer.h"
#include "tests/support/folder.h"

namespace rotrnn::testing {
namespace {

using Complex = std::complex<double>;

LayerOptions rotrnn_options(int64_t dh, bool bidirectional) {
  LayerOptions o;
  o.width = 4;
  o.rotrnn.heads = 3;
  o.state = 3 * dh;
  o.bidirectional = bidirectional;
  return o;
}

LayerOptions lru_options(int64_t dh, bool bidirectional) {
  LayerOptions o = rotrnn_options(dh, bidirectional);
  o.layer = "lru";
  o.state = 2 * 3 * ((dh + 1) / 2);
  return o;
}

// y by a loop over the LRU's equations.
Doubles run(const LruParameters& p, const DoubleBatch& batch) {
  const auto D = static_cast<size_t>(p.width), S = static_cast<size_t>(p.states);
  Doubles y(batch.u.size());
  for (size_t i = 0; i < y.size(); ++i) y[i] = p.D[i % D] * batch.u[i];
  const auto direction = [&](const kernels::PackedSequences& sequences, bool reverse) {
    const Complexes C =
        reverse ? complexes(p.C_reverse_re, p.C_reverse_im) : complexes(p.C_re, p.C_im);
    for (size_t i = 0; i < sequences.count; ++i) {
      Complexes x(S);
      for (const size_t t :
           kernels::reference::visit(sequences.begin(i), sequences.end(i), reverse)) {
        for (size_t k = 0; k < S; ++k) {
          x[k] *= std::exp(Complex(-std::exp(p.nu_log[k]), std::exp(p.theta_log[k])));
          for (size_t d = 0; d < D; ++d) {
            const Complex B(p.B_re[k * D + d], p.B_im[k * D + d]);
            x[k] += std::exp(p.gamma_log[k]) * B * batch.u[t * D + d];
          }
          for (size_t d = 0; d < D; ++d) y[t * D + d] += (C[d * S + k] * x[k]).real();
        }
      }
    }
  };
  direction(batch.sequences(), false);
  if (!p.C_reverse_re.empty()) direction(batch.sequences(), true);
  return y;
}

TEST(ToLru, LruFormGivesTheSameOutputs) {
  for (const int64_t dh : {2, 3, 5, 8}) {
    LayerOptions o = rotrnn_options(dh, true);
    o.rotrnn.init.theta_max = 2 * std::numbers::pi;
    DoubleLayer layer(o);
    const DoubleBatch batch = noise({40, 1, 17}, 4);
    const Doubles y = run(to_lru(o, layer.values()), batch);
    EXPECT_LE(relative_error(layer.forward(batch).y, y), 1e-11) << "dh " << dh;
  }
}

// Some steps of training, so that no initial symmetry is left.
void train(SingleLayer& layer, const DoubleBatch& batch) {
  layer.engine.threads = 1;
  Optimiser optimiser(layer.layout());
  FlatArray gradients(layer.layout());
  const std::vector<float> u = as<float>(batch.u), target = as<float>(normal(u.size(), 12));
  std::vector<float> y(u.size()), dy(u.size()), du(u.size());
  for (int step = 1; step <= 8; ++step) {
    layer.forward({batch.offsets, u.data(), true, {}}, {y.data(), {}});
    for (size_t i = 0; i < y.size(); ++i) {
      dy[i] = 2 * (y[i] - target[i]) / static_cast<float>(y.size());
    }
    layer.backward({dy.data(), {}}, gradients, {du.data(), {}});
    optimiser.step(step, {0.05, 0.05, 0.01}, gradients, layer.weights(), 1);
  }
}

TEST(ToLru, ATrainedLayerGivesItsOutputsToAnLru) {
  for (const int64_t dh : {2, 5, 8}) {
    for (const bool bidirectional : {false, true}) {
      const LayerOptions o = rotrnn_options(dh, bidirectional);
      const LayerOptions l = lru_options(dh, bidirectional);
      DoubleBatch batch = noise({40, 1, 17}, 4);
      batch.u = as<double>(as<float>(batch.u));
      SingleLayer trained(o, 1);
      train(trained, batch);
      DoubleLayer rotrnn(o);
      for (const auto& p : trained.layout().parameters) {
        const auto values = trained.weights().parameters().of(p);
        std::copy(values.begin(), values.end(), rotrnn.of(p.name).begin());
      }
      const auto expected = rotrnn.forward(batch);
      const LruParameters p = to_lru(o, rotrnn.values());
      EXPECT_LE(relative_error(run(p, batch), expected.y), 1e-11) << dh;

      // As it would be trained on: the parameters rounded.
      SingleLayer lru(l, 9);
      lru.engine.threads = 1;
      load_lru(l, p, layer_values(l, "", lru.weights()));
      const std::vector<float> u = as<float>(batch.u);
      std::vector<float> y(u.size()), final(expected.final.forward.size());
      lru.forward({batch.offsets, u.data(), false, {}}, {y.data(), {final.data(), nullptr}});
      EXPECT_LE(relative_error(y, expected.y), 1e-5) << dh;
      EXPECT_LE(relative_error(final, expected.final.forward), 1e-5) << dh;
    }
  }
}

TEST(ToLru, RefusesWhatAnLruCannotExpress) {
  LayerOptions o = rotrnn_options(4, false);
  o.rotrnn.stationary_start = true;
  const DoubleLayer stationary(o);
  EXPECT_NE(test::message_of<std::invalid_argument>([&] {
              to_lru(o, stationary.values());
            }).find("stationary start"),
            std::string::npos);
  o.rotrnn.stationary_start = false;
  const DoubleLayer unstable(o);
  unstable.of("gamma_log")[1] = -800;  // γ = 1
  EXPECT_THROW(to_lru(o, unstable.values()), std::invalid_argument);
}

TEST(LoadLru, RefusesWhatDoesNotFit) {
  const DoubleLayer rotrnn(rotrnn_options(4, false));
  const LruParameters p = to_lru(rotrnn.options(), rotrnn.values());
  const LayerOptions o = lru_options(4, false);
  EXPECT_NO_THROW(load_lru(o, p, DoubleLayer(o).values()));
  const auto refused = [&](auto change) {
    LayerOptions wrong = o;
    change(wrong);
    const DoubleLayer layer(wrong);
    const std::vector<float> before = as<float>(layer.of("D"));
    EXPECT_THROW(load_lru(wrong, p, layer.values()), std::invalid_argument);
    EXPECT_EQ(as<float>(layer.of("D")), before) << "nothing is changed by a failed load";
  };
  refused([](LayerOptions& w) { w.state = 10; });
  refused([](LayerOptions& w) { w.width = 5; });
  refused([](LayerOptions& w) { w.bidirectional = true; });
  refused([](LayerOptions& w) { w.lru.gamma = LruGamma::fixed; });
}

}  // namespace
}  // namespace rotrnn::testing
