#include "rotrnn/cli/data/inspect_sample.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "rotrnn/plot/terminal_plot.h"

namespace rotrnn::cli {
namespace {

constexpr int64_t kColumns = 72, kRows = 4, kChannels = 4, kText = 300, kPictureColumns = 64;

int64_t side_of(int64_t pixels) {
  const auto side = static_cast<int64_t>(std::llround(std::sqrt(static_cast<double>(pixels))));
  return side * side == pixels ? side : 0;
}

int64_t width_of(const Records& records, int64_t sequence, int64_t width) {
  const int64_t pixels = records.steps(sequence);
  if (width <= 0) return side_of(pixels);
  return pixels % width == 0 ? width : 0;
}

// Characters of UTF-8, with what a terminal would not show as one space or '?'.
std::vector<std::string> characters_of(std::span<const std::byte> bytes) {
  std::vector<std::string> out;
  for (std::size_t i = 0; i < bytes.size();) {
    const auto first = static_cast<uint8_t>(bytes[i]);
    const std::size_t wanted = first < 0x80   ? 1
                               : first < 0xc2 ? 0
                               : first < 0xe0 ? 2
                               : first < 0xf0 ? 3
                               : first < 0xf5 ? 4
                                              : 0;
    std::string character;
    bool whole = wanted > 0 && i + wanted <= bytes.size();
    for (std::size_t k = 0; whole && k < wanted; ++k) {
      const auto b = static_cast<uint8_t>(bytes[i + k]);
      whole = k == 0 || (b & 0xc0) == 0x80;
      character += static_cast<char>(b);
    }
    // The control characters above ASCII start with c2 80 to c2 9f.
    const bool control = first < 0x20 || first == 0x7f ||
                         (whole && first == 0xc2 && static_cast<uint8_t>(character[1]) < 0xa0);
    i += whole ? wanted : 1;
    if (!whole) {
      out.emplace_back("?");
    } else if (!control) {
      out.push_back(std::move(character));
    } else if (out.empty() || out.back() != " ") {
      out.emplace_back(" ");
    }
  }
  return out;
}

std::vector<std::string> words_of(const Preprocessing& p, std::span<const std::byte> bytes) {
  std::vector<int64_t> tokens(static_cast<std::size_t>(p.length(bytes)));
  p.write_tokens(bytes, tokens.data());
  std::vector<std::string> out;
  for (const int64_t token : tokens) {
    if (!out.empty()) out.emplace_back(" ");
    out.push_back(token < std::ssize(p.vocabulary) ? p.vocabulary[static_cast<std::size_t>(token)]
                                                   : std::to_string(token));
  }
  return out;
}

std::vector<std::string> plot_channels(const Records& records, int64_t sequence) {
  const auto bytes = records.sequences.at(sequence);
  const int64_t channels = records.form.channels, steps = records.steps(sequence);
  std::vector<float> values(static_cast<std::size_t>(steps * channels));
  fixed_scale(records.form, 0, 1, 0).write_values(bytes, values.data());
  std::vector<std::string> out;
  for (int64_t c = 0; c < std::min(channels, kChannels); ++c) {
    std::vector<float> one;
    for (int64_t t = 0; t < steps; ++t) one.push_back(values[t * channels + c]);
    double low = INFINITY, high = -INFINITY;
    for (const float v : one) {
      if (!std::isfinite(v)) continue;
      low = std::min<double>(low, v);
      high = std::max<double>(high, v);
    }
    const auto rows = plot_series(one, kColumns, kRows);
    for (std::size_t r = 0; r < rows.size(); ++r) {
      const std::string mark = r == 0                 ? fmt::format("{:.4g}", high)
                               : r + 1 == rows.size() ? fmt::format("{:.4g}", low)
                                                      : "";
      out.push_back(fmt::format("{:>10} {}", mark, rows[r]));
    }
  }
  if (channels > kChannels)
    out.push_back(fmt::format("{:>10} {} more channels", "", channels - kChannels));
  return out;
}

}  // namespace

Look look_of(const Records& records, const Preprocessing& p, int64_t width) {
  if (p.kind == Preprocessing::Kind::ids) return Look::words;
  if (p.tokens()) return Look::text;
  const RecordForm& form = records.form;
  const bool pixels = form.element == Element::u8 && form.scale != 1 &&
                      (form.channels == 1 || form.channels == 3) && form.towers == 1;
  return pixels && records.size() > 0 && width_of(records, 0, width) > 1 ? Look::picture
                                                                         : Look::series;
}

std::string excerpt_of(const Records& records, const Preprocessing& p, int64_t sequence,
                       int64_t limit) {
  const auto bytes = records.sequences.at(sequence);
  const auto parts = p.kind == Preprocessing::Kind::ids ? words_of(p, bytes) : characters_of(bytes);
  int64_t size = 0;
  for (const std::string& part : parts) size += std::ssize(part);
  std::string head, tail;
  std::size_t first = 0, last = parts.size();
  while (first < parts.size() && (size <= limit || std::ssize(head) < limit / 2)) {
    head += parts[first++];
  }
  while (last > first && std::ssize(tail) < limit / 2) tail = parts[--last] + tail;
  return last > first ? head + " … " + tail : head + tail;
}

std::vector<std::string> lines_of(const Records& records, const Preprocessing& p, Look look,
                                  int64_t sequence, int64_t width) {
  switch (look) {
    case Look::series:
      return plot_channels(records, sequence);
    case Look::picture: {
      const Image grey = to_grey(picture_of(records, sequence, width));
      return plot_picture(grey.pixels, grey.width, kPictureColumns);
    }
    case Look::text:
    case Look::words:
      break;
  }
  return {excerpt_of(records, p, sequence, kText)};
}

Image picture_of(const Records& records, int64_t sequence, int64_t width) {
  const auto bytes = records.sequences.at(sequence);
  const int64_t across = std::max<int64_t>(1, width_of(records, sequence, width));
  Image out{across, records.steps(sequence) / across, records.form.channels, {}};
  out.pixels.reserve(bytes.size());
  for (const std::byte b : bytes) out.pixels.push_back(static_cast<uint8_t>(b));
  return out;
}

}  // namespace rotrnn::cli
