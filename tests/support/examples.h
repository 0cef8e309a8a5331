#pragma once

#include <memory>
#include <string>
#include <vector>

#include "rotrnn/data/examples.h"

namespace rotrnn::test {

/// Sequences 0, 1, 2, … modulo a vocabulary; example i is of class i.
inline Examples token_examples(int64_t count, int64_t length, int64_t vocabulary) {
  RecordWriter out;
  out.form({Element::u8, 1, 1, 1}, "test");
  std::vector<uint8_t> tokens;
  for (int64_t t = 0; t < length; ++t) tokens.push_back(static_cast<uint8_t>(t % vocabulary));
  std::vector<Part> parts;
  for (int64_t i = 0; i < count; ++i) {
    Record record;
    record.name = record.label = std::to_string(i);
    out.add_values(std::move(record), std::span<const uint8_t>(tokens));
    parts.push_back({i, 0, -1});
  }
  auto preprocessing = std::make_shared<Preprocessing>();
  preprocessing->vocabulary.resize(static_cast<size_t>(vocabulary));
  return {std::make_shared<Records>(out.finish()), preprocessing, parts};
}

}  // namespace rotrnn::test
