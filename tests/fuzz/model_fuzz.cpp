// tests/fuzz/run build/fuzz 600 model
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "rotrnn/runtime/c_api.h"
#include "rotrnn/runtime/model.h"
#include "rotrnn/runtime/score.h"
#include "rotrnn/runtime/stream.h"

using namespace rotrnn::runtime;

// An untrusted model may be slow, but not for longer than a fuzzer waits.
constexpr int64_t kMostNumbers = 1 << 20;

static void use(const std::shared_ptr<const Model>& model) {
  const ModelInfo& info = model->info();
  const std::vector<float> values(info.tokens ? 0 : 5 * static_cast<std::size_t>(info.inputs),
                                  0.5F);
  const std::vector<int32_t> tokens(5, static_cast<int32_t>(info.inputs - 1));
  try {
    Stream stream(model);
    info.tokens ? stream.push_tokens(tokens) : stream.push(values);
    if (info.text) stream.push_text("a\xce\xa9");
    if (stream.logits().size() != static_cast<std::size_t>(info.outputs)) std::abort();
    stream.answer();
    std::vector<std::byte> state(stream.state_size());
    stream.save(state);
    stream.restore(state);
    stream.end();
  } catch (const std::invalid_argument&) {
    // What such a model cannot do.
  }
  try {
    Scorer scorer(model, 1);
    const std::array<int64_t, 3> offsets{0, 2, 5};
    info.tokens ? scorer.score_tokens(tokens, offsets) : scorer.score(values, offsets);
    if (info.text) model->tokens("abc");
  } catch (const std::invalid_argument&) {
  }
}

// Any bytes are a model that can be used, or the one documented error; C and C++ agree.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t size) {
  std::shared_ptr<const Model> model;
  try {
    model = Model::from_bytes(std::string(reinterpret_cast<const char*>(data), size), "fuzz");
  } catch (const std::runtime_error&) {
    // The only way in which a bad file may end.
  }
  rotrnn_model* handle = nullptr;
  const rotrnn_status status = rotrnn_model_from_memory(data, size, &handle);
  if ((status == ROTRNN_OK) != (model != nullptr)) std::abort();
  rotrnn_model_free(handle);
  const bool small = model && model->info().parameters < kMostNumbers &&
                     model->info().inputs < kMostNumbers && model->info().outputs < kMostNumbers;
  if (small) use(model);
  return 0;
}
