// The layer against numbers made by tests/golden/rotrnn.py, which knows only the paper.

#include <gtest/gtest.h>

#include <fstream>

#include "rotrnn/layers/rotrnn.h"
#include "tests/layers/oracle.h"
#include "tests/support/tensors.h"

namespace rotrnn {
namespace {

using test::from_json;
using test::relative_error;
using torch::Tensor;

constexpr double kTolerance = 1e-10;

const nlohmann::json& golden() {
  static const auto json = nlohmann::json::parse(std::ifstream(ROTRNN_GOLDEN "/rotrnn.json"));
  return json;
}

RotRNN make_layer(const nlohmann::json& c) {
  const auto& o = c.at("options");
  RotRNNOptions options;
  options.width = o.at("D");
  options.state = o.at("N");
  options.heads = o.at("H");
  options.bidirectional = o.at("bidirectional");
  options.stationary_start = o.at("stationary_start");
  options.c = o.at("c");
  const std::string n = o.at("normalisation");
  options.normalisation = n == "xi"      ? Normalisation::xi
                          : n == "alpha" ? Normalisation::alpha
                                         : Normalisation::none;
  RotRNN layer(options);
  layer->to(torch::kFloat64);
  torch::NoGradGuard no_grad;
  size_t used = 0;
  for (auto& entry : layer->named_parameters()) {
    const Tensor value = from_json(c.at("parameters").at(entry.key()));
    EXPECT_EQ(value.sizes().vec(), entry.value().sizes().vec()) << entry.key();
    entry.value().copy_(value);
    ++used;
  }
  EXPECT_EQ(used, c.at("parameters").size());
  return layer;
}

class Golden : public testing::TestWithParam<std::string> {
 protected:
  const nlohmann::json& json = golden().at("cases").at(GetParam());
  RotRNN layer = make_layer(json);
  Packed u{from_json(json.at("input").at("u")).requires_grad_(),
           json.at("offsets").get<std::vector<int64_t>>()};
  Tensor x0 = json.at("input").contains("x_0")
                  ? from_json(json.at("input").at("x_0")).requires_grad_()
                  : Tensor();
};

TEST_P(Golden, FoldedFormGivesThePapersOutputs) {
  const States initial{x0.defined() ? layer->folded(x0) : Tensor(), {}};
  const RotRNNOutput out = layer->forward(u, initial, /*want_hidden=*/true);
  const auto& expected = json.at("outputs");
  EXPECT_LE(relative_error(out.y, from_json(expected.at("y"))), kTolerance);
  EXPECT_LE(relative_error(out.hidden, from_json(expected.at("x"))), kTolerance);
  EXPECT_LE(relative_error(out.head_norms, from_json(expected.at("head_norms"))), kTolerance);
  EXPECT_LE(relative_error(layer->hidden(out.final.forward), from_json(expected.at("x_T"))),
            kTolerance);
}

TEST_P(Golden, UnfoldedOracleGivesThePapersOutputs) {
  const auto out = oracle::run(*layer, u, x0);
  EXPECT_LE(relative_error(out.y, from_json(json.at("outputs").at("y"))), kTolerance);
  EXPECT_LE(relative_error(out.x, from_json(json.at("outputs").at("x"))), kTolerance);
}

using GoldenGradients = Golden;

TEST_P(GoldenGradients, AreThePapers) {
  const auto& expected = json.at("gradients");
  const States initial{x0.defined() ? layer->folded(x0) : Tensor(), {}};
  const Tensor loss = (layer->forward(u, initial).y * from_json(json.at("input").at("G"))).sum();
  loss.backward();
  size_t compared = 0;
  auto compare = [&](const std::string& name, const Tensor& gradient) {
    ASSERT_TRUE(gradient.defined()) << name;
    // The floor is for gradients that are zero in theory (M when dh = 2).
    EXPECT_LE(relative_error(gradient, from_json(expected.at(name)), 1.0), kTolerance) << name;
    ++compared;
  };
  for (const auto& entry : layer->named_parameters()) compare(entry.key(), entry.value().grad());
  compare("u", u.values.grad());
  if (x0.defined()) compare("x_0", x0.grad());
  EXPECT_EQ(compared, expected.size());
}

std::vector<std::string> case_names(bool with_gradients) {
  std::vector<std::string> names;
  for (const auto& [name, value] : golden().at("cases").items()) {
    if (!with_gradients || !value.at("gradients").empty()) names.push_back(name);
  }
  return names;
}

std::string test_name(const testing::TestParamInfo<std::string>& info) {
  std::string name = info.param;
  std::replace(name.begin(), name.end(), '.', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Cases, Golden, testing::ValuesIn(case_names(false)), test_name);
INSTANTIATE_TEST_SUITE_P(Cases, GoldenGradients, testing::ValuesIn(case_names(true)), test_name);

TEST(ToLru, ParametersAreTheScripts) {
  int compared = 0;
  for (const auto& [name, lru] : golden().at("lru").items()) {
    const LruParameters actual = to_lru(*make_layer(golden().at("cases").at(name)));
    const std::map<std::string, Tensor> tensors{{"nu_log", actual.nu_log},
                                                {"theta_log", actual.theta_log},
                                                {"gamma_log", actual.gamma_log},
                                                {"B_re", actual.B_re},
                                                {"B_im", actual.B_im},
                                                {"C_re", actual.C_re},
                                                {"C_im", actual.C_im},
                                                {"D", actual.D},
                                                {"C_reverse_re", actual.C_reverse_re},
                                                {"C_reverse_im", actual.C_reverse_im}};
    for (const auto& [key, value] : lru.at("parameters").items()) {
      EXPECT_LE(relative_error(tensors.at(key), from_json(value)), kTolerance) << name << key;
      ++compared;
    }
  }
  EXPECT_EQ(compared, 8 + 8 + 10);
}

}  // namespace
}  // namespace rotrnn
