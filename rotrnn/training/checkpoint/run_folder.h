#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "rotrnn/training/checkpoint/checkpoint.h"

namespace rotrnn {

// The checkpoints of a run folder:
//   last/        the newest, to go on from       best/     the best so far, to use
//   previous/    the one before it               step-N/   those that are kept for good
// While one is written it is NAME.new; one that was found damaged is last.damaged.
inline constexpr char kLast[] = "last";
inline constexpr char kPrevious[] = "previous";
inline constexpr char kBest[] = "best";

/// The folder of a checkpoint that is kept for good.
std::filesystem::path kept_checkpoint(const std::filesystem::path& run, int64_t step);

/// Whether there is anything to go on from.
bool can_resume(const std::filesystem::path& run);

/// A checkpoint to go on from.
struct Resumable {
  Checkpoint checkpoint;
  std::vector<std::string> damage;  // what is wrong with newer ones
};

/// The newest checkpoint that is whole; std::runtime_error that names what is wrong with each when
/// none is.
Resumable find_resumable(const std::filesystem::path& run, Parts parts);

/// Makes a run folder ready for the next checkpoint after one was found to go on from: a damaged
/// one is moved aside, so that it is not taken for the previous good one. To be called under a
/// lock.
void settle(const std::filesystem::path& run, const Resumable& found);

/// Removes what a killed process left half written. To be called under a lock.
void tidy_run(const std::filesystem::path& run);

/// Removes a run and leaves its folder and what is not of the run. To be called under a lock.
void clear_run(const std::filesystem::path& run);

}  // namespace rotrnn
