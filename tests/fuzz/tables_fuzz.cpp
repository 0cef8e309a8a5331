// clang++ -std=c++20 -g -O1 -fsanitize=fuzzer,address,undefined -I. tests/fuzz/tables_fuzz.cpp
//   rotrnn/data/formats/tables/csv_records.cpp rotrnn/data/formats/series/series_records.cpp
//   rotrnn/data/formats/own_files.cpp rotrnn/data/records.cpp rotrnn/data/task_options.cpp
//   rotrnn/io/archive.cpp rotrnn/io/atomic_file.cpp rotrnn/io/formats/csv.cpp rotrnn/io/files.cpp
//   rotrnn/io/gzip.cpp rotrnn/base/text/nearest.cpp rotrnn/base/text/number.cpp
//   rotrnn/base/text/text_place.cpp rotrnn/base/text/utf8.cpp -lfmt -lz -larchive -o tables_fuzz
#include <unistd.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <stdexcept>

#include "rotrnn/data/formats/series/series_records.h"
#include "rotrnn/data/formats/tables/csv_records.h"

using namespace rotrnn;

static const std::filesystem::path& file() {
  static const auto path = std::filesystem::temp_directory_path() /
                           ("rotrnn-tables-fuzz-" + std::to_string(getpid()) + ".csv");
  return path;
}

// Any bytes give whole sequences of finite values with their targets, or the one
// documented error.
static void read(Reader reader, const TaskOptions& options, bool labelled) {
  Records records;
  try {
    RecordWriter out;
    reader({options, file(), Split::any, labelled, 1}, out);
    records = out.finish();
  } catch (const std::runtime_error&) {
    return;  // The only way in which a bad file may end.
  }
  for (int64_t i = 0; i < records.size(); ++i) {
    const Record& record = records.examples[static_cast<std::size_t>(i)];
    if (records.steps(i) < 1) std::abort();
    const auto bytes = records.sequences.at(i);
    for (std::size_t k = 0; records.form.element == Element::f32 && k < bytes.size(); k += 4) {
      float value = 0;
      std::memcpy(&value, bytes.data() + k, 4);
      if (!std::isfinite(value)) std::abort();
    }
    const auto classes = static_cast<int64_t>(records.classes.size());
    if (labelled && options.target == TaskTarget::label &&
        (records.labels[static_cast<std::size_t>(i)] < 0 ||
         records.labels[static_cast<std::size_t>(i)] >= classes)) {
      std::abort();
    }
    if (labelled && options.target == TaskTarget::value && record.values.size() != 1) std::abort();
    if (labelled && options.target == TaskTarget::token_label &&
        static_cast<int64_t>(record.token_classes.size()) != records.steps(i)) {
      std::abort();
    }
    for (const int32_t c : record.token_classes) {
      if (c < 0 || c >= classes) std::abort();
    }
  }
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  std::ofstream(file(), std::ios::binary | std::ios::trunc)
      .write(reinterpret_cast<const char*>(data) + 1, static_cast<std::streamsize>(size) - 1);
  TaskOptions options;
  options.name = "fuzz";
  options.target = static_cast<TaskTarget>(data[0] & 3);
  options.label_column = "l";
  options.group_column = data[0] & 4 ? "g" : "";
  options.id_column = data[0] & 8 ? "i" : "";
  if (options.target == TaskTarget::value) options.target_columns = "v";
  const bool labelled = (data[0] & 16) == 0;
  read(read_series_records, options, labelled);
  (data[0] & 32 ? options.text_column : options.series_column) = "s";
  if (options.target != TaskTarget::token_label) read(read_csv_records, options, labelled);
  return 0;
}
