// LRU and S5 against numbers made by tests/golden/lru.py and s5.py, which know only the equations.

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>

#include "rotrnn/layers/hippo.h"
#include "rotrnn/layers/lru.h"
#include "rotrnn/layers/s5.h"
#include "tests/support/tensors.h"

namespace rotrnn {
namespace {

using nlohmann::json;
using test::from_json;
using test::relative_error;
using torch::Tensor;

// Rounding of a few hundred operations in double is 1e-14; a plain difference 1 - |λ|² or e^w - 1
// in the cases made for it is wrong by 1e-9 and more.
constexpr double kTolerance = 1e-10;

const json& golden(const std::string& layer) {
  auto read = [](const char* path) { return json::parse(std::ifstream(path)); };
  static const json lru = read(ROTRNN_GOLDEN "/lru.json"), s5 = read(ROTRNN_GOLDEN "/s5.json");
  return layer == "lru" ? lru : s5;
}

Tensor complex_of(const json& from, const std::string& name) {
  return torch::complex(from_json(from.at(name + "_re")), from_json(from.at(name + "_im")));
}

double relative_error_complex(const Tensor& actual, const Tensor& expected) {
  return relative_error(torch::view_as_real(actual.resolve_conj()), torch::view_as_real(expected));
}

LruOptions lru_options(const json& o) {
  LruOptions options;
  options.width = o.at("D");
  options.state = 2 * o.at("S").get<int64_t>();
  options.bidirectional = o.at("bidirectional");
  options.gamma = o.at("gamma") == "fixed" ? LruGamma::fixed : LruGamma::learned;
  return options;
}

S5Options s5_options(const json& o) {
  S5Options options;
  options.width = o.at("D");
  options.state = o.at("P");
  options.blocks = o.at("J");
  options.bidirectional = o.at("bidirectional");
  options.discretisation =
      o.at("discretisation") == "bilinear" ? Discretisation::bilinear : Discretisation::zoh;
  options.step_rescale = o.at("step_rescale");
  options.clip = o.at("clip");
  return options;
}

using Name = std::pair<std::string, std::string>;  // layer, case

class GoldenLayer : public testing::TestWithParam<Name> {
 protected:
  GoldenLayer() {
    const auto& o = c.at("options");
    if (GetParam().first == "lru") {
      layer = std::make_shared<LruImpl>(lru_options(o));
    } else {
      layer = std::make_shared<S5Impl>(s5_options(o));
    }
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
  }

  Tensor input(const char* name) const {
    const auto& inputs = c.at("input");
    return inputs.contains(name) ? from_json(inputs.at(name)).requires_grad_() : Tensor();
  }

  const json& c = golden(GetParam().first).at("cases").at(GetParam().second);
  std::shared_ptr<Layer> layer;
  Packed u{input("u"), c.at("offsets").get<std::vector<int64_t>>()};
  States initial{input("x_0"), input("x_0_reverse")};
};

TEST_P(GoldenLayer, OutputsAndGradientsAreThoseOfTheEquations) {
  const SystemOutput out = layer->forward(u, initial);
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
  output("x_T", "G_T", out.final.forward);
  output("x_T_reverse", "G_T_reverse", out.final.reverse);
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

std::vector<Name> case_names() {
  std::vector<Name> names;
  for (const char* layer : {"lru", "s5"}) {
    for (const auto& item : golden(layer).at("cases").items())
      names.emplace_back(layer, item.key());
  }
  return names;
}

INSTANTIATE_TEST_SUITE_P(Cases, GoldenLayer, testing::ValuesIn(case_names()), [](const auto& info) {
  return info.param.first + "_" + info.param.second;
});

// From the values that u1 and u2 give, the layer must make the λ and the γ that were asked for.
TEST(LruInit, RadiusPhaseAndScaleAreThoseOfTheUniformNumbers) {
  for (const auto& [name, c] : golden("lru").at("init").items()) {
    const Tensor u1 = from_json(c.at("u1")), u2 = from_json(c.at("u2"));
    LruOptions options;
    options.width = 1;
    options.state = 2 * u1.size(0);
    options.gamma = LruGamma::fixed;
    Lru layer(options);
    layer->to(torch::kFloat64);
    const torch::NoGradGuard no_grad;
    layer->nu_log.copy_(from_json(c.at("nu_log")));
    layer->theta_log.copy_(from_json(c.at("theta_log")));
    layer->B_re.fill_(1);
    layer->B_im.fill_(1);
    const System s = layer->system();
    const double low = c.at("r_min"), high = c.at("r_max"), phase = c.at("max_phase");
    const Tensor square = low * low + (high * high - low * low) * u1;
    const Tensor lambda = torch::polar(torch::sqrt(square), phase * u2);
    EXPECT_LE(relative_error_complex(torch::complex(s.lambda_re, s.lambda_im), lambda), kTolerance)
        << name;
    const Tensor gamma = torch::exp(from_json(c.at("gamma_log"))).repeat({2});
    EXPECT_LE(relative_error(s.W.view(-1) / gamma, torch::ones_like(gamma)), kTolerance) << name;
  }
}

TEST(HippoGolden, MatricesAndEigenbasisAreTheScripts) {
  for (const auto& [size, c] : golden("s5").at("hippo").items()) {
    const HippoLegS legs = hippo_legs(std::stoll(size));
    EXPECT_LE(relative_error(legs.A, from_json(c.at("A"))), kTolerance) << size;
    EXPECT_LE(relative_error(legs.B, from_json(c.at("B"))), kTolerance) << size;
    EXPECT_LE(relative_error(legs.P, from_json(c.at("P"))), kTolerance) << size;
    const HippoNormal normal = hippo_normal(std::stoll(size));
    EXPECT_LE(relative_error_complex(normal.lambda, complex_of(c, "Lambda")), kTolerance) << size;
    EXPECT_LE(relative_error_complex(normal.V, complex_of(c, "V")), kTolerance) << size;
    EXPECT_LE(relative_error_complex(normal.B, complex_of(c, "VhB")), kTolerance) << size;
    EXPECT_LE(relative_error_complex(normal.P, complex_of(c, "VhP")), kTolerance) << size;
  }
}

// The real B that was drawn comes back as 2·Re(V B̃): in another basis than that of V, or with its
// conjugate, the entries would mix and pass the cut at two deviations. 1.1369 widens a normal cut
// there to deviation 1.
TEST(S5Init, StartsAsHippoInItsBlocks) {
  for (const auto& [name, c] : golden("s5").at("init").items()) {
    S5Options options;
    options.width = 200;
    options.state = c.at("P");
    options.blocks = c.at("J");
    const S5 layer(options, /*seed=*/5, /*stream=*/1);
    const torch::NoGradGuard no_grad;
    // The parameters are float32.
    const Tensor Lambda = torch::complex(layer->Lambda_re, layer->Lambda_im);
    EXPECT_LE(relative_error_complex(Lambda, complex_of(c, "Lambda").to(torch::kComplexFloat)),
              1e-7)
        << name;
    const Tensor B_tilde = torch::complex(layer->B_re, layer->B_im).to(torch::kComplexDouble);
    const Tensor B = 2 * torch::real(torch::matmul(complex_of(c, "V"), B_tilde));
    const double deviation = 1 / std::sqrt(static_cast<double>(options.state));
    const double cut = 2 * 1.13685 * deviation * (1 + 1e-6);
    EXPECT_LE(B.abs().max().item<double>(), cut) << name;
    // 1,200 numbers and more: the deviation is known to 2%; three times that.
    EXPECT_NEAR(B.std().item<double>(), deviation, 0.06 * deviation) << name;
  }
}

TEST(S5Table, IsThatOfExactArithmetic) {
  const json& table = golden("s5").at("discretisation");
  const int64_t S = from_json(table.at("Delta")).size(0);
  for (const std::string method : {"zoh", "bilinear"}) {
    S5Options options;
    options.width = 1;
    options.state = 2 * S;
    options.blocks = 1;
    options.discretisation = method == "zoh" ? Discretisation::zoh : Discretisation::bilinear;
    S5 layer(options);
    layer->to(torch::kFloat64);
    const torch::NoGradGuard no_grad;
    layer->Lambda_re.copy_(from_json(table.at("Lambda_re")));
    layer->Lambda_im.copy_(from_json(table.at("Lambda_im")));
    layer->log_step.copy_(torch::log(from_json(table.at("Delta"))));
    layer->B_re.fill_(1);
    layer->B_im.fill_(0);
    const System s = layer->system();
    const Tensor W = s.W.view(-1);
    // Every entry by itself: they lie many orders of magnitude apart. log Δ is rounded to 1e-15,
    // which |ΛΔ| ≤ 100 makes 1e-13 in the exponent.
    auto compare = [&](const Tensor& actual, const char* name) {
      const Tensor ratio = actual / complex_of(table, method + "_" + name);
      EXPECT_LE(relative_error_complex(ratio, torch::ones_like(ratio)), 1e-12)
          << method << " " << name << "\n"
          << ratio - 1;
    };
    compare(torch::complex(s.lambda_re, s.lambda_im), "Lambda_bar");
    compare(torch::complex(W.narrow(0, 0, S), W.narrow(0, S, S)), "factor");
  }
}

}  // namespace
}  // namespace rotrnn
