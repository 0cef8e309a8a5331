#include "rotrnn/board/api.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>

namespace rotrnn::board {
namespace {

using Json = nlohmann::json;
using std::chrono::steady_clock;

constexpr auto kLookAgain = std::chrono::milliseconds(500);
constexpr auto kReadAgain = std::chrono::milliseconds(100);  // many may ask at once
// Of a file read for the first time; the page goes on asking until it has all of it.
constexpr size_t kBytesOfARequest = 48 << 20;
constexpr size_t kMostFollowed = 128;  // runs kept in memory
constexpr size_t kMostPoints = 20'000;

// Names of folders may be any bytes.
std::string text_of(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Json to_json(const RunInfo& run) {
  return {{"id", run.id},          {"name", run.name},   {"task", run.task},
          {"layer", run.layer},    {"seed", run.seed},   {"steps", run.steps},
          {"depth", run.depth},    {"group", run.group}, {"group_name", run.group_name},
          {"updated", run.updated}};
}

// A screen shows fewer digits than a double has; six make the answer a third as long.
void append_numbers(std::string& out, const std::vector<double>& numbers) {
  out += '[';
  for (size_t i = 0; i < numbers.size(); ++i) {
    fmt::format_to(std::back_inserter(out), "{}{:.6g}", i ? "," : "", numbers[i]);
  }
  out += ']';
}

void append_steps(std::string& out, const std::vector<double>& steps) {
  out += '[';
  for (size_t i = 0; i < steps.size(); ++i) {
    fmt::format_to(std::back_inserter(out), "{}{}", i ? "," : "", std::llround(steps[i]));
  }
  out += ']';
}

// "generation.step.details" of an earlier answer; false when there is none that still holds.
struct Cursor {
  uint64_t generation = 0;
  int64_t lines = 0, step = -1;
};

std::string cursor_text(const MetricsFile& file) {
  return fmt::format("{}.{}.{}", file.generation(), file.metrics().lines(),
                     file.metrics().last_step());
}

std::optional<Cursor> read_cursor(const std::string& text) {
  Cursor p;
  const char *at = text.data(), *end = text.data() + text.size();
  auto read = [&](auto& value) {
    const auto got = std::from_chars(at, end, value);
    const bool good = got.ec == std::errc();
    at = got.ptr;
    return good;
  };
  const auto dot = [&] { return at != end && *at++ == '.'; };
  const bool good = read(p.generation) && dot() && read(p.lines) && dot() && read(p.step);
  return good && at == end ? std::optional(p) : std::nullopt;
}

std::string series_text(const MetricsFile& file, const SeriesQuery& query) {
  const Metrics& metrics = file.metrics();
  const auto cursor = read_cursor(query.since);
  const bool append =
      cursor && cursor->generation == file.generation() && cursor->lines <= metrics.lines();
  // Lines of one step come one after the other, so the last step is sent again.
  const double from = append ? std::max(query.from, static_cast<double>(cursor->step)) : query.from;
  std::string out = fmt::format(
      R"({{"at":"{}","append":{},"step":{},"lines":{},"bad_lines":{},"details":{},"read":{},)"
      R"("size":{},"more":{},"gone":{},"series":{{)",
      cursor_text(file), append, metrics.last_step(), metrics.lines(), metrics.bad_lines(),
      metrics.details() + file.generation(), file.offset(), file.size(), file.more(),
      !file.exists());
  bool first = true;
  const bool nothing_new = append && cursor->lines == metrics.lines();
  for (const auto& [name, series] : metrics.series()) {
    if (nothing_new) break;
    Decimated d = series.decimate(from, query.to, query.points);
    if (append) {  // without the point before
      const auto skip = std::lower_bound(d.step.begin(), d.step.end(), from) - d.step.begin();
      d.step.erase(d.step.begin(), d.step.begin() + skip);
      d.value.erase(d.value.begin(), d.value.begin() + skip);
    }
    if (d.step.empty()) continue;
    fmt::format_to(std::back_inserter(out), R"({}"{}":{{"x":)", first ? "" : ",", name);
    append_steps(out, d.step);
    out += R"(,"y":)";
    append_numbers(out, d.value);
    if (!d.mean.empty()) {
      out += R"(,"mean_x":)";
      append_numbers(out, d.mean_step);
      out += R"(,"mean_y":)";
      append_numbers(out, d.mean);
    }
    out += '}';
    first = false;
  }
  return out + "}}";
}

Json to_json(const Confusion& c) {
  return {{"step", c.step}, {"classes", c.classes}, {"counts", c.counts}};
}

std::string detail_text(const MetricsFile& file, size_t most) {
  const Metrics& metrics = file.metrics();
  Json confusion = Json::object();
  for (const auto& [split, matrix] : metrics.confusion()) confusion[split] = to_json(matrix);
  std::string out = fmt::format(R"({{"details":{},"confusion":{},"lambda":[)",
                                metrics.details() + file.generation(), text_of(confusion));
  const auto& frames = metrics.lambda();
  const size_t n = frames.size(), shown = std::min(n, std::max<size_t>(most, 2));
  for (size_t i = 0; i < shown; ++i) {  // the first and the last one are among them
    const LambdaFrame& frame = frames[shown < 2 ? 0 : i * (n - 1) / (shown - 1)];
    fmt::format_to(std::back_inserter(out), R"({}{{"step":{},"layers":[)", i ? "," : "",
                   frame.step);
    for (size_t k = 0; k < frame.layers.size(); ++k) {
      out += k ? ",[" : "[";
      for (size_t j = 0; j < frame.layers[k].size(); ++j) {
        fmt::format_to(std::back_inserter(out), "{}{:.5g}", j ? "," : "",
                       static_cast<double>(frame.layers[k][j]));
      }
      out += ']';
    }
    out += "]}";
  }
  return out + "]}";
}

}  // namespace

Api::Api(const std::vector<std::filesystem::path>& roots) : finder_(roots) {}

Found Api::found() {
  const std::lock_guard lock(mutex_);
  const auto now = steady_clock::now();
  if (!looked_ || now - when_ > kLookAgain) {
    found_ = finder_.find();
    looked_ = true;
    when_ = steady_clock::now();
    std::erase_if(followed_, [&](const auto& item) {  // removed folders
      return std::none_of(found_.runs.begin(), found_.runs.end(),
                          [&](const RunInfo& run) { return run.id == item.first; });
    });
    std::erase_if(recent_, [&](const std::string& id) { return !followed_.contains(id); });
  }
  return found_;
}

std::shared_ptr<Api::Followed> Api::follow(const std::string& id, RunInfo& info) {
  {
    const std::lock_guard lock(mutex_);
    const auto known = [&] {
      return std::find_if(found_.runs.begin(), found_.runs.end(),
                          [&](const RunInfo& run) { return run.id == id; });
    };
    auto run = known();
    if (looked_ && run == found_.runs.end()) return nullptr;
    if (looked_) {
      info = *run;
      auto& followed = followed_[id];
      if (!followed) followed = std::make_shared<Followed>();
      std::erase(recent_, id);
      recent_.push_back(id);
      if (recent_.size() > kMostFollowed) {
        followed_.erase(recent_.front());
        recent_.erase(recent_.begin());
      }
      return followed_[id];
    }
  }
  found();
  return follow(id, info);
}

void Api::read_new(Followed& run, const RunInfo& info) {
  const auto now = steady_clock::now();
  if (!run.file.more() && now - run.read < kReadAgain) return;
  run.file.read(finder_.root(info.root), info.path / "metrics.jsonl", kBytesOfARequest);
  run.read = steady_clock::now();
}

std::string Api::runs() {
  const Found found = this->found();
  Json runs = Json::array(), comparisons = Json::array();
  for (const RunInfo& run : found.runs) runs.push_back(to_json(run));
  for (const CompareInfo& c : found.comparisons) {
    comparisons.push_back({{"id", c.id}, {"name", c.name}});
  }
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return text_of({{"runs", runs},
                  {"comparisons", comparisons},
                  {"all", found.all},
                  {"now", std::chrono::duration_cast<std::chrono::seconds>(now).count()}});
}

std::optional<std::string> Api::series(const std::string& id, const SeriesQuery& query) {
  RunInfo info;
  const auto run = follow(id, info);
  if (!run) return std::nullopt;
  const std::lock_guard lock(run->mutex);
  read_new(*run, info);
  SeriesQuery bounded = query;
  bounded.points = std::clamp<size_t>(query.points, 2, kMostPoints);
  return series_text(run->file, bounded);
}

std::optional<std::string> Api::detail(const std::string& id, size_t frames) {
  RunInfo info;
  const auto run = follow(id, info);
  if (!run) return std::nullopt;
  const std::lock_guard lock(run->mutex);
  read_new(*run, info);
  return detail_text(run->file, std::min<size_t>(frames, 1000));
}

std::optional<std::string> Api::comparison(const std::string& id) {
  for (const CompareInfo& info : found().comparisons) {
    if (info.id != id) continue;
    const auto table = read_comparison(finder_.root(info.root), info);
    return table ? std::optional(text_of(*table)) : std::nullopt;
  }
  return std::nullopt;
}

std::optional<Metrics> Api::metrics(const std::string& id) {
  RunInfo info;
  const auto run = follow(id, info);
  if (!run) return std::nullopt;
  const std::lock_guard lock(run->mutex);
  do read_new(*run, info);
  while (run->file.more());
  return run->file.metrics();
}

}  // namespace rotrnn::board
