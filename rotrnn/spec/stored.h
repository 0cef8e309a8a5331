#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <span>
#include <string_view>

#include "rotrnn/spec/record_form.h"

// Ways to walk over a sequence in the form it is stored in.

namespace rotrnn {

/// Calls body(T{}) with the type that the elements are stored in.
template <typename Body>
void with_element(Element element, const Body& body) {
  switch (element) {
    case Element::u8:
      return body(uint8_t{});
    case Element::i16:
      return body(int16_t{});
    case Element::i32:
      return body(int32_t{});
    case Element::f32:
      return body(float{});
  }
}

/// A number at any address.
template <typename T>
T load(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

/// Bytes of the character that begins with this byte, of text known to be UTF-8.
inline int64_t character_bytes(uint8_t first) {
  return first < 0x80 ? 1 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
}

/// Calls body(the bytes of a character) for each, until it returns false.
template <typename Body>
void each_character(std::span<const std::byte> text, const Body& body) {
  const auto* chars = reinterpret_cast<const char*>(text.data());
  for (int64_t i = 0; i < std::ssize(text);) {
    const int64_t size =
        std::min(character_bytes(static_cast<uint8_t>(chars[i])), std::ssize(text) - i);
    if (!body(std::string_view(chars + i, static_cast<size_t>(size)))) return;
    i += size;
  }
}

}  // namespace rotrnn
