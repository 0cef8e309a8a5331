#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

// ListOps (Nangia and Bowman 2018) in the form of the Long Range Arena: nested lists of digits
// under MIN, MAX, MED and SM (sum modulo 10); the class of a sequence is the value of the
// expression.

namespace rotrnn {

/// Token ids; an expression holds only those from `min` on.
namespace listops_token {
inline constexpr uint8_t pad = 0, unk = 1, eos = 2;
inline constexpr uint8_t min = 3, max = 4, med = 5, sm = 6;
inline constexpr uint8_t close = 7;
inline constexpr uint8_t digit = 8;  // the digit d is digit + d
inline constexpr uint8_t count = 18;
}  // namespace listops_token

/// The text of every token id.
const std::vector<std::string>& listops_vocabulary();

/// Settings of the generator; the defaults are those of the Long Range Arena.
struct ListOpsOptions {
  int64_t min_length = 500;   ///< Kept: min_length < length < max_length,
  int64_t max_length = 2000;  ///< where a digit counts 1 and an operator 2.
  int64_t max_depth = 10;     ///< Depth of the deepest digits, the root being at 1.
  int64_t max_args = 10;      ///< An operator has 2 to max_args arguments.
  double operator_probability = 0.25;
};

/// Throws std::invalid_argument if no expression can satisfy the options.
void validate(const ListOpsOptions& options);

/// How many examples each set gets; the defaults are those of the Long Range Arena.
struct ListOpsCounts {
  int64_t train = 96'000;
  int64_t validation = 2'000;
  int64_t test = 2'000;
};

/// Expressions one after the other: number i is tokens[offsets[i] .. offsets[i + 1]).
struct ListOpsExamples {
  std::vector<uint8_t> tokens;
  std::vector<int64_t> offsets{0};
  std::vector<uint8_t> labels;

  int64_t size() const { return static_cast<int64_t>(labels.size()); }
  std::span<const uint8_t> expression(int64_t i) const;
  void add(std::span<const uint8_t> expression, int label);

  bool operator==(const ListOpsExamples&) const = default;
};

/// Three sets without a common example, and the number of draws that gave them.
struct ListOpsSplits {
  ListOpsExamples train, validation, test;
  int64_t draws = 0;
};

/// Draw number `index` of a seed, or nothing if its length is outside the bounds.
std::optional<std::vector<uint8_t>> draw_listops(const ListOpsOptions& options, uint64_t seed,
                                                 uint64_t index);

/// The first distinct draws of a seed, the same for any number of threads: test, then validation,
/// then train, so that a larger training set leaves the other two as they were.
ListOpsSplits generate_listops(const ListOpsOptions& options, uint64_t seed,
                               const ListOpsCounts& counts, int threads = 1);

/// The value, 0 to 9; throws std::invalid_argument with the position of what is malformed.
int evaluate_listops(std::span<const uint8_t> expression);

/// What tokenize_listops does with a word that is not in the vocabulary.
enum class UnknownWords { to_unk, reject };

/// Reads the plain form and the binary form; `reject` throws std::invalid_argument with the word.
std::vector<uint8_t> tokenize_listops(std::string_view text,
                                      UnknownWords unknown = UnknownWords::to_unk);

/// The plain form, `[SM 6 5 ]`.
std::string listops_text(std::span<const uint8_t> tokens);

/// The left-nested binary form of the public files, `( ( ( [SM 6 ) 5 ) ] )`.
std::string listops_source(std::span<const uint8_t> expression);

}  // namespace rotrnn
