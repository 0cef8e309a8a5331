#include "rotrnn/training/checkpoint/run_folder.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <functional>
#include <stdexcept>
#include <string_view>
#include <system_error>

#include "rotrnn/io/atomic_file.h"
#include "rotrnn/io/formats/event_file.h"

namespace rotrnn {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kKept = "step-", kNew = ".new", kOld = ".old";
constexpr char kDamaged[] = "last.damaged";

std::string with(const char* name, std::string_view suffix) {
  return std::string(name) + std::string(suffix);
}

// The number of step-N; -1: another name.
int64_t kept_step(std::string_view name) {
  if (!name.starts_with(kKept)) return -1;
  name.remove_prefix(kKept.size());
  int64_t step = -1;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), step);
  return error == std::errc() && end == name.data() + name.size() ? step : -1;
}

std::vector<std::string> names_in(const fs::path& folder) {
  std::vector<std::string> names;
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(folder, none)) {
    names.push_back(entry.path().filename().string());
  }
  return names;
}

// From the newest on. A whole last.new is what was last before, or what was about to be.
std::vector<fs::path> candidates(const fs::path& run) {
  std::vector<fs::path> found;
  for (const std::string& name :
       {std::string(kLast), with(kLast, kOld), with(kLast, kNew), std::string(kPrevious)}) {
    if (fs::exists(run / name)) found.push_back(run / name);
  }
  std::vector<int64_t> steps;
  for (const std::string& name : names_in(run)) {
    if (const int64_t step = kept_step(name); step >= 0) steps.push_back(step);
  }
  std::sort(steps.begin(), steps.end(), std::greater());
  for (const int64_t step : steps) found.push_back(kept_checkpoint(run, step));
  return found;
}

}  // namespace

fs::path kept_checkpoint(const fs::path& run, int64_t step) {
  return run / fmt::format("{}{}", kKept, step);
}

bool can_resume(const fs::path& run) {
  // Not by what a kill before the first checkpoint left of it.
  const auto found = candidates(run);
  return std::any_of(found.begin(), found.end(),
                     [&](const fs::path& path) { return path != run / with(kLast, kNew); });
}

Resumable find_resumable(const fs::path& run, Parts parts) {
  std::vector<std::string> damage;
  for (const fs::path& folder : candidates(run)) {
    try {
      return {read_checkpoint(folder, parts), damage};
    } catch (const std::runtime_error& error) {
      damage.push_back(error.what());
    }
  }
  if (damage.empty()) find_checkpoint(run, Which::last);  // says that there is none
  throw std::runtime_error(
      fmt::format("{0}: no checkpoint is whole, nothing can be resumed; start another run, with "
                  "--init-from {0} if you want its best weights. {1}",
                  run.string(), fmt::join(damage, "; ")));
}

void settle(const fs::path& run, const Resumable& found) {
  const fs::path last = run / kLast, &used = found.checkpoint.folder;
  if (used == last) return;
  if (fs::exists(last)) {
    fs::remove_all(run / kDamaged);
    fs::rename(last, run / kDamaged);
  }
  if (used.filename().string().starts_with(kLast)) fs::rename(used, last);
  sync_folder(run);
}

void tidy_run(const fs::path& run) {
  for (const std::string& name : names_in(run)) {
    const bool half = name.ends_with(kNew) && (name.starts_with(kLast) || name.starts_with(kBest) ||
                                               name.starts_with(kKept));
    std::error_code ignored;
    if (half || name.find(".tmp-") != std::string::npos) fs::remove_all(run / name, ignored);
  }
}

void clear_run(const fs::path& run) {
  tidy_run(run);
  for (const std::string& name :
       {std::string(kLast), with(kLast, kOld), std::string(kDamaged), std::string(kPrevious),
        std::string(kBest), with(kBest, kOld), std::string("metrics.jsonl"),
        std::string("config.toml"), std::string("splits.tsv")}) {
    fs::remove_all(run / name);
  }
  for (const std::string& name : names_in(run)) {
    if (kept_step(name) >= 0 || is_event_file(name)) fs::remove_all(run / name);
  }
}

}  // namespace rotrnn
