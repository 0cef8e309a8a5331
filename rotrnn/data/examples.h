#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "rotrnn/data/records.h"
#include "rotrnn/spec/preprocess.h"

namespace rotrnn {

/// The part of a record that is one example: all of it, or a window of a long series.
struct Part {
  int64_t record = 0;
  int64_t begin = 0, steps = -1;  // in stored steps; -1: all
};

/// The examples of one split as a network takes them: records seen through preprocessing. Reading
/// is safe from several threads at once.
class Examples {
 public:
  Examples() = default;
  Examples(std::shared_ptr<const Records> records,
           std::shared_ptr<const Preprocessing> preprocessing, std::vector<Part> parts);

  int64_t size() const { return static_cast<int64_t>(parts_.size()); }
  /// Sequences of one example.
  int64_t towers() const { return records_ ? records_->form.towers : 1; }
  /// Steps of sequence k of example i, and of all its sequences.
  int64_t length(int64_t i, int64_t k) const {
    return offsets_[i * towers() + k + 1] - offsets_[i * towers() + k];
  }
  int64_t length(int64_t i) const { return offsets_[(i + 1) * towers()] - offsets_[i * towers()]; }
  int64_t total_length() const { return offsets_.back(); }

  const Record& record(int64_t i) const { return records_->examples[parts_[i].record]; }
  const Records& records() const { return *records_; }
  const Preprocessing& preprocessing() const { return *preprocessing_; }

  /// Writes length(i) token numbers, or length(i)·channels values: its sequences in a row.
  void write_tokens(int64_t i, int64_t* out) const;
  void write_values(int64_t i, float* out) const;

  /// Number of the class; -1: not known.
  int64_t label(int64_t i) const { return records_->labels[parts_[i].record]; }
  /// Writes the class of every step.
  void write_token_labels(int64_t i, int64_t* out) const;
  /// Writes the target values, in units of their standard deviation.
  void write_targets(int64_t i, float* out) const;
  /// Writes, for every step, the values of the next `horizon` steps: length·horizon·channels
  /// numbers.
  void write_forecasts(int64_t i, float* out) const;

 private:
  std::span<const std::byte> bytes(int64_t i, int64_t k) const;

  std::shared_ptr<const Records> records_;
  std::shared_ptr<const Preprocessing> preprocessing_;
  std::vector<Part> parts_;
  std::vector<int64_t> offsets_{0};  // of all sequences
};

}  // namespace rotrnn
