#include "rotrnn/data/guess/detect.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <stdexcept>
#include <string_view>
#include <vector>

#include "rotrnn/base/text/ascii.h"
#include "rotrnn/io/files.h"

namespace rotrnn {
namespace {

namespace fs = std::filesystem;

// Of a folder, enough to know a set by; the public ones have up to 200,000 files.
constexpr std::size_t kMostNames = 5000;

// The names of the files with the two folders above them, which may be clues too. Breadth first:
// what is at the top says more than the depths of one class.
std::vector<std::string> names_of(const fs::path& path) {
  fs::path whole = fs::absolute(path).lexically_normal();
  if (!whole.has_filename()) whole = whole.parent_path();
  const std::string top =
      fmt::format("{}/{}/", whole.parent_path().filename().string(), whole.filename().string());
  std::vector<std::string> names;
  if (!fs::is_directory(path)) {
    const std::string name = ascii_lower(path.filename().string());
    const auto ends = [&](const char* end) { return name.ends_with(end); };
    const bool archive = ends(".tar") || ends(".tgz") || ends(".zip") || ends(".tar.gz") ||
                         ends(".tar.bz2") || ends(".tar.xz") || ends(".npz");
    if (!archive) return {name};
    for (const std::string& inside : list_files(path)) {
      if (!is_hidden(inside)) names.push_back(ascii_lower(top + inside));
    }
    return names;
  }
  std::vector<std::pair<fs::path, std::string>> folders{{path, top}};
  for (std::size_t at = 0; at < folders.size() && at < kMostNames; ++at) {
    const auto [folder, prefix] = folders[at];
    std::error_code unreadable;
    std::size_t taken = 0;
    for (const auto& entry : fs::directory_iterator(folder, unreadable)) {
      const std::string name = entry.path().filename().string();
      if (is_hidden(name)) continue;
      if (entry.is_directory()) {
        folders.emplace_back(entry.path(), prefix + name + "/");
      } else {
        names.push_back(ascii_lower(prefix + name));
        ++taken;
      }
      // A share of each folder only, so that the first of many classes does not hide the rest.
      if (taken >= kMostNames / 10) break;
    }
    if (names.size() >= kMostNames) break;
  }
  return names;
}

class Names {
 public:
  explicit Names(std::vector<std::string> names) : names_(std::move(names)) {}

  bool any(const auto& fits) const { return std::any_of(names_.begin(), names_.end(), fits); }
  bool contain(std::string_view part) const {
    return any([&](const std::string& n) { return n.find(part) != n.npos; });
  }

 private:
  std::vector<std::string> names_;
};

bool starts_as_listops(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  std::string line;
  return std::getline(in, line) && line.starts_with("Source\tTarget");
}

std::string public_task(const Names& names) {
  if (names.contain("basic_train.tsv")) return "listops";
  if (names.contain("train-images-idx3-ubyte")) return "mnist";
  if (names.contain("new_aan_pairs.")) return "retrieval";
  if (names.contain("data_batch_1.bin")) return "image";
  if (names.contain("metadata/") && names.contain("imgs/")) {
    return names.contain("pathfinder128/") ? "pathx" : "pathfinder";
  }
  if (names.contain("testing_list.txt") || names.contain("_background_noise_/")) {
    return "speech_commands";
  }
  if (names.contain("train/pos/") && names.contain("train/neg/")) return "text";
  return "";
}

// Users' files by their endings; `others` are read too but decide nothing: notes lie beside any
// data.
struct Kind {
  const char* task;
  std::vector<std::string_view> endings, others;
};

const std::vector<Kind>& kinds() {
  static const std::vector<Kind> all{
      {"ts", {".ts"}, {}},
      {"npy", {".npy"}, {}},
      {"idx", {"-ubyte", ".ubyte", ".idx"}, {}},
      {"audio_folder",
       {".wav", ".flac", ".mp3", ".ogg", ".oga", ".opus", ".aiff", ".aif", ".aifc", ".au", ".snd",
        ".w64", ".rf64", ".caf"},
       {}},
      {"image_folder", {".png", ".jpg", ".jpeg"}, {}},
      {"text_folder", {".txt", ".text"}, {".md"}},
      {"csv", {".csv", ".tsv", ".tab"}, {}},
  };
  return all;
}

bool ends_in(std::string_view name, const std::vector<std::string_view>& endings) {
  std::string plain = ascii_lower(name);
  if (plain.ends_with(".gz")) plain.resize(plain.size() - 3);
  return std::any_of(endings.begin(), endings.end(),
                     [&](auto end) { return plain.ends_with(end); });
}

}  // namespace

bool is_of_kind(std::string_view task, std::string_view name) {
  if (task == "series") task = "csv";
  return std::any_of(kinds().begin(), kinds().end(), [&](const Kind& kind) {
    return kind.task == task && (ends_in(name, kind.endings) || ends_in(name, kind.others));
  });
}

Detected detect(const fs::path& path) {
  if (!fs::exists(path)) {
    throw std::runtime_error(fmt::format("{}: there is no such file or folder", path.string()));
  }
  Detected found;
  const std::vector<std::string> all = names_of(path);
  found.files = std::ssize(all);
  for (const Kind& kind : kinds()) found.kinds.push_back({kind.task, 0});
  for (const std::string& name : all) {
    bool known = false;
    for (std::size_t k = 0; k < kinds().size(); ++k) {
      if (!ends_in(name, kinds()[k].endings)) continue;
      ++found.kinds[k].files;
      known = true;
    }
    if (!known && found.unknown.empty()) found.unknown = name.substr(name.rfind('/') + 1);
  }
  std::stable_sort(found.kinds.begin(), found.kinds.end(),
                   [](const KindCount& a, const KindCount& b) { return a.files > b.files; });
  std::erase_if(found.kinds, [](const KindCount& kind) { return kind.files == 0; });
  found.task =
      fs::is_regular_file(path) && starts_as_listops(path) ? "listops" : public_task(Names(all));
  found.own = found.task.empty();
  if (found.own && !found.kinds.empty()) found.task = found.kinds.front().task;
  return found;
}

std::string detect_task(const fs::path& path) {
  return detect(path).task;
}

}  // namespace rotrnn
