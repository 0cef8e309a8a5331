#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "rotrnn/base/text/number.h"

namespace rotrnn::cli {

/// Seconds in words: "48 s", "3 min 07 s", "2 h 05 min".
std::string duration(double seconds);

/// 0.1234 as "12.3 %".
std::string percent(double share);

/// Bytes with a unit: "1.5 GB".
std::string bytes(double count);

/// Rows in columns as wide as their widest cell; columns named in `right` are right-aligned.
std::string table(const std::vector<std::vector<std::string>>& rows,
                  const std::vector<size_t>& right = {});

/// "a,b,c" as its parts, without spaces around them; std::invalid_argument for an empty one.
std::vector<std::string> split_list(const std::string& text);

/// How the user called the program: "rotrnn", or what ROTRNN_COMMAND says, for hints to copy.
std::string program();

/// A path or text as one word of a shell.
std::string shell_word(const std::string& text);

}  // namespace rotrnn::cli
