#include "rotrnn/data/preprocess.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <map>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <unordered_map>

namespace rotrnn {
namespace {

constexpr const char* kKinds[] = {"ids", "bytes", "characters", "values"};
constexpr const char* kElements[] = {"u8", "i16", "i32", "f32"};

// Calls body(T{}) with the type that the elements are stored in.
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

template <typename T>
T load(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

// Bytes of the character that begins with this byte, of text known to be UTF-8.
int64_t character_bytes(uint8_t first) {
  return first < 0x80 ? 1 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
}

uint8_t byte_at(std::span<const std::byte> text, int64_t i) {
  return static_cast<uint8_t>(text[static_cast<size_t>(i)]);
}

// Calls body(the bytes of a character) for each, until it returns false.
template <typename Body>
void each_character(std::span<const std::byte> text, const Body& body) {
  const auto* chars = reinterpret_cast<const char*>(text.data());
  for (int64_t i = 0; i < std::ssize(text);) {
    const int64_t size = std::min(character_bytes(byte_at(text, i)), std::ssize(text) - i);
    if (!body(std::string_view(chars + i, static_cast<size_t>(size)))) return;
    i += size;
  }
}

std::vector<std::string> special_tokens() {
  return {"<pad>", "<unk>", "<eos>"};
}

int64_t kept(const Preprocessing& p, int64_t steps) {
  const int64_t room = p.max_length > 0 ? p.max_length - (p.end_mark ? 1 : 0) : steps;
  return std::min(steps, room);
}

int64_t ceil_div(int64_t a, int64_t b) {
  return (a + b - 1) / b;
}

}  // namespace

CharacterTable::CharacterTable(const std::vector<std::string>& vocabulary) {
  ascii_.fill(kTokenUnknown);
  for (size_t i = kFirstToken; i < vocabulary.size(); ++i) {
    const auto number = static_cast<int32_t>(i);
    if (vocabulary[i].size() == 1) {
      ascii_[static_cast<uint8_t>(vocabulary[i][0]) & 127] = number;
    } else {
      others_[vocabulary[i]] = number;
    }
  }
}

int32_t CharacterTable::number(std::string_view character) const {
  if (character.size() == 1) return ascii_[static_cast<uint8_t>(character[0]) & 127];
  const auto found = others_.find(std::string(character));
  return found == others_.end() ? kTokenUnknown : found->second;
}

int64_t Preprocessing::length(std::span<const std::byte> sequence) const {
  if (kind == Kind::characters) {
    const int64_t most = max_length > 0 ? max_length - (end_mark ? 1 : 0) : std::ssize(sequence);
    int64_t count = 0;
    for (const std::byte b : sequence) {
      count += (static_cast<uint8_t>(b) & 0xC0) != 0x80;  // not inside a character
      if (count == most) break;
    }
    return count + (end_mark ? 1 : 0);
  }
  const int64_t steps = std::ssize(sequence) / (element_size(form.element) * form.channels);
  if (kind == Kind::values) return ceil_div(kept(*this, steps), keep_every);
  return kept(*this, steps) + (end_mark ? 1 : 0);
}

void Preprocessing::write_tokens(std::span<const std::byte> sequence, int64_t* out) const {
  const int64_t count = length(sequence) - (end_mark ? 1 : 0);
  if (kind == Kind::characters) {
    int64_t done = 0;
    each_character(sequence, [&](std::string_view character) {
      if (done == count) return false;
      out[done++] = characters.number(character);
      return true;
    });
  } else {
    const int64_t first = kind == Kind::bytes ? kFirstToken : 0;
    with_element(form.element, [&]<typename T>(T) {
      for (int64_t i = 0; i < count; ++i) {
        out[i] = static_cast<int64_t>(load<T>(sequence.data() + i * sizeof(T))) + first;
      }
    });
  }
  if (end_mark) out[count] = kTokenEnd;
}

void Preprocessing::write_values(std::span<const std::byte> sequence, float* out) const {
  const int64_t count = length(sequence), C = form.channels;
  if (!order.empty() && count != std::ssize(order)) {
    throw std::runtime_error(
        fmt::format("a sequence of {} steps for a network that reads {} in an order of its own",
                    count, order.size()));
  }
  with_element(form.element, [&]<typename T>(T) {
    for (int64_t i = 0; i < count; ++i) {
      const int64_t step = (order.empty() ? i : order[i]) * keep_every;
      for (int64_t c = 0; c < C; ++c) {
        const double x = load<T>(sequence.data() + (step * C + c) * sizeof(T)) * form.scale;
        const int64_t at = per_step ? step : c;
        *out++ = static_cast<float>((x - mean[at]) / deviation[at]);
      }
    }
  });
}

Preprocessing learn_characters(const Records& records, std::span<const int64_t> train,
                               int64_t min_frequency, int64_t max_length) {
  std::map<std::string, int64_t, std::less<>> counts;  // UTF-8 sorts as code points do
  std::array<int64_t, 128> ascii{};
  const int64_t towers = records.form.towers;
  for (const int64_t example : train) {
    for (int64_t k = 0; k < towers; ++k) {
      each_character(records.sequences.at(example * towers + k), [&](std::string_view character) {
        if (character.size() == 1) {
          ++ascii[static_cast<uint8_t>(character[0]) & 127];
        } else if (const auto found = counts.find(character); found != counts.end()) {
          ++found->second;
        } else {
          counts.emplace(character, 1);
        }
        return true;
      });
    }
  }
  Preprocessing p;
  p.kind = Preprocessing::Kind::characters;
  p.form = records.form;
  p.max_length = max_length;
  p.end_mark = true;
  p.vocabulary = special_tokens();
  for (size_t i = 0; i < ascii.size(); ++i) {
    if (ascii[i] >= min_frequency && ascii[i] > 0)
      p.vocabulary.emplace_back(1, static_cast<char>(i));
  }
  for (const auto& [character, count] : counts) {
    if (count >= min_frequency) p.vocabulary.push_back(character);
  }
  p.characters = CharacterTable(p.vocabulary);
  return p;
}

Preprocessing byte_tokens(const RecordForm& form, int64_t max_length) {
  Preprocessing p;
  p.kind = Preprocessing::Kind::bytes;
  p.form = form;
  p.max_length = max_length;
  p.end_mark = true;
  p.vocabulary = special_tokens();
  for (int i = 0; i < 256; ++i) p.vocabulary.push_back(fmt::format("0x{:02x}", i));
  return p;
}

Preprocessing learn_scale(const Records& records, std::span<const int64_t> train, bool per_step,
                          int64_t max_length) {
  Preprocessing p = fixed_scale(records.form, 0, 1, max_length);
  const int64_t C = records.form.channels;
  int64_t places = C;
  if (per_step) {
    if (C != 1) {
      throw std::invalid_argument(
          "task.normalisation: \"upstream\" is one mean for every step, for one channel only");
    }
    places = 0;
    for (const int64_t i : train) places = std::max(places, kept(p, records.steps(i)));
  }
  // Two passes in double: the squares of 16-bit samples of hours of audio need no more care.
  std::vector<double> sum(places), square(places);
  std::vector<int64_t> count(places);
  const auto visit = [&](const auto& add) {
    for (const int64_t i : train) {
      const auto sequence = records.sequences.at(i);
      const int64_t steps = kept(p, records.steps(i));
      with_element(records.form.element, [&]<typename T>(T) {
        for (int64_t t = 0; t < steps; ++t) {
          for (int64_t c = 0; c < C; ++c) {
            add(per_step ? t : c,
                load<T>(sequence.data() + (t * C + c) * sizeof(T)) * records.form.scale);
          }
        }
      });
    }
  };
  visit([&](int64_t at, double x) {
    sum[at] += x;
    ++count[at];
  });
  p.mean.resize(places);
  p.deviation.resize(places);
  for (int64_t i = 0; i < places; ++i) {
    if (per_step) count[i] = std::ssize(train);
    p.mean[i] = sum[i] / static_cast<double>(std::max<int64_t>(count[i], 1));
  }
  std::vector<int64_t> seen(places);
  visit([&](int64_t at, double x) {
    square[at] += (x - p.mean[at]) * (x - p.mean[at]);
    ++seen[at];
  });
  for (int64_t i = 0; i < places; ++i) {
    // What a shorter example does not have is 0.
    square[i] += static_cast<double>(count[i] - seen[i]) * p.mean[i] * p.mean[i];
    const double deviation =
        std::sqrt(square[i] / static_cast<double>(std::max<int64_t>(count[i], 1)));
    p.deviation[i] = per_step ? deviation + 1e-5 : deviation > 0 ? deviation : 1;
  }
  p.per_step = per_step;
  if (per_step) p.max_length = places;  // later steps have no mean
  return p;
}

Preprocessing fixed_scale(const RecordForm& form, double mean, double deviation,
                          int64_t max_length) {
  Preprocessing p;
  p.kind = Preprocessing::Kind::values;
  p.form = form;
  p.max_length = max_length;
  p.mean.assign(static_cast<size_t>(form.channels), mean);
  p.deviation.assign(static_cast<size_t>(form.channels), deviation);
  return p;
}

nlohmann::json to_json(const Preprocessing& p) {
  return {{"kind", kKinds[static_cast<size_t>(p.kind)]},
          {"form",
           {{"element", kElements[static_cast<size_t>(p.form.element)]},
            {"channels", p.form.channels},
            {"scale", p.form.scale},
            {"towers", p.form.towers},
            {"rate", p.form.rate},
            {"names", p.form.names}}},
          {"max_length", p.max_length},
          {"vocabulary", p.vocabulary},
          {"end_mark", p.end_mark},
          {"mean", p.mean},
          {"deviation", p.deviation},
          {"per_step", p.per_step},
          {"order", p.order},
          {"keep_every", p.keep_every},
          {"target_mean", p.target_mean},
          {"target_deviation", p.target_deviation},
          {"target_names", p.target_names},
          {"target_channels", p.target_channels},
          {"horizon", p.horizon}};
}

Preprocessing preprocessing_from_json(const nlohmann::json& json) {
  const auto find = [](const std::string& name, std::span<const char* const> names) {
    for (size_t i = 0; i < names.size(); ++i) {
      if (name == names[i]) return i;
    }
    throw std::runtime_error(fmt::format("preprocessing: \"{}\" is not known", name));
  };
  Preprocessing p;
  p.kind = static_cast<Preprocessing::Kind>(find(json.at("kind").get<std::string>(), kKinds));
  const auto& form = json.at("form");
  p.form.element = static_cast<Element>(find(form.at("element").get<std::string>(), kElements));
  p.form.channels = form.at("channels").get<int64_t>();
  p.form.scale = form.at("scale").get<double>();
  p.form.towers = form.at("towers").get<int64_t>();
  p.form.rate = form.at("rate").get<int64_t>();
  form.at("names").get_to(p.form.names);
  json.at("max_length").get_to(p.max_length);
  json.at("vocabulary").get_to(p.vocabulary);
  json.at("end_mark").get_to(p.end_mark);
  json.at("mean").get_to(p.mean);
  json.at("deviation").get_to(p.deviation);
  json.at("per_step").get_to(p.per_step);
  json.at("order").get_to(p.order);
  json.at("keep_every").get_to(p.keep_every);
  json.at("target_mean").get_to(p.target_mean);
  json.at("target_deviation").get_to(p.target_deviation);
  json.at("target_names").get_to(p.target_names);
  json.at("target_channels").get_to(p.target_channels);
  json.at("horizon").get_to(p.horizon);
  const bool sizes = p.form.channels >= 1 && p.form.channels <= 1 << 20 && p.form.towers >= 1 &&
                     p.form.towers <= 2 && p.keep_every >= 1 && p.horizon >= 0 &&
                     p.max_length >= 0 && p.mean.size() == p.deviation.size() &&
                     p.target_mean.size() == p.target_deviation.size();
  const bool places = p.tokens() || (p.per_step ? p.form.channels == 1 && p.max_length > 0 &&
                                                      p.max_length <= std::ssize(p.mean)
                                                : std::ssize(p.mean) == p.form.channels);
  const auto inside = [](int64_t i, int64_t n) { return i >= 0 && i < n; };
  const bool channels = std::all_of(p.target_channels.begin(), p.target_channels.end(),
                                    [&](int64_t c) { return inside(c, p.form.channels); });
  const bool order = std::all_of(p.order.begin(), p.order.end(),
                                 [&](int64_t i) { return inside(i, std::ssize(p.order)); });
  if (!sizes || !places || !channels || !order) {
    throw std::runtime_error("preprocessing: its sizes do not fit together");
  }
  p.characters = CharacterTable(p.vocabulary);
  return p;
}

}  // namespace rotrnn
