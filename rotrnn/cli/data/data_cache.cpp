#include "rotrnn/cli/data/data_cache.h"

#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "rotrnn/cli/output/json_line.h"
#include "rotrnn/cli/output/text.h"
#include "rotrnn/data/cache.h"

namespace rotrnn::cli {
namespace {

struct DataCacheOptions {
  std::string folder;
  bool clear = false, json = false;
};

int run_data_cache(const DataCacheOptions& o) {
  TaskOptions task;
  task.cache = o.folder;
  const auto folder = cache_folder(task);
  const CacheSize size = cache_size(folder, o.clear);
  if (o.json) {
    print_json_line(nlohmann::ordered_json{{"folder", folder.string()},
                                           {"sets", size.sets},
                                           {"bytes", size.bytes},
                                           {"cleared", o.clear}});
  } else {
    fmt::print("{}: {} decoded set(s), {}{}\n", folder.string(), size.sets,
               bytes(static_cast<double>(size.bytes)), o.clear ? ", removed" : "");
  }
  return 0;
}

}  // namespace

void add_data_cache(CLI::App& data, Action& action) {
  auto options = std::make_shared<DataCacheOptions>();
  auto* command = data.add_subcommand("cache", "Decoded data that are kept on disk");
  command->add_option("--folder", options->folder, "another folder than the user's cache");
  command->add_flag("--clear", options->clear, "remove them; they are made again when needed");
  command->add_flag("--json", options->json, "one line of JSON");
  command->callback(
      [options, &action] { action = [options] { return run_data_cache(*options); }; });
}

}  // namespace rotrnn::cli
