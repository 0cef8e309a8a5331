#pragma once

#include <string>
#include <string_view>

namespace rotrnn::board {

/// 128 random bits of the system, as hexadecimal digits.
std::string make_token();

/// Whether two texts are equal, in a time that does not depend on where they differ.
bool same_token(std::string_view a, std::string_view b);

/// The value of a cookie in a Cookie header; empty when it is not there.
std::string cookie_value(std::string_view header, std::string_view name);

}  // namespace rotrnn::board
