#include "rotrnn/base/text/number.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>

#include "rotrnn/base/text/ascii.h"
#include "rotrnn/base/text/text_place.h"

namespace rotrnn {
namespace {

// What the usual programs write for a missing value.
bool means_missing(std::string_view text) {
  const std::string lower = ascii_lower(text);
  return lower == "nan" || lower == "-nan" || lower == "na" || lower == "n/a" || lower == "?" ||
         lower == "null" || lower == "none";
}

}  // namespace

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\r\n";
  const std::size_t first = text.find_first_not_of(kBlanks);
  if (first == text.npos) return {};
  return text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
}

std::optional<double> to_number(std::string_view text) {
  text = trimmed(text);
  // A sign that from_chars does not know, unless another one follows.
  if (text.size() > 1 && text[0] == '+' && text[1] != '-') text.remove_prefix(1);
  double value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (stop != end || end == text.data()) return std::nullopt;
  if (error == std::errc::result_out_of_range && text.find_first_of("eE") != text.npos &&
      text[text.find_first_of("eE") + 1] == '-') {
    return 0.0;  // 1e-400: too small is 0, unlike too large
  }
  if (error != std::errc() || !std::isfinite(value)) return std::nullopt;
  return value;
}

std::optional<float> to_float(std::string_view text) {
  const auto value = to_number(text);
  if (!value || !std::isfinite(static_cast<float>(*value))) return std::nullopt;
  return static_cast<float>(*value);
}

std::string not_a_number_message(std::string_view text) {
  const std::string_view inner = trimmed(text);
  if (inner.empty()) return "empty where a number belongs; fill in missing values first";
  if (means_missing(inner)) {
    return fmt::format("{} where a number belongs; fill in missing values first", excerpt(inner));
  }
  std::string with_point(inner);
  if (const std::size_t comma = with_point.find(','); comma != with_point.npos) {
    with_point[comma] = '.';
    if (to_number(with_point)) {
      return fmt::format("{} has a decimal comma; write a decimal point", excerpt(inner));
    }
  }
  double value = 0;
  const auto [stop, error] = std::from_chars(inner.data(), inner.data() + inner.size(), value);
  if (error == std::errc::result_out_of_range || (error == std::errc() && std::isinf(value)) ||
      to_number(inner)) {
    return fmt::format("{} is out of the range of single precision; scale the values",
                       excerpt(inner));
  }
  return fmt::format("{} is not a number", excerpt(inner));
}

std::string grouped(int64_t number) {
  const std::string digits = std::to_string(number);
  std::string out;
  for (size_t i = 0; i < digits.size(); ++i) {
    const bool separate = i > 0 && (digits.size() - i) % 3 == 0 && digits[i - 1] != '-';
    if (separate) out += ',';
    out += digits[i];
  }
  return out;
}

std::string counted(int64_t number, std::string_view thing) {
  return grouped(number) + " " + std::string(thing) + (number == 1 ? "" : "s");
}

}  // namespace rotrnn
