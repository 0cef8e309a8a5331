#include "rotrnn/board/series.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <random>
#include <set>

namespace rotrnn::board {
namespace {

constexpr double kAll = std::numeric_limits<double>::infinity();

struct Point {
  double step, value;
};

std::vector<Point> random_points(size_t n, uint64_t seed) {
  std::mt19937_64 generator(seed);
  std::normal_distribution<double> noise;
  std::vector<Point> out;
  double step = 0;
  for (size_t i = 0; i < n; ++i) {
    step += 1 + static_cast<double>(generator() % 7);
    out.push_back({step, noise(generator)});
  }
  return out;
}

Series series_of(const std::vector<Point>& points, size_t most = Series::kMost) {
  Series s(most);
  for (const Point& p : points) s.add(p.step, p.value);
  return s;
}

TEST(Series, FewPointsStayAsTheyAre) {
  const auto points = random_points(50, 1);
  const Decimated d = series_of(points).decimate(0, kAll, 50);
  ASSERT_EQ(d.step.size(), 50u);
  for (size_t i = 0; i < 50; ++i) {
    EXPECT_EQ(d.step[i], points[i].step);
    EXPECT_EQ(d.value[i], points[i].value);
  }
  EXPECT_TRUE(d.mean.empty());
}

// By brute force: every piece of points in the range has its smallest and largest in the answer.
TEST(Series, DecimationKeepsTheExtremesOfEveryPiece) {
  for (const size_t n : {101u, 1000u, 4097u}) {
    const auto points = random_points(n, n);
    const Series s = series_of(points);
    for (const size_t count : {2u, 10u, 64u, 99u}) {
      for (const auto& [from, to] :
           {std::pair{0.0, kAll}, {points[n / 3].step, points[n / 3 + n / 2].step}}) {
        std::vector<Point> inside;
        for (size_t i = 0; i < n; ++i) {
          const bool in = points[i].step >= from && points[i].step <= to;
          const bool before = i + 1 < n && points[i].step < from && points[i + 1].step >= from;
          const bool after = i > 0 && points[i].step > to && points[i - 1].step <= to;
          if (in || before || after) inside.push_back(points[i]);
        }
        const Decimated d = s.decimate(from, to, count);
        if (inside.size() <= count) {
          EXPECT_EQ(d.step.size(), inside.size());
          continue;
        }
        const std::set<double> kept(d.value.begin(), d.value.end());
        const size_t pieces = count / 2;
        EXPECT_LE(d.step.size(), 2 * pieces + 2);
        ASSERT_EQ(d.mean.size(), pieces);
        EXPECT_TRUE(std::is_sorted(d.step.begin(), d.step.end()));
        EXPECT_EQ(d.step.front(), inside.front().step);
        EXPECT_EQ(d.step.back(), inside.back().step);
        for (size_t k = 0; k < pieces; ++k) {
          std::vector<double> piece;
          for (size_t i = inside.size() * k / pieces; i < inside.size() * (k + 1) / pieces; ++i) {
            piece.push_back(inside[i].value);
          }
          EXPECT_TRUE(kept.contains(*std::min_element(piece.begin(), piece.end())));
          EXPECT_TRUE(kept.contains(*std::max_element(piece.begin(), piece.end())));
          double mean = 0;
          for (const double v : piece) mean += v;
          EXPECT_NEAR(d.mean[k], mean / static_cast<double>(piece.size()), 1e-12);
        }
      }
    }
  }
}

TEST(Series, MemoryIsBoundedAndSpikesStay) {
  Series s(1024);
  for (int i = 0; i < 1'000'000; ++i) {
    s.add(i, i == 123'457 ? 50.0 : i == 800'001 ? -50.0 : (i % 100) * 0.01);
  }
  EXPECT_LE(s.size(), 1024u);
  EXPECT_GE(s.size(), 256u);
  const Decimated d = s.decimate(0, kAll, 20);
  EXPECT_EQ(*std::max_element(d.value.begin(), d.value.end()), 50);
  EXPECT_EQ(*std::min_element(d.value.begin(), d.value.end()), -50);
  EXPECT_TRUE(std::is_sorted(s.step().begin(), s.step().end()));
  EXPECT_EQ(std::adjacent_find(s.step().begin(), s.step().end()), s.step().end());
}

TEST(Series, LaterPointsReplaceWhatTheyGoBackBehind) {
  Series s;
  for (const double step : {1, 2, 3, 4}) s.add(step, step);
  s.add(3, 30);
  EXPECT_EQ(s.step(), (std::vector<double>{1, 2, 3}));
  EXPECT_EQ(s.value(), (std::vector<double>{1, 2, 30}));
  s.rewind(0);
  EXPECT_EQ(s.size(), 0u);
  EXPECT_TRUE(s.decimate(0, kAll, 10).step.empty());
}

}  // namespace
}  // namespace rotrnn::board
