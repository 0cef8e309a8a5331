#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "rotrnn/data/task_options.h"
#include "rotrnn/spec/record_form.h"

// What a reader returns: sequences in the form they were stored in (bytes of text, 16-bit
// samples, pixels), so that large sets stay small, with what is known of each. Preprocessing turns
// them into what a network takes when a batch is put together.

namespace rotrnn {

enum class Split : uint8_t { any, train, validation, test };

/// "train", "validation" or "test"; empty for any.
const char* split_name(Split split);

/// What is known of one example besides its sequences.
struct Record {
  std::string name;           // where it comes from, unique: "train/pos/12_8.txt", "sales.csv:17"
  Split split = Split::any;   // as the data give it; any: to be chosen
  std::string group;          // examples of one group stay together; empty: no group
  std::string label;          // name of its class, when classes of sequences are the target
  std::vector<float> values;  // or the target values, as the data have them
  std::vector<int32_t> token_classes;  // or one for every step, by RecordWriter::class_number
};

/// Sequences in one piece of memory, which may be a mapped file.
class Sequences {
 public:
  struct Extent {
    int64_t begin, size;  // in bytes
  };

  Sequences() = default;
  Sequences(std::shared_ptr<const std::byte> data, std::vector<Extent> extents)
      : data_(std::move(data)), extents_(std::move(extents)) {}

  int64_t size() const { return static_cast<int64_t>(extents_.size()); }
  std::span<const std::byte> at(int64_t i) const {
    return {data_.get() + extents_[i].begin, static_cast<size_t>(extents_[i].size)};
  }
  std::vector<Extent>& extents() { return extents_; }

 private:
  std::shared_ptr<const std::byte> data_;
  std::vector<Extent> extents_;
};

/// A whole set as it was read.
struct Records {
  RecordForm form;
  Sequences sequences;  // example i has the sequences i·towers .. i·towers + towers - 1
  std::vector<Record> examples;
  std::vector<int64_t> labels;  // number of the class of every example; -1: none was given
  std::vector<std::string> classes;
  int64_t skipped = 0;                // examples that could not be used
  std::vector<std::string> warnings;  // the first few of them: what and why

  int64_t size() const { return static_cast<int64_t>(examples.size()); }
  /// Steps of a sequence.
  int64_t steps(int64_t sequence) const;
};

/// Takes examples from a reader. Examples above `memory_mb` go to an unnamed file in `folder`.
class RecordWriter {
 public:
  explicit RecordWriter(int64_t memory_mb = 1024, std::filesystem::path folder = {});
  ~RecordWriter();
  RecordWriter(const RecordWriter&) = delete;
  RecordWriter& operator=(const RecordWriter&) = delete;

  /// Says what the sequences are like, before the first add(). A second call must say the same, or
  /// is a std::runtime_error that names `where`: files of one set that do not belong together.
  void form(const RecordForm& form, const std::string& where);

  /// The classes in their order, when the task fixes them; an example of another one is an error.
  /// Otherwise classes are those seen, sorted by name, or by value when all are numbers.
  void classes(std::vector<std::string> names);

  /// Adds an example with its sequences (as many as form.towers), whose bytes are whole steps and
  /// at least one. Throws std::runtime_error with the name when they are not.
  void add(Record record, std::span<const std::span<const std::byte>> sequences);
  void add(Record record, std::span<const std::byte> sequence) {
    add(std::move(record), {&sequence, 1});
  }
  /// The same for one sequence of numbers or text.
  template <typename T>
  void add_values(Record record, std::span<const T> values) {
    add(std::move(record), std::as_bytes(values));
  }
  void add_text(Record record, std::string_view text) {
    add(std::move(record), std::as_bytes(std::span(text.data(), text.size())));
  }

  /// A number for the name of a step's class, for Record::token_classes.
  int32_t class_number(const std::string& name);

  /// Counts an example that cannot be used; `what` says where and why.
  void skip(std::string what);

  /// Everything that was added, in that order, or by name for sets that are folders of files: an
  /// archive and its unpacked folder then give the same set. Two examples of one name are an error.
  enum class Order { as_added, by_name };
  Records finish(Order order = Order::as_added);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// What a reader is asked for.
struct ReadRequest {
  const TaskOptions& options;
  std::filesystem::path path;  // folder, archive or file
  Split split = Split::any;    // what the config says that these files are
  bool labelled =
      true;  // false: to predict; labels and targets may be missing and are not looked at
  int threads = 1;
};

/// Reads all examples of a path.
using Reader = void (*)(const ReadRequest& request, RecordWriter& out);

}  // namespace rotrnn
