#include "rotrnn/plot/terminal_plot.h"

#include <algorithm>
#include <cmath>
#include <string_view>

namespace rotrnn {
namespace {

// Dots of a grid of braille characters.
class Dots {
 public:
  Dots(int64_t columns, int64_t rows)
      : columns_(columns), rows_(rows), cells_(static_cast<std::size_t>(columns * rows)) {}

  int64_t width() const { return 2 * columns_; }
  int64_t height() const { return 4 * rows_; }

  // Row 0 is the lowest.
  void set(int64_t x, int64_t y) {
    // Bits of Unicode's braille patterns by row from the top, left and right.
    constexpr uint8_t kBits[4][2] = {{0x01, 0x08}, {0x02, 0x10}, {0x04, 0x20}, {0x40, 0x80}};
    const int64_t top = height() - 1 - y;
    cells_[static_cast<std::size_t>(top / 4 * columns_ + x / 2)] |= kBits[top % 4][x % 2];
  }

  std::vector<std::string> lines() const {
    std::vector<std::string> out;
    for (int64_t row = 0; row < rows_; ++row) {
      std::string line;
      for (int64_t column = 0; column < columns_; ++column) {
        // U+2800 and the bits, in UTF-8.
        const uint8_t bits = cells_[static_cast<std::size_t>(row * columns_ + column)];
        line += '\xe2';
        line += static_cast<char>(0xa0 | bits >> 6);
        line += static_cast<char>(0x80 | (bits & 0x3f));
      }
      out.push_back(std::move(line));
    }
    return out;
  }

 private:
  int64_t columns_, rows_;
  std::vector<uint8_t> cells_;
};

struct Extent {
  double low = INFINITY, high = -INFINITY;

  void add(double value) {
    if (!std::isfinite(value)) return;
    low = std::min(low, value);
    high = std::max(high, value);
  }
  bool empty() const { return low > high; }
};

}  // namespace

std::vector<std::string> plot_series(std::span<const float> values, int64_t columns, int64_t rows) {
  Dots dots(columns, rows);
  Extent all;
  for (const float v : values) all.add(v);
  if (all.empty()) return dots.lines();
  const auto count = static_cast<int64_t>(values.size());
  const double spread = all.high - all.low;
  const auto height = [&](double v) -> int64_t {
    if (!(spread > 0)) return dots.height() / 2;
    return std::llround((v - all.low) / spread * static_cast<double>(dots.height() - 1));
  };
  for (int64_t x = 0; x < dots.width(); ++x) {
    // The values of this column, and where the line to the next one leaves it.
    const int64_t begin = x * count / dots.width();
    const int64_t end = std::max(begin + 1, (x + 1) * count / dots.width());
    Extent range;
    for (int64_t i = begin; i < std::min(count, end + (count > dots.width())); ++i)
      range.add(values[i]);
    if (range.empty()) continue;
    for (int64_t y = height(range.low); y <= height(range.high); ++y) dots.set(x, y);
  }
  return dots.lines();
}

std::string sparkline(std::span<const double> values, int64_t columns) {
  const int64_t count = std::ssize(values), width = std::min(count, columns);
  std::vector<double> means;
  Extent range;
  for (int64_t i = 0; i < width; ++i) {
    double sum = 0;
    int64_t finite = 0;
    for (int64_t k = i * count / width; k < (i + 1) * count / width; ++k) {
      const double value = values[static_cast<std::size_t>(k)];
      if (!std::isfinite(value)) continue;
      sum += value;
      ++finite;
    }
    means.push_back(finite > 0 ? sum / static_cast<double>(finite) : NAN);
    range.add(means.back());
  }
  std::string out;
  for (const double mean : means) {
    if (!std::isfinite(mean)) {
      out += ' ';
      continue;
    }
    const double height =
        range.high > range.low ? (mean - range.low) / (range.high - range.low) : 0.5;
    const auto block = std::min<int64_t>(7, static_cast<int64_t>(height * 8));
    out += "\xe2\x96";  // U+2581 and on
    out += static_cast<char>(0x81 + block);
  }
  return out;
}

int64_t columns_of(std::string_view text) {
  return std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xc0) != 0x80; });
}

std::vector<std::string> plot_picture(std::span<const uint8_t> pixels, int64_t width,
                                      int64_t columns) {
  constexpr std::string_view kGreys = " .:-=+*#%@";
  std::vector<std::string> out;
  if (width <= 0) return out;
  const int64_t height = static_cast<int64_t>(pixels.size()) / width;
  const int64_t step = (width + columns - 1) / columns;  // pixels of a character
  for (int64_t top = 0; top < height; top += 2 * step) {
    std::string line;
    for (int64_t left = 0; left < width; left += step) {
      int64_t sum = 0, count = 0;
      for (int64_t y = top; y < std::min(height, top + 2 * step); ++y) {
        for (int64_t x = left; x < std::min(width, left + step); ++x, ++count) {
          sum += pixels[static_cast<std::size_t>(y * width + x)];
        }
      }
      line += kGreys[static_cast<std::size_t>(sum * (std::ssize(kGreys) - 1) / (255 * count))];
    }
    line.erase(line.find_last_not_of(' ') + 1);
    out.push_back(std::move(line));
  }
  return out;
}

}  // namespace rotrnn
