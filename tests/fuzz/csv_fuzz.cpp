// clang++ -std=c++20 -g -O1 -fsanitize=fuzzer,address -I. tests/fuzz/csv_fuzz.cpp
//   rotrnn/io/formats/csv.cpp rotrnn/base/text/number.cpp rotrnn/base/text/text_place.cpp
//   rotrnn/base/text/nearest.cpp rotrnn/base/text/utf8.cpp -lfmt -o csv_fuzz
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "rotrnn/io/formats/csv.h"

using Rows = std::vector<std::vector<std::string>>;

static Rows read(std::string_view content, rotrnn::CsvOptions options) {
  rotrnn::CsvReader reader(content, "fuzz", options);
  Rows rows;
  int64_t line = 0;
  for (std::vector<std::string_view> fields; reader.next(fields);) {
    if (fields.empty() || reader.place().line <= line) std::abort();
    line = reader.place().line;
    rows.emplace_back(fields.begin(), fields.end());
  }
  return rows;
}

// Any bytes give rows, which written again give the same rows, or the one documented error.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t size) {
  const std::string_view content(reinterpret_cast<const char*>(data), size);
  for (const rotrnn::CsvOptions options :
       {rotrnn::CsvOptions{',', true}, rotrnn::CsvOptions{';', true},
        rotrnn::CsvOptions{'\t', false}}) {
    try {
      const Rows rows = read(content, options);
      if (options.quotes) {
        std::string again;
        for (const auto& row : rows) {
          for (const std::string& field : row) {
            if (&field != &row.front()) again += options.separator;
            again += '"';
            for (const char c : field) again += c == '"' ? std::string("\"\"") : std::string(1, c);
            again += '"';
          }
          again += '\n';
        }
        if (read(again, options) != rows) std::abort();
      }
    } catch (const std::runtime_error&) {
      // The only way in which a bad file may end.
    }
    try {
      rotrnn::CsvTable table(content, "fuzz", options);
      const std::size_t column = table.column("a", "task.label");
      for (std::vector<std::string_view> row; table.next(row);) table.value(row.at(column), column);
    } catch (const std::runtime_error&) {
    }
  }
  return 0;
}
