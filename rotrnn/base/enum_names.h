#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace rotrnn {

/// The names of an enum's values, in their order: specialised right below the enum, and nowhere
/// written again. Configs, files and messages read them here.
template <class Enum>
inline constexpr std::array<const char*, 0> kNames{};

template <class Enum>
requires(kNames<Enum>.size() > 0) constexpr const char* name_of(Enum value) {
  const auto i = static_cast<std::size_t>(value);
  return i < kNames<Enum>.size() ? kNames<Enum>[i] : "none";
}

template <class Enum>
std::vector<std::string> names_of() {
  return {kNames<Enum>.begin(), kNames<Enum>.end()};
}

/// The value of that name.
template <class Enum>
constexpr std::optional<Enum> by_name(std::string_view name) {
  for (std::size_t i = 0; i < kNames<Enum>.size(); ++i) {
    if (name == kNames<Enum>[i]) return static_cast<Enum>(i);
  }
  return std::nullopt;
}

}  // namespace rotrnn
