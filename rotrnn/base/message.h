#pragma once

#include <fmt/format.h>

#include <string_view>
#include <utility>

namespace rotrnn {

/// Text for people, on standard error. What cannot be written is lost without a word: a terminal
/// that was closed, or a full disk below a log, must not end the work that is reported on.
void tell_text(std::string_view text) noexcept;

template <class... Arguments>
void tell(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
  tell_text(fmt::format(format, std::forward<Arguments>(arguments)...));
}

}  // namespace rotrnn
