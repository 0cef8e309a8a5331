#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "rotrnn/io/formats/image.h"

// Pathfinder (Linsley et al. 2018) in the form of the Long Range Arena: two dashed curves among
// shorter ones, and two round markers. The label is 1 when the markers are on the two ends of one
// curve. 32 pixels a side is the task Pathfinder, 128 is Path-X.

namespace rotrnn {

/// Settings of the generator, lengths in pixels; the defaults are those of 32 pixels.
struct PathfinderOptions {
  int64_t size = 32;                               ///< Pixels a side.
  int64_t contour_length = 14;                     ///< Paddles of each of the two targets.
  int64_t distractors = 5, distractor_length = 4;  ///< Other snakes, and their paddles.
  double paddle_length = 2, paddle_thickness = 0.5;
  int64_t margin_min = 1, margin_max = 1;  ///< Free space around a paddle, drawn for each picture.
  double padding = 1;                      ///< Kept free at the border.
  double seed_distance = 7;                ///< Between the first ends of the two targets.
  double continuity = 1.0;                 ///< Higher is straighter.
  double marker_radius = 1.5;
  double contrast = 0.75;  ///< Brightness of a paddle; markers have 1.
  int64_t antialias = 2;   ///< Samples per pixel in each direction.
};

/// The Long Range Arena's settings for 32 or 128 pixels a side, with its rule for the distractors:
/// a third as long as the targets, as many as 20 or 35 paddles make. Other sizes throw
/// std::invalid_argument.
PathfinderOptions pathfinder_preset(int64_t size, int64_t contour_length = 14);

/// Throws std::invalid_argument for settings that make no sense.
void validate(const PathfinderOptions& options);

/// In pixels from the upper left corner; pixel (column, row) covers [column, column + 1) × [row,
/// row + 1).
struct PathfinderPoint {
  double x = 0, y = 0;
};

/// A straight stroke.
struct Paddle {
  PathfinderPoint tail, head;
};

/// Paddles in the order in which they grew.
using Snake = std::vector<Paddle>;

/// What a picture shows.
struct PathfinderScene {
  int label = 0;
  int64_t margin = 1;
  std::array<Snake, 2> targets;
  std::vector<Snake> distractors;  // fewer than asked for where no place was left
  std::array<PathfinderPoint, 2> markers;
};

/// The label of picture `index`: of 2k and 2k + 1 one is 0 and the other 1.
int pathfinder_label(uint64_t seed, uint64_t index);

/// Scene number `index` of a seed, a pure function of the three. std::runtime_error when the
/// settings leave no room for two snakes.
PathfinderScene draw_pathfinder_scene(const PathfinderOptions& options, uint64_t seed,
                                      uint64_t index);

/// The picture of a scene, white on black.
Image draw_pathfinder(const PathfinderOptions& options, const PathfinderScene& scene);

}  // namespace rotrnn
