// clang++ -std=c++20 -g -O1 -fsanitize=fuzzer,address,undefined -I. tests/fuzz/ts_fuzz.cpp
//   rotrnn/io/formats/ts.cpp rotrnn/base/text/number.cpp rotrnn/base/text/text_place.cpp
//   rotrnn/base/text/nearest.cpp rotrnn/base/text/utf8.cpp -lfmt -o ts_fuzz
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <stdexcept>
#include <string_view>

#include "rotrnn/io/formats/ts.h"

// Any bytes give series of finite values of the sizes that are said, or the one documented error.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t size) {
  try {
    rotrnn::TsReader reader({reinterpret_cast<const char*>(data), size}, "fuzz");
    for (rotrnn::TsSeries series; reader.next(series);) {
      const rotrnn::TsHeader& header = reader.header();
      const auto count = static_cast<int64_t>(series.values.size());
      if (series.length < 1 || header.dimensions < 1) std::abort();
      if (count != series.length * header.dimensions) std::abort();
      if (header.length > 0 && series.length != header.length) std::abort();
      for (const float value : series.values) {
        if (!std::isfinite(value)) std::abort();
      }
      if (header.labelled && (series.label < 0 || series.label >= std::ssize(header.classes))) {
        std::abort();
      }
      if (header.targeted && !std::isfinite(series.target)) std::abort();
    }
  } catch (const std::runtime_error&) {
    // The only way in which a bad file may end.
  }
  return 0;
}
