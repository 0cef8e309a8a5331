#include "rotrnn/data/records.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <numeric>
#include <stdexcept>
#include <unordered_map>
#include <unordered_set>

#include "rotrnn/base/text/number.h"

namespace rotrnn {
namespace {

constexpr size_t kWarnings = 5;  // that are kept with their text

// Bytes that grow in memory up to a limit, and from there on in a file without a name.
class Spool {
 public:
  Spool(int64_t limit, std::filesystem::path folder) : limit_(limit), folder_(std::move(folder)) {}
  ~Spool() {
    if (file_ >= 0) close(file_);
  }

  void append(std::span<const std::byte> bytes) {
    buffer_.insert(buffer_.end(), bytes.begin(), bytes.end());
    size_ += static_cast<int64_t>(bytes.size());
    if (file_ < 0 && size_ > limit_) open();
    if (file_ >= 0 && buffer_.size() >= kPiece) flush();
  }

  std::shared_ptr<const std::byte> finish() {
    if (file_ < 0) {
      buffer_.shrink_to_fit();
      auto kept = std::make_shared<std::vector<std::byte>>(std::move(buffer_));
      return {kept, kept->data()};
    }
    flush();
    const auto size = static_cast<size_t>(size_);
    void* at = mmap(nullptr, size, PROT_READ, MAP_SHARED, file_, 0);
    if (at == MAP_FAILED) fail("cannot be mapped");
    return {static_cast<const std::byte*>(at),
            [size](const std::byte* p) { munmap(const_cast<std::byte*>(p), size); }};
  }

 private:
  static constexpr size_t kPiece = size_t{1} << 22;

  [[noreturn]] void fail(const char* what) const {
    throw std::runtime_error(
        fmt::format("{}: a temporary file {}: {}", folder_.string(), what, std::strerror(errno)));
  }

  void open() {
    if (folder_.empty()) folder_ = std::filesystem::temp_directory_path();
    std::filesystem::create_directories(folder_);
    file_ = ::open(folder_.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (file_ < 0) fail("for decoded data cannot be made");
  }

  void flush() {
    const std::byte* at = buffer_.data();
    for (size_t left = buffer_.size(); left > 0;) {
      const ssize_t n = ::write(file_, at, left);
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) fail("for decoded data cannot be written");
      at += n;
      left -= static_cast<size_t>(n);
    }
    buffer_.clear();
  }

  int64_t limit_, size_ = 0;
  std::filesystem::path folder_;
  std::vector<std::byte> buffer_;
  int file_ = -1;
};

// Numbers from class numbers as they were given to class numbers in order.
std::vector<int64_t> sort_classes(std::vector<std::string>& names) {
  std::vector<double> values;
  for (const std::string& name : names) {
    if (const auto value = to_number(name)) values.push_back(*value);
  }
  const bool numbers = values.size() == names.size();
  std::vector<size_t> order(names.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    if (numbers && values[a] != values[b]) return values[a] < values[b];
    return names[a] < names[b];
  });
  std::vector<std::string> sorted;
  std::vector<int64_t> place(names.size());
  for (const size_t i : order) {
    place[i] = static_cast<int64_t>(sorted.size());
    sorted.push_back(names[i]);
  }
  names = std::move(sorted);
  return place;
}

// Only what is known of the sequences moves, not their bytes.
void sort_by_name(Records& r) {
  std::vector<int64_t> order(r.examples.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(),
            [&](int64_t a, int64_t b) { return r.examples[a].name < r.examples[b].name; });
  std::vector<Record> examples;
  std::vector<int64_t> labels;
  std::vector<Sequences::Extent> extents;
  for (const int64_t i : order) {
    examples.push_back(std::move(r.examples[i]));
    labels.push_back(r.labels[i]);
    for (int64_t k = 0; k < r.form.towers; ++k) {
      extents.push_back(r.sequences.extents()[i * r.form.towers + k]);
    }
  }
  r.examples = std::move(examples);
  r.labels = std::move(labels);
  r.sequences.extents() = std::move(extents);
}

}  // namespace

const char* split_name(Split split) {
  constexpr const char* kNames[] = {"", "train", "validation", "test"};
  return kNames[static_cast<size_t>(split)];
}

int64_t Records::steps(int64_t sequence) const {
  return std::ssize(sequences.at(sequence)) / (element_size(form.element) * form.channels);
}

struct RecordWriter::Impl {
  Impl(int64_t memory_mb, std::filesystem::path folder)
      : spool(memory_mb << 20, std::move(folder)) {}

  int64_t number_of(const std::string& name) {
    const auto [found, fresh] = numbers.try_emplace(name, std::ssize(records.classes));
    if (fresh) records.classes.push_back(name);
    return found->second;
  }

  Records records;
  Spool spool;
  std::vector<Sequences::Extent> extents;
  int64_t bytes = 0;
  std::unordered_map<std::string, int64_t> numbers;  // of the classes
  bool formed = false, fixed_classes = false;
};

RecordWriter::RecordWriter(int64_t memory_mb, std::filesystem::path folder)
    : impl_(std::make_unique<Impl>(memory_mb, std::move(folder))) {}
RecordWriter::~RecordWriter() = default;

void RecordWriter::form(const RecordForm& form, const std::string& where) {
  RecordForm& kept = impl_->records.form;
  if (impl_->formed && !(kept == form)) {
    throw std::runtime_error(
        kept.channels != form.channels
            ? fmt::format("{}: {} channels, but the files before it have {}; all sequences of a "
                          "set need the same channels",
                          where, form.channels, kept.channels)
        : kept.rate != form.rate
            ? fmt::format(
                  "{}: {} samples per second, the files before it have {}; resample them to "
                  "one rate",
                  where, form.rate, kept.rate)
        : kept.names != form.names
            ? fmt::format("{}: its channels are {}, those of the files before it {}; name them in "
                          "task.channel_columns",
                          where, fmt::join(form.names, ", "), fmt::join(kept.names, ", "))
            : fmt::format("{}: its numbers have another type than those of the files before it; "
                          "convert them all to one format",
                          where));
  }
  kept = form;
  impl_->formed = true;
}

void RecordWriter::classes(std::vector<std::string> names) {
  for (const std::string& name : names) impl_->number_of(name);
  impl_->fixed_classes = true;
}

int32_t RecordWriter::class_number(const std::string& name) {
  const auto before = std::ssize(impl_->records.classes);
  const int64_t number = impl_->number_of(name);
  if (number == before && impl_->fixed_classes) {
    throw std::runtime_error(fmt::format("\"{}\" is not one of the classes", name));
  }
  return static_cast<int32_t>(number);
}

void RecordWriter::add(Record record, std::span<const std::span<const std::byte>> sequences) {
  Records& r = impl_->records;
  if (!impl_->formed || std::ssize(sequences) != r.form.towers) {
    throw std::logic_error(fmt::format("{}: {} sequences for an example of {}", record.name,
                                       sequences.size(), r.form.towers));
  }
  const int64_t step = element_size(r.form.element) * r.form.channels;
  for (const auto& sequence : sequences) {
    if (sequence.empty()) {
      throw std::runtime_error(fmt::format("{}: it is empty", record.name));
    }
    if (std::ssize(sequence) % step != 0) {
      throw std::logic_error(fmt::format("{}: {} bytes are not whole steps of {}", record.name,
                                         sequence.size(), step));
    }
  }
  if (!record.token_classes.empty() &&
      std::ssize(record.token_classes) * step != std::ssize(sequences[0])) {
    throw std::logic_error(fmt::format("{}: {} labels for {} steps", record.name,
                                       record.token_classes.size(),
                                       std::ssize(sequences[0]) / step));
  }
  int64_t label = -1;
  if (!record.label.empty()) {
    const auto known = std::ssize(r.classes);
    label = impl_->number_of(record.label);
    if (label == known && impl_->fixed_classes) {
      throw std::runtime_error(
          fmt::format("{}: the label \"{}\" is not one of {}", record.name, record.label,
                      fmt::join(r.classes.begin(), r.classes.end() - 1, ", ")));
    }
  }
  for (const auto& sequence : sequences) {
    impl_->spool.append(sequence);
    impl_->extents.push_back({impl_->bytes, std::ssize(sequence)});
    impl_->bytes += std::ssize(sequence);
  }
  r.labels.push_back(label);
  r.examples.push_back(std::move(record));
}

void RecordWriter::skip(std::string what) {
  Records& r = impl_->records;
  ++r.skipped;
  if (r.warnings.size() < kWarnings) r.warnings.push_back(std::move(what));
}

Records RecordWriter::finish(Order order) {
  Records out = std::move(impl_->records);
  out.sequences = Sequences(impl_->spool.finish(), std::move(impl_->extents));
  std::unordered_set<std::string_view> names;
  for (const Record& r : out.examples) {
    if (!names.insert(r.name).second) {
      throw std::runtime_error(fmt::format("{}: there are two examples of this name", r.name));
    }
  }
  if (!impl_->fixed_classes) {
    const auto place = sort_classes(out.classes);
    for (int64_t& label : out.labels) label = label < 0 ? label : place[label];
    for (Record& r : out.examples) {
      for (int32_t& c : r.token_classes) c = static_cast<int32_t>(place[c]);
    }
  }
  if (order == Order::by_name) sort_by_name(out);
  return out;
}

}  // namespace rotrnn
