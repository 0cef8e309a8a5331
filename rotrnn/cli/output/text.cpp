#include "rotrnn/cli/output/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <stdexcept>

#include "rotrnn/plot/terminal_plot.h"

namespace rotrnn::cli {

std::string duration(double seconds) {
  const auto s = static_cast<int64_t>(std::llround(std::max(0.0, seconds)));
  if (s < 60) return fmt::format("{} s", s);
  if (s < 3600) return fmt::format("{} min {:02} s", s / 60, s % 60);
  if (s < 48 * 3600) return fmt::format("{} h {:02} min", s / 3600, s % 3600 / 60);
  return fmt::format("{:.1f} days", seconds / 86400);
}

std::string percent(double share) {
  return fmt::format("{:.1f} %", 100 * share);
}

std::string bytes(double count) {
  const char* units[] = {"B", "KB", "MB", "GB", "TB"};
  size_t unit = 0;
  for (; count >= 1000 && unit + 1 < std::size(units); ++unit) count /= 1000;
  return fmt::format("{:.{}f} {}", count, unit == 0 ? 0 : 1, units[unit]);
}

std::string table(const std::vector<std::vector<std::string>>& rows,
                  const std::vector<size_t>& right) {
  const auto width_of = [](const std::string& cell) {
    return static_cast<size_t>(columns_of(cell));
  };
  std::vector<size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], width_of(row[i]));
  }
  std::string out;
  for (const auto& row : rows) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i) {
      const std::string space(widths[i] - width_of(row[i]), ' ');
      const bool aligned = std::find(right.begin(), right.end(), i) != right.end();
      line += (i ? "  " : "") + (aligned ? space + row[i] : row[i] + space);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    out += line + "\n";
  }
  return out;
}

std::vector<std::string> split_list(const std::string& text) {
  std::vector<std::string> parts;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    size_t first = begin, last = end;
    while (first < last && text[first] == ' ') ++first;
    while (last > first && text[last - 1] == ' ') --last;
    if (first == last) {
      throw std::invalid_argument(
          fmt::format("\"{}\" has an empty part; write such as a,b,c", text));
    }
    parts.push_back(text.substr(first, last - first));
    begin = end + 1;
  }
  return parts;
}

std::string program() {
  const char* command = std::getenv("ROTRNN_COMMAND");
  return command && *command ? command : "rotrnn";
}

std::string shell_word(const std::string& text) {
  const bool plain = !text.empty() && std::all_of(text.begin(), text.end(), [](unsigned char c) {
    return std::isalnum(c) ||
           std::string_view("_-./=,:+@%").find(static_cast<char>(c)) != std::string_view::npos;
  });
  if (plain) return text;
  std::string out = "'";
  for (char c : text) out += c == '\'' ? "'\\''" : std::string(1, c);
  return out + "'";
}

}  // namespace rotrnn::cli
