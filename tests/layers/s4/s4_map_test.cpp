// The maps of S4 and Liquid-S4 and their adjoints: against what the ATen path of version 0.1
// computed, and against differences.
#include "rotrnn/base/random.h"
#include "rotrnn/kernels/oracle/channel_reference.h"
#include "rotrnn/kernels/oracle/convolution_reference.h"
#include "rotrnn/layers/layer_table.h"
#include "rotrnn/layers/s4/system.h"
#include "tests/layers/recorded.h"
#include "tests/support/numbers.h"

namespace rotrnn {
namespace {

namespace reference = kernels::reference;
using testing::derivative;
using testing::Doubles;
using testing::OwnedLayer;
using testing::Recorded;

constexpr double kOutput = 1e-10, kGradient = 1e-8;

Channel<double> map_one(const LayerOptions& options, const OwnedLayer& layer, MapTrace& trace,
                        int threads = 2) {
  Description<double> out;
  layer_kind(options.layer).map({options, {&layer.values, 1}, threads}, {&out, 1}, trace);
  return std::get<Channel<double>>(std::move(out));
}

/// Adds to the gradients of the layer.
void map_one_backward(const LayerOptions& options, const OwnedLayer& layer, const MapTrace& trace,
                      const Channel<double>& gradient, int threads = 2) {
  const Description<double> given = gradient;
  layer_kind(options.layer)
      .map_backward({options, {&layer.values, 1}, threads}, trace, {&given, 1},
                    {&layer.gradients, 1});
}

/// All gradients of a layer, one after the other.
Doubles all_gradients(const OwnedLayer& layer) {
  Doubles out;
  for (const auto& [name, gradient] : layer.gradients) {
    out.insert(out.end(), gradient.begin(), gradient.end());
  }
  return out;
}

void fill_gradients(const OwnedLayer& layer, double value) {
  for (const auto& [name, gradient] : layer.gradients) {
    std::fill(gradient.begin(), gradient.end(), value);
  }
}

kernels::PackedSequences sequences_of(const std::vector<int64_t>& offsets) {
  return {offsets.data(), offsets.size() - 1};
}

int64_t longest_of(const std::vector<int64_t>& offsets) {
  int64_t longest = 0;
  for (size_t i = 1; i < offsets.size(); ++i) {
    longest = std::max(longest, offsets[i] - offsets[i - 1]);
  }
  return longest;
}

/// y with D⊙u, by the scalar twin.
Doubles run(const kernels::PackedSequences& sequences, const Channel<double>& c, const Doubles& u) {
  const auto D = static_cast<size_t>(c.width);
  Doubles y = reference::convolution_forward<double>(sequences, D, c.kind,
                                                     {u, c.K, c.K_reverse, c.products});
  for (size_t i = 0; i < y.size(); ++i) y[i] += c.D[i % D] * u[i];
  return y;
}

/// The gradient of the description; du.
std::pair<Channel<double>, Doubles> run_backward(const kernels::PackedSequences& sequences,
                                                 const Channel<double>& c, const Doubles& u,
                                                 const Doubles& dy) {
  const auto D = static_cast<size_t>(c.width);
  auto g = reference::convolution_backward<double>(sequences, D, c.kind,
                                                   {u, c.K, c.K_reverse, c.products}, dy);
  Channel<double> out = c;
  out.K = g.K, out.K_reverse = g.K_reverse, out.products = g.products;
  std::fill(out.D.begin(), out.D.end(), 0.0);
  for (size_t i = 0; i < u.size(); ++i) {
    out.D[i % D] += u[i] * dy[i];
    g.u[i] += c.D[i % D] * dy[i];
  }
  return {out, g.u};
}

// ----------------------------------------------------------------------------------- the fixtures

class S4Recorded : public ::testing::TestWithParam<const char*> {
 protected:
  /// f(case, options, settings) for all cases of this layer in a file.
  template <class F>
  void for_cases(const std::string& file_name, size_t least, const F& f) {
    const SafeTensorFile file = testing::open_fixture(file_name + ".safetensors");
    const nlohmann::json cases = testing::cases_of(file);
    size_t seen = 0;
    for (const auto& [name, settings] : cases.items()) {
      if (settings.at("layer") != GetParam() || settings.contains("input")) continue;
      SCOPED_TRACE(name);
      f(Recorded(file, name), testing::options_of(settings), settings);
      ++seen;
    }
    EXPECT_GE(seen, least);
  }

  template <class F>
  void for_layers(const F& f) {
    for_cases(std::string("layers_") + GetParam(), 10,
              [&](const Recorded& r, const LayerOptions& o, const auto&) { f(r, o); });
  }

  const LayerKind& kind() const { return layer_kind(GetParam()); }
};

TEST_P(S4Recorded, OutputsAndGradients) {
  for_layers([&](const Recorded& r, const LayerOptions& options) {
    const OwnedLayer layer = testing::recorded_layer(kind().tensors(options), r);
    const auto offsets = r.integers("offsets");
    const auto sequences = sequences_of(offsets);
    MapTrace trace;
    const Channel<double> channel = map_one(options, layer, trace);
    testing::expect_close(run(sequences, channel, r["u"]), r["y"], kOutput, "y");
    const auto [gradient, du] = run_backward(sequences, channel, r["u"], r["dy"]);
    testing::expect_close(du, r["grad_u"], kGradient, "grad_u");
    map_one_backward(options, layer, trace, gradient);
    for (const auto& [tensor, got] : layer.gradients) {
      testing::expect_close(got, r["grad/" + tensor], kGradient, tensor);
    }
  });
}

// Values grow in float32, as they are kept: to the last place or two of the largest.
TEST_P(S4Recorded, Growth) {
  for_layers([&](const Recorded& r, const LayerOptions& options) {
    OwnedLayer layer = testing::recorded_layer(kind().tensors(options), r, /*grown=*/false);
    OwnedLayer grown = testing::recorded_layer(kind().tensors(options), r);
    kind().prepare(options, layer.values, longest_of(r.integers("offsets")));
    EXPECT_EQ(layer.length(), grown.length());
    for (const auto& [tensor, values] : layer.values.tensors) {
      const double tolerance = tensor.starts_with("C_") ? 2 * 0x1p-23 : 0;
      testing::expect_close(values, grown.values.tensors.find(tensor), tolerance, tensor);
    }
  });
}

TEST_P(S4Recorded, Recurrences) {
  for_layers([&](const Recorded& r, const LayerOptions& options) {
    const OwnedLayer layer = testing::recorded_layer(kind().tensors(options), r);
    if (r.has("recurrence/D")) {
      const Recurrence recurrence = kind().recurrence(options, layer.values, true);
      testing::expect_recurrence(std::get<ChannelSteps>(recurrence), r, kOutput);
    } else {
      EXPECT_EQ(options.liquid_s4.mode, LiquidMode::reference);
      EXPECT_THROW(kind().recurrence(options, layer.values, true), std::invalid_argument);
    }
  });
}

// What is drawn is equal; what comes from the eigenvectors to the last place or two.
TEST_P(S4Recorded, InitialValues) {
  for_cases(
      "initial_values", 1,
      [&](const Recorded& r, const LayerOptions& options, const nlohmann::json& settings) {
        OwnedLayer layer(kind().tensors(options));
        kind().draw(options, settings.at("seed"), settings.at("stream"), layer.values);
        EXPECT_EQ(layer.length(), r.integers("buffer/length").at(0));
        for (const auto& [tensor, values] : layer.values.tensors) {
          const bool drawn = tensor == "D" || (tensor.starts_with("C_") && layer.length() == 0);
          testing::expect_close(values, r["param/" + tensor], drawn ? 0 : 2 * 0x1p-23, tensor);
        }
      });
}

INSTANTIATE_TEST_SUITE_P(Layers, S4Recorded, ::testing::Values("s4", "liquid_s4"),
                         [](const auto& info) { return std::string(info.param); });

// ----------------------------------------------------------------------------------- differences

struct Form {
  const char* name;
  LayerOptions options;
};

LayerOptions with(const char* layer, bool bidirectional, bool tied) {
  LayerOptions o;
  o.layer = layer;
  o.width = 3;
  o.state = 6;
  o.bidirectional = bidirectional;
  o.s4.tied = tied;
  o.s4.dt_min = 0.05;
  o.s4.dt_max = 0.3;
  o.liquid_s4.degree = 4;
  return o;
}

std::vector<Form> forms() {
  std::vector<Form> all{{"s4", with("s4", false, false)},
                        {"s4_both", with("s4", true, false)},
                        {"s4_tied", with("s4", true, true)},
                        {"pb_power", with("liquid_s4", false, false)},
                        {"pb_power_tied_both", with("liquid_s4", true, true)},
                        {"pb_reference", with("liquid_s4", false, false)},
                        {"mode_reference", with("liquid_s4", false, false)},
                        {"kb", with("liquid_s4", false, false)},
                        {"kb_both", with("liquid_s4", true, true)}};
  all[5].options.liquid_s4.coefficient = LiquidCoefficient::reference;
  all[6].options.liquid_s4.mode = LiquidMode::reference;
  all[7].options.liquid_s4.form = LiquidForm::kb;
  all[8].options.liquid_s4.form = LiquidForm::kb;
  return all;
}

/// Initial values that stay numbers of 2⁻¹² when moved by 2⁻⁹, in float32.
OwnedLayer rounded_layer(const LayerOptions& options, int64_t length, uint64_t stream = 0) {
  const LayerKind& kind = layer_kind(options.layer);
  OwnedLayer layer(kind.tensors(options));
  kind.draw(options, 3, stream, layer.values);
  layer.length() = length;
  for (const auto& [tensor, values] : layer.values.tensors) {
    for (float& x : values) x = std::round(x * 4096) / 4096;
  }
  return layer;
}

Doubles normal(size_t count, uint64_t seed) {
  Random random(seed, RandomSite::initialise);
  Doubles out(count);
  for (double& x : out) x = random.normal();
  return out;
}

Channel<double> random_gradient(Channel<double> like) {
  uint64_t seed = 1;
  like.each([&](const char*, Doubles& values, auto) { values = normal(values.size(), seed++); });
  return like;
}

double dot(const Channel<double>& a, const Channel<double>& b) {
  double sum = 0;
  std::vector<const Doubles*> others;
  b.each([&](const char*, const Doubles& values, auto) { others.push_back(&values); });
  size_t at = 0;
  a.each([&](const char*, const Doubles& values, auto) {
    const Doubles& other = *others[at++];
    for (size_t i = 0; i < values.size(); ++i) sum += values[i] * other[i];
  });
  return sum;
}

TEST(S4Map, GradientsAreTheDifferences) {
  for (const Form& form : forms()) {
    for (const int64_t length : {1, 12, 13, 17}) {
      SCOPED_TRACE(std::string(form.name) + ", length " + std::to_string(length));
      const OwnedLayer layer = rounded_layer(form.options, length);
      MapTrace trace;
      const Channel<double> given = random_gradient(map_one(form.options, layer, trace));
      map_one_backward(form.options, layer, trace, given);
      for (const auto& [tensor, values] : layer.values.tensors) {
        Doubles expected;
        for (float& x : values) {
          expected.push_back(
              derivative(x, [&] { return dot(map_one(form.options, layer, trace, 1), given); }));
        }
        testing::expect_close(layer.gradients.find(tensor), expected, 2e-7, tensor);
      }
    }
  }
}

TEST(S4Map, CoefficientsThatAreNotTrainedHaveNoGradient) {
  for (Form form : forms()) {
    if (form.options.layer == "s4") continue;
    SCOPED_TRACE(form.name);
    form.options.liquid_s4.train_liquid = false;
    const OwnedLayer layer = rounded_layer(form.options, 12);
    MapTrace trace;
    Channel<double> given = random_gradient(map_one(form.options, layer, trace));
    map_one_backward(form.options, layer, trace, given);
    const Doubles with = all_gradients(layer);
    std::fill(given.products.begin(), given.products.end(), 0.0);
    fill_gradients(layer, 0);
    map_one_backward(form.options, layer, trace, given);
    EXPECT_EQ(with, all_gradients(layer));
  }
}

// Several layers in a call, and any number of threads: the bits are those of one; gradients are
// added.
TEST(S4Map, LayersAndThreadsDoNotMeet) {
  for (Form form : forms()) {
    SCOPED_TRACE(form.name);
    form.options.width = 21;
    const LayerKind& kind = layer_kind(form.options.layer);
    const OwnedLayer layers[] = {rounded_layer(form.options, 11, 0),
                                 rounded_layer(form.options, 12, 1)};
    const std::vector<LayerValues> values{layers[0].values, layers[1].values};
    const std::vector<Views<double>> sums{layers[0].gradients, layers[1].gradients};
    std::vector<Description<double>> out(2), gradients(2);
    MapTrace trace;
    kind.map({form.options, values, 3}, out, trace);
    for (size_t i = 0; i < 2; ++i) {
      gradients[i] = random_gradient(std::get<Channel<double>>(out[i]));
      fill_gradients(layers[i], 1);
    }
    kind.map_backward({form.options, values, 3}, trace, gradients, sums);
    for (size_t i = 0; i < 2; ++i) {
      MapTrace own;
      const Channel<double> one = map_one(form.options, layers[i], own, 1);
      const auto& both = std::get<Channel<double>>(out[i]);
      EXPECT_EQ(one.K, both.K);
      EXPECT_EQ(one.K_reverse, both.K_reverse);
      EXPECT_EQ(one.products, both.products);
      const Doubles together = all_gradients(layers[i]);
      fill_gradients(layers[i], 1);
      const auto& given = std::get<Channel<double>>(gradients[i]);
      map_one_backward(form.options, layers[i], own, given, 1);
      EXPECT_EQ(together, all_gradients(layers[i]));
    }
  }
}

// ------------------------------------------------------------------------- lengths, step by step

/// One sequence by the recurrence of a layer.
Doubles step_by_step(const LayerOptions& options, const OwnedLayer& layer, const Doubles& u) {
  const Recurrence recurrence = layer_kind(options.layer).recurrence(options, layer.values, true);
  const auto& r = std::get<ChannelSteps>(recurrence);
  reference::ChannelStepValues<double> v;
  v.D = static_cast<size_t>(r.width), v.N = static_cast<size_t>(r.states);
  v.degree = static_cast<size_t>(r.orders) + 1, v.inside = r.liquid_inside;
  v.lambda_re = r.lambda_re, v.lambda_im = r.lambda_im, v.c_re = r.c_re, v.c_im = r.c_im;
  v.c_reverse_re = r.c_reverse_re, v.c_reverse_im = r.c_reverse_im;
  v.p_re = r.p_re, v.p_im = r.p_im, v.q_re = r.q_re, v.q_im = r.q_im;
  v.b_re = r.b_re, v.b_im = r.b_im, v.products = r.liquid;
  Doubles y = reference::channel_steps(v, u);
  for (size_t i = 0; i < y.size(); ++i) y[i] += r.D[i % v.D] * u[i];
  return y;
}

// The kernel is that of the recurrence, whatever L is: C̃ is rounded to float32 at every growth.
TEST(S4Map, GrownKernelsAreThoseOfTheRecurrence) {
  const std::vector<int64_t> offsets{0, 40};
  for (const Form& form : forms()) {
    if (form.options.liquid_s4.mode == LiquidMode::reference) continue;  // it has none
    SCOPED_TRACE(form.name);
    const LayerKind& kind = layer_kind(form.options.layer);
    OwnedLayer layer(kind.tensors(form.options));
    kind.draw(form.options, 5, 2, layer.values);
    const Doubles u = normal(40 * static_cast<size_t>(form.options.width), 9);
    const Doubles first = step_by_step(form.options, layer, u);  // with C itself
    for (const int64_t longest : {40, 41, 100, 1000}) {
      SCOPED_TRACE(longest);
      kind.prepare(form.options, layer.values, longest);
      EXPECT_GE(layer.length(), longest);
      MapTrace trace;
      const Doubles y = run(sequences_of(offsets), map_one(form.options, layer, trace), u);
      testing::expect_close(step_by_step(form.options, layer, u), y, kOutput, "step by step");
      testing::expect_close(y, first, 5e-6, "grown");
    }
    EXPECT_EQ(layer.length(), 1280);
  }
}

TEST(S4Map, DenseAndStepwisePowersAgree) {
  LayerOptions o = with("s4", false, false);
  o.state = 20;  // steps below about 17 of them
  const OwnedLayer layer = rounded_layer(o, 0);
  const S4System s = s4_system(o, layer.values);
  std::vector<ComplexRows> slow = s.vectors.outputs;
  for (int64_t i = 0; i < 200; ++i) slow = times_power(s.dplr, slow, 1);
  const std::vector<ComplexRows> fast = times_power(s.dplr, s.vectors.outputs, 200);
  EXPECT_LE((slow[0] - fast[0]).abs().maxCoeff(), 1e-12 * slow[0].abs().maxCoeff());
  const ComplexRows B = s.vectors.inputs[0];
  EXPECT_LE((continuous_input(s.dplr, discrete_input(s.dplr, B)) - B).abs().maxCoeff(),
            1e-12 * B.abs().maxCoeff());
}

TEST(S4Map, SaysWhatIsWrongWithALength) {
  const LayerOptions o = with("s4", false, false);
  OwnedLayer layer = rounded_layer(o, 0);
  MapTrace trace;
  EXPECT_THROW(map_one(o, layer, trace), std::invalid_argument);
  layer.length() = -1;
  EXPECT_THROW(map_one(o, layer, trace), std::runtime_error);
  layer.length() = int64_t{1} << 40;
  EXPECT_THROW(prepare_s4(o, layer.values, 8), std::runtime_error);
}

}  // namespace
}  // namespace rotrnn
