// S4D by the fused kernels: its error is at most four times that of a plain float32 loop.

#include "rotrnn/kernels/oracle/channel_reference.h"
#include "rotrnn/network/single_layer.h"
#include "tests/layers/double_layer.h"

namespace rotrnn::testing {
namespace {

using Floats = std::vector<float>;
using Results = std::map<std::string, Doubles>;

struct Problem {
  LayerOptions options;
  std::vector<int64_t> offsets{0, 130, 131, 240};
  Floats u, dy, initial, dfinal;  // initial: empty without a state

  kernels::PackedSequences sequences() const { return {offsets.data(), offsets.size() - 1}; }
};

Results in_double(const Problem& p, DoubleLayer& layer) {
  const DoubleBatch batch{p.offsets, as<double>(p.u), {as<double>(p.initial), {}}};
  const auto out = layer.forward(batch);
  const auto back = layer.backward(batch, as<double>(p.dy), {as<double>(p.dfinal), {}});
  Results r{{"y", out.y}, {"final", out.final.forward}, {"u", back.u}};
  if (!p.initial.empty()) r["initial"] = back.initial.forward;
  for (const auto& [name, gradient] : layer.gradients()) r[name] = as<double>(gradient);
  return r;
}

// The same by the scalar loops in float, from the map rounded as the fused kernels have it.
Results in_plain_float(const Problem& p, DoubleLayer& layer) {
  Description<float> rounded;
  convert(layer.map(130), rounded);
  const auto& s = std::get<Channel<float>>(rounded);
  const auto D = static_cast<size_t>(s.width), N = static_cast<size_t>(s.states);
  kernels::reference::ChannelValues<float> v;
  static_cast<Channel<float>&>(v) = s;
  v.u = p.u, v.initial = p.initial;
  const auto out = kernels::reference::channel_forward(p.sequences(), D, N, v);
  const auto g = kernels::reference::channel_backward(p.sequences(), D, N, v, p.dy, p.dfinal);
  Description<double> gradient;
  convert(Description<float>(static_cast<const Channel<float>&>(g)), gradient);
  for (const auto& [name, sums] : layer.gradients()) std::fill(sums.begin(), sums.end(), 0.0);
  map_s4d_backward({p.options, {&layer.values(), 1}}, {}, {&gradient, 1}, {&layer.gradients(), 1});
  Results r{
      {"y", as<double>(out.y)}, {"final", as<double>(out.final_state)}, {"u", as<double>(g.u)}};
  if (!p.initial.empty()) r["initial"] = as<double>(g.initial);
  for (const auto& [name, sums] : layer.gradients()) r[name] = as<double>(sums);
  return r;
}

Results fused(const Problem& p, uint64_t seed) {
  SingleLayer layer(p.options, seed);
  layer.engine.threads = 2;
  Floats y(p.u.size()), du(p.u.size()), final(p.dfinal.size()), dinitial(p.initial.size());
  FlatArray gradients(layer.layout());
  const auto pointer = [](const Floats& v) { return v.empty() ? nullptr : v.data(); };
  layer.forward({p.offsets, p.u.data(), true, {pointer(p.initial), nullptr}},
                {y.data(), {final.data(), nullptr}});
  layer.backward({p.dy.data(), {p.dfinal.data(), nullptr}}, gradients,
                 {du.data(), {dinitial.empty() ? nullptr : dinitial.data(), nullptr}});
  Results r{{"y", as<double>(y)}, {"final", as<double>(final)}, {"u", as<double>(du)}};
  if (!p.initial.empty()) r["initial"] = as<double>(dinitial);
  for (const auto& parameter : layer.layout().parameters) {
    r[parameter.name] = as<double>(gradients.of(parameter));
  }
  return r;
}

TEST(S4DError, IsThatOfAPlainFloatLoop) {
  int number = 0;
  for (const auto init : {S4DInit::lin, S4DInit::inv, S4DInit::legs}) {
    for (const bool bidirectional : {false, true}) {
      for (const bool with_state : {false, true}) {
        SCOPED_TRACE(++number);
        Problem p;
        p.options.layer = "s4d";
        p.options.width = 11;
        p.options.state = 14;
        p.options.bidirectional = bidirectional;
        p.options.s4d.init = init;
        p.options.s4d.tied = number % 3 == 0;
        p.options.s4d.train_b = number % 4 != 0;
        p.options.s4d.discretisation =
            number % 2 == 0 ? Discretisation::zoh : Discretisation::bilinear;
        p.u = as<float>(normal(240 * 11, 2));
        p.dy = as<float>(normal(240 * 11, 3));
        p.dfinal = as<float>(normal(3 * 2 * 7 * 11, 4));
        if (with_state) p.initial = as<float>(normal(3 * 2 * 7 * 11, 5));
        DoubleLayer layer(p.options, 3);
        const Results exact = in_double(p, layer), plain = in_plain_float(p, layer);
        Results actual = fused(p, 3);
        ASSERT_EQ(actual.size(), exact.size());
        // Four times the error of float32 by the plain loops, and a rounding of the largest.
        for (const auto& [name, truth] : exact) {
          EXPECT_LE(relative_error(actual[name], truth),
                    4 * relative_error(plain.at(name), truth) + 1e-6)
              << name;
        }
      }
    }
  }
}

}  // namespace
}  // namespace rotrnn::testing
