#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace rotrnn {

/// How the numbers of a sequence are kept.
enum class Element : uint8_t { u8, i16, i32, f32 };

/// Bytes of one.
constexpr int64_t element_size(Element element) {
  return element == Element::u8 ? 1 : element == Element::i16 ? 2 : 4;
}

/// The form of all sequences of a set.
struct RecordForm {
  Element element = Element::u8;
  int64_t channels = 1;  // of f32, i16 or u8 values; text and token numbers have one
  double scale = 1;      // a stored number times this is in its natural unit: 1/255, 1/32768
  int64_t towers = 1;    // sequences of one example: 2 for pairs
  int64_t rate = 0;      // samples per second; 0: not known
  std::vector<std::string> names = {};  // of the channels; empty: they have none

  bool operator==(const RecordForm&) const = default;
};

}  // namespace rotrnn
