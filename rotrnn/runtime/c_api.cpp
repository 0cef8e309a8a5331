#include <algorithm>
#include <cstddef>
#include <cstring>
#include <exception>
#include <limits>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>

#include "rotrnn/runtime/c_api.h"
#include "rotrnn/runtime/c_status.h"
#include "rotrnn/runtime/model.h"
#include "rotrnn/runtime/score.h"
#include "rotrnn/runtime/stream.h"
#include "rotrnn/version.h"

// Handles hold what the C++ interface gives; this file turns exceptions into a status.

struct rotrnn_stream {
  rotrnn::runtime::Stream stream;
};

namespace {

using rotrnn::runtime::fail;
using rotrnn::runtime::guarded;
using rotrnn::runtime::missing;

constexpr char kNoModel[] = "the model is null; load one by rotrnn_model_load";
constexpr char kNoStream[] = "the stream is null; make one by rotrnn_stream_new";

// count·width, or std::invalid_argument when no memory has so many numbers.
size_t numbers_of(size_t count, int64_t width) {
  constexpr size_t kMost = std::numeric_limits<ptrdiff_t>::max() / sizeof(float);
  if (count > kMost / static_cast<size_t>(width)) {
    throw std::invalid_argument(std::to_string(count) + " steps are more than memory can hold");
  }
  return count * static_cast<size_t>(width);
}

template <typename T, typename Score>
rotrnn_status score(const rotrnn_model* model, bool tokens, const T* input, const int64_t* offsets,
                    size_t sequences, int threads, float* logits, size_t capacity,
                    const Score& run) noexcept {
  if (model == nullptr) return missing(kNoModel);
  if (offsets == nullptr) return missing("offsets is null; it holds sequences + 1 numbers");
  const auto& info = model->model->info();
  if (info.tokens != tokens) {
    return fail(ROTRNN_UNSUPPORTED, tokens ? "this model takes values; call rotrnn_score"
                                           : "this model takes tokens; call rotrnn_score_tokens");
  }
  if (threads < 0) return missing("threads is negative; 0 takes all");
  return guarded([&] {
    // Before the size of the input is taken from the last of them.
    if (sequences >= std::numeric_limits<ptrdiff_t>::max() / sizeof(int64_t) || offsets[0] != 0 ||
        !std::is_sorted(offsets, offsets + sequences + 1)) {
      throw std::invalid_argument("offsets must begin with 0 and never fall");
    }
    const size_t count =
        numbers_of(static_cast<size_t>(offsets[sequences]), tokens ? 1 : info.inputs);
    if (input == nullptr && count > 0) throw std::invalid_argument("the input is null");
    rotrnn::runtime::Scorer scorer(model->model, threads);
    const auto out = run(scorer, std::span<const T>(input, count),
                         std::span<const int64_t>(offsets, sequences + 1));
    if (out.size() > capacity || (logits == nullptr && !out.empty())) {
      throw std::invalid_argument("room for " + std::to_string(logits ? capacity : 0) +
                                  " logits, there are " + std::to_string(out.size()));
    }
    std::copy(out.begin(), out.end(), logits);
  });
}

// Calls read() for as many numbers as the model has outputs.
template <typename Read>
rotrnn_status write_outputs(rotrnn_stream* stream, float* out, size_t count,
                            const Read& read) noexcept {
  if (stream == nullptr) return missing(kNoStream);
  if (out == nullptr) return missing("out is null");
  return guarded([&] {
    const auto outputs = static_cast<size_t>(stream->stream.model().info().outputs);
    if (count != outputs) {
      throw std::invalid_argument("room for " + std::to_string(count) + " numbers, the model has " +
                                  std::to_string(outputs) + " outputs");
    }
    const auto numbers = read();
    std::copy(numbers.begin(), numbers.end(), out);
  });
}

template <typename Load>
rotrnn_status load(rotrnn_model** model, const Load& read) noexcept {
  return guarded(ROTRNN_BAD_ARGUMENT, ROTRNN_BAD_FILE,
                 [&] { *model = std::make_unique<rotrnn_model>(rotrnn_model{read()}).release(); });
}

rotrnn_model_info describe(const rotrnn::runtime::ModelInfo& from) {
  rotrnn_model_info info{};
  info.inputs = from.inputs;
  info.outputs = from.outputs;
  info.width = from.width;
  info.states = from.states;
  info.depth = from.depth;
  info.parameters = from.parameters;
  info.rate = from.rate;
  info.tokens = from.tokens;
  info.text = from.text;
  info.classifies = from.classifies;
  info.bidirectional = from.bidirectional;
  info.pairs = from.towers == 2;
  info.window = from.window;
  info.hop = from.hop;
  switch (from.pooling) {
    case rotrnn::Pooling::mean:
      info.pooling = ROTRNN_POOL_MEAN;
      break;
    case rotrnn::Pooling::last:
      info.pooling = ROTRNN_POOL_LAST;
      break;
    case rotrnn::Pooling::none:
      info.pooling = ROTRNN_POOL_NONE;
      break;
  }
  return info;
}

}  // namespace

extern "C" {

const char* rotrnn_version(void) {
  return rotrnn::kVersion;
}

const char* rotrnn_last_error(void) {
  return rotrnn::runtime::last_error();
}

rotrnn_status rotrnn_model_load(const char* file, rotrnn_model** model) {
  if (model == nullptr) return missing("the pointer for the model is null");
  *model = nullptr;
  if (file == nullptr) return missing("the name of the file is null");
  return load(model, [&] { return rotrnn::runtime::Model::load(file); });
}

rotrnn_status rotrnn_model_from_memory(const void* bytes, size_t size, rotrnn_model** model) {
  if (model == nullptr) return missing("the pointer for the model is null");
  *model = nullptr;
  if (bytes == nullptr) return missing("the bytes of the model are null");
  return load(model, [&] {
    return rotrnn::runtime::Model::from_bytes(std::string(static_cast<const char*>(bytes), size),
                                              "model in memory");
  });
}

void rotrnn_model_free(rotrnn_model* model) {
  delete model;
}

rotrnn_status rotrnn_model_describe(const rotrnn_model* model, rotrnn_model_info* info) {
  if (model == nullptr) return missing(kNoModel);
  if (info == nullptr) return missing("info is null");
  constexpr size_t kFirst = offsetof(rotrnn_model_info, pooling) + sizeof(rotrnn_pooling);
  if (info->size < static_cast<int64_t>(kFirst) || info->size > 1 << 16) {
    return missing("info.size is not set; it must be sizeof(rotrnn_model_info)");
  }
  const rotrnn_model_info described = describe(model->model->info());
  const auto size = static_cast<size_t>(info->size);
  std::memset(info, 0, size);
  std::memcpy(info, &described, std::min(size, sizeof described));
  info->size = static_cast<int64_t>(size);
  return ROTRNN_OK;
}

const char* rotrnn_model_class_name(const rotrnn_model* model, int64_t index) {
  if (model == nullptr) {
    missing(kNoModel);
    return nullptr;
  }
  const auto& classes = model->model->info().classes;
  if (index < 0 || index >= static_cast<int64_t>(classes.size())) {
    fail(ROTRNN_BAD_ARGUMENT, "there is no class of this number");
    return nullptr;
  }
  return classes[static_cast<size_t>(index)].c_str();
}

rotrnn_status rotrnn_score(const rotrnn_model* model, const float* values, const int64_t* offsets,
                           size_t sequences, int threads, float* logits, size_t capacity) {
  return score(model, false, values, offsets, sequences, threads, logits, capacity,
               [](auto& scorer, auto input, auto ends) { return scorer.score(input, ends); });
}

rotrnn_status rotrnn_score_tokens(const rotrnn_model* model, const int32_t* tokens,
                                  const int64_t* offsets, size_t sequences, int threads,
                                  float* logits, size_t capacity) {
  return score(
      model, true, tokens, offsets, sequences, threads, logits, capacity,
      [](auto& scorer, auto input, auto ends) { return scorer.score_tokens(input, ends); });
}

rotrnn_status rotrnn_answer(const rotrnn_model* model, float* logits, size_t count) {
  if (model == nullptr) return missing(kNoModel);
  if (logits == nullptr) return missing("logits is null");
  return guarded([&] { model->model->answer(std::span<float>(logits, count)); });
}

rotrnn_status rotrnn_stream_new(const rotrnn_model* model, rotrnn_stream** stream) {
  if (stream == nullptr) return missing("the pointer for the stream is null");
  *stream = nullptr;
  if (model == nullptr) return missing(kNoModel);
  // The arguments are right, so what remains is a model that cannot stream.
  return guarded(ROTRNN_UNSUPPORTED, ROTRNN_INTERNAL, [&] {
    *stream = std::make_unique<rotrnn_stream>(rotrnn_stream{rotrnn::runtime::Stream(model->model)})
                  .release();
  });
}

void rotrnn_stream_free(rotrnn_stream* stream) {
  delete stream;
}

rotrnn_status rotrnn_stream_push(rotrnn_stream* stream, const float* values, size_t steps) {
  if (stream == nullptr) return missing(kNoStream);
  const auto& info = stream->stream.model().info();
  if (info.tokens) {
    return fail(ROTRNN_UNSUPPORTED, "this model takes tokens; call rotrnn_stream_push_tokens");
  }
  if (values == nullptr && steps > 0) return missing("values is null");
  return guarded([&] { stream->stream.push({values, numbers_of(steps, info.inputs)}); });
}

rotrnn_status rotrnn_stream_push_tokens(rotrnn_stream* stream, const int32_t* tokens,
                                        size_t count) {
  if (stream == nullptr) return missing(kNoStream);
  if (!stream->stream.model().info().tokens) {
    return fail(ROTRNN_UNSUPPORTED, "this model takes values; call rotrnn_stream_push");
  }
  if (tokens == nullptr && count > 0) return missing("tokens is null");
  return guarded([&] { stream->stream.push_tokens({tokens, numbers_of(count, 1)}); });
}

rotrnn_status rotrnn_stream_push_text(rotrnn_stream* stream, const char* text, size_t bytes) {
  if (stream == nullptr) return missing(kNoStream);
  const auto& info = stream->stream.model().info();
  if (!info.text) {
    return fail(ROTRNN_UNSUPPORTED,
                info.tokens ? "this model takes token numbers; call rotrnn_stream_push_tokens"
                            : "this model takes values; call rotrnn_stream_push");
  }
  if (text == nullptr && bytes > 0) return missing("text is null");
  return guarded([&] { stream->stream.push_text({text, numbers_of(bytes, 1)}); });
}

rotrnn_status rotrnn_stream_end(rotrnn_stream* stream) {
  if (stream == nullptr) return missing(kNoStream);
  return guarded([&] { stream->stream.end(); });
}

rotrnn_status rotrnn_stream_set_memory(rotrnn_stream* stream, double memory) {
  if (stream == nullptr) return missing(kNoStream);
  return guarded([&] { stream->stream.set_memory(memory); });
}

rotrnn_status rotrnn_stream_reset(rotrnn_stream* stream) {
  if (stream == nullptr) return missing(kNoStream);
  return guarded([&] { stream->stream.reset(); });
}

int64_t rotrnn_stream_steps(const rotrnn_stream* stream) {
  if (stream == nullptr) {
    missing(kNoStream);
    return 0;
  }
  return stream->stream.steps();
}

rotrnn_status rotrnn_stream_logits(rotrnn_stream* stream, float* out, size_t count) {
  return write_outputs(stream, out, count, [&] { return stream->stream.logits(); });
}

rotrnn_status rotrnn_stream_answer(rotrnn_stream* stream, float* out, size_t count) {
  return write_outputs(stream, out, count, [&] { return stream->stream.answer(); });
}

rotrnn_status rotrnn_stream_norms(const rotrnn_stream* stream, float* out, size_t count) {
  if (stream == nullptr) return missing(kNoStream);
  if (out == nullptr) return missing("out is null");
  return guarded([&] { stream->stream.norms({out, count}); });
}

size_t rotrnn_stream_state_size(const rotrnn_stream* stream) {
  if (stream == nullptr) {
    missing(kNoStream);
    return 0;
  }
  return stream->stream.state_size();
}

rotrnn_status rotrnn_stream_save(const rotrnn_stream* stream, void* state, size_t size) {
  if (stream == nullptr) return missing(kNoStream);
  if (state == nullptr) return missing("the memory for the state is null");
  return guarded([&] { stream->stream.save({static_cast<std::byte*>(state), size}); });
}

rotrnn_status rotrnn_stream_restore(rotrnn_stream* stream, const void* state, size_t size) {
  if (stream == nullptr) return missing(kNoStream);
  if (state == nullptr) return missing("the state is null");
  return guarded([&] { stream->stream.restore({static_cast<const std::byte*>(state), size}); });
}

}  // extern "C"
