#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "rotrnn/spec/record_form.h"

namespace rotrnn {

/// Token numbers with a meaning of their own, the same for all texts.
inline constexpr int32_t kTokenPad = 0, kTokenUnknown = 1, kTokenEnd = 2, kFirstToken = 3;

/// Their names, in the order of their numbers.
std::vector<std::string> special_tokens();

/// The numbers of a vocabulary's characters.
class CharacterTable {
 public:
  CharacterTable() { ascii_.fill(0); }
  explicit CharacterTable(const std::vector<std::string>& vocabulary);
  /// kTokenUnknown for one that is not in it.
  int32_t number(std::string_view character) const;

 private:
  std::array<int32_t, 128> ascii_;
  std::unordered_map<std::string, int32_t> others_;
};

/// What becomes of a stored sequence before a network sees it. Learned on train, saved in the
/// model.
struct Preprocessing {
  enum class Kind {
    ids,         // stored numbers are token numbers
    bytes,       // a token for every byte of a text
    characters,  // a token for every character of a UTF-8 text, by `vocabulary`
    values,      // (stored·scale - mean) / deviation
  };
  Kind kind = Kind::ids;
  RecordForm form;
  int64_t max_length = 0;  // steps that are kept; with an end mark, it counts; 0: all
  // Tokens.
  std::vector<std::string> vocabulary;  // text of every token number
  CharacterTable characters;            // made from it
  bool end_mark = false;                // append kTokenEnd
  // Values.
  std::vector<double> mean, deviation;  // one per channel; the standard deviation
  bool per_step = false;                // one for every step instead, from one channel
  std::vector<int32_t> order;           // step i is the stored step order[i]; empty: as stored
  int64_t keep_every = 1;
  // Targets that are values: the network's output times target_deviation, plus target_mean.
  std::vector<double> target_mean, target_deviation;
  std::vector<std::string> target_names;
  std::vector<int64_t> target_channels;  // of a forecast
  int64_t horizon = 0;                   // of a forecast; 0: none

  bool tokens() const { return kind != Kind::values; }
  bool text() const { return kind == Kind::bytes || kind == Kind::characters; }

  /// Steps per second that the network sees; 0: not known.
  double rate() const {
    return tokens() ? 0 : static_cast<double>(form.rate) / static_cast<double>(keep_every);
  }

  /// Of so many stored steps, those that max_length leaves.
  int64_t kept(int64_t steps) const;
  /// Steps that the network sees of a stored sequence.
  int64_t length(std::span<const std::byte> sequence) const;
  /// Writes length() token numbers.
  void write_tokens(std::span<const std::byte> sequence, int64_t* out) const;
  /// Writes length()·channels numbers.
  void write_values(std::span<const std::byte> sequence, float* out) const;
};

/// A token for every byte.
Preprocessing byte_tokens(const RecordForm& form, int64_t max_length);

/// A known mean and standard deviation, in natural units; 0 and 1 leave values unchanged.
Preprocessing fixed_scale(const RecordForm& form, double mean, double deviation,
                          int64_t max_length);

/// As saved in a model; std::runtime_error for anything that to_json() does not write.
nlohmann::json to_json(const Preprocessing& p);
Preprocessing preprocessing_from_json(const nlohmann::json& json);

}  // namespace rotrnn
