#pragma once

#include <string>
#include <string_view>

namespace rotrnn::board {

/// Text as it may stand in JSON, HTML and XML: bytes that are not UTF-8 and control characters
/// become U+FFFD, and what is longer than `most` bytes is cut.
std::string clean_text(std::string_view text, size_t most = 400);

}  // namespace rotrnn::board
