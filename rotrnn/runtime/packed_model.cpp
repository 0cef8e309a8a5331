#include "rotrnn/runtime/packed_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>

namespace rotrnn::runtime {

void Linear::run(const kernels::Table& simd, const float* x, size_t rows, float* out) const {
  if (rows == 1) {
    simd.multiply_row(out, x, packed, inputs, outputs, bias);
    return;
  }
  simd.multiply(out, outputs, x, inputs, packed, rows, inputs, outputs, false);
  simd.add_rows(out, outputs, bias, rows, outputs);
}

std::string PackedModel::whole_only() const {
  if (info.bidirectional) {
    return "a bidirectional model needs the end of a sequence before it can predict anything from "
           "its "
           "beginning";
  }
  if (info.towers == 2) return "a model of pairs compares two whole sequences";
  if (!preprocessing.order.empty()) {
    return "this model reads the steps of a sequence in an order of its own";
  }
  return {};
}

void PackedModel::encode(int32_t token, float* x) const {
  std::copy_n(encoder + static_cast<size_t>(token) * D(), D(), x);
}

void PackedModel::encode(const float* values, float* x) const {
  std::copy_n(encoder_bias, D(), x);
  for (size_t c = 0; c < token_inputs(); ++c) simd->axpy(x, encoder + c * D(), values[c], D());
}

void PackedModel::check_tokens(std::span<const int32_t> tokens) const {
  if (!info.tokens) {
    throw std::invalid_argument(
        fmt::format("tokens for a model that takes values of {} channels; push values", inputs()));
  }
  for (size_t i = 0; i < tokens.size(); ++i) {
    if (tokens[i] < 0 || tokens[i] >= info.inputs) {
      throw std::invalid_argument(
          fmt::format("token {} is {}; the model's vocabulary has the numbers 0 to {}", i,
                      tokens[i], info.inputs - 1));
    }
  }
}

void PackedModel::check_values(std::span<const float> values) const {
  if (info.tokens) {
    throw std::invalid_argument("values for a model that takes tokens; push tokens" +
                                std::string(info.text ? " or text" : ""));
  }
  if (values.size() % inputs() != 0) {
    throw std::invalid_argument(
        fmt::format("{} values are not whole steps of {} channels", values.size(), inputs()));
  }
  for (size_t i = 0; i < values.size(); ++i) {
    if (!std::isfinite(values[i])) {
      throw std::invalid_argument(
          fmt::format("value {} of step {} is {}; a stream would never recover from it, replace it",
                      i % inputs(), i / inputs(), values[i]));
    }
  }
}

}  // namespace rotrnn::runtime
