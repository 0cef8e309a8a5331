#include "rotrnn/data/detect.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <stdexcept>
#include <string_view>
#include <vector>

#include "rotrnn/io/ascii.h"
#include "rotrnn/io/files.h"

namespace rotrnn {
namespace {

namespace fs = std::filesystem;

// Of a folder, enough to know a set by; the public ones have up to 200,000 files.
constexpr std::size_t kMostNames = 5000;

// The names of the files with the two folders above them, which may tell too. Breadth first: what
// stands at the top says more than the depth of one class.
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
                         ends(".tar.bz2") || ends(".tar.xz");
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
  std::size_t ending(std::initializer_list<std::string_view> ends) const {
    return static_cast<std::size_t>(
        std::count_if(names_.begin(), names_.end(), [&](const std::string& n) {
          return std::any_of(ends.begin(), ends.end(), [&](auto end) { return n.ends_with(end); });
        }));
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

// The kind that most files are of.
std::string own_kind(const Names& names) {
  struct Kind {
    const char* name;
    std::size_t files;
  };
  const Kind kinds[] = {
      {"ts", names.ending({".ts", ".ts.gz"})},
      {"npy", names.ending({".npy", ".npy.gz"})},
      {"idx", names.ending({"-ubyte", "-ubyte.gz", ".idx", ".idx.gz"})},
      {"audio_folder", names.ending({".wav", ".flac", ".ogg", ".aiff", ".aif", ".au", ".mp3"})},
      {"image_folder", names.ending({".png", ".jpg", ".jpeg"})},
      {"text_folder", names.ending({".txt"})},
      {"csv", names.ending({".csv", ".csv.gz", ".tsv", ".tsv.gz"})},
  };
  const auto* best = std::max_element(std::begin(kinds), std::end(kinds),
                                      [](auto& a, auto& b) { return a.files < b.files; });
  return best->files > 0 ? best->name : "";
}

}  // namespace

std::string detect_task(const fs::path& path) {
  if (!fs::exists(path)) {
    throw std::runtime_error(fmt::format("{}: there is no such file or folder", path.string()));
  }
  if (fs::is_regular_file(path) && starts_as_listops(path)) return "listops";
  const Names names(names_of(path));
  const std::string task = public_task(names);
  return task.empty() ? own_kind(names) : task;
}

}  // namespace rotrnn
