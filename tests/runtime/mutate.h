#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

// Damage to the bytes of a valid model, by kind: from flipped bytes, which a checksum would find,
// to files that are whole but say something impossible.

namespace rotrnn::runtime::test {

class Mutator {
 public:
  explicit Mutator(uint32_t seed) : engine_(seed) {}

  std::string operator()(std::string bytes) {
    switch (pick(9)) {
      case 0:  // bytes anywhere
        for (size_t i = 0, n = 1 + pick(8); i < n; ++i) bytes[pick(bytes.size())] ^= bit();
        return bytes;
      case 1:  // bytes of the header
        for (size_t i = 0, n = 1 + pick(4); i < n; ++i) bytes[pick(8 + header(bytes))] ^= bit();
        return bytes;
      case 2:
        return bytes.substr(0, pick(bytes.size()));
      case 3:
        return bytes + std::string(1 + pick(20), static_cast<char>(pick(256)));
      case 4:
        return with_header(bytes, [&](nlohmann::json& j) { change_any(j); });
      case 5:
        return with_model(bytes, [&](nlohmann::json& j) { change_any(j); });
      case 6:
        return with_header(bytes, [&](nlohmann::json& j) { change_tensor(j); });
      case 7:
        return with_model(bytes, [&](nlohmann::json& j) {
          static const char* keys[] = {"width",   "states", "depth", "inputs",
                                       "outputs", "towers", "degree"};
          j[keys[pick(std::size(keys))]] = number();
        });
      default:
        return with_weights(bytes);
    }
  }

  static size_t header(const std::string& bytes) {
    uint64_t size = 0;
    std::memcpy(&size, bytes.data(), sizeof size);
    return static_cast<size_t>(size);
  }

  /// The bytes with another header.
  template <typename Change>
  static std::string with_header(const std::string& bytes, const Change& change) {
    auto j = nlohmann::json::parse(bytes.substr(8, header(bytes)));
    change(j);
    const std::string text = j.dump();
    const uint64_t size = text.size();
    std::string out(8, '\0');
    std::memcpy(out.data(), &size, sizeof size);
    return out + text + bytes.substr(8 + header(bytes));
  }

  /// The bytes with another "model" of the metadata.
  template <typename Change>
  static std::string with_model(const std::string& bytes, const Change& change) {
    return with_header(bytes, [&](nlohmann::json& j) {
      auto model = nlohmann::json::parse(j["__metadata__"]["model"].get<std::string>());
      change(model);
      j["__metadata__"]["model"] = model.dump();
    });
  }

 private:
  size_t pick(size_t n) { return std::uniform_int_distribution<size_t>(0, n - 1)(engine_); }
  char bit() { return static_cast<char>(1 << pick(8)); }

  nlohmann::json number() {
    const int64_t numbers[] = {0,
                               1,
                               2,
                               3,
                               -1,
                               -7,
                               1 << 12,
                               1 << 16,
                               1 << 30,
                               int64_t{1} << 31,
                               int64_t{1} << 40,
                               std::numeric_limits<int64_t>::max(),
                               std::numeric_limits<int64_t>::min()};
    return numbers[pick(std::size(numbers))];
  }

  nlohmann::json anything() {
    switch (pick(9)) {
      case 0:
        return nullptr;
      case 1:
        return pick(2) == 0;
      case 2:
        return 0.5;
      case 3:
        return 1e300;
      case 4:
        return std::numeric_limits<uint64_t>::max();
      case 5:
        return std::string(pick(3), 'x');
      case 6:
        return nlohmann::json::array({number(), number()});
      case 7:
        return nlohmann::json::object();
      default:
        return number();
    }
  }

  // Replaces, removes or doubles some value at any depth.
  void change_any(nlohmann::json& j) {
    nlohmann::json* at = &j;
    while (at->is_structured() && !at->empty()) {
      auto item = at->begin();
      std::advance(item, static_cast<ptrdiff_t>(pick(at->size())));
      if ((item->is_structured() && !item->empty() && pick(5) != 0)) {
        at = &*item;
        continue;
      }
      if (pick(6) == 0) {
        at->erase(item);
      } else if (at->is_array() && pick(4) == 0) {
        at->push_back(*item);
      } else {
        *item = anything();
      }
      return;
    }
  }

  // Shapes and places of tensors, their names.
  void change_tensor(nlohmann::json& j) {
    std::vector<std::string> names;
    for (const auto& [name, value] : j.items()) {
      if (name != "__metadata__") names.push_back(name);
    }
    const std::string a = names[pick(names.size())], b = names[pick(names.size())];
    switch (pick(6)) {
      case 0:
        std::swap(j[a]["shape"], j[b]["shape"]);
        break;
      case 1:
        std::swap(j[a]["data_offsets"], j[b]["data_offsets"]);
        break;
      case 2:
        std::swap(j[a], j[b]);
        break;
      case 3:
        j[a]["shape"][pick(j[a]["shape"].size())] = number();
        break;
      case 4:
        j[a]["dtype"] = pick(2) == 0 ? "F16" : "F64";
        break;
      default:
        j[a + "x"] = j[a];
        j.erase(a);
    }
  }

  std::string with_weights(std::string bytes) {
    const float values[] = {std::numeric_limits<float>::infinity(),
                            std::numeric_limits<float>::quiet_NaN(),
                            std::numeric_limits<float>::max(),
                            -3e38f,
                            1e20f,
                            -0.0f,
                            1e-45f};
    const size_t begin = 8 + header(bytes), count = (bytes.size() - begin) / 4;
    for (size_t i = 0, n = 1 + pick(5); i < n; ++i) {
      const float value = values[pick(std::size(values))];
      std::memcpy(bytes.data() + begin + 4 * pick(count), &value, sizeof value);
    }
    return bytes;
  }

  std::mt19937 engine_;
};

}  // namespace rotrnn::runtime::test
