#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "rotrnn/data/records.h"

// The files of users' own data: one file, a folder of them, or an archive of them.

namespace rotrnn {

/// Files at the path of a request.
class OwnFiles {
 public:
  struct File {
    std::string name;   // relative, with '/'
    std::string where;  // how messages call it
    std::string id;     // what the names of its examples start with
    Split split = Split::any;
  };

  /// The file itself, whatever its name, or the files of a folder or archive whose names end in one
  /// of `endings` in any case, with .gz or without. No such files are a std::runtime_error.
  /// The split is that of the request; failing that, in a folder or archive in which the name of a
  /// file has the word "train", what the words of a name say: train, validation (or val, dev),
  /// test.
  OwnFiles(const ReadRequest& request, std::vector<std::string_view> endings);

  /// Sorted by name.
  const std::vector<File>& files() const { return files_; }

  /// All files in the folder of a single file; the same as files() otherwise.
  std::vector<File> around() const;

  /// The bytes of a file, unpacked if they are gzip.
  std::string read(const File& file) const;

 private:
  std::vector<std::string> list(const std::filesystem::path& folder) const;
  void load_archive(const std::filesystem::path& archive);
  bool wanted(std::string_view name) const;
  File make_file(const std::string& name) const;

  std::filesystem::path path_;
  Split split_;                 // of the request
  std::filesystem::path root_;  // folder of the names, unless they are in an archive
  std::vector<std::string_view> endings_;
  std::map<std::string, std::string> packed_;  // content of an archive
  bool archive_ = false, single_ = false;
  std::vector<File> files_;
};

/// The words of a file's name in small letters: letters and digits between anything else, without
/// the endings.
std::vector<std::string> words_of(std::string_view name);

/// The split that a word means; any: none.
Split split_of_word(std::string_view word);

/// A file of values with the files that say something of each of them.
struct OwnPair {
  OwnFiles::File values;
  std::vector<OwnFiles::File> labels, groups;  // one or none
};

/// Files that belong together, by the words of their names: one has y, label(s) or target(s), or
/// group(s), the values have x, data, images ... or none of these, and all other words are the same
/// ("X_train.npy" and "y_train.npy"). For a single file the others are looked for beside it. Values
/// without labels are a std::runtime_error when `labels` are needed.
std::vector<OwnPair> pair_files(const OwnFiles& files, bool labels);

/// The labels and groups that belong to a single file and lie beside it.
std::vector<std::filesystem::path> companions(const std::filesystem::path& file);

/// std::invalid_argument unless the target is one of these, the only ones that the task has.
void require_target(const TaskOptions& options, std::vector<TaskTarget> possible);

}  // namespace rotrnn
