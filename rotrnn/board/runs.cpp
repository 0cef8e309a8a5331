#include "rotrnn/board/runs.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>
#include <stdexcept>

#include "rotrnn/board/text.h"
#include "rotrnn/io/sha.h"
#include "rotrnn/training/config/config.h"

namespace rotrnn::board {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

// Bounds on the search: a folder may be anything, even "/".
constexpr int kMostDepth = 6;
constexpr size_t kMostEntries = 50'000, kMostRuns = 2'000;
constexpr size_t kMostConfig = 1 << 20, kMostComparison = 8 << 20, kMostVariants = 500;

std::string id_of(size_t root, const fs::path& path) {
  return sha256_hex(fmt::format("{}\n{}", root, path.string())).substr(0, 16);
}

bool has_file(const std::vector<Entry>& entries, const char* name) {
  return std::any_of(entries.begin(), entries.end(),
                     [&](const Entry& e) { return !e.folder && e.name == name; });
}

// The folder that all share; else what their names begin with.
std::string common_name(const std::vector<const RunInfo*>& runs) {
  std::set<fs::path> parents;
  for (const RunInfo* run : runs) parents.insert(fs::path(run->name).parent_path());
  if (parents.size() == 1 && !parents.begin()->empty()) return parents.begin()->string();
  std::string common = runs.front()->name;
  for (const RunInfo* run : runs) {
    const auto end =
        std::mismatch(common.begin(), common.end(), run->name.begin(), run->name.end());
    common.erase(end.first, common.end());
  }
  while (!common.empty() && std::string_view("-_./ ").find(common.back()) != std::string::npos) {
    common.pop_back();
  }
  for (const std::string_view word : {"-seed", "_seed", "seed"}) {
    if (common.size() > word.size() && common.ends_with(word)) {
      common.resize(common.size() - word.size());
    }
  }
  return common.empty() ? runs.front()->name : common;
}

void name_groups(std::vector<RunInfo>& runs) {
  std::map<std::string, std::vector<const RunInfo*>> groups;
  for (const RunInfo& run : runs) {
    if (!run.group.empty()) groups[run.group].push_back(&run);
  }
  std::map<std::string, std::string> names;
  std::map<std::string, int> taken;
  for (const auto& [group, members] : groups) {
    names[group] = members.size() > 1 ? common_name(members) : members.front()->name;
    ++taken[names[group]];
  }
  for (RunInfo& run : runs) {
    if (run.group.empty()) continue;
    run.group_name = names[run.group];
    if (taken[run.group_name] > 1) run.group_name += " " + run.group.substr(0, 4);
  }
}

// The last `parts` parts of a path.
std::string tail(const fs::path& path, int parts) {
  fs::path out;
  for (fs::path rest = path; parts > 0 && rest.has_relative_path(); --parts) {
    out = out.empty() ? rest.filename() : rest.filename() / out;
    rest = rest.parent_path();
  }
  return out.generic_string();
}

// What the folders are called: their last part, and as many before it as make the names distinct.
// A folder that is named twice gets a number.
std::vector<std::string> short_names(const std::vector<fs::path>& paths) {
  std::vector<std::string> out;
  std::map<fs::path, int> seen;
  for (const fs::path& path : paths) {
    const auto is_taken = [&](int parts) {
      return std::any_of(paths.begin(), paths.end(), [&](const fs::path& other) {
        return other != path && tail(other, parts) == tail(path, parts);
      });
    };
    int parts = 1;
    while (is_taken(parts)) ++parts;
    const int number = ++seen[path];
    out.push_back(number == 1 ? tail(path, parts)
                              : fmt::format("{} ({})", tail(path, parts), number));
  }
  return out;
}

}  // namespace

RunFinder::RunFinder(const std::vector<fs::path>& roots) {
  std::vector<fs::path> paths;
  for (const fs::path& root : roots) {
    std::error_code error;
    const fs::path real = fs::canonical(root, error);
    if (error || !fs::is_directory(real)) {
      throw std::runtime_error(fmt::format(
          "{}: is not a folder; name a run folder, or one with runs in it", root.string()));
    }
    roots_.emplace_back(real);
    paths.push_back(real);
  }
  prefixes_ = short_names(paths);
}

void RunFinder::walk(size_t root, const fs::path& path, int depth, size_t& budget,
                     Found& found) const {
  if (budget == 0 || found.runs.size() >= kMostRuns) {
    found.all = false;
    return;
  }
  const std::vector<Entry> entries = roots_[root].list(path, budget);
  budget -= std::min(budget, entries.size());
  std::string name = path.generic_string();
  if (name.empty()) {
    name = prefixes_[root];
  } else if (roots_.size() > 1) {
    name = prefixes_[root] + "/" + name;
  }
  name = clean_text(name);
  if (has_file(entries, "compare.json")) {
    found.comparisons.push_back({id_of(root, path), name, root, path});
  }
  if (has_file(entries, "metrics.jsonl")) {
    RunInfo run;
    run.id = id_of(root, path);
    run.name = name;
    run.root = root;
    run.path = path;
    found.runs.push_back(std::move(run));
    return;
  }
  if (depth == kMostDepth) return;
  for (const Entry& entry : entries) {
    if (entry.folder && !entry.name.starts_with('.')) {
      walk(root, path / entry.name, depth + 1, budget, found);
    }
  }
}

void RunFinder::describe(RunInfo& run) {
  const Beneath& root = roots_[run.root];
  if (const auto status = root.status(run.path / "metrics.jsonl")) {
    run.updated = status->st_mtim.tv_sec;
  }
  const auto status = root.status(run.path / "config.toml");
  if (!status) return;
  CachedConfig& cached = configs_[run.id];
  if (cached.seconds != status->st_mtim.tv_sec || cached.nanoseconds != status->st_mtim.tv_nsec ||
      cached.size != status->st_size) {
    cached = {status->st_size, status->st_mtim.tv_sec, status->st_mtim.tv_nsec, "", "", ""};
    try {
      const auto text = root.read(run.path / "config.toml", kMostConfig);
      Config config = parse_config(text.value_or(""), "config.toml");
      cached.task = clean_text(config.task.name);
      cached.layer =
          config.model.body == Body::features ? "features" : clean_text(config.model.layer);
      cached.seed = config.training.seed;
      cached.steps = config.training.steps;
      cached.depth = config.model.depth;
      config.training.seed = 0;
      // Cells of a comparison by minutes have the steps that their own timing gave.
      if (root.status(run.path / "cell.json")) config.training.steps = 1;
      cached.group = sha256_hex(to_toml(config)).substr(0, 16);
    } catch (const std::exception&) {
      // A config of another version: the curves are shown all the same.
    }
  }
  run.task = cached.task;
  run.layer = cached.layer;
  run.group = cached.group;
  run.seed = cached.seed;
  run.steps = cached.steps;
  run.depth = cached.depth;
}

Found RunFinder::find() {
  Found found;
  size_t budget = kMostEntries;
  for (size_t root = 0; root < roots_.size(); ++root) walk(root, {}, 0, budget, found);
  for (RunInfo& run : found.runs) describe(run);
  if (configs_.size() > 2 * kMostRuns) configs_.clear();  // runs come and go
  name_groups(found.runs);
  return found;
}

std::optional<Json> read_comparison(const Beneath& root, const CompareInfo& info) {
  const auto text = root.read(info.path / "compare.json", kMostComparison);
  const Json file = Json::parse(text.value_or(""), nullptr, /*allow_exceptions=*/false);
  if (!file.is_object() || !file.contains("variants") || !file["variants"].is_array()) {
    return std::nullopt;
  }
  const auto copy = [](const Json& from, Json& to, std::initializer_list<const char*> names) {
    for (const char* name : names) {
      const auto found = from.find(name);
      if (found == from.end() || !found->is_primitive()) continue;
      to[name] = found->is_string() ? Json(clean_text(found->get<std::string>(), 4000)) : *found;
    }
  };
  Json out{{"id", info.id}, {"name", info.name}, {"variants", Json::array()}};
  copy(file, out, {"task", "command", "seeds", "finished", "matched", "version"});
  if (file.contains("budget") && file["budget"].is_object()) {
    out["budget"] = Json::object();
    copy(file["budget"], out["budget"], {"steps", "minutes"});
  }
  for (const Json& variant : file["variants"]) {
    if (!variant.is_object() || out["variants"].size() == kMostVariants) continue;
    Json row = Json::object();
    copy(variant, row,
         {"name", "layer", "state", "parameters", "finished", "majority_share", "steps",
          "tokens_per_second", "peak_memory_mb", "minutes_per_cell"});
    if (variant.contains("cells") && variant["cells"].is_array()) {
      row["cells"] = variant["cells"].size();
    }
    if (variant.contains("test_accuracy") && variant["test_accuracy"].is_object()) {
      copy(variant["test_accuracy"], row["test_accuracy"], {"mean", "deviation"});
    }
    out["variants"].push_back(std::move(row));
  }
  return out;
}

}  // namespace rotrnn::board
