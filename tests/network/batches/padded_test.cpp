#include "rotrnn/network/batches/padded.h"

#include <gtest/gtest.h>

#include "rotrnn/network/single_layer.h"
#include "tests/support/numbers.h"

namespace rotrnn::testing {
namespace {

using Floats = std::vector<float>;

const std::vector<int64_t> kLengths{4, 1, 6};

// Of rows that no one must read: NaN.
Floats padded_noise(int64_t time, size_t channels) {
  Floats out = as<float>(normal(kLengths.size() * static_cast<size_t>(time) * channels, 7));
  for (size_t i = 0; i < out.size(); ++i) {
    const size_t row = i / channels;
    const size_t sequence = row / static_cast<size_t>(time), t = row % static_cast<size_t>(time);
    if (t >= static_cast<size_t>(kLengths[sequence])) out[i] = NAN;
  }
  return out;
}

TEST(Padded, RowsAreTheTokens) {
  const Floats padded = padded_noise(7, 2);
  const PackedRows rows = pack(padded, kLengths, 7);
  EXPECT_EQ(rows.offsets, (std::vector<int64_t>{0, 4, 5, 11}));
  ASSERT_EQ(rows.values.size(), 22u);
  EXPECT_EQ(rows.values[7], padded[7]);      // the last number of the first sequence
  EXPECT_EQ(rows.values[8], padded[7 * 2]);  // the first one of the second
  EXPECT_EQ(rows.values[21], padded[2 * 7 * 2 + 11]);
  const Floats back = pad(rows.values, rows.offsets, 7);
  ASSERT_EQ(back.size(), padded.size());
  for (size_t i = 0; i < back.size(); ++i) {
    EXPECT_EQ(back[i], std::isnan(padded[i]) ? 0 : padded[i]) << i;
  }
}

TEST(Padded, ALayerNeverReadsThePadding) {
  LayerOptions o;
  o.width = 3;
  o.state = 8;
  o.rotrnn.heads = 2;
  o.bidirectional = true;
  SingleLayer layer(o, 1);
  layer.engine.threads = 1;
  const auto run = [&](const PackedRows& rows) {
    Floats y(rows.values.size());
    layer.forward({rows.offsets, rows.values.data(), false, {}}, {y.data(), {}});
    return y;
  };
  const PackedRows rows = pack(padded_noise(8, 3), kLengths, 8);
  const Floats together = pad(run(rows), rows.offsets, 8);
  for (size_t i = 0; i < kLengths.size(); ++i) {
    const auto begin = rows.values.begin() + 3 * rows.offsets[i];
    const Floats y = run({{0, kLengths[i]}, {begin, begin + 3 * kLengths[i]}});
    const auto own = together.begin() + static_cast<int64_t>(i) * 8 * 3;
    EXPECT_LE(relative_error(Floats(own, own + 3 * kLengths[i]), y), 1e-6) << i;
    EXPECT_EQ(Floats(own + 3 * kLengths[i], own + 24),
              Floats(static_cast<size_t>(3 * (8 - kLengths[i]))));
  }
}

TEST(Padded, RefusesLengthsThatDoNotFit) {
  const Floats padded(3 * 8 * 3);
  for (const std::vector<int64_t>& lengths :
       {std::vector<int64_t>{4, 1, 6, 2, 1}, {4, 1, 9}, {4, 0, 6}, {}}) {
    EXPECT_THROW(pack(padded, lengths, 8), std::invalid_argument);
  }
  EXPECT_THROW(pad(Floats(12), std::vector<int64_t>{0, 4, 12}, 7), std::invalid_argument);
  EXPECT_THROW(pad(Floats(12), std::vector<int64_t>{1, 12}, 12), std::invalid_argument);
}

}  // namespace
}  // namespace rotrnn::testing
