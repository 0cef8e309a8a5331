#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace rotrnn {

/// SHA-1 of bytes, as 40 hexadecimal digits. Not for security: published splits are defined by it.
std::string sha1_hex(std::string_view bytes);

/// SHA-256 of bytes, as 64 hexadecimal digits.
std::string sha256_hex(std::string_view bytes);

/// The same of a file, read in pieces.
std::string sha1_of_file(const std::filesystem::path& file);
std::string sha256_of_file(const std::filesystem::path& file);

}  // namespace rotrnn
