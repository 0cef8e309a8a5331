#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

// UTF-8 as the Unicode standard has it (table 3-7): no overlong forms, no surrogates, nothing above
// 10FFFF.

namespace rotrnn {

/// What next_code_point() returns where there is none.
inline constexpr char32_t kNotUtf8 = 0xffffffff;

/// The code point at `at` < text.size(), and moves `at` past it; kNotUtf8, and `at` stays, when
/// the bytes there are not UTF-8 or end too early.
char32_t next_code_point(std::string_view text, std::size_t& at);

/// Where the first bytes start that are not UTF-8; npos when all of them are.
std::size_t find_not_utf8(std::string_view text);

/// The code points of a text; std::runtime_error `name: offset N: ...` when it is not UTF-8.
std::vector<char32_t> decode_utf8(std::string_view text, std::string_view name);

/// Appends a code point that UTF-8 has.
void append_utf8(std::string& out, char32_t code_point);

/// The text without the byte order mark that some editors put in front.
std::string_view without_bom(std::string_view text);

/// Says what is wrong at `at`, found by find_not_utf8(), and what to do.
std::string not_utf8_message(std::string_view text, std::size_t at);

}  // namespace rotrnn
