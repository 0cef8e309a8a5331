#pragma once

#include <fmt/format.h>

#include <string_view>
#include <utility>

namespace rotrnn {

/// Text for people, on standard error. What cannot be written is lost silently: a terminal
/// that was closed, or a full disk below a log, must not end the work that is reported on.
void write_message(std::string_view text) noexcept;

template <class... Arguments>
void print_message(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
  write_message(fmt::format(format, std::forward<Arguments>(arguments)...));
}

}  // namespace rotrnn
