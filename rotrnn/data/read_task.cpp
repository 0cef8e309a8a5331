#include <fmt/format.h>

#include <stdexcept>

#include "rotrnn/base/text/utf8.h"
#include "rotrnn/data/cache.h"
#include "rotrnn/data/task_table.h"

namespace rotrnn {
namespace {

// Calls the reader for every path of the options, or makes the examples.
Records read_anew(const Task& task, const TaskOptions& options, int threads) {
  RecordWriter out(options.memory_mb, cache_folder(options));
  const std::pair<const std::string*, Split> given[] = {
      {&options.train_path, Split::train},
      {&options.validation_path, Split::validation},
      {&options.test_path, Split::test}};
  if (!options.train_path.empty()) {
    for (const auto& [path, split] : given) {
      if (!path->empty()) task.read({options, *path, split, true, threads}, out);
    }
  } else if (!options.path.empty()) {
    task.read({options, options.path, Split::any, true, threads}, out);
  } else {
    task.make(options, threads, out);
  }
  Records records = out.finish(task.order);
  if (records.size() == 0) {
    throw std::runtime_error(
        fmt::format("{}: it has no examples of task \"{}\"", options.path, task.name));
  }
  for (const std::string& name : records.classes) {
    const size_t at = find_not_utf8(name);
    if (at == std::string::npos) continue;
    throw std::runtime_error(
        fmt::format("{}: the name of the class \"{}…\" is not UTF-8 from byte {} on; rename it",
                    options.path, std::string_view(name).substr(0, at), at));
  }
  return records;
}

void check_paths(const Task& task, const TaskOptions& o) {
  const bool given = !o.train_path.empty() || !o.validation_path.empty() || !o.test_path.empty();
  if (given && !o.path.empty()) {
    throw std::invalid_argument(
        "task.path: give either it, or task.train_path with task.test_path");
  }
  if (given && o.train_path.empty()) {
    throw std::invalid_argument("task.train_path: it is missing, and the other paths need it");
  }
  if (!given && o.path.empty() && !task.make) {
    throw std::invalid_argument(
        fmt::format("task.path: task \"{}\" reads files; name where they are, such as --set "
                    "task.path=data/{}",
                    task.name, task.name));
  }
  for (const std::string* path : {&o.path, &o.train_path, &o.validation_path, &o.test_path}) {
    if (!path->empty() && !std::filesystem::exists(*path)) {
      throw std::runtime_error(
          fmt::format("{}: there is no such file or folder; see task.path{}", *path,
                      task.own ? "" : fmt::format(", or `rotrnn data download {}`", task.name)));
    }
  }
}

}  // namespace

Records read_task(const TaskOptions& options, int threads) {
  const Task& task = find_task(options.name);
  check_paths(task, options);
  const std::string key = cache_key(options, threads);
  if (key.empty()) return read_anew(task, options, threads);
  const auto folder = cache_folder(options);
  if (auto cached = load_cached(folder, key)) return *std::move(cached);
  Records records = read_anew(task, options, threads);
  int64_t bytes = 0;
  for (int64_t i = 0; i < records.sequences.size(); ++i)
    bytes += std::ssize(records.sequences.at(i));
  if (bytes < kSmallSet) return records;
  try {
    save_cached(folder, key, records);
  } catch (const std::exception& error) {
    // What was read can be used all the same.
    records.warnings.push_back(fmt::format("the decoded data were not kept: {}", error.what()));
    return records;
  }
  // Mapped from here on, so that data not in use need not stay in memory.
  auto cached = load_cached(folder, key);
  return cached ? *std::move(cached) : std::move(records);
}

}  // namespace rotrnn
