#include "rotrnn/data/tasks/pathfinder/pathfinder_generator.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <set>

#include "tests/support/folder.h"

namespace rotrnn {
namespace {

using Point = PathfinderPoint;
constexpr double kPi = std::numbers::pi;

double distance(Point a, Point b) {
  return std::hypot(a.x - b.x, a.y - b.y);
}

Point along(const Paddle& p, double share) {
  return {p.tail.x + share * (p.head.x - p.tail.x), p.tail.y + share * (p.head.y - p.tail.y)};
}

// By walking over the strokes in small steps: never below the true distance, at most a step above.
constexpr int kWalk = 40;
double distance(Point p, const Paddle& a) {
  double nearest = 1e9;
  for (int i = 0; i <= kWalk; ++i)
    nearest = std::min(nearest, distance(p, along(a, 1.0 * i / kWalk)));
  return nearest;
}
double distance(const Paddle& a, const Paddle& b) {
  double nearest = 1e9;
  for (int i = 0; i <= kWalk; ++i)
    nearest = std::min(nearest, distance(along(a, 1.0 * i / kWalk), b));
  return nearest;
}

double direction(const Paddle& p) {
  return std::atan2(p.head.y - p.tail.y, p.head.x - p.tail.x);
}

double bend(const Paddle& a, const Paddle& b) {
  return std::remainder(direction(b) - direction(a), 2 * kPi);
}

std::vector<Snake> snakes_of(const PathfinderScene& scene) {
  std::vector<Snake> snakes(scene.targets.begin(), scene.targets.end());
  snakes.insert(snakes.end(), scene.distractors.begin(), scene.distractors.end());
  return snakes;
}

// A fine grid with every paddle of the picture made so thick that the gaps within a snake close and
// those between snakes do not. It knows nothing of which paddle belongs to which snake.
class Grid {
 public:
  Grid(const PathfinderOptions& o, const PathfinderScene& scene, int fine)
      : fine_(fine), side_(static_cast<int>(o.size) * fine), ink_(side_ * side_) {
    const double radius = static_cast<double>(scene.margin) + o.paddle_thickness / 4;
    for (const Snake& snake : snakes_of(scene)) {
      for (const Paddle& paddle : snake) {
        const int steps = static_cast<int>(o.paddle_length * fine / 2);
        for (int i = 0; i <= steps; ++i) disc(along(paddle, 1.0 * i / steps), radius);
      }
    }
  }

  bool connected(Point from, Point to) const {
    std::vector<char> seen(ink_.size());
    std::vector<int> open{at(from)};
    seen[open[0]] = 1;
    while (!open.empty()) {
      const int here = open.back();
      open.pop_back();
      if (here == at(to)) return true;
      for (const int next : {here - 1, here + 1, here - side_, here + side_}) {
        if (next < 0 || next >= std::ssize(ink_) || seen[next] || !ink_[next]) continue;
        seen[next] = 1;
        open.push_back(next);
      }
    }
    return false;
  }

 private:
  int at(Point p) const {
    return static_cast<int>(p.y * fine_) * side_ + static_cast<int>(p.x * fine_);
  }

  void disc(Point centre, double radius) {
    const auto range = [&](double c) {
      return std::pair{std::max(0, static_cast<int>((c - radius) * fine_)),
                       std::min(side_, static_cast<int>((c + radius) * fine_) + 1)};
    };
    const auto [x0, x1] = range(centre.x);
    const auto [y0, y1] = range(centre.y);
    for (int y = y0; y < y1; ++y) {
      for (int x = x0; x < x1; ++x) {
        const Point p{(x + 0.5) / fine_, (y + 0.5) / fine_};
        if (distance(p, centre) <= radius) ink_[y * side_ + x] = 1;
      }
    }
  }

  int fine_, side_;
  std::vector<char> ink_;
};

TEST(PathfinderGenerator, TheMarkersAreConnectedWhereTheLabelSaysSo) {
  for (const auto& [size, fine, count] : {std::array{32, 16, 40}, std::array{128, 8, 16}}) {
    const PathfinderOptions o = pathfinder_preset(size);
    int ones = 0;
    for (int i = 0; i < count; ++i) {
      const PathfinderScene scene = draw_pathfinder_scene(o, 5, i);
      const Grid grid(o, scene, fine);
      EXPECT_EQ(grid.connected(scene.markers[0], scene.markers[1]), scene.label == 1)
          << size << " pixels, picture " << i;
      ones += scene.label;
    }
    EXPECT_EQ(ones, count / 2);
  }
}

TEST(PathfinderGenerator, SnakesAreWhatTheSettingsSay) {
  for (const int size : {32, 128}) {
    const PathfinderOptions o = pathfinder_preset(size);
    std::set<int64_t> margins;
    for (int i = 0; i < 20; ++i) {
      const PathfinderScene scene = draw_pathfinder_scene(o, 1, i);
      margins.insert(scene.margin);
      EXPECT_NEAR(distance(scene.targets[0].front().tail, scene.targets[1].front().tail),
                  o.seed_distance, 1e-9);
      EXPECT_LE(std::ssize(scene.distractors), o.distractors);
      for (const Snake& snake : scene.targets) EXPECT_EQ(std::ssize(snake), o.contour_length);
      for (const Snake& snake : scene.distractors) {
        EXPECT_EQ(std::ssize(snake), o.distractor_length);
      }
      const auto margin = static_cast<double>(scene.margin);
      for (const Snake& snake : snakes_of(scene)) {
        for (size_t k = 0; k < snake.size(); ++k) {
          EXPECT_NEAR(distance(snake[k].tail, snake[k].head), o.paddle_length, 1e-9);
          for (const Point& end : {snake[k].tail, snake[k].head}) {
            const double room =
                std::min({end.x, end.y, size - end.x, size - end.y}) - o.paddle_thickness / 2;
            EXPECT_GE(room, o.padding + margin - 1e-9);
          }
          if (k == 0) continue;
          const double turn = bend(snake[k - 1], snake[k]);
          EXPECT_LE(std::abs(turn) * o.continuity, kPi / 2 + 1e-9);
          // Two sides of length margin with this angle between them.
          EXPECT_NEAR(distance(snake[k - 1].head, snake[k].tail), 2 * margin * std::cos(turn / 2),
                      1e-9);
        }
      }
    }
    EXPECT_EQ(margins, size == 32 ? std::set<int64_t>{1} : (std::set<int64_t>{2, 3}));
  }
}

TEST(PathfinderGenerator, PaddlesStayApart) {
  for (const int size : {32, 128}) {
    const PathfinderOptions o = pathfinder_preset(size);
    for (int i = 0; i < 6; ++i) {
      const PathfinderScene scene = draw_pathfinder_scene(o, 2, i);
      const double apart = o.paddle_thickness + 2.0 * static_cast<double>(scene.margin);
      const std::vector<Snake> snakes = snakes_of(scene);
      for (size_t a = 0; a < snakes.size(); ++a) {
        for (size_t b = a; b < snakes.size(); ++b) {
          for (size_t k = 0; k < snakes[a].size(); ++k) {
            for (size_t m = a == b ? k + 2 : 0; m < snakes[b].size(); ++m) {
              EXPECT_GE(distance(snakes[a][k], snakes[b][m]), apart - 1e-9);
            }
          }
        }
      }
    }
  }
}

TEST(PathfinderGenerator, MarkersAreOnEndsOfTargets) {
  for (const int size : {32, 128}) {
    const PathfinderOptions o = pathfinder_preset(size);
    int same_first = 0;
    for (int i = 0; i < 40; ++i) {
      const PathfinderScene scene = draw_pathfinder_scene(o, 3, i);
      const auto is = [](Point a, Point b) { return a.x == b.x && a.y == b.y; };
      int first = -1, last = -1;
      for (int s = 0; s < 2; ++s) {
        if (is(scene.markers[0], scene.targets[s].front().tail)) first = s;
        if (is(scene.markers[1], scene.targets[s].back().head)) last = s;
      }
      ASSERT_GE(first, 0);
      ASSERT_GE(last, 0);
      EXPECT_EQ(first == last, scene.label == 1);
      same_first += first;
      // No marker touches a snake that it does not belong to.
      for (const Snake& snake : scene.distractors) {
        for (const Paddle& paddle : snake) {
          for (const Point& m : scene.markers) {
            EXPECT_GT(distance(m, paddle), o.marker_radius + o.paddle_thickness / 2);
          }
        }
      }
      const Image image = draw_pathfinder(o, scene);
      for (const Point& m : scene.markers) {
        EXPECT_EQ(image.pixels[static_cast<int>(m.y) * size + static_cast<int>(m.x)], 255);
      }
    }
    EXPECT_GT(same_first, 5) << "either target carries the first marker";
    EXPECT_LT(same_first, 35);
  }
}

TEST(PathfinderGenerator, ThePictureShowsTheScene) {
  for (const int size : {32, 128}) {
    const PathfinderOptions o = pathfinder_preset(size);
    for (int i = 0; i < (size == 32 ? 8 : 2); ++i) {
      const PathfinderScene scene = draw_pathfinder_scene(o, 4, i);
      const Image image = draw_pathfinder(o, scene);
      ASSERT_EQ(std::ssize(image.pixels), size * size);
      const double reach = o.paddle_thickness / 2 + std::numbers::sqrt2 / 2;
      for (int y = 0; y < size; ++y) {
        for (int x = 0; x < size; ++x) {
          const Point centre{x + 0.5, y + 0.5};
          double paddle = 1e9, marker = 1e9;
          for (const Snake& snake : snakes_of(scene)) {
            for (const Paddle& p : snake) paddle = std::min(paddle, distance(centre, p));
          }
          for (const Point& m : scene.markers) marker = std::min(marker, distance(centre, m));
          const int value = image.pixels[y * size + x];
          const bool near_marker = marker < o.marker_radius + std::numbers::sqrt2 / 2 + 0.4;
          // The edge of a sample's square is another quarter of a pixel away, and the walk is
          // rounded up by less than a tenth.
          if (paddle > reach + 0.4 && !near_marker) {
            EXPECT_EQ(value, 0) << x << "," << y;
          }
          if (paddle < 0.1) {
            EXPECT_GT(value, 50) << x << "," << y;
          }
          if (!near_marker) {
            EXPECT_LE(value, std::lround(255 * o.contrast)) << x << "," << y;
          }
        }
      }
    }
  }
}

TEST(PathfinderGenerator, StrokesHaveTheirPixels) {
  PathfinderOptions o = pathfinder_preset(128);
  PathfinderScene scene;
  scene.targets[0] = {{{10, 20.5}, {15, 20.5}}};
  scene.markers = {{{100, 100}, {100, 100}}};
  const Image thick = draw_pathfinder(o, scene);
  const auto value = [](const Image& image, int x, int y) {
    return int{image.pixels[y * image.width + x]};
  };
  // A thickness of 1.5 around the middle of row 20: that row whole, a quarter of its neighbours.
  for (int x = 11; x < 14; ++x) {
    EXPECT_EQ(value(thick, x, 18), 0);
    EXPECT_EQ(value(thick, x, 19), std::lround(0.25 * 0.9 * 255));
    EXPECT_EQ(value(thick, x, 20), std::lround(0.9 * 255));
    EXPECT_EQ(value(thick, x, 21), std::lround(0.25 * 0.9 * 255));
    EXPECT_EQ(value(thick, x, 22), 0);
  }
  // Half a pixel thick within row 20: half of it is covered, shown at the full contrast.
  o = pathfinder_preset(32);
  scene.targets[0] = {{{10, 20.25}, {15, 20.25}}};
  scene.markers = {{{5, 5}, {5, 5}}};
  const Image thin = draw_pathfinder(o, scene);
  EXPECT_EQ(value(thin, 12, 20), std::lround(0.75 * 255));
  EXPECT_EQ(value(thin, 12, 19), 0);
  EXPECT_EQ(value(thin, 12, 21), 0);
  // The brightness of a disc is its area.
  int64_t sum = 0;
  for (int y = 0; y < 10; ++y) {
    for (int x = 0; x < 10; ++x) sum += value(thin, x, y);
  }
  EXPECT_NEAR(static_cast<double>(sum) / 255, kPi * 1.5 * 1.5, 0.05 * kPi * 1.5 * 1.5)
      << "four samples a pixel see an area to a few percent";
}

TEST(PathfinderGenerator, BendsFollowTheirWeight) {
  for (const double continuity : {1.0, 1.8}) {
    PathfinderOptions o;
    o.size = 1024;  // so wide that nothing is ever in the way
    o.contour_length = 2;
    o.distractors = 0;
    o.seed_distance = 100;
    o.continuity = continuity;
    std::vector<double> bends;
    for (int i = 0; i < 2000; ++i) {
      const PathfinderScene scene = draw_pathfinder_scene(o, 6, i);
      for (const Snake& snake : scene.targets) bends.push_back(bend(snake[0], snake[1]));
    }
    std::sort(bends.begin(), bends.end());
    // Kolmogorov and Smirnov's test against the integral of cos², at a level of 0.1 %, and half
    // a degree of the steps in which bends are drawn.
    const auto n = static_cast<double>(bends.size());
    const double limit = 1.95 / std::sqrt(n) + continuity / 180;
    for (size_t i = 0; i < bends.size(); ++i) {
      const double x = bends[i] * continuity;
      const double share = 0.5 + (x + std::sin(2 * x) / 2) / kPi;
      ASSERT_NEAR(static_cast<double>(i) / n, share, limit);
    }
  }
}

TEST(PathfinderGenerator, LabelsAreHalfAndHalf) {
  for (const uint64_t seed : {0, 1, 77}) {
    int first_is_one = 0;
    for (uint64_t pair = 0; pair < 1000; ++pair) {
      const int a = pathfinder_label(seed, 2 * pair), b = pathfinder_label(seed, 2 * pair + 1);
      EXPECT_EQ(a + b, 1);
      first_is_one += a;
    }
    EXPECT_NEAR(first_is_one, 500, 66) << "more than four standard deviations from even";
  }
}

TEST(PathfinderGenerator, PicturesAreAFunctionOfSeedAndIndex) {
  const PathfinderOptions o = pathfinder_preset(32);
  const auto picture = [&](uint64_t seed, uint64_t index) {
    const Image image = draw_pathfinder(o, draw_pathfinder_scene(o, seed, index));
    return std::string(image.pixels.begin(), image.pixels.end());
  };
  std::set<std::string> different;
  for (uint64_t seed = 0; seed < 3; ++seed) {
    for (uint64_t index = 0; index < 20; ++index) different.insert(picture(seed, index));
  }
  EXPECT_EQ(different.size(), 60u);
  EXPECT_EQ(picture(2, 11), picture(2, 11));
}

TEST(PathfinderGenerator, PresetsAreThePublishedSettings) {
  const PathfinderOptions small = pathfinder_preset(32), large = pathfinder_preset(128);
  EXPECT_EQ(small.distractors, 5);
  EXPECT_EQ(small.distractor_length, 4);
  EXPECT_EQ(large.distractors, 8);
  EXPECT_EQ(large.distractor_length, 4);
  EXPECT_EQ(large.seed_distance, 20);
  EXPECT_EQ(large.continuity, 1.8);
  EXPECT_EQ(pathfinder_preset(32, 6).distractor_length, 2);
  EXPECT_EQ(pathfinder_preset(32, 6).distractors, 10);
  EXPECT_THROW(pathfinder_preset(64), std::invalid_argument);
  // Nearly all of the distractors find a place.
  for (const auto& o : {small, large}) {
    size_t found = 0;
    for (int i = 0; i < 40; ++i) found += draw_pathfinder_scene(o, 9, i).distractors.size();
    EXPECT_GE(static_cast<double>(found), 0.7 * 40.0 * static_cast<double>(o.distractors));
  }
}

TEST(PathfinderGenerator, WrongSettingsAreNamed) {
  const auto error = [](auto change) {
    PathfinderOptions o;
    change(o);
    return test::message_of<std::invalid_argument>([&] { validate(o); });
  };
  EXPECT_EQ(error([](auto& o) { o.size = 8; }), "pathfinder: size is 8; use 16 to 1024");
  EXPECT_EQ(error([](auto& o) { o.contour_length = 0; }),
            "pathfinder: contour_length is 0; use 1 to 100");
  EXPECT_NE(error([](auto& o) { o.margin_min = 2; }).find("margin_min"), std::string::npos);
  EXPECT_NE(error([](auto& o) { o.continuity = std::nan(""); }).find("continuity"),
            std::string::npos);
  EXPECT_NO_THROW(validate(pathfinder_preset(128)));
  PathfinderOptions full = pathfinder_preset(32);
  full.contour_length = 100;
  const std::string message =
      test::message_of<std::runtime_error>([&] { draw_pathfinder_scene(full, 0, 0); });
  EXPECT_NE(message.find("no room for two snakes of 100 paddles"), std::string::npos);
}

}  // namespace
}  // namespace rotrnn
