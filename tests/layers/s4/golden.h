#pragma once

#include "rotrnn/kernels/oracle/convolution_reference.h"
#include "rotrnn/layers/s4/system.h"
#include "tests/layers/golden.h"

/// What the golden tests of S4 and Liquid-S4 share.
namespace rotrnn::testing {

inline S4System system_of(const DoubleLayer& layer) {
  return s4_system(layer.options(), layer.values());
}

/// Complex rows as a flat array.
inline Complexes flat(const ComplexRows& rows) {
  return {rows.data(), rows.data() + rows.size()};
}

/// A script's complex numbers [D, n] as rows.
inline ComplexRows rows_of(const nlohmann::json& tree, const std::string& name, int64_t width) {
  const Complexes values = complex_array(tree, name);
  return Eigen::Map<const ComplexRows>(values.data(), width,
                                       static_cast<int64_t>(values.size()) / width);
}

/// A kernel [L, D] as the scripts have it, [D, L].
inline Doubles by_channel(const Doubles& K, int64_t width) {
  const size_t D = static_cast<size_t>(width), L = K.size() / D;
  Doubles out(K.size());
  for (size_t i = 0; i < K.size(); ++i) out[i % D * L + i / D] = K[i];
  return out;
}

inline void expect_kernels(const Channel<double>& s, const nlohmann::json& expected) {
  EXPECT_LE(relative_error(by_channel(s.K, s.width), array(expected, "K")), kGolden);
  ASSERT_EQ(s.bidirectional(), expected.contains("K_reverse"));
  if (!s.bidirectional()) return;
  EXPECT_LE(relative_error(by_channel(s.K_reverse, s.width), array(expected, "K_reverse")),
            kGolden);
}

/// C, and C_reverse where there is one, of a tree.
inline void expect_outputs(const std::vector<ComplexRows>& outputs, const nlohmann::json& expected,
                           double tolerance = kGolden) {
  EXPECT_LE(relative_error(flat(outputs[0]), complex_array(expected, "C")), tolerance);
  ASSERT_EQ(outputs.size() > 1, expected.contains("C_reverse_re"));
  if (outputs.size() == 1) return;
  EXPECT_LE(relative_error(flat(outputs[1]), complex_array(expected, "C_reverse")), tolerance);
}

inline void expect_plain(const S4System& s, const nlohmann::json& expected) {
  expect_outputs(plain_output(s.dplr, s.vectors.outputs, s.length), expected);
}

/// y by the convolution as it is written, with D⊙u and without products.
inline Doubles convolved(const Channel<double>& s, const DoubleBatch& batch) {
  const auto D = static_cast<size_t>(s.width);
  Doubles y = kernels::reference::convolution_forward<double>(
      batch.sequences(), D, ProductUse::outside, {batch.u, s.K, s.K_reverse, {}});
  for (size_t i = 0; i < y.size(); ++i) y[i] += s.D[i % D] * batch.u[i];
  return y;
}

/// Initial values that are the same in every channel; the parameters are float32.
inline void expect_init(const nlohmann::json& expected, const LayerOptions& options) {
  const DoubleLayer layer(options);
  int compared = 0;
  for (const std::string key : {"A_log_re", "A_im", "P_re", "P_im", "B_re", "B_im"}) {
    const std::span<float> own = layer.of(key);
    if (own.empty()) continue;
    const Doubles row = array(expected, key);
    Doubles all;
    while (all.size() < own.size()) all.insert(all.end(), row.begin(), row.end());
    EXPECT_LE(relative_error(own, all), 1e-7) << key;
    ++compared;
  }
  EXPECT_EQ(compared, options.layer == "s4d" ? 4 : 6);
}

}  // namespace rotrnn::testing
