#include "rotrnn/data/tasks/pathfinder/pathfinder.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <stdexcept>
#include <unordered_map>

#include "rotrnn/base/parallel.h"
#include "rotrnn/data/shuffle.h"
#include "rotrnn/data/tasks/pathfinder/pathfinder_metadata.h"
#include "rotrnn/io/atomic_file.h"
#include "rotrnn/io/files.h"

namespace rotrnn {
namespace {

namespace fs = std::filesystem;

const RecordForm kPathfinderForm{Element::u8, 1, 1.0 / 255, 1};
constexpr int64_t kTrain = 160'000, kValidation = 20'000, kTest = 20'000;  // of the public release
constexpr std::string_view kSet = "curv_contour_length_14/";

void begin(RecordWriter& out, const std::string& where) {
  out.form(kPathfinderForm, where);
  out.classes({"0", "1"});
}

// Pictures that are made or decoded together, each by any thread.
constexpr int64_t kBlock = 1024;

// Made

// Test first, then validation, then train, so that a larger training set leaves the others alone.
void make(int64_t size, const TaskOptions& o, int threads, RecordWriter& out) {
  PathfinderOptions options = pathfinder_preset(size, o.contour_length);
  if (o.distractors >= 0) options.distractors = o.distractors;
  begin(out, o.name);
  const auto or_default = [](int64_t given, int64_t count) { return given > 0 ? given : count; };
  const int64_t test = or_default(o.counts.test, kTest);
  const int64_t held_out = test + or_default(o.counts.validation, kValidation);
  const int64_t count = held_out + or_default(o.counts.train, kTrain);
  const auto seed = static_cast<uint64_t>(o.seed);
  for (int64_t first = 0; first < count; first += kBlock) {
    std::vector<Image> pictures(static_cast<std::size_t>(std::min(kBlock, count - first)));
    in_parallel(std::ssize(pictures), threads, [&](int64_t i) {
      const auto index = static_cast<uint64_t>(first + i);
      pictures[i] = draw_pathfinder(options, draw_pathfinder_scene(options, seed, index));
    });
    for (int64_t i = 0; i < std::ssize(pictures); ++i) {
      const int64_t index = first + i;
      Record r;
      r.name = fmt::format("made:{}", index);
      r.split = index < test ? Split::test : index < held_out ? Split::validation : Split::train;
      r.label = std::to_string(pathfinder_label(seed, static_cast<uint64_t>(index)));
      out.add_values(std::move(r), std::span<const uint8_t>(pictures[i].pixels));
    }
  }
}

// Read

// Files as they come, decoded a block at a time.
class Decoder {
 public:
  struct File {
    Record record;
    std::string bytes, where;
  };

  Decoder(int64_t size, int threads, RecordWriter& out)
      : size_(size), threads_(threads), out_(out) {}

  void add(File file) {
    files_.push_back(std::move(file));
    if (std::ssize(files_) == kBlock) flush();
  }

  void flush() {
    std::vector<Image> pictures(files_.size());
    in_parallel(std::ssize(files_), threads_, [&](int64_t i) {
      if (!files_[i].bytes.empty()) pictures[i] = decode(files_[i]);
    });
    for (std::size_t i = 0; i < files_.size(); ++i) {
      if (files_[i].bytes.empty()) {  // as the public release has one
        out_.skip(files_[i].where + ": the file is empty");
      } else {
        out_.add_values(std::move(files_[i].record), std::span<const uint8_t>(pictures[i].pixels));
      }
    }
    files_.clear();
  }

 private:
  Image decode(const File& file) const {
    Image picture = to_grey(decode_image(file.bytes, file.where));
    if (picture.width != size_ || picture.height != size_) {
      throw std::runtime_error(fmt::format("{}: {} × {} pixels; this task reads {} × {}",
                                           file.where, picture.width, picture.height, size_,
                                           size_));
    }
    return picture;
  }

  int64_t size_;
  int threads_;
  RecordWriter& out_;
  std::vector<File> files_;
};

bool is_metadata(const std::string& name) {
  const std::string_view tail = name_tail(name, 2);
  return tail.starts_with("metadata/") && tail.ends_with(".npy") && !is_hidden(name);
}

// A list of the set, by the name of its file.
using Lists = std::map<std::string, std::vector<PathfinderEntry>>;

// The one set to read, by the folder in front of "metadata/". A whole release holds several, of
// other sizes and lengths.
std::string choose_set(const std::map<std::string, Lists>& sets, const ReadRequest& request,
                       int64_t size) {
  std::vector<std::string> names, fitting;
  for (const auto& [name, lists] : sets) {
    names.push_back(name.empty() ? "." : name);
    const std::string whole = request.path.filename().string() + "/" + name;
    const bool other_size = whole.find("pathfinder") != whole.npos &&
                            whole.find(fmt::format("pathfinder{}/", size)) == whole.npos;
    if (!other_size && ("/" + name).ends_with(fmt::format("/{}", kSet))) fitting.push_back(name);
  }
  if (fitting.size() == 1) return fitting.front();
  if (sets.size() == 1) return sets.begin()->first;
  throw std::runtime_error(
      sets.empty() ? fmt::format("{}: there is no metadata/K.npy in it; task.path must be the "
                                 "folder of pathfinder{}/{}{{imgs,metadata}}",
                                 request.path.string(), size, kSet)
                   : fmt::format("{}: there are several sets in it ({}); name one as task.path",
                                 request.path.string(), fmt::join(names, ", ")));
}

struct Listed {
  int label;
  const std::string* list;  // its file and line
  int64_t line;
  bool seen = false;
};

// Every picture of the set with its label, by the name of its file.
std::map<std::string, Listed> files_of_lists(const std::string& set, const Lists& lists,
                                             const ReadRequest& request) {
  std::map<std::string, Listed> out;
  for (const auto& [list, entries] : lists) {
    for (const PathfinderEntry& e : entries) {
      const auto [at, fresh] = out.try_emplace(set + e.file, Listed{e.label, &list, e.line});
      if (fresh) continue;
      throw std::runtime_error(
          fmt::format("{}:{}: {} is in {}:{} already", file_label(request.path, list), e.line,
                      e.file, file_label(request.path, *at->second.list), at->second.line));
    }
  }
  return out;
}

// 80 / 10 / 10 of the whole, or as task.validation_share and task.test_share say, at random.
std::vector<Split> choose_splits(int64_t count, const TaskOptions& o) {
  const auto share = [&](double s) {
    return static_cast<int64_t>(std::llround(s * static_cast<double>(count)));
  };
  const int64_t test = share(o.test_share), validation = share(o.validation_share);
  std::vector<Split> out(static_cast<std::size_t>(count), Split::train);
  // A stream of its own: the shared choice of a split uses those below 4.
  const auto order =
      shuffled(count, Random(static_cast<uint64_t>(o.seed), RandomSite::split, {32}));
  for (int64_t i = 0; i < std::min(count, test + validation); ++i) {
    out[static_cast<std::size_t>(order[i])] = i < test ? Split::test : Split::validation;
  }
  return out;
}

void read_set(const ReadRequest& request, int64_t size, RecordWriter& out) {
  std::map<std::string, Lists> sets;
  visit_files(request.path, is_metadata, [&](const std::string& name, std::string_view bytes) {
    const std::string set = name.substr(0, name.size() - name_tail(name, 2).size());
    sets[set][name] = parse_pathfinder_metadata(bytes, file_label(request.path, name));
  });
  const std::string set = choose_set(sets, request, size);
  auto listed_files = files_of_lists(set, sets[set], request);
  const auto splits = choose_splits(std::ssize(listed_files), request.options);
  std::unordered_map<std::string, Split> split_of;
  for (const auto& [name, listed] : listed_files) {
    split_of[name] = request.split == Split::any ? splits[split_of.size()] : request.split;
  }
  Decoder decoder(size, request.threads, out);
  visit_files(
      request.path, [&](const std::string& name) { return listed_files.contains(name); },
      [&](const std::string& name, std::string_view bytes) {
        Listed& listed = listed_files.at(name);
        listed.seen = true;
        Record r;
        r.name = name.substr(set.size());
        r.split = split_of.at(name);
        r.label = std::to_string(listed.label);
        decoder.add({std::move(r), std::string(bytes), file_label(request.path, name)});
      });
  decoder.flush();
  for (const auto& [name, listed] : listed_files) {
    if (listed.seen) continue;
    throw std::runtime_error(fmt::format("{}: there is no such picture, and {}:{} names it",
                                         file_label(request.path, name),
                                         file_label(request.path, *listed.list), listed.line));
  }
}

void read(const ReadRequest& request, int64_t size, RecordWriter& out) {
  begin(out, request.path.string());
  if (request.labelled) return read_set(request, size, out);
  Decoder decoder(size, request.threads, out);
  const auto add = [&](const std::string& name, std::string bytes, const std::string& where) {
    Record r;
    r.name = name;
    decoder.add({std::move(r), std::move(bytes), where});
  };
  const auto is_picture = [](const std::string& name) {
    return !is_hidden(name) && (name.ends_with(".png") || name.ends_with(".jpg"));
  };
  if (fs::is_regular_file(request.path) && is_picture(request.path.filename().string())) {
    add(request.path.filename().string(), read_file(request.path), request.path.string());
  } else {
    visit_files(request.path, is_picture, [&](const std::string& name, std::string_view bytes) {
      add(name, std::string(bytes), file_label(request.path, name));
    });
  }
  decoder.flush();
}

}  // namespace

void read_pathfinder(const ReadRequest& request, RecordWriter& out) {
  read(request, 32, out);
}

void make_pathfinder(const TaskOptions& options, int threads, RecordWriter& out) {
  make(32, options, threads, out);
}

void read_pathx(const ReadRequest& request, RecordWriter& out) {
  read(request, 128, out);
}

void make_pathx(const TaskOptions& options, int threads, RecordWriter& out) {
  make(128, options, threads, out);
}

Preprocessing prepare_pathfinder(const TaskOptions&, const Records& records,
                                 std::span<const int64_t>) {
  return fixed_scale(records.form, 0.5, 0.5, 0);
}

}  // namespace rotrnn
