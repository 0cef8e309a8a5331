#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "rotrnn/data/tasks/pathfinder/pathfinder_generator.h"

// The lists of pictures of Pathfinder, metadata/K.npy: plain text in the public release, an array
// of strings from newer generators. The columns are folder, file, number, label, continuity,
// contour length, distractor length, paddle length, paddle thickness, margin, number of contrasts.

namespace rotrnn {

/// A picture of the list.
struct PathfinderEntry {
  std::string file;  // "imgs/0/sample_12.png"
  int label = 0;
  int64_t line = 0;  // of the list, from 1
};

/// Reads a list of either kind. std::runtime_error `name:line: …` for too few columns, a label
/// other than 0 and 1, or a file that is not below the list's folder.
std::vector<PathfinderEntry> parse_pathfinder_metadata(std::string_view content,
                                                       const std::string& name);

/// A line of text without its end.
std::string pathfinder_metadata_line(const PathfinderOptions& options, const PathfinderScene& scene,
                                     const std::string& folder, const std::string& file,
                                     int64_t number);

}  // namespace rotrnn
