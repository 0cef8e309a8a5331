#include "rotrnn/data/formats/own_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <stdexcept>

#include "rotrnn/base/text/ascii.h"
#include "rotrnn/io/archive.h"
#include "rotrnn/io/atomic_file.h"
#include "rotrnn/io/files.h"
#include "rotrnn/io/gzip.h"

namespace rotrnn {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kMostUnpacked = int64_t{1}
                                  << 32;  // a packed file may hold a thousand times its size

std::string unpacked(std::string bytes, const std::string& where) {
  if (!is_gzip(bytes)) return bytes;
  GzipSource source(bytes, where);
  std::string out;
  for (std::size_t piece = std::size_t{1} << 20;; piece = std::max(piece, out.size())) {
    const std::size_t before = out.size();
    out.resize(before + piece);
    const std::size_t there = source.read(out.data() + before, piece);
    out.resize(before + there);
    if (there < piece) return out;
    if (static_cast<int64_t>(out.size()) > kMostUnpacked) {
      throw std::runtime_error(where + ": it unpacks to more than 4 GB; unpack it yourself");
    }
  }
}

Split split_of_name(std::string_view name) {
  Split split = Split::any;
  for (const std::string& word : words_of(name)) {
    if (const Split named = split_of_word(word); named != Split::any) split = named;
  }
  return split;
}

template <std::size_t N>
bool one_of(const std::string& word, const std::array<std::string_view, N>& words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

constexpr std::array<std::string_view, 5> kLabelWords{"y", "label", "labels", "target", "targets"};
constexpr std::array<std::string_view, 2> kGroupWords{"group", "groups"};
constexpr std::array<std::string_view, 17> kOtherWords{
    "x",     "data",   "values", "inputs", "input", "series", "signals", "samples", "images",
    "image", "arrays", "npy",    "gz",     "idx",   "idx1",   "idx3",    "ubyte"};

enum class Role { values, labels, groups };

struct RoleAndKey {
  Role role = Role::values;
  std::vector<std::string> key;  // what files that belong together share
};

RoleAndKey role_of(std::string_view name) {
  RoleAndKey out;
  for (const std::string& word : words_of(name)) {
    if (one_of(word, kLabelWords)) {
      out.role = Role::labels;
    } else if (one_of(word, kGroupWords)) {
      out.role = Role::groups;
    } else if (!one_of(word, kOtherWords)) {
      out.key.push_back(word);
    }
  }
  return out;
}

}  // namespace

std::vector<std::string> words_of(std::string_view name) {
  std::vector<std::string> out(1);
  for (const char c : ascii_lower(name)) {
    const bool letter = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || (c & 0x80) != 0;
    if (letter) out.back() += c;
    if (!letter && !out.back().empty()) out.emplace_back();
  }
  if (out.back().empty()) out.pop_back();
  return out;
}

Split split_of_word(std::string_view word) {
  if (word == "train" || word == "training") return Split::train;
  if (word == "validation" || word == "valid" || word == "val" || word == "dev") {
    return Split::validation;
  }
  if (word == "test" || word == "testing" || word == "t10k") return Split::test;
  return Split::any;
}

bool OwnFiles::wanted(std::string_view name) const {
  std::string plain = ascii_lower(name);
  if (plain.ends_with(".gz")) plain.resize(plain.size() - 3);
  return !is_hidden(name) && std::any_of(endings_.begin(), endings_.end(),
                                         [&](std::string_view e) { return plain.ends_with(e); });
}

std::vector<std::string> OwnFiles::list(const fs::path& folder) const {
  std::vector<std::string> out;
  for (const std::string& name : list_files(folder)) {
    if (!wanted(name)) continue;
    // A file beside its packed form counts once.
    const bool twice =
        name.ends_with(".gz") && fs::exists(folder / name.substr(0, name.size() - 3));
    if (!twice) out.push_back(name);
  }
  return out;
}

void OwnFiles::load_archive(const fs::path& archive) {
  int64_t total = 0;
  visit_files(
      archive, [&](const std::string& name) { return wanted(name); },
      [&](const std::string& name, std::string_view bytes) {
        total += std::ssize(bytes);
        if (total > kMostUnpacked) {
          throw std::runtime_error(
              archive.string() + ": its files are larger than 4 GB; unpack it and use the folder");
        }
        if (!packed_.emplace(name, bytes).second) {
          throw std::runtime_error(file_label(archive, name) + ": it occurs twice");
        }
      });
}

OwnFiles::File OwnFiles::make_file(const std::string& name) const {
  const bool given = split_ != Split::any;
  return {name, archive_ ? file_label(path_, name) : (root_ / name).string(),
          given ? fmt::format("{}/{}", split_name(split_), name) : name, split_};
}

OwnFiles::OwnFiles(const ReadRequest& request, std::vector<std::string_view> endings)
    : path_(request.path), split_(request.split), endings_(std::move(endings)) {
  std::vector<std::string> names;
  const std::string own_name = path_.filename().string();
  if (fs::is_directory(path_)) {
    root_ = path_;
    names = list(path_);
  } else if (!fs::exists(path_)) {
    throw std::runtime_error(path_.string() + ": there is no such file or folder; check task.path");
  } else if (!wanted(own_name) && is_archive(path_)) {
    archive_ = true;
    load_archive(path_);
    for (const auto& [name, bytes] : packed_) names.push_back(name);
  } else {
    single_ = true;
    root_ = path_.parent_path();
    files_.push_back(make_file(own_name));
    return;
  }
  if (names.empty()) {
    throw std::runtime_error(fmt::format("{}: no file in it has a name that ends in {}",
                                         path_.string(), fmt::join(endings_, " or ")));
  }
  const bool named =
      split_ == Split::any && std::any_of(names.begin(), names.end(), [](const std::string& name) {
        return split_of_name(name) == Split::train;
      });
  for (const std::string& name : names) {
    files_.push_back(make_file(name));
    if (named) files_.back().split = split_of_name(name);
  }
}

std::vector<OwnFiles::File> OwnFiles::around() const {
  if (!single_) return files_;
  std::vector<File> out;
  for (const fs::directory_entry& entry :
       fs::directory_iterator(root_.empty() ? fs::path(".") : root_)) {
    const std::string name = entry.path().filename().string();
    if (wanted(name) && entry.is_regular_file()) out.push_back(make_file(name));
  }
  std::sort(out.begin(), out.end(), [](const File& a, const File& b) { return a.name < b.name; });
  return out;
}

std::string OwnFiles::read(const File& file) const {
  return unpacked(archive_ ? packed_.at(file.name) : read_file(root_ / file.name), file.where);
}

std::vector<OwnPair> pair_files(const OwnFiles& files, bool labels) {
  std::map<std::vector<std::string>, std::vector<OwnFiles::File>> of_role[3];  // by key
  for (const OwnFiles::File& file : files.around()) {
    const RoleAndKey its = role_of(file.name);
    auto& same = of_role[static_cast<std::size_t>(its.role)][its.key];
    if (its.role != Role::values && !same.empty()) {
      throw std::runtime_error(fmt::format(
          "{}: it and {} belong to the same values; leave one of them", file.where, same[0].where));
    }
    same.push_back(file);
  }
  std::vector<OwnPair> out;
  for (const OwnFiles::File& file : files.files()) {
    const RoleAndKey own = role_of(file.name);
    if (own.role != Role::values) continue;
    OwnPair pair{file, of_role[1][own.key], of_role[2][own.key]};
    if (labels && pair.labels.empty()) {
      throw std::runtime_error(
          fmt::format("{}: there are no labels for it; they are a file of the same name with the "
                      "word labels, such as X_train and y_train, or train and train_labels",
                      file.where));
    }
    out.push_back(std::move(pair));
  }
  if (out.empty()) {
    throw std::runtime_error(fmt::format("{}: these are labels, and no file holds their values",
                                         files.files()[0].where));
  }
  return out;
}

std::vector<fs::path> companions(const fs::path& file) {
  const RoleAndKey own = role_of(file.filename().string());
  std::vector<fs::path> out;
  if (own.role != Role::values || !fs::is_regular_file(file)) return out;
  const fs::path folder = file.parent_path();
  for (const fs::directory_entry& entry :
       fs::directory_iterator(folder.empty() ? fs::path(".") : folder)) {
    const RoleAndKey its = role_of(entry.path().filename().string());
    if (its.role != Role::values && its.key == own.key && entry.is_regular_file()) {
      out.push_back(entry.path());
    }
  }
  std::sort(out.begin(), out.end());
  return out;
}

void require_target(const TaskOptions& options, std::vector<TaskTarget> possible) {
  if (std::find(possible.begin(), possible.end(), options.target) != possible.end()) return;
  std::vector<std::string_view> names;
  names.reserve(possible.size());
  for (const TaskTarget target : possible) names.emplace_back(name_of(target));
  throw std::invalid_argument(fmt::format("task.target: task \"{}\" can predict {}, not \"{}\"",
                                          options.name, fmt::join(names, ", "),
                                          name_of(options.target)));
}

}  // namespace rotrnn
