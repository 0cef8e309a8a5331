#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace rotrnn {

/// Text without blanks around it.
std::string_view trimmed(std::string_view text);

/// The finite number that the whole text is, blanks around it aside; nothing otherwise. Numbers
/// have a decimal point whatever the locale.
std::optional<double> to_number(std::string_view text);

/// The same, finite in single precision too.
std::optional<float> to_float(std::string_view text);

/// Says why a text is not a number that is read, and what to do: `"n/a" is not a number; ...`.
std::string not_a_number_message(std::string_view text);

/// 12345678 as 12,345,678.
std::string grouped(int64_t number);

/// "1 run", "2,000 runs".
std::string counted(int64_t number, std::string_view thing);

}  // namespace rotrnn
