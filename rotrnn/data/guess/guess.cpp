#include "rotrnn/data/guess/guess.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <set>
#include <stdexcept>

#include "rotrnn/base/fail.h"
#include "rotrnn/base/text/ascii.h"
#include "rotrnn/data/formats/own_files.h"
#include "rotrnn/data/guess/detect.h"
#include "rotrnn/data/guess/guess_names.h"
#include "rotrnn/data/guess/guess_table.h"
#include "rotrnn/data/records.h"
#include "rotrnn/data/task_table.h"
#include "rotrnn/io/files.h"
#include "rotrnn/io/formats/npy.h"
#include "rotrnn/io/formats/ts.h"

namespace rotrnn {
namespace {

namespace fs = std::filesystem;

const char* files_of(const std::string& task) {
  if (task == "audio_folder") return "sound files";
  if (task == "image_folder") return "pictures";
  if (task == "text_folder") return "text files";
  if (task == "npy") return "NumPy arrays";
  if (task == "ts") return ".ts files";
  if (task == "idx") return "IDX files";
  return "tables";
}

std::string some_of(const std::vector<std::string>& names) {
  constexpr std::size_t kMost = 4;
  const std::vector<std::string> first(
      names.begin(), names.begin() + static_cast<std::ptrdiff_t>(std::min(kMost, names.size())));
  return fmt::format("{}{}", fmt::join(first, ", "), names.size() > kMost ? ", …" : "");
}

void check_readable(const fs::path& path) {
  std::error_code error;
  const bool folder = fs::is_directory(path, error);
  if (folder) fs::directory_iterator(path, error);
  if (error) fail(path.string(), fmt::format("it cannot be read: {}", error.message()));
  if (!folder && ::access(path.c_str(), R_OK) != 0) {
    fail(path.string(), fmt::format("it cannot be read: {}", std::strerror(errno)));
  }
}

// The one kind that is there.
std::string kind_of(const fs::path& path, const Detected& found) {
  if (found.files == 0) {
    fail(path.string(), fs::is_directory(path) ? "the folder is empty" : "the file is empty");
  }
  if (found.kinds.empty()) {
    fail(path.string(),
         fmt::format("none of its {} file(s), such as {}, is of a kind that is read here: "
                     "sound, pictures, texts (.txt), tables (.csv, .tsv), arrays (.npy, .npz), "
                     ".ts, IDX; docs/data.md. --task NAME says what they are",
                     found.files, found.unknown));
  }
  const KindCount& most = found.kinds[0];
  for (const KindCount& other : found.kinds) {
    // A few tables or texts beside other files are taken for notes about them.
    const bool notes = (other.task == "text_folder" || other.task == "csv") && other.files <= 3;
    if (other.task != most.task && !notes && other.files * 5 > most.files) {
      fail(path.string(),
           fmt::format("{} {} and {} {} are mixed in it; name a folder with one kind, or say "
                       "which to take with --task {} or --task {}",
                       most.files, files_of(most.task), other.files, files_of(other.task),
                       most.task, other.task));
    }
  }
  return most.task;
}

std::string first_folder(const std::string& name) {
  const std::size_t slash = name.find('/');
  return slash == name.npos ? "" : name.substr(0, slash);
}

// Classes by folder, or from the names when all files are in one folder.
Guess guess_folder(const fs::path& path, const std::string& task, const TaskOptions& given) {
  Guess guess;
  guess.task.name = task;
  std::vector<std::string> names;
  for (std::string& name : list_files(path)) {
    if (!is_hidden(name) && is_of_kind(task, name)) names.push_back(std::move(name));
  }
  if (names.empty()) fail(path.string(), fmt::format("there are no {} in it", files_of(task)));
  const std::size_t common = common_folder(names).size();
  std::set<std::string> folders;
  std::vector<std::string> loose;
  for (std::string& name : names) {
    name.erase(0, common);
    folders.insert(first_folder(name));
    if (first_folder(name).empty()) loose.push_back(name);
  }
  guess.reasons.push_back({"task.name", files_of(task)});
  if (!given.label_pattern.empty()) return guess;
  if (loose.empty()) {
    guess.reasons.back().why += ", one folder per class";
    return guess;
  }
  if (loose.size() < names.size()) {
    fail(
        path.string(),
        fmt::format("{} of {} {} are not in the folder of a class, such as {}; move them into one, "
                    "or elsewhere",
                    loose.size(), names.size(), files_of(task), loose[0]));
  }
  const NameGuess by_name = guess_names(loose);
  if (by_name.pattern.empty()) {
    fail(path.string(),
         fmt::format(
             "its {} {}, such as {}, are in one folder, and the names do not show a class; "
             "put them into one folder per class, or extract the class from the names: --set "
             "task.label_pattern=REGEX",
             loose.size(), files_of(task), loose[0]));
  }
  guess.task.label_pattern = by_name.pattern;
  guess.reasons.push_back({"task.label_pattern",
                           fmt::format("the class from names such as {}: {} classes, {}", loose[0],
                                       by_name.classes.size(), some_of(by_name.classes))});
  if (!by_name.other_pattern.empty()) {
    guess.advice.push_back(fmt::format(
        "group_pattern = '{}' with split = \"group\" keeps {} each in one split, which is the "
        "better test if they are speakers or the like",
        by_name.other_pattern, some_of(by_name.others)));
  }
  return guess;
}

void forecast(Guess& guess) {
  guess.task.target = TaskTarget::forecast;
  guess.reasons.push_back({"task.target", "there are no labels: the next values are predicted"});
}

Guess guess_npy(const fs::path& path) {
  Guess guess;
  guess.task.name = "npy";
  guess.reasons.push_back({"task.name", "NumPy arrays [count, time, channels] or [count, time]"});
  const TaskOptions none;
  const OwnFiles files({none, path}, {".npy"});
  const OwnPair pair = pair_files(files, false).front();
  if (pair.labels.empty()) {
    forecast(guess);
    return guess;
  }
  const NpyArray labels(files.read(pair.labels[0]), pair.labels[0].where);
  const std::vector<double> numbers = labels.numbers();
  const bool whole =
      std::all_of(numbers.begin(), numbers.end(), [](double x) { return x == std::floor(x); });
  const std::size_t different = std::set<double>(numbers.begin(), numbers.end()).size();
  if (!whole || different * 3 > numbers.size()) {
    guess.task.target = TaskTarget::value;
    guess.reasons.push_back(
        {"task.target", fmt::format("{} holds values, not classes", pair.labels[0].name)});
  } else if (labels.shape().size() == 2) {
    guess.task.target = TaskTarget::token_label;
    guess.reasons.push_back(
        {"task.target", fmt::format("{} has a class for every step", pair.labels[0].name)});
  }
  return guess;
}

Guess guess_ts(const fs::path& path) {
  Guess guess;
  guess.task.name = "ts";
  guess.reasons.push_back({"task.name", "time series of the UCR and UEA archives' format"});
  const TaskOptions none;
  const OwnFiles files({none, path}, {".ts"});
  const std::string content = files.read(files.files().front());
  const TsHeader header = TsReader(content, files.files().front().where).header();
  if (header.targeted) {
    guess.task.target = TaskTarget::value;
    guess.reasons.push_back({"task.target", "@targetLabel: values, not classes"});
  } else if (!header.labelled) {
    forecast(guess);
  }
  return guess;
}

Guess guess_tables(const fs::path& path, const TaskOptions& given) {
  const TaskOptions none;
  const OwnFiles files({none, path}, {".csv", ".tsv", ".tab"});
  // The training data, if the names show which they are.
  const auto& all = files.files();
  const auto train = std::find_if(all.begin(), all.end(), [](const OwnFiles::File& file) {
    return file.split == Split::train;
  });
  const OwnFiles::File& file = train == all.end() ? all.front() : *train;
  const auto same = std::count_if(all.begin(), all.end(), [&](const OwnFiles::File& other) {
    return other.split == file.split;
  });
  return guess_table(files.read(file), file.where, static_cast<std::size_t>(same), given);
}

}  // namespace

Guess guess_task(const fs::path& path, const std::string& task, const TaskOptions& given) {
  const Detected found = detect(path);
  check_readable(path);
  const bool own = task.empty() ? found.own : find_task(task).own;
  const std::string kind = !task.empty() ? task : own ? kind_of(path, found) : found.task;
  Guess guess;
  if (!own) {
    guess.task.name = kind;
    guess.reasons.push_back({"task.name", find_task(kind).summary});
  } else if (kind == "npy") {
    guess = guess_npy(path);
  } else if (kind == "ts") {
    guess = guess_ts(path);
  } else if (kind == "csv" || kind == "series") {
    guess = guess_tables(path, given);
  } else if (kind == "idx") {
    guess.task.name = kind;
    guess.reasons.push_back({"task.name", "images and labels in IDX files, pixel by pixel"});
  } else {
    guess = guess_folder(path, kind, given);
  }
  guess.task.path = path.string();
  guess.reasons.insert(guess.reasons.begin() + 1,
                       {"task.path", "relative to the folder where the program is started"});
  return guess;
}

}  // namespace rotrnn
