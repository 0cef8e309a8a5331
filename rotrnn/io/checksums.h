#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <string_view>

namespace rotrnn {

/// The file of a folder that `sha256sum -c SHA256SUMS` checks the others by.
inline constexpr char kChecksumFile[] = "SHA256SUMS";

/// SHA-256 by the name of a file, in hexadecimal digits.
using Checksums = std::map<std::string, std::string>;

/// The text of SHA256SUMS.
std::string checksums_text(const Checksums& sums);

/// Reads it. Only what checksums_text() writes is taken: a change of any byte is a
/// std::runtime_error, or a sum that does not fit. `where` stands for the path in messages.
Checksums parse_checksums(std::string_view text, const std::string& where);

/// std::runtime_error when `bytes` are not what the sum of this file was made of.
void check_sum(const Checksums& sums, const std::filesystem::path& file, std::string_view bytes);

}  // namespace rotrnn
