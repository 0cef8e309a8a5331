#include "rotrnn/fit/source.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <stdexcept>

#include "rotrnn/base/threads.h"

namespace rotrnn::fit {
namespace {

// Values of a block, and sequences: 16 MB, and enough for all threads.
constexpr size_t kBlockValues = size_t{1} << 22, kBlockSequences = 1024;

}  // namespace

Block read_block(const Source& source, std::span<const size_t> numbers, int threads) {
  Block block;
  for (const size_t i : numbers) block.offsets.push_back(block.offsets.back() + source.length(i));
  block.values.resize(block.offsets.back() * source.channels);
  std::atomic<size_t> next{0}, bad{std::numeric_limits<size_t>::max()};
  kernels::parallel_for(threads, [&](int) {
    for (size_t i; (i = next++) < numbers.size();) {
      float* to = block.values.data() + block.offsets[i] * source.channels;
      source.read(numbers[i], to);
      const float* end = block.values.data() + block.offsets[i + 1] * source.channels;
      if (std::all_of(to, block.values.data() + (end - block.values.data()),
                      [](float x) { return std::isfinite(x); })) {
        continue;
      }
      for (size_t seen = bad; numbers[i] < seen && !bad.compare_exchange_weak(seen, numbers[i]);) {
      }
    }
  });
  if (bad != std::numeric_limits<size_t>::max()) {
    throw std::runtime_error(
        fmt::format("example {}: a value that is not a finite number; fill it in or leave the "
                    "example out",
                    bad.load() + 1));
  }
  return block;
}

void for_blocks(const Source& source, std::span<const size_t> numbers, int threads,
                const std::function<void(std::span<const size_t>, const Block&)>& f) {
  for (size_t begin = 0; begin < numbers.size();) {
    size_t end = begin, values = 0;
    while (end < numbers.size() && end - begin < kBlockSequences &&
           (end == begin || values < kBlockValues)) {
      values += source.length(numbers[end++]) * source.channels;
    }
    const auto part = numbers.subspan(begin, end - begin);
    f(part, read_block(source, part, threads));
    begin = end;
  }
}

Source packed_source(std::span<const float> values, std::span<const int64_t> offsets,
                     size_t channels) {
  Source out;
  out.count = offsets.size() - 1;
  out.channels = channels;
  out.length = [offsets](size_t i) { return static_cast<size_t>(offsets[i + 1] - offsets[i]); };
  out.read = [=](size_t i, float* to) {
    const auto at = static_cast<size_t>(offsets[i]) * channels;
    const auto size = static_cast<size_t>(offsets[i + 1] - offsets[i]) * channels;
    std::copy_n(values.data() + at, size, to);
  };
  return out;
}

}  // namespace rotrnn::fit
