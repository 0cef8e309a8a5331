#include "rotrnn/data/task_options.h"

#include <algorithm>
#include <cstdlib>

namespace rotrnn {

std::filesystem::path cache_folder(const TaskOptions& options) {
  if (!options.cache.empty() && options.cache != "none") return options.cache;
  if (const char* cache = std::getenv("XDG_CACHE_HOME"); cache && *cache) {
    return std::filesystem::path(cache) / "rotrnn";
  }
  if (const char* home = std::getenv("HOME"); home && *home) {
    return std::filesystem::path(home) / ".cache" / "rotrnn";
  }
  return std::filesystem::temp_directory_path() / "rotrnn";
}

std::vector<std::string> split_names(const std::string& text) {
  std::vector<std::string> names;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t comma = std::min(text.find(',', begin), text.size());
    const size_t first = text.find_first_not_of(" \t", begin);
    if (first < comma) {
      names.push_back(text.substr(first, text.find_last_not_of(" \t", comma - 1) + 1 - first));
    }
    begin = comma + 1;
  }
  return names;
}

}  // namespace rotrnn
