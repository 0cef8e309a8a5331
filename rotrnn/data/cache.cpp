#include "rotrnn/data/cache.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "rotrnn/base/parallel.h"
#include "rotrnn/data/formats/own_files.h"
#include "rotrnn/data/task_keys.h"
#include "rotrnn/io/atomic_file.h"
#include "rotrnn/io/files.h"
#include "rotrnn/io/mapped_file.h"
#include "rotrnn/io/sha.h"

namespace rotrnn {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

// 8 bytes of magic, the length of the header and of the data, the header (JSON), the data. Another
// version of the format, or of any reader, has another magic.
constexpr char kMagic[9] = "rotrec02";
constexpr int64_t kPrefix = 24;
constexpr const char* kEnding = ".records";

struct File {
  fs::path path;
  std::string name;
  int64_t bytes = 0;
};

// Files below a path, and the labels beside a single file, sorted by name.
std::vector<File> files_of(const fs::path& path) {
  std::vector<File> files;
  const auto add = [&](const fs::path& file, const std::string& name) {
    files.push_back({file, name, static_cast<int64_t>(fs::file_size(file))});
  };
  if (fs::is_regular_file(path)) {
    add(path, path.filename().string());
    for (const fs::path& file : companions(path)) add(file, file.filename().string());
  } else if (fs::is_directory(path)) {
    for (const std::string& name : list_files(path)) add(path / name, name);
  }
  std::sort(files.begin(), files.end(),
            [](const File& a, const File& b) { return a.name < b.name; });
  return files;
}

// Checksums of the contents, several at once.
std::vector<std::string> checksums(const std::vector<File>& files, int threads) {
  std::vector<std::string> sums(files.size());
  in_parallel(std::ssize(files), threads,
              [&](int64_t i) { sums[i] = sha256_of_file(files[i].path); });
  return sums;
}

// The settings that change the records, by the table of keys.
std::string settings_text(TaskOptions options, bool made) {
  std::string text;
  for (const TaskKey& k : bind_task_keys(options)) {
    if (k.affects == Affects::reading || (made && k.affects == Affects::making)) {
      text += fmt::format("{} = {}\n", k.key.name, value_text(k.key));
    }
  }
  return text;
}

Json header_of(const Records& r) {
  Json names = Json::array(), splits = Json::array(), groups = Json::array(),
       values = Json::array(), token_classes = Json::array(), sizes = Json::array();
  for (const Record& e : r.examples) {
    names.push_back(e.name);
    splits.push_back(static_cast<int>(e.split));
    groups.push_back(e.group);
    values.push_back(e.values);
    token_classes.push_back(e.token_classes);
  }
  for (int64_t i = 0; i < r.sequences.size(); ++i) sizes.push_back(r.sequences.at(i).size());
  return {{"element", static_cast<int>(r.form.element)},
          {"channels", r.form.channels},
          {"scale", r.form.scale},
          {"towers", r.form.towers},
          {"rate", r.form.rate},
          {"channel_names", r.form.names},
          {"classes", r.classes},
          {"labels", r.labels},
          {"names", names},
          {"splits", splits},
          {"groups", groups},
          {"values", values},
          {"token_classes", token_classes},
          {"sizes", sizes},
          {"skipped", r.skipped},
          {"warnings", r.warnings}};
}

void require(bool holds) {
  if (!holds) throw std::runtime_error("its header is inconsistent");
}

Records parse(const Json& h, std::shared_ptr<const std::byte> data, int64_t bytes) {
  Records r;
  require(h.at("element").get<int>() >= 0 && h.at("element").get<int>() <= 3);
  r.form = {static_cast<Element>(h.at("element").get<int>()),
            h.at("channels").get<int64_t>(),
            h.at("scale").get<double>(),
            h.at("towers").get<int64_t>(),
            h.at("rate").get<int64_t>(),
            h.at("channel_names").get<std::vector<std::string>>()};
  h.at("classes").get_to(r.classes);
  h.at("labels").get_to(r.labels);
  h.at("skipped").get_to(r.skipped);
  h.at("warnings").get_to(r.warnings);
  const size_t count = r.labels.size();
  r.examples.resize(count);
  for (size_t i = 0; i < count; ++i) {
    Record& e = r.examples[i];
    h.at("names").at(i).get_to(e.name);
    h.at("groups").at(i).get_to(e.group);
    h.at("values").at(i).get_to(e.values);
    h.at("token_classes").at(i).get_to(e.token_classes);
    e.split = static_cast<Split>(h.at("splits").at(i).get<int>());
    if (r.labels[i] >= 0) e.label = r.classes.at(static_cast<size_t>(r.labels[i]));
  }
  std::vector<Sequences::Extent> extents;
  int64_t at = 0;
  for (const Json& size : h.at("sizes")) {
    extents.push_back({at, size.get<int64_t>()});
    require(extents.back().size > 0 && extents.back().size <= bytes - at);
    at += extents.back().size;
  }
  require(at == bytes && std::ssize(extents) == static_cast<int64_t>(count) * r.form.towers);
  r.sequences = Sequences(std::move(data), std::move(extents));
  return r;
}

}  // namespace

std::string cache_key(const TaskOptions& options, int threads) {
  if (options.cache == "none") return "";
  const std::string* paths[] = {&options.path, &options.train_path, &options.validation_path,
                                &options.test_path};
  const bool made = std::all_of(std::begin(paths), std::end(paths),
                                [](const std::string* path) { return path->empty(); });
  std::string text = std::string(kMagic) + settings_text(options, made);
  int64_t bytes = 0;
  for (const std::string* path : paths) {
    text += "|";
    if (path->empty()) continue;
    const auto files = files_of(*path);
    for (const File& file : files) bytes += file.bytes;
    if (bytes < kSmallSet) continue;
    const auto sums = checksums(files, threads);
    for (size_t i = 0; i < files.size(); ++i) {
      text += fmt::format("{} {}\n", sums[i], files[i].name);
    }
  }
  if (!made && bytes < kSmallSet) return "";
  return fmt::format("{}-{}", options.name, sha256_hex(text).substr(0, 32));
}

std::optional<Records> load_cached(const fs::path& folder, const std::string& key) {
  const fs::path file = folder / (key + kEnding);
  if (!fs::exists(file)) return std::nullopt;
  MappedFile mapped;
  try {
    mapped = map_file(file);
  } catch (const std::runtime_error&) {
    return std::nullopt;
  }
  const auto& [all, size] = mapped;
  if (size < kPrefix) return std::nullopt;
  uint64_t header = 0, data = 0;
  std::memcpy(&header, all.get() + 8, 8);
  std::memcpy(&data, all.get() + 16, 8);
  if (std::memcmp(all.get(), kMagic, 8) != 0 || header > size || data > size ||
      kPrefix + header + data != size) {
    return std::nullopt;
  }
  const char* text = reinterpret_cast<const char*>(all.get()) + kPrefix;
  try {
    return parse(Json::parse(text, text + header), {all, all.get() + kPrefix + header},
                 static_cast<int64_t>(data));
  } catch (const std::exception&) {
    return std::nullopt;  // it is made again
  }
}

void save_cached(const fs::path& folder, const std::string& key, const Records& records) {
  fs::create_directories(folder);
  std::string header = header_of(records).dump(-1, ' ', false, Json::error_handler_t::replace);
  header.resize((header.size() + 63 + kPrefix) / 64 * 64 - kPrefix, ' ');  // data are aligned
  uint64_t sizes[2] = {header.size(), 0};
  for (int64_t i = 0; i < records.sequences.size(); ++i) sizes[1] += records.sequences.at(i).size();
  AtomicFile file(folder / (key + kEnding));
  file.write(kMagic, 8);
  file.write(sizes, sizeof sizes);
  file.write(header.data(), header.size());
  for (int64_t i = 0; i < records.sequences.size(); ++i) {
    const auto bytes = records.sequences.at(i);
    file.write(bytes.data(), bytes.size());
  }
  file.commit();
}

CacheSize cache_size(const fs::path& folder, bool clear) {
  CacheSize size;
  if (!fs::is_directory(folder)) return size;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (!entry.is_regular_file() || entry.path().extension() != kEnding) continue;
    ++size.sets;
    size.bytes += static_cast<int64_t>(entry.file_size());
    if (clear) fs::remove(entry.path());
  }
  return size;
}

}  // namespace rotrnn
