#include "rotrnn/data/tasks/pathfinder/pathfinder_generator.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <optional>
#include <stdexcept>

#include "rotrnn/base/random.h"

namespace rotrnn {
namespace {

using Point = PathfinderPoint;
constexpr double kPi = std::numbers::pi;

// Geometry

Point ahead(Point from, double angle, double distance) {
  return {from.x + distance * std::cos(angle), from.y + distance * std::sin(angle)};
}

// Squared distance of a point to a paddle's axis, which may be a single point.
double distance2(Point p, const Paddle& s) {
  const double dx = s.head.x - s.tail.x, dy = s.head.y - s.tail.y;
  const double px = p.x - s.tail.x, py = p.y - s.tail.y;
  const double length2 = dx * dx + dy * dy;
  const double along = length2 > 0 ? std::clamp((px * dx + py * dy) / length2, 0.0, 1.0) : 0;
  const double ex = px - along * dx, ey = py - along * dy;
  return ex * ex + ey * ey;
}

// Twice the area of a triangle, its sign the sense of rotation.
double turn(Point a, Point b, Point c) {
  return (b.x - a.x) * (c.y - a.y) - (b.y - a.y) * (c.x - a.x);
}

bool cross(const Paddle& a, const Paddle& b) {
  return turn(a.tail, a.head, b.tail) * turn(a.tail, a.head, b.head) < 0 &&
         turn(b.tail, b.head, a.tail) * turn(b.tail, b.head, a.head) < 0;
}

// Segments that do not cross are nearest at one of the four ends.
double distance2(const Paddle& a, const Paddle& b) {
  if (cross(a, b)) return 0;
  return std::min(
      {distance2(a.tail, b), distance2(a.head, b), distance2(b.tail, a), distance2(b.head, a)});
}

// Growing

// Trials before a place is believed to be full.
constexpr int kSeedTrials = 64, kDistractorTrials = 16, kSceneTrials = 20'000;

// The end of a snake that grows: its next paddle starts from a pivot half a gap after the last.
struct Tip {
  Point pivot;
  double angle;
};

class Scene {
 public:
  Scene(const PathfinderOptions& o, Random& random, int64_t margin)
      : o_(o), random_(random), margin_(static_cast<double>(margin)) {
    for (int degrees = -180; degrees < 180; ++degrees) {
      const double bend = degrees * kPi / 180;
      const double weight = std::cos(std::min(std::abs(bend) * o.continuity, kPi / 2));
      if (weight < 1e-9) continue;
      bends_.push_back(bend);
      weights_.push_back(weight * weight);
    }
  }

  // Two snakes that grow side by side, or nothing when one of them has no way on.
  std::optional<std::array<Snake, 2>> targets() {
    taken_.clear();
    std::array<Snake, 2> snakes;
    std::array<Tip, 2> tips;
    if (!seed_targets(snakes, tips)) return std::nullopt;
    for (int64_t paddle = 1; paddle < o_.contour_length; ++paddle) {
      for (int s = 0; s < 2; ++s) {
        if (!grow(snakes[s], tips[s])) return std::nullopt;
      }
    }
    return snakes;
  }

  std::optional<Snake> distractor() {
    for (int trial = 0; trial < kDistractorTrials; ++trial) {
      const std::size_t before = taken_.size();
      Snake snake;
      Tip tip;
      bool alive = seed_anywhere(snake, tip);
      while (alive && std::ssize(snake) < o_.distractor_length) alive = grow(snake, tip);
      if (alive) return snake;
      taken_.resize(before);
    }
    return std::nullopt;
  }

 private:
  double angle() { return 2 * kPi * random_.uniform(); }
  double between(double low, double high) { return low + (high - low) * random_.uniform(); }

  // The paddle with its margin stays within the padding.
  bool inside(const Paddle& p) const {
    const double low = o_.padding + margin_ + o_.paddle_thickness / 2;
    const double high = static_cast<double>(o_.size) - low;
    for (const Point& end : {p.tail, p.head}) {
      if (end.x < low || end.x > high || end.y < low || end.y > high) return false;
    }
    return true;
  }

  // Paddles with their margins do not overlap; `last`, which this one follows, is left out.
  bool free(const Paddle& p, const Paddle* last) const {
    const double apart = o_.paddle_thickness + 2 * margin_, reach = apart + 2 * o_.paddle_length;
    for (const Paddle& other : taken_) {
      const double dx = other.tail.x - p.tail.x, dy = other.tail.y - p.tail.y;
      if (dx * dx + dy * dy > reach * reach) continue;  // most are far away
      if (last && other.tail.x == last->tail.x && other.tail.y == last->tail.y) continue;
      if (distance2(p, other) < apart * apart) return false;
    }
    return true;
  }

  bool fits(const Paddle& p, const Paddle* last) const { return inside(p) && free(p, last); }

  bool add(Snake& snake, Tip& tip, const Paddle& paddle, double direction) {
    if (!fits(paddle, snake.empty() ? nullptr : &snake.back())) return false;
    snake.push_back(paddle);
    taken_.push_back(paddle);
    tip = {ahead(paddle.head, direction, margin_), direction};
    return true;
  }

  // The first target starts near enough to the middle for both to have room on every side.
  bool seed_targets(std::array<Snake, 2>& snakes, std::array<Tip, 2>& tips) {
    const auto size = static_cast<double>(o_.size);
    const double low = std::min(2 * o_.seed_distance, size / 2 - 1);
    for (int trial = 0; trial < kSeedTrials; ++trial) {
      taken_.clear();
      snakes[0].clear();
      const Point first{between(low, size - low), between(low, size - low)};
      const Point second = ahead(first, angle(), o_.seed_distance);
      if (seed(snakes[0], tips[0], first) && seed(snakes[1], tips[1], second)) return true;
    }
    return false;
  }

  bool seed_anywhere(Snake& snake, Tip& tip) {
    const auto size = static_cast<double>(o_.size);
    for (int trial = 0; trial < kSeedTrials; ++trial) {
      if (seed(snake, tip, {between(0, size), between(0, size)})) return true;
    }
    return false;
  }

  bool seed(Snake& snake, Tip& tip, Point tail) {
    const double direction = angle();
    return add(snake, tip, {tail, ahead(tail, direction, o_.paddle_length)}, direction);
  }

  // One of the bends by weight, or -1 when all weights are 0.
  int draw_bend(const std::vector<double>& weights) {
    double sum = 0;
    for (const double w : weights) sum += w;
    double left = sum * random_.uniform();
    int last = -1;
    for (int i = 0; i < std::ssize(weights); ++i) {
      if (weights[i] <= 0) continue;
      last = i;
      left -= weights[i];
      if (left < 0) break;
    }
    return last;
  }

  // Directions that are blocked drop out, and the others keep their relative weights. Most first
  // draws are free, so what is blocked is looked for only after one is not.
  bool grow(Snake& snake, Tip& tip) {
    const Tip from = tip;
    const auto add_bent = [&](int i) {
      const double direction = from.angle + bends_[i];
      return add(snake, tip, following(from, direction), direction);
    };
    if (add_bent(draw_bend(weights_))) return true;
    std::vector<double> weights = weights_;
    for (std::size_t i = 0; i < weights.size(); ++i) {
      if (!fits(following(from, from.angle + bends_[i]), &snake.back())) weights[i] = 0;
    }
    const int i = draw_bend(weights);
    return i >= 0 && add_bent(i);
  }

  Paddle following(const Tip& tip, double direction) const {
    const Point tail = ahead(tip.pivot, direction, margin_);
    return {tail, ahead(tail, direction, o_.paddle_length)};
  }

  const PathfinderOptions& o_;
  Random& random_;
  double margin_;
  std::vector<double> bends_, weights_;  // changes of direction
  std::vector<Paddle> taken_;
};

// Drawing

class Canvas {
 public:
  Canvas(int64_t size, int64_t samples)
      : size_(size), samples_(samples), brightness_(static_cast<std::size_t>(size * size)) {}

  // Raises pixels to `brightness` where the share of them that is less than `radius` from the
  // paddle is as large as it gets: a stroke thinner than a pixel covers only a part of it.
  void stroke(const Paddle& p, double radius, double brightness) {
    const double most = std::min(1.0, 2 * radius);
    const auto [left, right] = std::minmax(p.tail.x, p.head.x);
    const auto [top, bottom] = std::minmax(p.tail.y, p.head.y);
    const auto [x0, x1] = pixels(left - radius, right + radius);
    const auto [y0, y1] = pixels(top - radius, bottom + radius);
    for (int64_t y = y0; y < y1; ++y) {
      for (int64_t x = x0; x < x1; ++x) {
        double& pixel = brightness_[static_cast<std::size_t>(y * size_ + x)];
        pixel = std::max(pixel, brightness * std::min(1.0, covered(x, y, p, radius) / most));
      }
    }
  }

  Image image() const {
    Image out{size_, size_, 1, {}};
    out.pixels.reserve(brightness_.size());
    for (const double b : brightness_) {
      out.pixels.push_back(static_cast<uint8_t>(std::lround(255 * b)));
    }
    return out;
  }

 private:
  // Those that the range touches, with one more for the smooth edge.
  std::pair<int64_t, int64_t> pixels(double low, double high) const {
    return {std::max<int64_t>(0, static_cast<int64_t>(std::floor(low)) - 1),
            std::min(size_, static_cast<int64_t>(std::ceil(high)) + 1)};
  }

  // Each sample counts by how far its little square reaches into the stroke, which makes thin
  // strokes as bright between two rows of samples as on one.
  double covered(int64_t x, int64_t y, const Paddle& p, double radius) const {
    const double step = 1.0 / static_cast<double>(samples_);
    double sum = 0;
    for (int64_t j = 0; j < samples_; ++j) {
      for (int64_t i = 0; i < samples_; ++i) {
        const Point at{static_cast<double>(x) + (static_cast<double>(i) + 0.5) * step,
                       static_cast<double>(y) + (static_cast<double>(j) + 0.5) * step};
        const double depth = radius - std::sqrt(distance2(at, p));
        sum += std::clamp(depth / step + 0.5, 0.0, 1.0);
      }
    }
    return sum * step * step;
  }

  int64_t size_, samples_;
  std::vector<double> brightness_;
};

void check(bool good, const char* key, double seen, const char* advice) {
  if (!good)
    throw std::invalid_argument(fmt::format("pathfinder: {} is {}; {}", key, seen, advice));
}

}  // namespace

PathfinderOptions pathfinder_preset(int64_t size, int64_t contour_length) {
  PathfinderOptions o;
  if (size == 128) {
    o = {.size = 128,
         .paddle_length = 5,
         .paddle_thickness = 1.5,
         .margin_min = 2,
         .margin_max = 3,
         .seed_distance = 20,
         .continuity = 1.8,
         .marker_radius = 3,
         .contrast = 0.9};
  } else if (size != 32) {
    throw std::invalid_argument(fmt::format("pathfinder: size is {}; use 32 or 128", size));
  }
  o.contour_length = contour_length;
  o.distractor_length = std::max<int64_t>(1, contour_length / 3);
  o.distractors = (size == 32 ? 20 : 35) / o.distractor_length;
  return o;
}

void validate(const PathfinderOptions& o) {
  const auto size = static_cast<double>(o.size);
  const auto real = [](int64_t v) { return static_cast<double>(v); };
  check(o.size >= 16 && o.size <= 1024, "size", size, "use 16 to 1024");
  check(o.contour_length >= 1 && o.contour_length <= 100, "contour_length", real(o.contour_length),
        "use 1 to 100");
  check(o.distractors >= 0 && o.distractors <= 1000, "distractors", real(o.distractors),
        "use 0 to 1000");
  check(o.distractor_length >= 1 && o.distractor_length <= 100, "distractor_length",
        real(o.distractor_length), "use 1 to 100");
  check(o.paddle_length > 0 && o.paddle_length <= size, "paddle_length", o.paddle_length,
        "use more than 0 and at most the size");
  check(o.paddle_thickness > 0 && o.paddle_thickness <= size, "paddle_thickness",
        o.paddle_thickness, "use more than 0 and at most the size");
  check(o.margin_min >= 1 && o.margin_min <= o.margin_max && o.margin_max <= o.size, "margin_min",
        real(o.margin_min), "use 1 to margin_max");
  check(o.padding >= 0 && o.padding < size / 2, "padding", o.padding,
        "use 0 to less than half the size");
  check(o.seed_distance > 0 && o.seed_distance < size, "seed_distance", o.seed_distance,
        "use more than 0 and less than the size");
  check(o.continuity > 0 && o.continuity <= 100, "continuity", o.continuity,
        "use more than 0 and at most 100");
  check(o.marker_radius > 0 && o.marker_radius <= size, "marker_radius", o.marker_radius,
        "use more than 0 and at most the size");
  check(o.contrast > 0 && o.contrast <= 1, "contrast", o.contrast, "use more than 0 and at most 1");
  check(o.antialias >= 1 && o.antialias <= 16, "antialias", real(o.antialias), "use 1 to 16");
}

int pathfinder_label(uint64_t seed, uint64_t index) {
  Random random(seed, RandomSite::pathfinder, {0, index / 2});
  return static_cast<int>((random.bits() ^ index) & 1);
}

PathfinderScene draw_pathfinder_scene(const PathfinderOptions& options, uint64_t seed,
                                      uint64_t index) {
  Random random(seed, RandomSite::pathfinder, {1, index});
  PathfinderScene out;
  out.label = pathfinder_label(seed, index);
  const auto margins = static_cast<uint32_t>(options.margin_max - options.margin_min + 1);
  out.margin = options.margin_min + random.below(margins);
  Scene scene(options, random, out.margin);
  std::optional<std::array<Snake, 2>> targets;
  for (int trial = 0; !targets; ++trial) {
    if (trial == kSceneTrials) {
      throw std::runtime_error(
          fmt::format("pathfinder: no room for two snakes of {} paddles in {} × {} pixels; make "
                      "contour_length, "
                      "paddle_length or the margin smaller",
                      options.contour_length, options.size, options.size));
    }
    targets = scene.targets();
  }
  out.targets = std::move(*targets);
  for (int64_t i = 0; i < options.distractors; ++i) {
    if (auto snake = scene.distractor()) out.distractors.push_back(std::move(*snake));
  }
  const uint32_t first = random.below(2), last = out.label == 1 ? first : 1 - first;
  out.markers = {out.targets[first].front().tail, out.targets[last].back().head};
  return out;
}

Image draw_pathfinder(const PathfinderOptions& options, const PathfinderScene& scene) {
  Canvas canvas(options.size, options.antialias);
  const auto draw = [&](const Snake& snake) {
    for (const Paddle& paddle : snake) {
      canvas.stroke(paddle, options.paddle_thickness / 2, options.contrast);
    }
  };
  for (const Snake& snake : scene.targets) draw(snake);
  for (const Snake& snake : scene.distractors) draw(snake);
  for (const PathfinderPoint& marker : scene.markers) {
    canvas.stroke({marker, marker}, options.marker_radius, 1);
  }
  return canvas.image();
}

}  // namespace rotrnn
