#include "rotrnn/io/checksums.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

#include "rotrnn/io/sha.h"

namespace rotrnn {
namespace {

constexpr std::size_t kDigits = 64;
constexpr std::string_view kBetween = "  ";  // as sha256sum writes it
constexpr std::size_t kMostBytes = 1 << 16;

bool is_digit(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
}

bool is_plain(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'z') || c == '.' || c == '_' || c == '-';
}

}  // namespace

std::string checksums_text(const Checksums& sums) {
  std::string text;
  for (const auto& [name, sum] : sums) text += fmt::format("{}{}{}\n", sum, kBetween, name);
  return text;
}

Checksums parse_checksums(std::string_view text, const std::string& where) {
  const auto refuse = [&](std::string_view what) {
    throw std::runtime_error(
        fmt::format("{}: {}; it is damaged, restore it from a copy", where, what));
  };
  if (text.size() > kMostBytes) refuse("is too long for a list of checksums");
  Checksums sums;
  for (std::string_view rest = text; !rest.empty();) {
    const std::size_t end = rest.find('\n');
    if (end == std::string_view::npos) refuse("its last line does not end");
    const std::string_view line = rest.substr(0, end);
    rest.remove_prefix(end + 1);
    const std::string_view sum = line.substr(0, kDigits);
    const std::string_view name = line.substr(std::min(line.size(), kDigits + kBetween.size()));
    if (sum.size() != kDigits || !std::all_of(sum.begin(), sum.end(), is_digit) ||
        line.substr(kDigits, kBetween.size()) != kBetween || name.empty() ||
        !std::all_of(name.begin(), name.end(), is_plain)) {
      refuse("has a line that is not a SHA-256, two spaces and the name of a file");
    }
    sums.emplace(name, sum);
  }
  if (checksums_text(sums) != text) refuse("its lines are not in order");
  return sums;
}

void check_sum(const Checksums& sums, const std::filesystem::path& file, std::string_view bytes) {
  const auto found = sums.find(file.filename().string());
  if (found == sums.end()) {
    throw std::runtime_error(fmt::format("{}: is not listed in {}; one of them is damaged",
                                         file.string(), kChecksumFile));
  }
  if (sha256_hex(bytes) != found->second) {
    throw std::runtime_error(fmt::format(
        "{}: damaged: its SHA-256 is not the one in {}; it was changed after it was written",
        file.string(), kChecksumFile));
  }
}

}  // namespace rotrnn
