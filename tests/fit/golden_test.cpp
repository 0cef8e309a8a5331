// Banks and ridge regressions against tests/golden/fit.py, which knows the equations alone.
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "rotrnn/fit/ridge.h"
#include "rotrnn/kernels/oracle/bank_reference.h"

namespace rotrnn::fit {
namespace {

using nlohmann::json;

json golden() {
  std::ifstream in(ROTRNN_SOURCE "/tests/golden/fit.json");
  return json::parse(in);
}

template <class T>
std::vector<T> values(const json& array) {
  std::vector<T> out;
  for (const json& x : array.at("values")) out.push_back(static_cast<T>(x.get<double>()));
  return out;
}

TEST(FitGolden, Banks) {
  const json cases = golden().at("bank");
  for (const auto& [name, c] : cases.items()) {
    SCOPED_TRACE(name);
    kernels::Bank bank;
    const auto inputs = c.at("inputs").get<std::vector<int32_t>>();
    const auto weights = values<float>(c.at("weights")), lambda = values<float>(c.at("lambda"));
    const auto levels = values<float>(c.at("levels")), x = values<float>(c.at("x"));
    bank.channels = c.at("channels").get<size_t>();
    bank.differences = true;
    bank.groups = c.at("groups").get<size_t>();
    bank.taps = c.at("taps").get<size_t>();
    bank.inputs = inputs.data();
    bank.weights = weights.data();
    bank.lambda = lambda.data();
    bank.thresholds = levels.data();
    const auto offsets = c.at("offsets").get<std::vector<size_t>>();
    const auto exact = values<double>(c.at("features"));
    const size_t F = bank.features();
    std::vector<kernels::BankSequence> sequences;
    for (size_t i = 0; i + 1 < offsets.size(); ++i) {
      sequences.push_back({x.data() + offsets[i] * bank.channels, offsets[i + 1] - offsets[i]});
    }
    std::vector<float> fast(sequences.size() * F);
    kernels::bank_features(bank, sequences, fast.data(), 2);
    for (size_t i = 0; i < sequences.size(); ++i) {
      const auto twin = kernels::reference::bank_features<double>(bank, sequences[i]);
      for (size_t f = 0; f < F; ++f) {
        ASSERT_NEAR(twin[f], exact[i * F + f], 1e-12);
        const bool share = f < kernels::kBankThresholds * bank.states();
        ASSERT_NEAR(fast[i * F + f], exact[i * F + f], share ? 1e-6 : 2e-5);
      }
    }
  }
}

TEST(FitGolden, Ridges) {
  const json cases = golden().at("ridge");
  for (const auto& [name, c] : cases.items()) {
    SCOPED_TRACE(name);
    const auto x = values<float>(c.at("x"));
    const auto y = values<double>(c.at("y")), w = values<double>(c.at("w"));
    const auto groups = c.at("groups").get<std::vector<int64_t>>();
    const double alpha = c.at("alpha").get<double>();
    RowRidge ridge({c.at("n").get<size_t>(), c.at("features").get<size_t>(),
                    c.at("outputs").get<size_t>(), x.data(), y.data(), w.data()},
                   2);
    const auto expect = [](const std::vector<double>& found, const std::vector<double>& exact) {
      ASSERT_EQ(found.size(), exact.size());
      for (size_t i = 0; i < exact.size(); ++i) ASSERT_NEAR(found[i], exact[i], 1e-9) << i;
    };
    ASSERT_TRUE(ridge.solve(alpha, {}));
    expect(ridge.left_out(), values<double>(c.at("left_out")));
    expect(ridge.coefficients(), values<double>(c.at("beta")));
    expect(ridge.intercepts(), values<double>(c.at("b")));
    ASSERT_TRUE(ridge.solve(alpha, groups));
    expect(ridge.left_out(), values<double>(c.at("groups_left_out")));
  }
}

}  // namespace
}  // namespace rotrnn::fit
