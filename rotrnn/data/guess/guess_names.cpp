#include "rotrnn/data/guess/guess_names.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string_view>

namespace rotrnn {
namespace {

constexpr std::string_view kSeparators = "_-. ";

std::string_view without_ending(std::string_view name) {
  return name.substr(0, std::min(name.rfind('.'), name.size()));
}

// "7_jackson_32" as 7, jackson, 32.
std::vector<std::string> parts_of(std::string_view stem) {
  std::vector<std::string> parts(1);
  for (const char c : stem) {
    if (kSeparators.find(c) == kSeparators.npos) {
      parts.back() += c;
    } else {
      parts.emplace_back();
    }
  }
  return parts;
}

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

bool all_digits(const std::string& text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), is_digit);
}

using Counts = std::map<std::string, std::size_t>;

std::vector<std::string> keys_of(const Counts& counts) {
  std::vector<std::string> out;
  for (const auto& [key, count] : counts) out.push_back(key);
  return out;
}

// A few values, each of several files.
bool may_be_classes(const Counts& counts, std::size_t files) {
  if (counts.size() < 2 || counts.size() > files / 3 || counts.contains("")) return false;
  const auto rare = std::count_if(counts.begin(), counts.end(),
                                  [](const auto& entry) { return entry.second < 2; });
  return rare * 10 <= std::ssize(counts);
}

// Part `at` of names as parts_of() cuts them.
std::string part_pattern(std::size_t at) {
  const std::string separator = fmt::format("[{}]", "-_. ");
  const std::string part = fmt::format("[^{}/]*", "-_. ");
  std::string before;
  for (std::size_t i = 0; i < at; ++i) before += part + separator;
  return fmt::format("(?:^|/){}([^-_. /]+)[-_. ][^/]*$", before);
}

// "cat3" as cat: letters in front of a number that all names end in.
NameGuess guess_numbered(const std::vector<std::string>& names) {
  Counts counts;
  for (const std::string& name : names) {
    const std::string_view stem = without_ending(name);
    const auto last = stem.find_last_not_of("0123456789");
    if (last == stem.npos || last + 1 == stem.size()) return {};
    if (std::any_of(stem.begin(), stem.begin() + static_cast<std::ptrdiff_t>(last), is_digit))
      return {};
    ++counts[std::string(stem.substr(0, last + 1))];
  }
  if (!may_be_classes(counts, names.size())) return {};
  return {"(?:^|/)([^0-9/]+)[0-9]+[.][^/]*$", keys_of(counts), "", {}};
}

}  // namespace

NameGuess guess_names(const std::vector<std::string>& names) {
  std::vector<Counts> parts;
  std::size_t least = std::string::npos;
  for (const std::string& name : names) {
    const auto of_name = parts_of(without_ending(name));
    least = std::min(least, of_name.size());
    parts.resize(std::max(parts.size(), of_name.size()));
    for (std::size_t i = 0; i < of_name.size(); ++i) ++parts[i][of_name[i]];
  }
  NameGuess guess;
  for (std::size_t i = 0; names.size() > 0 && i < least; ++i) {
    const auto numbers = [](const auto& entry) { return all_digits(entry.first); };
    const bool counts_only =
        i > 0 && i + 1 == parts.size() && std::all_of(parts[i].begin(), parts[i].end(), numbers);
    if (counts_only || !may_be_classes(parts[i], names.size())) continue;
    if (guess.pattern.empty()) {
      guess.pattern = part_pattern(i);
      guess.classes = keys_of(parts[i]);
    } else if (guess.other_pattern.empty()) {
      guess.other_pattern = part_pattern(i);
      guess.others = keys_of(parts[i]);
    }
  }
  return guess.pattern.empty() ? guess_numbered(names) : guess;
}

}  // namespace rotrnn
