#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "rotrnn/runtime/visibility.h"
#include "rotrnn/spec/kinds.h"

/// Trained models where they are used: nothing but the C and C++ runtime.
///
///     const auto model = rotrnn::runtime::Model::load("model.safetensors");
///     rotrnn::runtime::Stream stream(model);
///     stream.push(samples);                      // one step or any number of them
///     stream.answer();                           // probabilities at this moment
namespace rotrnn {
class SafeTensorFile;
}

namespace rotrnn::runtime {

/// What is in a model, for people and for callers that choose how to feed it.
struct ModelInfo {
  std::string layer, activation, task, version;
  std::string system;                        // "diagonal", or "channel": channels of their own
  int64_t width = 0, states = 0, depth = 0;  // D, S (of each channel: N), number of blocks
  int64_t degree = 1;                        // inputs in the longest product that enters a channel
  int64_t parameters = 0;                    // numbers in the file
  bool bidirectional = false;
  Pooling pooling = Pooling::mean;
  // Input: token numbers below `inputs`, or `inputs` channels in their natural units.
  bool tokens = false;
  int64_t inputs = 0;
  bool text = false;                  // tokens are made from text by the model's vocabulary
  int64_t rate = 0;                   // samples per second; 0: not known
  std::vector<std::string> channels;  // their names; may be empty
  int64_t keep_every = 1;             // every k-th step of the input is one of the network
  int64_t max_length = 0;             // steps of a sequence that training kept; 0: all
  // A front end makes one step of the network of `window` kept ones, the next `hop` later.
  std::string frontend;  // in words; empty: there is none
  int64_t window = 1, hop = 1;
  // Output: a number for each class, or values.
  bool classifies = true;
  int64_t outputs = 0;
  std::vector<std::string> classes;  // one name per output, where there are classes
  std::vector<std::string> values;   // names of the values, where they have some
  int64_t horizon = 0;               // values are the next `horizon` steps of channels; 0: not so
  bool per_step = false;             // trained to predict at every step
  int64_t towers = 1;                // sequences of one example: 2 for pairs
};

struct PackedModel;  // the weights, laid out for the kernels

/// A folded model, as `rotrnn export` writes it. Immutable: any number of threads may use one.
class ROTRNN_API Model {
 public:
  /// Maps the file and checks it completely; std::runtime_error that names the file, what was seen
  /// and what to do.
  static std::shared_ptr<const Model> load(const std::filesystem::path& file);

  /// The same from the bytes of a file; `where` stands for the path in messages.
  static std::shared_ptr<const Model> from_bytes(std::string bytes, const std::string& where);

  ~Model();
  const ModelInfo& info() const;

  /// Logits [outputs] to what people want: probabilities of the classes, or values in the units of
  /// the data. In place.
  void answer(std::span<float> logits) const;

  /// The token numbers of a whole text, as training saw it (cut at max_length, with its end mark).
  /// std::invalid_argument when the model does not take text.
  std::vector<int32_t> tokens(std::string_view text) const;

  const PackedModel& packed() const { return *packed_; }

 private:
  Model();
  static std::shared_ptr<const Model> make(const SafeTensorFile& file, const std::string& where);
  std::unique_ptr<PackedModel> packed_;
};

}  // namespace rotrnn::runtime
