#pragma once

#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "rotrnn/data/records.h"

namespace rotrnn::test {

/// What a reader makes of a path.
inline Records read_records(Reader reader, const TaskOptions& options,
                            const std::filesystem::path& path, bool labelled = true,
                            Split split = Split::any) {
  RecordWriter out;
  reader({options, path, split, labelled, 1}, out);
  return out.finish();
}

/// A sequence as numbers of its stored type.
template <typename T>
std::vector<T> numbers(const Records& records, int64_t sequence) {
  const auto bytes = records.sequences.at(sequence);
  std::vector<T> out(bytes.size() / sizeof(T));
  std::memcpy(out.data(), bytes.data(), bytes.size());
  return out;
}

inline std::string text(const Records& records, int64_t sequence) {
  const auto bytes = records.sequences.at(sequence);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// The names of the classes of all examples; "-" where there is none.
inline std::vector<std::string> labels(const Records& records) {
  std::vector<std::string> out;
  for (const int64_t label : records.labels) {
    out.push_back(label < 0 ? "-" : records.classes[static_cast<size_t>(label)]);
  }
  return out;
}

inline std::vector<std::string> names(const Records& records) {
  std::vector<std::string> out;
  for (const Record& record : records.examples) out.push_back(record.name);
  return out;
}

inline std::vector<Split> splits(const Records& records) {
  std::vector<Split> out;
  for (const Record& record : records.examples) out.push_back(record.split);
  return out;
}

}  // namespace rotrnn::test
