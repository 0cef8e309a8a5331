// S4D, S4 and Liquid-S4 against numbers made by tests/golden/{s4d,s4,liquid_s4}.py, which know only
// the equations; and their forms (recurrence, convolution, steps) against each other when long.

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>

#include "rotrnn/layers/convolution.h"
#include "rotrnn/layers/discretise.h"
#include "rotrnn/layers/liquid_s4.h"
#include "rotrnn/layers/s4.h"
#include "rotrnn/layers/s4d.h"
#include "rotrnn/training/tensor_file.h"
#include "tests/support/folder.h"
#include "tests/support/tensors.h"

namespace rotrnn {
namespace {

using nlohmann::json;
using test::from_json;
using test::message_of;
using test::relative_error;
using torch::Tensor;

// Rounding of some thousand operations in double is below 1e-12; that of expm1 left out in the case
// made for it is 1e-9.
constexpr double kTolerance = 1e-10;

const json& golden(const std::string& layer) {
  auto read = [](const char* path) { return json::parse(std::ifstream(path)); };
  static const json s4d = read(ROTRNN_GOLDEN "/s4d.json"), s4 = read(ROTRNN_GOLDEN "/s4.json"),
                    liquid = read(ROTRNN_GOLDEN "/liquid_s4.json");
  return layer == "s4d" ? s4d : layer == "s4" ? s4 : liquid;
}

double complex_error(const Tensor& actual, const json& from, const std::string& name) {
  const Tensor expected =
      torch::complex(from_json(from.at(name + "_re")), from_json(from.at(name + "_im")));
  return relative_error(torch::view_as_real(actual.detach().resolve_conj()),
                        torch::view_as_real(expected));
}

S4DOptions s4d_options(const json& o) {
  S4DOptions options;
  options.width = o.at("D");
  options.state = o.at("N");
  options.bidirectional = o.at("bidirectional");
  const std::string init = o.at("init");
  options.init = init == "lin" ? S4DInit::lin : init == "inv" ? S4DInit::inv : S4DInit::legs;
  options.discretisation =
      o.at("discretisation") == "bilinear" ? Discretisation::bilinear : Discretisation::zoh;
  options.tied = o.at("tied");
  options.train_b = o.at("train_b");
  options.step_rescale = o.at("step_rescale");
  return options;
}

S4Options s4_options(const json& o) {
  S4Options options;
  options.width = o.at("D");
  options.state = o.at("N");
  options.bidirectional = o.at("bidirectional");
  options.tied = o.at("tied");
  return options;
}

LiquidS4Options liquid_options(const json& o) {
  LiquidS4Options options;
  options.s4 = s4_options(o);
  options.form = o.at("form") == "kb" ? LiquidForm::kb : LiquidForm::pb;
  options.mode = o.at("mode") == "reference" ? LiquidMode::reference : LiquidMode::causal;
  options.coefficient =
      o.at("coefficient") == "reference" ? LiquidCoefficient::reference : LiquidCoefficient::power;
  options.degree = o.at("degree");
  options.train_liquid = o.at("train_liquid");
  return options;
}

// The layer of a case in double, with its parameters, buffers and length.
template <typename Made>
std::shared_ptr<Made> with_values(std::shared_ptr<Made> layer, const json& c) {
  layer->to(torch::kFloat64);
  const torch::NoGradGuard no_grad;
  size_t used = 0;
  for (auto& entry : layer->named_parameters()) {
    const Tensor value = from_json(c.at("parameters").at(entry.key()));
    EXPECT_EQ(value.sizes().vec(), entry.value().sizes().vec()) << entry.key();
    entry.value().copy_(value);
    ++used;
  }
  EXPECT_EQ(used, c.at("parameters").size());
  for (auto& entry : layer->named_buffers()) {
    if (entry.key() == "length") {
      entry.value().fill_(c.at("options").at("L").get<int64_t>());
    } else {
      const Tensor value = from_json(c.at("buffers").at(entry.key()));
      EXPECT_EQ(value.sizes().vec(), entry.value().sizes().vec()) << entry.key();
      entry.value().copy_(value);
    }
  }
  return layer;
}

std::shared_ptr<S4DImpl> s4d_of(const json& c) {
  return with_values(std::make_shared<S4DImpl>(s4d_options(c.at("options"))), c);
}

std::shared_ptr<S4Impl> s4_of(const json& c) {
  return with_values(std::make_shared<S4Impl>(s4_options(c.at("options"))), c);
}

std::shared_ptr<LiquidS4Impl> liquid_of(const json& c) {
  return with_values(std::make_shared<LiquidS4Impl>(liquid_options(c.at("options"))), c);
}

std::shared_ptr<Layer> layer_of(const std::string& name, const json& c) {
  if (name == "s4d") return s4d_of(c);
  if (name == "s4") return s4_of(c);
  return liquid_of(c);
}

Packed input_of(const json& c) {
  return {from_json(c.at("input").at("u")), c.at("offsets").get<std::vector<int64_t>>()};
}

// ------------------------------------------------------------------ outputs and gradients

struct Name {
  std::string layer, name;
  bool fast;
};

class GoldenS4 : public testing::TestWithParam<Name> {
 protected:
  Tensor input(const char* name) const {
    const auto& inputs = c.at("input");
    return inputs.contains(name) ? from_json(inputs.at(name)).requires_grad_() : Tensor();
  }

  const json& c = golden(GetParam().layer).at("cases").at(GetParam().name);
  std::shared_ptr<Layer> layer = layer_of(GetParam().layer, c);
  Packed u{input("u"), c.at("offsets").get<std::vector<int64_t>>()};
  States initial{input("x_0"), input("x_0_reverse")};
};

// Planes [sequences, 2S] of complex numbers, times `factor` [S] of them; undefined ones stay so.
Tensor times(const Tensor& planes, const Tensor& factor) {
  if (!planes.defined() || !factor.defined()) return planes;
  const int64_t S = planes.size(1) / 2;
  const Tensor x = torch::complex(planes.narrow(1, 0, S), planes.narrow(1, S, S)) * factor;
  return torch::cat({torch::real(x), torch::imag(x)}, 1);
}

// B̄ [D, n] of S4D, differentiable.
Tensor discrete_input(const S4DImpl& l) {
  const Tensor Lambda = join(-torch::exp(l.A_log_re), l.A_im);
  return discretise(Lambda, l.options().step_rescale * torch::exp(l.log_step).unsqueeze(1),
                    l.options().discretisation)
             .scale *
         join(l.B_re, l.B_im);
}

TEST_P(GoldenS4, OutputsAndGradientsAreThoseOfTheEquations) {
  // The states of a channel system are divided by B̄, those of the scripts are not.
  Tensor scale;
  if (const auto s4d = std::dynamic_pointer_cast<S4DImpl>(layer)) {
    scale = discrete_input(*s4d).flatten();
  }
  const Tensor inverse = scale.defined() ? 1 / scale : Tensor();
  const SystemOutput out = layer->forward(
      u, {times(initial.forward, inverse), times(initial.reverse, inverse)}, GetParam().fast);
  Tensor loss = torch::zeros({}, torch::kFloat64);
  size_t outputs = 1;  // the loss
  auto output = [&](const char* name, const char* cotangent, const Tensor& actual) {
    if (!c.at("outputs").contains(name)) return;
    ASSERT_TRUE(actual.defined()) << name;
    EXPECT_LE(relative_error(actual, from_json(c.at("outputs").at(name))), kTolerance) << name;
    loss = loss + (actual * from_json(c.at("input").at(cotangent))).sum();
    ++outputs;
  };
  output("y", "G", out.y);
  output("x_T", "G_T", times(out.final.forward, scale));
  output("x_T_reverse", "G_T_reverse", times(out.final.reverse, scale));
  EXPECT_EQ(outputs, c.at("outputs").size());

  loss.backward();
  const auto& expected = c.at("gradients");
  size_t gradients = 0;
  auto gradient = [&](const std::string& name, const Tensor& of) {
    if (!of.defined()) return;
    ASSERT_TRUE(of.grad().defined()) << name;
    EXPECT_LE(relative_error(of.grad(), from_json(expected.at(name))), kTolerance) << name;
    ++gradients;
  };
  for (const auto& entry : layer->named_parameters()) gradient(entry.key(), entry.value());
  gradient("u", u.values);
  gradient("x_0", initial.forward);
  gradient("x_0_reverse", initial.reverse);
  EXPECT_EQ(gradients, expected.size());
}

// The kernel of S4D is in float32 (channel_test.cpp); that of the other two is in double.
std::vector<Name> case_names() {
  std::vector<Name> names;
  for (const char* layer : {"s4d", "s4", "liquid_s4"}) {
    for (const auto& item : golden(layer).at("cases").items()) {
      names.push_back({layer, item.key(), false});
      if (layer != std::string("s4d")) names.push_back({layer, item.key(), true});
    }
  }
  return names;
}

INSTANTIATE_TEST_SUITE_P(Cases, GoldenS4, testing::ValuesIn(case_names()), [](const auto& info) {
  return info.param.layer + "_" + info.param.name + (info.param.fast ? "_fast" : "");
});

// ------------------------------------------------------------------ kernels, C, lengths, steps

void expect_kernels(const std::pair<Tensor, Tensor>& kernels, const json& expected,
                    const std::string& name) {
  EXPECT_LE(relative_error(kernels.first, from_json(expected.at("K"))), kTolerance) << name;
  ASSERT_EQ(kernels.second.defined(), expected.contains("K_reverse")) << name;
  if (!kernels.second.defined()) return;
  EXPECT_LE(relative_error(kernels.second, from_json(expected.at("K_reverse"))), kTolerance)
      << name;
}

TEST(S4DGolden, SystemAndKernelsAreTheScripts) {
  for (const auto& [name, c] : golden("s4d").at("cases").items()) {
    const auto layer = s4d_of(c);
    const ChannelSystem s = layer->channels();
    EXPECT_LE(complex_error(torch::complex(s.lambda_re, s.lambda_im), c.at("system"), "Lambda_bar"),
              kTolerance)
        << name;
    EXPECT_LE(complex_error(discrete_input(*layer), c.at("system"), "B_bar"), kTolerance) << name;
    const auto length = from_json(c.at("kernel").at("K")).size(1);
    expect_kernels(layer->kernels(length), c.at("kernel"), name);
    const auto [K, K_reverse] = layer->kernels(length);
    const Packed u = input_of(c);
    if (c.at("input").contains("x_0")) continue;  // a convolution begins with no state
    EXPECT_LE(relative_error(convolve(u, K, K_reverse) + layer->D * u.values,
                             from_json(c.at("outputs").at("y"))),
              kTolerance)
        << name;
  }
}

TEST(S4Golden, KernelsAreTheScripts) {
  for (const auto& [name, c] : golden("s4").at("cases").items()) {
    const auto layer = s4_of(c);
    for (const bool fast : {false, true}) {
      expect_kernels(layer->kernels(fast), c.at("kernel"), name);
    }
  }
}

void expect_plain(const S4Impl& layer, const json& expected, const std::string& name) {
  const auto [C, C_reverse] = layer.plain_outputs();
  EXPECT_LE(complex_error(C, expected, "C"), kTolerance) << name;
  if (!layer.options().bidirectional) return;
  EXPECT_LE(complex_error(C_reverse, expected, "C_reverse"), kTolerance) << name;
}

void expect_trained(const S4Impl& layer, const json& expected, const std::string& name) {
  EXPECT_EQ(layer.length(), expected.at("L").get<int64_t>()) << name;
  EXPECT_LE(complex_error(layer.output(), expected, "C"), kTolerance) << name;
  if (!layer.options().bidirectional) return;
  EXPECT_LE(complex_error(layer.output_reverse(), expected, "C_reverse"), kTolerance) << name;
}

TEST(S4Golden, PlainOutputsAreTheScripts) {
  for (const auto& [name, c] : golden("s4").at("cases").items()) {
    expect_plain(*s4_of(c), c.at("plain"), name);
  }
}

TEST(S4Golden, TheDoubledLayerIsTheSameOne) {
  for (const auto& [name, c] : golden("s4").at("cases").items()) {
    const auto layer = s4_of(c);
    layer->grow(layer->length() + 1);
    expect_trained(*layer, c.at("doubled"), name);
    expect_kernels(layer->kernels(), c.at("doubled"), name);
    expect_plain(*layer, c.at("plain"), name);
  }
}

TEST(S4Golden, LongerSequencesDoubleIt) {
  for (const auto& [name, c] : golden("s4").at("longer").items()) {
    const auto layer = s4_of(c);
    const Tensor y = layer->forward(input_of(c)).y;
    EXPECT_LE(relative_error(y, from_json(c.at("outputs").at("y"))), kTolerance) << name;
    expect_trained(*layer, c.at("doubled"), name);
  }
}

// From C itself the first length makes what it would have been at the start; many states take the
// way step by step, few that of dense matrices.
TEST(S4Golden, TheFirstLengthMakesTheTrainedOutputs) {
  for (const auto& [name, c] : golden("s4").at("cases").items()) {
    const auto layer = s4_of(c);
    {
      const torch::NoGradGuard no_grad;
      for (auto& entry : layer->named_parameters()) {
        if (c.at("plain").contains(entry.key())) {
          entry.value().copy_(from_json(c.at("plain").at(entry.key())));
        }
      }
      layer->named_buffers()["length"].zero_();
    }
    json expected = c.at("parameters");
    expected["L"] = c.at("options").at("L");
    layer->grow(expected.at("L"));
    expect_trained(*layer, expected, name);
  }
}

TEST(S4Golden, ManyStatesStepByStepAndDenseAgree) {
  torch::manual_seed(1);
  const int64_t D = 2, n = 40;
  const auto complex = [&] { return torch::randn({D, n}, torch::kComplexDouble); };
  Dplr s{torch::complex(torch::rand({D, n}, torch::kFloat64) * -1 - 0.5,
                        10 * torch::randn({D, n}, torch::kFloat64)),
         complex(), torch::full({D, 1}, 0.05, torch::kFloat64)};
  const Tensor C = complex();
  const int64_t length = 64;  // 64·45 < 1600·6: step by step
  // plain_output knows dense matrices only: from C(1 - Ā^L) back to C.
  const Tensor back = plain_output(s, C - times_power(s, C, length), length);
  EXPECT_LE(relative_error(torch::view_as_real(back), torch::view_as_real(C)), kTolerance);
}

TEST(S4Golden, StepsAreTheScripts) {
  for (const auto& [name, c] : golden("s4").at("cases").items()) {
    json one = c;  // forward alone
    one["options"]["bidirectional"] = false;
    for (const char* key : {"C_reverse_re", "C_reverse_im"}) one["parameters"].erase(key);
    const auto layer = s4_of(one);
    const torch::NoGradGuard no_grad;
    const S4Steps steps = layer->steps();
    const auto& expected = c.at("step");
    const auto number = [&](const char* key) {
      const std::string k = key;
      return torch::complex(from_json(expected.at(k + "_re")), from_json(expected.at(k + "_im")));
    };
    auto error = [](const Tensor& a, const Tensor& e) {
      return relative_error(torch::view_as_real(a.resolve_conj()), torch::view_as_real(e));
    };
    EXPECT_LE(error(steps.step.lambda, number("D0") * number("E")), kTolerance) << name;
    EXPECT_LE(error(steps.step.G, 4 / torch::exp(layer->log_step).unsqueeze(1) * number("R")),
              kTolerance)
        << name;
    const Tensor x = number("x"), y = from_json(expected.at("y"));
    const Packed u = input_of(c);
    StepOutput out;
    for (int64_t t = 0; t < y.size(0); ++t) {
      out = S4Impl::step(steps, out.z, u.values.narrow(0, t, 1));
      EXPECT_LE(relative_error(out.y[0], y[t]), kTolerance) << name;
      const Tensor planes = torch::stack({torch::real(x[t]), torch::imag(x[t])}).flatten();
      EXPECT_LE(relative_error(out.z[0], planes), kTolerance) << name;
    }
  }
}

TEST(LiquidGolden, CoefficientsAndKernelsAreTheScripts) {
  for (const auto& [name, c] : golden("liquid_s4").at("cases").items()) {
    const auto layer = liquid_of(c);
    const auto& expected = c.at("derived");
    EXPECT_LE(relative_error(layer->coefficients(), from_json(expected.at("c"))), kTolerance)
        << name;
    expect_kernels(layer->kernels(), expected, name);
    expect_plain(*layer, expected, name);
    const Tensor y = layer->S4Impl::forward(input_of(c)).y;
    EXPECT_LE(relative_error(y, from_json(expected.at("y_s4"))), kTolerance) << name;
  }
}

TEST(LiquidGolden, WithoutCoefficientsItIsS4) {
  for (const auto& [name, c] : golden("liquid_s4").at("zero").items()) {
    const auto layer = liquid_of(c);
    const Tensor expected = from_json(c.at("outputs").at("y"));
    for (const bool fast : {false, true}) {
      EXPECT_LE(relative_error(layer->forward(input_of(c), {}, fast).y, expected), kTolerance)
          << name;
    }
    EXPECT_LE(relative_error(layer->S4Impl::forward(input_of(c)).y, expected), kTolerance) << name;
  }
}

TEST(LiquidGolden, StepsAreTheCausalLayer) {
  for (const auto& [name, c] : golden("liquid_s4").at("cases").items()) {
    const auto& o = c.at("options");
    if (o.at("bidirectional") || o.at("mode") == "reference") continue;
    const auto layer = liquid_of(c);
    const torch::NoGradGuard no_grad;
    const LiquidS4Steps steps = layer->steps();
    const Packed u = input_of(c);
    const Tensor y = from_json(c.at("outputs").at("y"));
    const auto& offsets = u.layout->offsets();
    for (size_t i = 0; i + 1 < offsets.size(); ++i) {
      StepOutput out;
      for (int64_t t = offsets[i]; t < offsets[i + 1]; ++t) {
        out = LiquidS4Impl::step(steps, out.z, u.values.narrow(0, t, 1));
        EXPECT_LE(relative_error(out.y[0], y[t]), kTolerance) << name << " " << t;
      }
    }
  }
}

// ------------------------------------------------------------------ initial values

// The parameters are float32.
void expect_init(const json& expected, const torch::nn::Module& layer, const std::string& name) {
  const auto parameters = layer.named_parameters();
  for (const std::string key : {"A_log_re", "A_im", "P_re", "P_im", "B_re", "B_im"}) {
    if (!expected.contains(key)) continue;
    const Tensor start = from_json(expected.at(key));
    EXPECT_LE(relative_error(parameters[key], start.expand_as(parameters[key])), 1e-7)
        << name << " " << key;
  }
}

TEST(S4Init, StartsAsTheScripts) {
  for (const auto& [init, sizes] : golden("s4d").at("init").items()) {
    for (const auto& [size, c] : sizes.items()) {
      S4DOptions options;
      options.width = 3;
      options.state = std::stoll(size);
      options.init = init == "lin" ? S4DInit::lin : init == "inv" ? S4DInit::inv : S4DInit::legs;
      expect_init(c, S4DImpl(options), "S4D " + init + " " + size);
    }
  }
  for (const auto& [size, c] : golden("s4").at("init").items()) {
    S4Options options;
    options.width = 3;
    options.state = std::stoll(size);
    options.max_length = 5;
    expect_init(c, S4Impl(options), "S4 " + size);
  }
  for (const auto& [size, c] : golden("liquid_s4").at("init").items()) {
    LiquidS4Options options;
    options.s4.width = 3;
    options.s4.state = std::stoll(size);
    expect_init(c, LiquidS4Impl(options), "Liquid-S4 " + size);
  }
}

// ------------------------------------------------------------------ the forms, when long

constexpr int64_t kLong = 4096;

// What recurrence or convolution, and steps, may differ by: 4,096 steps of rounding.
double long_tolerance(torch::ScalarType type) {
  return type == torch::kFloat64 ? 1e-10 : 1e-4;
}

Tensor long_input(int64_t width, torch::ScalarType type) {
  torch::manual_seed(3);
  return torch::randn({kLong, width}, torch::kFloat64).to(type);
}

template <typename Step>
Tensor steps_of(const Tensor& u, const Step& step) {
  const torch::NoGradGuard no_grad;
  std::vector<Tensor> rows;
  StepOutput out;
  for (int64_t t = 0; t < u.size(0); ++t) {
    out = step(out.z, u.narrow(0, t, 1));
    rows.push_back(out.y);
  }
  return torch::cat(rows);
}

TEST(LongSequences, S4DAsRecurrenceConvolutionAndSteps) {
  for (const auto type : {torch::kFloat64, torch::kFloat32}) {
    S4DOptions options;
    options.width = 4;
    options.state = 16;
    S4DImpl layer(options, /*seed=*/1);
    layer.to(type);
    const torch::NoGradGuard no_grad;
    const Packed u(long_input(options.width, type), {0, kLong});
    const Tensor y = layer.forward(u).y;
    const Tensor K = layer.kernels(kLong).first.to(type);
    EXPECT_LE(relative_error(convolve(u, K, {}) + layer.D * u.values, y), long_tolerance(type));
    EXPECT_LE(relative_error(layer.forward(u, {}, /*fast=*/true).y, y), long_tolerance(type));
    const ChannelSystem system = layer.channels();
    const auto stepped =
        steps_of(u.values, [&](auto& z, auto row) { return step(system, z, row); });
    EXPECT_LE(relative_error(stepped, y), long_tolerance(type));
  }
}

TEST(LongSequences, S4AsConvolutionAndSteps) {
  for (const auto type : {torch::kFloat64, torch::kFloat32}) {
    S4Options options;
    options.width = 4;
    options.state = 16;
    options.max_length = kLong - 1;  // which is doubled
    S4Impl layer(options, /*seed=*/1);
    layer.to(type);
    const torch::NoGradGuard no_grad;
    const Packed u(long_input(options.width, type), {0, kLong});
    const Tensor y = layer.forward(u).y;
    EXPECT_LE(relative_error(layer.forward(u, {}, /*fast=*/true).y, y), long_tolerance(type));
    const S4Steps steps = layer.steps();
    const auto stepped =
        steps_of(u.values, [&](auto& z, auto row) { return S4Impl::step(steps, z, row); });
    EXPECT_LE(relative_error(stepped, y), long_tolerance(type));
  }
}

TEST(LongSequences, LiquidS4AsConvolutionAndSteps) {
  for (const auto form : {LiquidForm::pb, LiquidForm::kb}) {
    for (const auto type : {torch::kFloat64, torch::kFloat32}) {
      LiquidS4Options options;
      options.s4.width = 3;
      options.s4.state = 7;
      options.form = form;
      options.degree = 3;
      LiquidS4Impl layer(options, /*seed=*/1);
      layer.to(type);
      const torch::NoGradGuard no_grad;
      const Packed u(long_input(options.s4.width, type), {0, kLong});
      const Tensor y = layer.forward(u).y;
      EXPECT_LE(relative_error(layer.forward(u, {}, /*fast=*/true).y, y), long_tolerance(type));
      const LiquidS4Steps steps = layer.steps();
      const auto stepped =
          steps_of(u.values, [&](auto& z, auto row) { return LiquidS4Impl::step(steps, z, row); });
      EXPECT_LE(relative_error(stepped, y), long_tolerance(type));
    }
  }
}

// ------------------------------------------------------------------ files, and what is refused

TEST(S4Layer, AFileKeepsItsLength) {
  const test::Folder folder;
  S4Options options;
  options.width = 3;
  options.state = 6;
  options.bidirectional = true;
  S4Impl saved(options, /*seed=*/1), loaded(options, /*seed=*/2);
  const Packed u(torch::randn({11, 3}), {0, 7, 11});
  const torch::NoGradGuard no_grad;
  const Tensor y = saved.forward(u).y;
  EXPECT_EQ(saved.length(), 7);
  save_tensors(folder.path() / "layer.safetensors", state_of(saved));
  load_tensors(SafeTensorFile(folder.path() / "layer.safetensors"), state_of(loaded));
  EXPECT_EQ(loaded.length(), 7);
  EXPECT_TRUE(torch::equal(loaded.forward(u).y, y));
}

TEST(S4Layer, SaysWhatItCannotDo) {
  auto expect_contains = [](const std::string& text, const std::string& part) {
    EXPECT_NE(text.find(part), std::string::npos) << text;
  };
  S4Options options;
  options.width = 2;
  options.state = 4;
  options.bidirectional = true;
  const S4Impl layer(options);
  const Packed u(torch::randn({4, 2}), {0, 4});
  auto wrong = [](auto call) { return message_of<std::invalid_argument>(call); };
  expect_contains(wrong([&] { layer.forward(u, {torch::zeros({1, 8}), {}}); }), "step by step");
  expect_contains(wrong([&] { layer.steps(); }), "bidirectional = false");
  expect_contains(wrong([&] { layer.kernels(); }), "no length yet");
  expect_contains(wrong([&] { layer.forward(u.with(torch::randn({4, 3}))); }), "[tokens, 2]");
  LiquidS4Options liquid;
  liquid.s4 = options;
  liquid.s4.bidirectional = false;
  liquid.mode = LiquidMode::reference;
  const LiquidS4Impl reference(liquid);
  expect_contains(wrong([&] { reference.forward(u); }), "4 tokens is too short");
  expect_contains(wrong([&] { reference.steps(); }), "not causal");
  liquid.form = LiquidForm::kb;
  expect_contains(wrong([&] { LiquidS4Impl{liquid}; }), "is causal");
}

}  // namespace
}  // namespace rotrnn
