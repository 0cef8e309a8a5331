// The fused kernels of single layers: sequences of a batch do not meet, and states go on.

#include "rotrnn/layers/layer_table.h"
#include "rotrnn/network/single_layer.h"
#include "tests/support/folder.h"
#include "tests/support/numbers.h"

namespace rotrnn::testing {
namespace {

using Floats = std::vector<float>;

// A head of three dimensions and a state that is no multiple of a vector are among these.
LayerOptions options_for(const std::string& layer, bool bidirectional = false) {
  LayerOptions o;
  o.layer = layer;
  o.width = 5;
  o.state = layer == "rotrnn" ? 15 : 14;
  o.rotrnn.heads = 5;
  o.s5.blocks = 1;
  o.s4.max_length = 70;
  o.bidirectional = bidirectional;
  return o;
}

struct Pass {
  Floats y, du;
  Doubles gradients;
};

Pass run(SingleLayer& layer, const std::vector<int64_t>& offsets, const Floats& u,
         const Floats& dy) {
  Pass p{Floats(u.size()), Floats(u.size()), {}};
  FlatArray gradients(layer.layout());
  layer.forward({offsets, u.data(), true, {}}, {p.y.data(), {}});
  layer.backward({dy.data(), {}}, gradients, {p.du.data(), {}});
  p.gradients = as<double>(gradients.all());
  return p;
}

TEST(Batches, PackedEqualsOneByOne) {
  for (const LayerKind& kind : kLayerKinds) {
    for (const bool bidirectional : {false, true}) {
      SCOPED_TRACE(std::string(kind.name) + (bidirectional ? ", both directions" : ""));
      SingleLayer layer(options_for(kind.name, bidirectional), 1);
      layer.engine.threads = 2;
      const std::vector<int64_t> offsets{0, 7, 8, 78, 80};
      const Floats u = as<float>(normal(400, 2)), dy = as<float>(normal(400, 3));
      const Pass together = run(layer, offsets, u, dy);
      Doubles sums(together.gradients.size());
      for (size_t i = 0; i + 1 < offsets.size(); ++i) {
        const auto part = [&](const Floats& of) {
          return Floats(of.begin() + 5 * offsets[i], of.begin() + 5 * offsets[i + 1]);
        };
        const Pass alone = run(layer, {0, offsets[i + 1] - offsets[i]}, part(u), part(dy));
        // Another order of sums, and transforms of another length: some roundings of float32.
        EXPECT_LE(relative_error(part(together.y), alone.y), 3e-6);
        EXPECT_LE(relative_error(part(together.du), alone.du), 3e-6);
        for (size_t k = 0; k < sums.size(); ++k) sums[k] += alone.gradients[k];
      }
      EXPECT_LE(relative_error(sums, together.gradients), 1e-5);
    }
  }
}

TEST(Batches, StateHandedOverContinuesTheSequence) {
  for (const char* name : {"rotrnn", "lru", "s5", "s4d"}) {
    SingleLayer layer(options_for(name), 1);
    layer.engine.threads = 2;
    const Floats u = as<float>(normal(750, 2));
    const size_t size = layer.state_size();
    const auto forward = [&](int64_t begin, int64_t end, const Floats& initial, Floats& final) {
      Floats y(static_cast<size_t>(5 * (end - begin)));
      final.resize(size);
      layer.forward({std::vector<int64_t>{0, end - begin},
                     u.data() + 5 * begin,
                     false,
                     {initial.empty() ? nullptr : initial.data(), nullptr}},
                    {y.data(), {final.data(), nullptr}});
      return y;
    };
    Floats last;
    const Floats whole = forward(0, 150, {}, last);
    for (const int64_t cut : {1, 64, 100, 149}) {
      Floats middle, end;
      Floats y = forward(0, cut, {}, middle);
      const Floats rest = forward(cut, 150, middle, end);
      y.insert(y.end(), rest.begin(), rest.end());
      EXPECT_LE(relative_error(y, whole), 3e-6) << name << " " << cut;
      EXPECT_LE(relative_error(end, last), 3e-6) << name << " " << cut;
    }
  }
}

TEST(Batches, WhatDoesNotFitIsRefused) {
  const Floats u(50);
  Floats y(50), state(300);
  for (const char* name : {"rotrnn", "s4d", "s4"}) {
    SingleLayer layer(options_for(name), 1);
    const auto message = [&](const std::vector<int64_t>& offsets,
                             const BlockStates<const float>& initial,
                             const BlockStates<float>& final) {
      return test::message_of<std::invalid_argument>([&] {
        layer.forward({offsets, u.data(), false, initial}, {y.data(), final});
      });
    };
    EXPECT_NE(message({1, 10}, {}, {}).find("begin with 0"), std::string::npos);
    EXPECT_NE(message({0, 4, 4, 10}, {}, {}).find("sequence 1 has 0 tokens"), std::string::npos);
    EXPECT_NE(message({}, {}, {}).find("begin with 0"), std::string::npos);
    const char* wanted = std::string(name) == "s4" ? "convolution" : "forward only";
    EXPECT_NE(message({0, 10}, {nullptr, state.data()}, {}).find(wanted), std::string::npos);
    EXPECT_NE(message({0, 10}, {}, {nullptr, state.data()}).find(wanted), std::string::npos);
  }
}

}  // namespace
}  // namespace rotrnn::testing
