#pragma once

#include <filesystem>
#include <functional>

#include "rotrnn/data/tasks/pathfinder/pathfinder_generator.h"

namespace rotrnn {

/// What to write.
struct PathfinderFiles {
  int64_t count = 200'000;      ///< Pictures.
  int64_t per_folder = 10'000;  ///< In one folder imgs/K.
  uint64_t seed = 0;
  int threads = 1;
  bool overwrite = false;  ///< Replace a set that is there.
  std::function<void(int64_t done)>
      progress;  ///< Called now and then; what it throws ends the work.
};

/// Where the set goes: `out`/pathfinder32/curv_contour_length_14.
std::filesystem::path pathfinder_folder(const std::filesystem::path& out,
                                        const PathfinderOptions& options);

/// Writes imgs/K/sample_i.png and metadata/K.npy as the public release has them, the same bytes for
/// any number of threads. The set appears at its place when it is whole; std::invalid_argument when
/// there is one already.
void write_pathfinder(const std::filesystem::path& out, const PathfinderOptions& options,
                      const PathfinderFiles& files);

/// `per_class` pictures of each class side by side, label 0 above label 1, every pixel `zoom` wide.
Image pathfinder_sheet(const PathfinderOptions& options, uint64_t seed, int64_t per_class,
                       int64_t zoom);

}  // namespace rotrnn
