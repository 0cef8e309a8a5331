#include "rotrnn/cli/data/data_download.h"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

#include "rotrnn/base/message.h"
#include "rotrnn/cli/output/interrupt.h"
#include "rotrnn/cli/output/json_line.h"
#include "rotrnn/cli/output/text.h"
#include "rotrnn/data/task.h"
#include "rotrnn/data/tasks/sources.h"
#include "rotrnn/io/download.h"
#include "rotrnn/io/unpack.h"

namespace rotrnn::cli {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

struct DataDownloadOptions {
  std::string task, out = "data", url;
  int retries = 5;
  bool no_unpack = false, keep_archive = false, overwrite = false, json = false;
};

// How far a file is, on standard error: a line that moves on a terminal, now and then one
// otherwise.
class Meter {
 public:
  Meter(std::string name, bool quiet) : name_(std::move(name)), quiet_(quiet) {}
  ~Meter() {
    if (drawn_) print_message("\r\033[K");
  }

  void show(int64_t done, int64_t total) {
    const double seconds = now() - started_;
    if (quiet_ || now() - shown_ < (terminal_ ? 0.2 : 10)) return;
    shown_ = now();
    if (first_ < 0) first_ = done;
    const double rate = seconds > 0 ? static_cast<double>(done - first_) / seconds : 0;
    std::string text = fmt::format("{}  {}", name_, bytes(static_cast<double>(done)));
    if (total > 0) {
      text += fmt::format(" of {} ({})", bytes(static_cast<double>(total)),
                          percent(static_cast<double>(done) / static_cast<double>(total)));
    }
    text += fmt::format("  {}/s", bytes(rate));
    if (total > 0 && rate > 0) {
      text += fmt::format("  {} left", duration(static_cast<double>(total - done) / rate));
    }
    drawn_ = terminal_;
    print_message("{}{}{}", terminal_ ? "\r\033[K" : "", text, terminal_ ? "" : "\n");
    std::fflush(stderr);
  }

 private:
  static double now() {
    using clock = std::chrono::steady_clock;
    return std::chrono::duration<double>(clock::now().time_since_epoch()).count();
  }

  std::string name_;
  bool quiet_, terminal_ = isatty(STDERR_FILENO) == 1, drawn_ = false;
  double started_ = now(), shown_ = now();
  int64_t first_ = -1;
};

Json fetch(const DataDownloadOptions& o, const std::string& url, const fs::path& file) {
  Meter meter(file.filename().string(), o.json);
  DownloadOptions options;
  options.retries = o.retries;
  options.progress = [&](int64_t done, int64_t total) {
    meter.show(done, total);
    return !interrupted();
  };
  const Download got = download(url, file, options);
  return {{"file", file.string()},  {"url", url},
          {"bytes", got.bytes},     {"sha256", got.sha256},
          {"fetched", got.fetched}, {"resumed", got.resumed}};
}

std::string describe(const Json& file) {
  const bool fetched = file.at("fetched");
  const int64_t resumed = file.at("resumed");
  return fmt::format("{}: {} bytes, SHA-256 {}…, {}", file.at("file").get<std::string>(),
                     grouped(file.at("bytes")), file.at("sha256").get<std::string>().substr(0, 12),
                     !fetched      ? "was there and is unchanged"
                     : resumed > 0 ? fmt::format("fetched from byte {} on", grouped(resumed))
                                   : "fetched");
}

void unpack(const DataSource& source, const fs::path& archive, const fs::path& folder) {
  UnpackOptions options;
  options.wanted = [&](const std::string& name) {
    if (interrupted()) throw std::runtime_error("stopped; nothing was unpacked");
    return belongs(source, name);
  };
  unpack_archive(archive, folder, options);
  if (!fs::is_empty(folder)) return;
  fs::remove(folder);
  throw std::runtime_error(fmt::format("{}: there is no {} in it; is it the right archive?",
                                       archive.string(), fmt::join(source.parts, ", ")));
}

// Several tasks are parts of one archive, which is too large to fetch for each.
bool shared(const DataSource& source) {
  return !source.parts.empty();
}

void report(const DataDownloadOptions& o, const fs::path& path, const Json& files, bool unpacked,
            const std::string& note) {
  if (o.json) {
    print_json_line(
        Json{{"task", o.task}, {"path", path.string()}, {"unpacked", unpacked}, {"files", files}});
    return;
  }
  for (const Json& file : files) fmt::print("{}\n", describe(file));
  if (!note.empty()) fmt::print("{}\n", note);
  fmt::print("use it with --set task.path={}\n", shell_word(path.string()));
}

int run_archive(const DataDownloadOptions& o, const DataSource& source) {
  const fs::path archive = fs::path(o.out) / source.archive, folder = fs::path(o.out) / o.task;
  if (!o.no_unpack && !o.overwrite && fs::exists(folder)) {
    report(o, folder, Json::array(), false,
           fmt::format("{}: is there already; --overwrite replaces it", folder.string()));
    return 0;
  }
  const Json file = fetch(o, o.url.empty() ? source.url : o.url, archive);
  if (o.no_unpack) {
    report(o, archive, Json::array({file}), false, "");
    return 0;
  }
  unpack(source, archive, folder);
  std::string note = fmt::format("unpacked to {}", folder.string());
  if (file.at("fetched") && !o.keep_archive && !shared(source)) {
    fs::remove(archive);
    note += "; the archive is removed (--keep-archive leaves it)";
  }
  report(o, folder, Json::array({file}), true, note);
  return 0;
}

int run_files(const DataDownloadOptions& o, const DataSource& source) {
  const fs::path folder = fs::path(o.out) / o.task;
  std::string base = o.url.empty() ? source.url : o.url;
  while (base.ends_with('/')) base.pop_back();
  Json files = Json::array();
  for (const std::string& name : source.files) {
    files.push_back(fetch(o, base + "/" + name, folder / name));
  }
  report(o, folder, files, false, "");
  return 0;
}

int run_data_download(const DataDownloadOptions& o) {
  const DataSource& source = find_source(o.task);
  catch_interrupts();
  return source.archive.empty() ? run_files(o, source) : run_archive(o, source);
}

void list_json() {
  Json tasks = Json::array(), sources = Json::array();
  for (const TaskSummary& t : task_summaries()) {
    tasks.push_back({{"name", t.name}, {"summary", t.summary}, {"own", t.own}});
  }
  for (const DataSource& s : data_sources()) {
    sources.push_back({{"task", s.task}, {"what", s.what}, {"size", s.size}, {"url", s.url}});
  }
  print_json_line(Json{{"tasks", tasks}, {"downloads", sources}});
}

void list_text() {
  std::vector<std::vector<std::string>> tasks{{"task", "what"}}, own{{"your data", "what"}},
      sources{{"download", "what", "size", "from"}};
  for (const TaskSummary& t : task_summaries()) {
    (t.own ? own : tasks).push_back({t.name, t.summary});
  }
  for (const DataSource& s : data_sources()) {
    sources.push_back({s.task, s.what + (s.note.empty() ? "" : "; " + s.note), s.size, s.url});
  }
  fmt::print("{}\n{}\n{}\n", table(tasks), table(own), table(sources, {2}));
  fmt::print(
      "rotrnn data download TASK fetches and unpacks; the tasks of the Long Range Arena share one "
      "archive.\nYour own data need no download: set task.name and task.path, see "
      "docs/data.md.\n");
}

int list(bool json) {
  json ? list_json() : list_text();
  return 0;
}

}  // namespace

void add_data_list(CLI::App& data, Action& action) {
  auto json = std::make_shared<bool>(false);
  auto* command = data.add_subcommand("list", "The tasks, and where their data come from");
  command->add_flag("--json", *json, "one line of JSON");
  command->callback([json, &action] { action = [json] { return list(*json); }; });
}

void add_data_download(CLI::App& data, Action& action) {
  auto o = std::make_shared<DataDownloadOptions>();
  auto* command = data.add_subcommand(
      "download", "Fetch the data of a task; goes on where an earlier attempt ended");
  command->add_option("task", o->task, "which; rotrnn data list shows them")->required();
  command->add_option("--out", o->out, "folder; the data come to a folder named after the task")
      ->capture_default_str();
  command->add_option("--url", o->url,
                      "another place to fetch from: the file, or the folder of several files");
  command->add_option("--retries", o->retries, "after a cut connection, without any progress")
      ->capture_default_str()
      ->check(CLI::Range(0, 1000));
  command->add_flag("--no-unpack", o->no_unpack,
                    "keep the archive as it is, which training reads too");
  command->add_flag("--keep-archive", o->keep_archive, "do not remove the archive once unpacked");
  command->add_flag("--overwrite", o->overwrite, "replace a folder that is there");
  command->add_flag("--json", o->json, "one line of JSON");
  command->callback([o, &action] { action = [o] { return run_data_download(*o); }; });
}

}  // namespace rotrnn::cli
