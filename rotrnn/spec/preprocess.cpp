#include "rotrnn/spec/preprocess.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "rotrnn/spec/stored.h"

namespace rotrnn {
namespace {

constexpr const char* kKinds[] = {"ids", "bytes", "characters", "values"};
constexpr const char* kElements[] = {"u8", "i16", "i32", "f32"};

int64_t ceil_div(int64_t a, int64_t b) {
  return (a + b - 1) / b;
}

}  // namespace

std::vector<std::string> special_tokens() {
  return {"<pad>", "<unk>", "<eos>"};
}

int64_t Preprocessing::kept(int64_t steps) const {
  const int64_t room = max_length > 0 ? max_length - (end_mark ? 1 : 0) : steps;
  return std::min(steps, room);
}

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
  if (kind == Kind::values) return ceil_div(kept(steps), keep_every);
  return kept(steps) + (end_mark ? 1 : 0);
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
  // Bounds as configs have them, so that no sum or product of these overflows.
  constexpr int64_t kMost = 1 << 20;
  const bool sizes = p.form.channels >= 1 && p.form.channels <= kMost && p.form.towers >= 1 &&
                     p.form.towers <= 2 && p.keep_every >= 1 && p.keep_every <= kMost &&
                     p.horizon >= 0 && p.horizon <= kMost && p.max_length >= 0 &&
                     p.mean.size() == p.deviation.size() &&
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
