#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "rotrnn/runtime/model.h"

namespace rotrnn::runtime {

/// One sequence that arrives piece by piece: constant memory, the same work for every step, equal
/// to whole-sequence scoring at every prefix. Nothing is allocated after construction. Streams of
/// one model may be used by different threads at the same time, one stream by one thread at a time.
///
/// Wrong input is a std::invalid_argument and leaves the stream as it was.
class ROTRNN_API Stream {
 public:
  /// std::invalid_argument for models that cannot stream (bidirectional, pairs, steps in an order
  /// of their own): its message says what to do instead. `rows`: steps of a chunk that are worked
  /// on together; more are faster per step for long chunks and take memory.
  explicit Stream(std::shared_ptr<const Model> model, size_t rows = 12);
  ~Stream();
  Stream(Stream&&) noexcept;
  Stream& operator=(Stream&&) noexcept;

  /// Takes whole steps of `inputs` channels, in natural units (audio -1 to 1). `each`, when not
  /// empty, gets the logits after every one of these steps: [steps, outputs]. Returns the number of
  /// steps that the network made: fewer than given where it keeps every k-th only, or where a front
  /// end makes one token of several.
  int64_t push(std::span<const float> values, std::span<float> each = {});

  /// Takes token numbers.
  int64_t push_tokens(std::span<const int32_t> tokens, std::span<float> each = {});

  /// Takes text by the model's vocabulary. A character may be cut between two calls. `each` must
  /// have room for one step per byte.
  int64_t push_text(std::string_view text, std::span<float> each = {});

  /// Ends the sequence: pushes the end mark that texts were trained with, if any, and what is in a
  /// front end, if it is shorter than a token.
  /// After it the logits are those of whole-sequence scoring. Call reset() to go on.
  void end();

  /// Makes the features of a fitted model forget: what is k steps old counts e^{-k/memory}, so that
  /// a stream without end is answered by its last stretch. 0: nothing is forgotten. To be chosen
  /// before the first step. std::invalid_argument for other models, and in the middle of a
  /// sequence.
  void set_memory(double memory);

  /// Logits at this moment [outputs]: of the pooled sequence so far, or of the last step where the
  /// model has no pooling. All zero before the first step. Valid until the next call.
  std::span<const float> logits();

  /// Probabilities or values in units of the data at this moment, as Model::answer.
  std::span<const float> answer();

  /// |z| of every block at this moment [depth]: how much each of them remembers.
  void norms(std::span<float> out) const;

  /// Steps of the network since the beginning.
  int64_t steps() const;

  /// Back to the beginning of a sequence.
  void reset();

  /// The whole state as bytes, for save() and restore(): another stream of the same model, in
  /// another process or later, goes on where this one was, to the bit.
  size_t state_size() const;
  void save(std::span<std::byte> state) const;
  /// std::invalid_argument when the bytes are not a state of this very model.
  void restore(std::span<const std::byte> state);

  /// Bytes that this stream holds.
  size_t memory() const;
  const Model& model() const;

  /// Pushes one step to each of many streams of one model at once, values [streams, inputs]. Their
  /// rows meet the weights together, which is several times faster than one by one.
  static void push_each(std::span<Stream* const> streams, std::span<const float> values);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace rotrnn::runtime
