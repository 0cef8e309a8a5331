// What holds of every layer: gradients, steps, batches, states, norms, draws.

#include "rotrnn/kernels/oracle/channel_reference.h"
#include "rotrnn/layers/rotrnn/coordinates.h"
#include "rotrnn/layers/state_space/hippo.h"
#include "rotrnn/network/fused/state_norms.h"
#include "rotrnn/network/layer_maps.h"
#include "tests/layers/variants.h"

namespace rotrnn::testing {
namespace {

TEST(Layers, GradientsEqualFiniteDifferences) {
  for (const Variant& v : state_variants()) {
    SCOPED_TRACE(v.name);
    DoubleLayer layer = v.layer();
    layer.round_values();
    DoubleBatch batch = noise({4, 1, 6}, 3);
    // Where a first input is scaled by a stationary start, there is no initial state.
    if (!v.options.rotrnn.stationary_start) batch.initial = layer.random_states(3, 31);
    const Doubles dy = normal(batch.u.size(), 41);
    const TwinStates dfinal = layer.random_states(3, 51);
    const auto loss = [&] {  // outputs and final states, so that both carry gradients back
      const auto out = layer.forward(batch);
      return dot(out.y, dy) + dot(out.final.forward, dfinal.forward) +
             dot(out.final.reverse, dfinal.reverse);
    };
    loss();
    const auto back = layer.backward(batch, dy, dfinal);
    const auto compare = [&](const std::string& name, const auto& gradient, auto&& values) {
      Doubles expected;
      for (auto& x : values) expected.push_back(derivative(x, loss));
      EXPECT_LE(relative_error(gradient, expected, 1.0), 1e-7) << name;
    };
    std::map<std::string, Doubles> gradients;
    for (const auto& [name, gradient] : layer.gradients()) gradients[name] = as<double>(gradient);
    for (const auto& [name, gradient] : gradients) compare(name, gradient, layer.of(name));
    compare("u", back.u, batch.u);
    compare("initial", back.initial.forward, batch.initial.forward);
    compare("initial reverse", back.initial.reverse, batch.initial.reverse);
  }
}

// What the fused kernels take and give is the map in double, rounded once.
TEST(Layers, RoundedMapIsTheMapRounded) {
  for (const Variant& v : state_variants()) {
    SCOPED_TRACE(v.name);
    DoubleLayer layer = v.layer();
    LayerMaps maps;
    maps.forward(v.options, {layer.values()}, 1, 2, false);
    const auto fields = [](const auto& description) {
      std::vector<Doubles> out;
      std::visit(
          [&](const auto& d) {
            d.each(
                [&](const char*, const auto& values, auto) { out.push_back(as<double>(values)); });
          },
          description);
      return out;
    };
    const auto exact = fields(layer.map(1)), rounded = fields(maps.rounded(0));
    ASSERT_EQ(exact.size(), rounded.size());
    for (size_t i = 0; i < exact.size(); ++i) {
      EXPECT_EQ(rounded[i], as<double>(as<float>(exact[i]))) << i;
    }

    // The same gradient of the description, rounded or not.
    Description<double> gradient = layer.map(1);
    uint64_t seed = 3;
    std::visit(
        [&](auto& d) {
          d.each([&](const char*, Doubles& x, auto) { x = normal(x.size(), seed++); });
        },
        gradient);
    convert(gradient, maps.gradient(0));
    const auto run = [&](const std::vector<Description<double>>* given) {
      std::map<std::string, Doubles> out;
      Views<double> views;
      for (const auto& [name, sums] : layer.gradients()) {
        views.add(name, out[name] = Doubles(sums.size(), 7.0));  // overwritten
      }
      maps.backward(v.options, {layer.values()}, 2, {views}, given);
      return out;
    };
    const std::vector<Description<double>> given{gradient};
    auto actual = run(nullptr);
    for (const auto& [name, expected] : run(&given)) {
      EXPECT_LE(relative_error(actual[name], expected, 1e-2), 1e-6) << name;
    }
  }
}

// One sequence by the recurrence that a stream runs.
Doubles step_by_step(const Diagonal<double>& s, const Doubles& u, Doubles z) {
  const auto D = static_cast<size_t>(s.width), S = static_cast<size_t>(s.states);
  const bool given = !z.empty();
  z.resize(2 * S);
  Doubles y;
  for (size_t t = 0; t < u.size() / D; ++t) {
    for (size_t k = 0; k < S; ++k) {
      std::complex<double> v;
      for (size_t d = 0; d < D; ++d) {
        v += std::complex<double>(s.W[k * D + d], s.W[(S + k) * D + d]) * u[t * D + d];
      }
      std::complex<double> x(z[k], z[S + k]);
      if (t == 0 && !given && !s.start_re.empty()) {
        x = std::complex<double>(s.start_re[k], s.start_im[k]) * v;
      }
      x = std::complex<double>(s.lambda_re[k], s.lambda_im[k]) * x + v;
      z[k] = x.real(), z[S + k] = x.imag();
    }
    for (size_t d = 0; d < D; ++d) {
      y.push_back(s.D[d] * u[t * D + d]);
      for (size_t k = 0; k < 2 * S; ++k) y.back() += s.V[d * 2 * S + k] * z[k];
    }
  }
  return y;
}

TEST(Layers, StepByStepIsTheSequence) {
  for (const Variant& v : state_variants()) {
    if (v.options.bidirectional) continue;
    SCOPED_TRACE(v.name);
    DoubleLayer layer = v.layer();
    DoubleBatch batch = noise({90}, 3);
    const Recurrence recurrence = layer.kind().recurrence(v.options, layer.values(), true);
    if (const auto* s = std::get_if<Diagonal<double>>(&recurrence)) {
      for (const bool with_states : {false, true}) {
        if (with_states) batch.initial = layer.random_states(1, 61);
        const Doubles y = step_by_step(*s, batch.u, batch.initial.forward);
        EXPECT_LE(relative_error(y, layer.forward(batch).y), 1e-12);
      }
    } else {
      const auto& r = std::get<ChannelSteps>(recurrence);
      kernels::reference::ChannelStepValues<double> values;
      values.D = 3, values.N = 4;
      values.lambda_re = r.lambda_re, values.lambda_im = r.lambda_im;
      values.c_re = r.c_re, values.c_im = r.c_im;
      Doubles y = kernels::reference::channel_steps(values, batch.u);
      for (size_t i = 0; i < y.size(); ++i) y[i] += r.D[i % 3] * batch.u[i];
      EXPECT_LE(relative_error(y, layer.forward(batch).y), 1e-12);
    }
  }
}

TEST(Layers, StateHandedOverContinuesTheSequence) {
  for (const Variant& v : state_variants()) {
    if (v.options.bidirectional) continue;
    SCOPED_TRACE(v.name);
    DoubleLayer layer = v.layer();
    const DoubleBatch batch = noise({150}, 3);
    const auto whole = layer.forward(batch);
    for (const int64_t cut : {1, 64, 100, 149}) {
      const auto middle = batch.u.begin() + 3 * cut;
      const auto a = layer.forward({{0, cut}, {batch.u.begin(), middle}, {}});
      const auto b = layer.forward({{0, 150 - cut}, {middle, batch.u.end()}, a.final});
      Doubles y = a.y;
      y.insert(y.end(), b.y.begin(), b.y.end());
      EXPECT_LE(relative_error(y, whole.y), 1e-12);
      EXPECT_LE(relative_error(b.final.forward, whole.final.forward), 1e-12);
    }
  }
}

TEST(Layers, PackedEqualsOneByOne) {
  std::vector<Variant> all = state_variants();
  for (const char* layer : {"s4", "liquid_s4"}) {
    all.push_back({layer, all.back().options});
    all.back().options.layer = layer;
    all.back().options.s4.max_length = 70;
  }
  for (const Variant& v : all) {
    SCOPED_TRACE(v.name);
    DoubleLayer layer = v.layer();
    const DoubleBatch batch = noise({7, 1, 70, 2}, 3);
    const Doubles dy = normal(batch.u.size(), 81);
    const Doubles together = layer.forward(batch).y;
    const Doubles du = layer.backward(batch, dy).u;
    std::map<std::string, Doubles> whole, sums;
    for (const auto& [name, gradient] : layer.gradients()) whole[name] = as<double>(gradient);
    for (size_t i = 0; i + 1 < batch.offsets.size(); ++i) {
      const int64_t begin = 3 * batch.offsets[i], end = 3 * batch.offsets[i + 1];
      const auto part = [&](const Doubles& of) {
        return Doubles(of.begin() + begin, of.begin() + end);
      };
      const DoubleBatch alone{{0, (end - begin) / 3}, part(batch.u), {}};
      EXPECT_LE(relative_error(part(together), layer.forward(alone).y), 1e-13);
      EXPECT_LE(relative_error(part(du), layer.backward(alone, part(dy)).u), 1e-12);
      for (const auto& [name, gradient] : layer.gradients()) {
        Doubles& sum = sums[name];
        sum.resize(gradient.size());
        for (size_t k = 0; k < sum.size(); ++k) sum[k] += gradient[k];
      }
    }
    for (const auto& [name, gradient] : whole) {
      EXPECT_LE(relative_error(sums[name], gradient), 1e-12) << name;
    }
  }
}

// Floats of a state's norms, as the engine has them: real parts, then imaginary parts.
std::vector<float> norms_of(const DoubleLayer& layer, const Doubles& z) {
  std::vector<float> out;
  const std::vector<float> rounded = as<float>(z);
  diagonal_norms(rounded.data(), layer.state_size(), z.size() / layer.state_size(),
                 layer.kind().states(layer.options()), 2, out);
  return out;
}

// Of the paper's x = P z in every head, one of three dimensions among them.
TEST(Layers, StateNormsOfRotrnnAreThoseOfTheRealState) {
  for (const int64_t state : {6, 10, 12}) {
    LayerOptions o;
    o.width = 3;
    o.state = state;
    o.rotrnn.heads = 2;
    DoubleLayer layer(o);
    const Doubles z = layer.forward(noise({20, 3}, 3)).z;
    const Doubles x = rotrnn_hidden(o, layer.values(), z);
    const auto dh = static_cast<size_t>(state / 2);
    Doubles expected(x.size() / dh);
    for (size_t i = 0; i < x.size(); ++i) expected[i / dh] += x[i] * x[i];
    for (double& norm : expected) norm = std::sqrt(norm);
    EXPECT_LE(relative_error(norms_of(layer, z), expected), 2e-7) << state;
  }
}

TEST(Layers, StateNormsOfLruAndS5AreThoseOfTheRealState) {
  LayerOptions o;
  o.layer = "lru";
  o.width = 3;
  o.state = 8;
  o.s5.blocks = 2;
  const Doubles z = as<double>(as<float>(normal(6 * 8, 71)));
  Doubles expected(6);
  for (size_t i = 0; i < z.size(); ++i) expected[i / 8] += z[i] * z[i];
  for (double& x : expected) x = std::sqrt(x);
  EXPECT_LE(relative_error(norms_of(DoubleLayer(o), z), expected), 1e-7);

  // S5 in the basis of HiPPO: x = V z + its conjugate, block by block.
  o.layer = "s5";
  const Eigen::MatrixXcd V = hippo_basis(4).V;  // [4, 2]
  for (size_t row = 0; row < 6; ++row) {
    double sum = 0;
    for (size_t block = 0; block < 2; ++block) {
      Eigen::VectorXcd kept(2);
      for (size_t k = 0; k < 2; ++k) {
        const size_t i = row * 8 + 2 * block + k;
        kept[static_cast<int64_t>(k)] = {z[i], z[i + 4]};
      }
      sum += (2 * (V * kept).real()).squaredNorm();
    }
    expected[row] = std::sqrt(sum);
  }
  EXPECT_LE(relative_error(norms_of(DoubleLayer(o), z), expected), 1e-7);
}

TEST(Layers, ValuesAreAPureFunctionOfSeedAndStream) {
  for (const Variant& v : state_variants()) {
    SCOPED_TRACE(v.name);
    const DoubleLayer a(v.options, 5, 2), b(v.options, 5, 2), c(v.options, 6, 2),
        d(v.options, 5, 3);
    const auto values = [](const DoubleLayer& layer, const std::string& name) {
      return as<float>(layer.of(name));
    };
    for (const auto& [name, gradient] : a.gradients()) {
      for (const float x : a.of(name)) EXPECT_TRUE(std::isfinite(x)) << name;
      EXPECT_EQ(values(a, name), values(b, name)) << name;
      // HiPPO is not drawn, nor is what S4D starts as.
      if (name.starts_with("Lambda") || name.starts_with("A_")) continue;
      if (v.options.layer == "s4d" && name.starts_with("B_")) continue;
      EXPECT_NE(values(a, name), values(c, name)) << name;
      EXPECT_NE(values(a, name), values(d, name)) << name;
    }
    // No two parameters share numbers.
    const std::string own = v.options.layer == "rotrnn" ? "C" : "C_re";
    if (own == "C_re") {
      EXPECT_NE(values(a, "C_re"), values(a, "C_im"));
    }
    if (v.options.bidirectional) {
      EXPECT_NE(values(a, own), values(a, own == "C" ? "C_reverse" : "C_reverse_re"));
    }
  }
}

}  // namespace
}  // namespace rotrnn::testing
