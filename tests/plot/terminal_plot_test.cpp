#include "rotrnn/plot/terminal_plot.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <set>

namespace rotrnn {
namespace {

// The dots of lines of braille, read back from Unicode's numbering: dots 1 2 3 7 on the left, 4 5 6
// 8 on the right, from the top; dot n is bit n - 1. Rows count from the bottom.
std::set<std::pair<int, int>> dots_of(const std::vector<std::string>& lines) {
  std::set<std::pair<int, int>> out;
  const int rows = static_cast<int>(lines.size());
  for (int row = 0; row < rows; ++row) {
    const std::string& line = lines[row];
    EXPECT_EQ(line.size() % 3, 0u);
    for (size_t i = 0; i < line.size(); i += 3) {
      const int code = (line[i] & 0x0f) << 12 | (line[i + 1] & 0x3f) << 6 | (line[i + 2] & 0x3f);
      EXPECT_EQ(code & ~0xff, 0x2800);
      for (const auto& [dot, x, y] :
           {std::array{1, 0, 3}, std::array{2, 0, 2}, std::array{3, 0, 1}, std::array{7, 0, 0},
            std::array{4, 1, 3}, std::array{5, 1, 2}, std::array{6, 1, 1}, std::array{8, 1, 0}}) {
        if (code >> (dot - 1) & 1) {
          out.emplace(static_cast<int>(i / 3) * 2 + x, (rows - 1 - row) * 4 + y);
        }
      }
    }
  }
  return out;
}

TEST(TerminalPlot, ARampIsADiagonal) {
  std::vector<float> ramp;
  for (int i = 0; i < 8; ++i) ramp.push_back(static_cast<float>(i) * 3 - 5);
  std::set<std::pair<int, int>> expected;
  for (int i = 0; i < 8; ++i) expected.emplace(i, i);
  EXPECT_EQ(dots_of(plot_series(ramp, 4, 2)), expected);
}

TEST(TerminalPlot, AConstantIsALine) {
  const auto dots = dots_of(plot_series(std::vector<float>(100, 7), 10, 2));
  EXPECT_EQ(dots.size(), 20u);
  for (const auto& [x, y] : dots) EXPECT_EQ(y, 4);
  EXPECT_EQ(dots_of(plot_series(std::vector<float>{1}, 3, 1)).size(), 6u) << "a single value too";
}

TEST(TerminalPlot, APeakBetweenDotsIsSeen) {
  std::vector<float> values(10'000, 0);
  values[4'321] = 1;
  const auto dots = dots_of(plot_series(values, 20, 3));
  int peak = 0;
  for (const auto& [x, y] : dots) {
    if (y == 0) continue;
    EXPECT_EQ(x, 4321 * 40 / 10'000);
    ++peak;
  }
  EXPECT_EQ(peak, 11) << "the whole height";
}

TEST(TerminalPlot, WhatIsNotFiniteIsLeftOut) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float infinity = std::numeric_limits<float>::infinity();
  EXPECT_TRUE(dots_of(plot_series(std::vector<float>{nan, infinity}, 4, 2)).empty());
  EXPECT_TRUE(dots_of(plot_series({}, 4, 2)).empty());
  const auto dots = dots_of(plot_series(std::vector<float>{0, nan, 1, -infinity}, 2, 1));
  EXPECT_EQ(dots, (std::set<std::pair<int, int>>{{0, 0}, {2, 3}}));
}

TEST(TerminalPlot, SparklinesGoFromTheLeastToTheLargest) {
  EXPECT_EQ(sparkline(std::vector<double>{0, 1, 2, 3, 4, 5, 6, 7}, 20), "▁▂▃▄▅▆▇█");
  EXPECT_EQ(sparkline(std::vector<double>{3, 1, 2}, 20), "█▁▅");
  EXPECT_EQ(sparkline(std::vector<double>{-1, -1}, 20), "▅▅") << "no spread";
  EXPECT_EQ(sparkline({}, 20), "");
  EXPECT_EQ(sparkline(std::vector<double>{1, 2}, 0), "");
  EXPECT_EQ(sparkline(std::vector<double>{1, NAN, 2, INFINITY}, 20), "▁ █ ");
}

TEST(TerminalPlot, SparklinesOfManyValuesAreMeans) {
  // 0 0 | 0 8 | 8 8: means 0, 4, 8.
  EXPECT_EQ(sparkline(std::vector<double>{0, 0, 0, 8, 8, 8}, 3), "▁▅█");
  const std::string line = sparkline(std::vector<double>(1000, 2), 7);
  EXPECT_EQ(columns_of(line), 7);
  EXPECT_EQ(columns_of("a▁é…"), 4);
}

TEST(TerminalPlot, PicturesAreShadesOfGrey) {
  const std::vector<uint8_t> pixels{0,   255, 128, 0,   //
                                    0,   255, 127, 0,   //
                                    255, 0,   0,   0};  // the last line has one row only
  EXPECT_EQ(plot_picture(pixels, 4, 80), (std::vector<std::string>{" @=", "@"}));
  EXPECT_EQ(plot_picture(std::vector<uint8_t>(64 * 64, 255), 64, 16),
            std::vector<std::string>(8, std::string(16, '@')));
  EXPECT_TRUE(plot_picture({}, 0, 80).empty());
}

}  // namespace
}  // namespace rotrnn
