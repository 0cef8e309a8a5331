#pragma once

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <nlohmann/json.hpp>
#include <vector>

namespace rotrnn::test {

/// Largest difference over the largest magnitude of `expected` (at least `floor`).
inline double relative_error(const torch::Tensor& actual, const torch::Tensor& expected,
                             double floor = 1e-12) {
  EXPECT_EQ(actual.sizes().vec(), expected.sizes().vec());
  if (actual.numel() == 0) return 0;
  const auto a = actual.detach().to(torch::kFloat64), e = expected.detach().to(torch::kFloat64);
  const double scale = std::max(floor, e.abs().max().item<double>());
  const double difference = (a - e).abs().max().item<double>();
  return std::isnan(difference) ? INFINITY : difference / scale;
}

/// A tensor of double from a JSON array {"shape": [...], "values": [...]}.
inline torch::Tensor from_json(const nlohmann::json& json) {
  const auto shape = json.at("shape").get<std::vector<int64_t>>();
  const auto values = json.at("values").get<std::vector<double>>();
  return torch::tensor(values, torch::kFloat64).view(shape);
}

/// Central differences of a scalar function of `x`, in place, in double.
template <typename Function>
torch::Tensor finite_differences(torch::Tensor x, const Function& f, double h = 1e-6) {
  torch::NoGradGuard no_grad;
  torch::Tensor gradient = torch::zeros_like(x);
  auto values = x.view(-1);
  auto out = gradient.view(-1);
  for (int64_t i = 0; i < values.numel(); ++i) {
    const double old = values[i].item<double>();
    values[i] = old + h;
    const double plus = f().template item<double>();
    values[i] = old - h;
    const double minus = f().template item<double>();
    values[i] = old;
    out[i] = (plus - minus) / (2 * h);
  }
  return gradient;
}

}  // namespace rotrnn::test
