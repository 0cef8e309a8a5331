#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "rotrnn/board/metrics_file.h"

// Any bytes are taken in, whole or in two parts, to the same end: bounded, in order.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t size) {
  using namespace rotrnn::board;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  MetricsFile whole, parts;
  whole.take(bytes);
  const std::size_t cut = size == 0 ? 0 : data[0] * size / 256;
  parts.take(bytes.substr(0, cut));
  parts.take(bytes.substr(cut));
  const Metrics &a = whole.metrics(), &b = parts.metrics();
  if (a.lines() != b.lines() || a.bad_lines() != b.bad_lines() || a.last_step() != b.last_step() ||
      a.generation() != b.generation() || a.lambda().size() != b.lambda().size()) {
    std::abort();
  }
  for (const auto& [name, series] : a.series()) {
    const auto found = b.series().find(name);
    if (found == b.series().end() || found->second.value() != series.value()) std::abort();
    const Decimated d = series.decimate(0, 1e18, 10);
    if (d.step.size() != d.value.size() || d.step.size() > 12) std::abort();
    for (std::size_t i = 1; i < d.step.size(); ++i) {
      if (!(d.step[i - 1] < d.step[i])) std::abort();
    }
  }
  return 0;
}
