#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "rotrnn/runtime/model.h"

namespace rotrnn::cli {

/// What has arrived for a stream; one of the three, by what the model takes.
struct StreamInput {
  std::vector<float> values;  // whole steps of all channels, in natural units
  std::vector<int32_t> tokens;
  std::string text;
};

/// Turns the bytes of one format into it. What cannot be read is a std::runtime_error with its
/// place.
struct StreamDecoder {
  std::function<void(std::string_view bytes, StreamInput& out)> feed;
  std::function<void(StreamInput& out)> end;  // no more bytes come
};

/// Names of the formats: wav, s16, f32, u8, csv, bytes, tokens.
const std::vector<std::string>& stream_formats();

/// Bytes that guess_stream_format() needs.
inline constexpr size_t kGuessBytes = 12;

/// The format of an input that begins with these bytes: WAV and CSV by their looks, else by what
/// the model takes; std::runtime_error when that leaves a choice.
std::string guess_stream_format(std::string_view first, const runtime::ModelInfo& info,
                                const std::string& name);

/// `name` stands for the input in messages; std::invalid_argument when the model does not take such
/// a format.
StreamDecoder stream_decoder(const std::string& format, const runtime::ModelInfo& info,
                             const std::string& name);

}  // namespace rotrnn::cli
