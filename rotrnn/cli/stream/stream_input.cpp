#include "rotrnn/cli/stream/stream_input.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstring>
#include <memory>
#include <stdexcept>

#include "rotrnn/base/text/nearest.h"
#include "rotrnn/base/text/number.h"
#include "rotrnn/base/text/text_place.h"
#include "rotrnn/io/formats/csv.h"
#include "rotrnn/io/formats/wav_stream.h"

namespace rotrnn::cli {
namespace {

using runtime::ModelInfo;

constexpr size_t kMostLine = size_t{1} << 20;

StreamDecoder wav_decoder(const ModelInfo& info, const std::string& name) {
  struct State {
    WavStream wav;
    std::vector<float> samples;
    bool checked = false;
  };
  auto state = std::make_shared<State>(State{WavStream(name), {}});
  const int64_t rate = info.rate, inputs = info.inputs;
  const auto check = [=](const WavStream& wav) {
    if (rate != 0 && wav.rate() != rate) {
      throw std::runtime_error(
          fmt::format("{}: {} samples per second, the model was trained on {}; resample it: "
                      "ffmpeg -loglevel error -i FILE -ar {} -f wav - | rotrnn stream MODEL",
                      name, wav.rate(), rate, rate));
    }
    if (inputs != 1 && wav.channels() != inputs) {
      throw std::runtime_error(
          fmt::format("{}: {} channels, the model takes {}", name, wav.channels(), inputs));
    }
  };
  StreamDecoder out;
  out.feed = [=](std::string_view bytes, StreamInput& to) {
    state->samples.clear();
    state->wav.feed(bytes, state->samples);
    if (!state->checked && state->wav.ready()) {
      check(state->wav);
      state->checked = true;
    }
    const auto channels = static_cast<size_t>(state->wav.channels());
    if (channels == static_cast<size_t>(inputs)) {
      to.values.insert(to.values.end(), state->samples.begin(), state->samples.end());
      return;
    }
    for (size_t at = 0; at < state->samples.size(); at += channels) {  // the mean of all channels
      float sum = 0;
      for (size_t c = 0; c < channels; ++c) sum += state->samples[at + c];
      to.values.push_back(sum / static_cast<float>(channels));
    }
  };
  out.end = [=](StreamInput&) { state->wav.end(); };
  return out;
}

// Numbers of `size` bytes one after the other, lowest byte first.
template <typename Convert>
StreamDecoder raw_decoder(size_t size, const ModelInfo& info, const std::string& name,
                          const Convert& convert) {
  auto held = std::make_shared<std::string>();
  const size_t step = size * static_cast<size_t>(info.inputs);
  StreamDecoder out;
  out.feed = [=](std::string_view bytes, StreamInput& to) {
    held->append(bytes);
    const size_t whole = held->size() / step * step;
    for (size_t at = 0; at < whole; at += size) to.values.push_back(convert(held->data() + at));
    held->erase(0, whole);
  };
  out.end = [=](StreamInput&) {
    if (held->empty()) return;
    throw std::runtime_error(
        fmt::format("{}: ends inside a step of {} bytes; is --format right?", name, step));
  };
  return out;
}

template <typename T>
T little(const char* at) {
  static_assert(std::endian::native == std::endian::little);
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

// Calls body(line, number) for every whole line; at the end for what is left.
template <typename Body>
StreamDecoder line_decoder(const std::string& name, const Body& body) {
  struct State {
    std::string held;
    int64_t number = 0;
  };
  auto state = std::make_shared<State>();
  const auto take = [=](std::string_view line, StreamInput& to) {
    if (line.ends_with('\r')) line.remove_suffix(1);
    body(line, TextPlace{name, ++state->number}, to);
  };
  StreamDecoder out;
  out.feed = [=](std::string_view bytes, StreamInput& to) {
    for (size_t end; (end = bytes.find('\n')) != std::string_view::npos;) {
      if (state->held.empty()) {
        take(bytes.substr(0, end), to);
      } else {
        state->held.append(bytes.substr(0, end));
        take(state->held, to);
        state->held.clear();
      }
      bytes.remove_prefix(end + 1);
    }
    state->held.append(bytes);
    if (state->held.size() > kMostLine) {
      TextPlace{name, state->number + 1}.fail(
          fmt::format("the line is longer than {} bytes; is --format right?", kMostLine));
    }
  };
  out.end = [=](StreamInput& to) {
    if (!state->held.empty()) take(state->held, to);
  };
  return out;
}

// The columns of a table of numbers, one row per step.
class CsvSteps {
 public:
  CsvSteps(const ModelInfo& info, std::string name)
      : names_(info.channels), inputs_(static_cast<size_t>(info.inputs)), name_(std::move(name)) {}

  void row(std::string_view line, const TextPlace& place, StreamInput& to) {
    if (trimmed(line).empty()) return;
    if (separator_ == 0) {
      if (line.starts_with("\xef\xbb\xbf")) line.remove_prefix(3);
      separator_ = guess_separator(line);
      split(line, place);
      if (!to_float(fields_.front())) return header(place);
      for (size_t i = 0; i < inputs_; ++i) columns_.push_back(i);
      width_ = inputs_;
    } else {
      split(line, place);
    }
    if (fields_.size() != width_) {
      place.fail(fmt::format("{} columns, expected {}", fields_.size(), width_));
    }
    for (const size_t column : columns_) {
      const auto value = to_float(fields_[column]);
      if (!value) {
        place.fail(fmt::format("column {}: {}", column + 1, not_a_number_message(fields_[column])));
      }
      to.values.push_back(*value);
    }
  }

 private:
  void split(std::string_view line, const TextPlace& place) {
    fields_.clear();
    if (line.find('"') != std::string_view::npos) {
      quoted_ = line;
      CsvReader reader(quoted_, name_, {separator_, true});
      std::vector<std::string_view> fields;
      if (reader.next(fields)) fields_.assign(fields.begin(), fields.end());
      if (fields_.empty()) place.fail("the line is empty");
      return;
    }
    for (size_t begin = 0; begin <= line.size();) {
      const size_t end = std::min(line.find(separator_, begin), line.size());
      fields_.emplace_back(line.substr(begin, end - begin));
      begin = end + 1;
    }
  }

  void header(const TextPlace& place) {
    width_ = fields_.size();
    if (names_.empty()) {
      if (width_ != inputs_) {
        place.fail(fmt::format("{} columns, the model takes {} channels", width_, inputs_));
      }
      for (size_t i = 0; i < inputs_; ++i) columns_.push_back(i);
      return;
    }
    for (const std::string& name : names_) {
      const auto found = std::find_if(fields_.begin(), fields_.end(),
                                      [&](const std::string& f) { return trimmed(f) == name; });
      if (found == fields_.end()) {
        place.fail(fmt::format("there is no column \"{}\"; the model takes {}", name,
                               fmt::join(names_, ", ")));
      }
      columns_.push_back(static_cast<size_t>(found - fields_.begin()));
    }
  }

  std::vector<std::string> names_;
  size_t inputs_, width_ = 0;
  std::string name_, quoted_;
  char separator_ = 0;
  std::vector<std::string> fields_;
  std::vector<size_t> columns_;  // of the channels
};

StreamDecoder csv_decoder(const ModelInfo& info, const std::string& name) {
  auto steps = std::make_shared<CsvSteps>(info, name);
  return line_decoder(name, [steps](std::string_view line, const TextPlace& place,
                                    StreamInput& to) { steps->row(line, place, to); });
}

StreamDecoder token_decoder(const ModelInfo& info, const std::string& name) {
  const int64_t most = info.inputs - 1;
  const auto read = [most](std::string_view line, const TextPlace& place, StreamInput& to) {
    constexpr std::string_view kBlank = " \t\r,";
    for (size_t at = line.find_first_not_of(kBlank); at != std::string_view::npos;) {
      const size_t end = std::min(line.find_first_of(kBlank, at), line.size());
      const std::string_view word = line.substr(at, end - at);
      int32_t token = -1;
      const auto [last, error] = std::from_chars(word.data(), word.data() + word.size(), token);
      if (error != std::errc() || last != word.data() + word.size() || token < 0 || token > most) {
        place.fail(fmt::format("{} is not a token of this model; they are numbers, 0 to {}",
                               excerpt(word), most));
      }
      to.tokens.push_back(token);
      at = line.find_first_not_of(kBlank, end);
    }
  };
  return line_decoder(name, read);
}

StreamDecoder text_decoder() {
  StreamDecoder out;
  out.feed = [](std::string_view bytes, StreamInput& to) { to.text.append(bytes); };
  out.end = [](StreamInput&) {};
  return out;
}

// Letters, digits and what stands between numbers in a table.
bool looks_like_text(std::string_view bytes) {
  return !bytes.empty() && std::all_of(bytes.begin(), bytes.end(), [](char c) {
    return (c >= ' ' && c < 0x7f) || c == '\n' || c == '\r' || c == '\t' || (c & 0x80) != 0;
  }) && std::any_of(bytes.begin(), bytes.end(), [](char c) { return c >= ' ' && c < 0x7f; });
}

void check_takes(const std::string& format, const ModelInfo& info) {
  const bool tokens = format == "tokens", text = format == "bytes";
  const bool fits = tokens ? info.tokens : text ? info.text : !info.tokens;
  if (fits) return;
  throw std::invalid_argument(fmt::format(
      "--format {}: this model takes {}", format,
      !info.tokens
          ? fmt::format("values of {}: wav, s16, f32, u8 or csv", counted(info.inputs, "channel"))
      : info.text ? "text (bytes) or token numbers (tokens)"
                  : "token numbers (tokens)"));
}

}  // namespace

const std::vector<std::string>& stream_formats() {
  static const std::vector<std::string> names{"wav", "s16", "f32", "u8", "csv", "bytes", "tokens"};
  return names;
}

std::string guess_stream_format(std::string_view first, const ModelInfo& info,
                                const std::string& name) {
  if (info.text) return "bytes";
  if (info.tokens) return "tokens";
  if (is_wav(first)) return "wav";
  for (const std::string_view packed : {"fLaC", "OggS", "ID3", "FORM", "\xff\xfb"}) {
    if (!first.starts_with(packed)) continue;
    throw std::runtime_error(
        fmt::format("{}: begins with {}, as FLAC, Ogg, MP3 and AIFF do, which a stream does not "
                    "read; unpack it: ffmpeg -loglevel error -i FILE{} -f wav - | rotrnn stream "
                    "MODEL",
                    name, excerpt(packed), info.rate > 0 ? fmt::format(" -ar {}", info.rate) : ""));
  }
  if (looks_like_text(first)) return "csv";
  if (first.empty()) return "csv";  // nothing at all is nothing in any format
  if (info.rate > 0 && info.inputs == 1) return "s16";
  throw std::runtime_error(
      fmt::format("{}: begins with {}, which is neither WAV nor CSV; say what it is by --format",
                  name, excerpt(first)));
}

StreamDecoder stream_decoder(const std::string& format, const ModelInfo& info,
                             const std::string& name) {
  check_takes(format, info);
  if (format == "wav") return wav_decoder(info, name);
  if (format == "csv") return csv_decoder(info, name);
  if (format == "tokens") return token_decoder(info, name);
  if (format == "bytes") return text_decoder();
  if (format == "s16") {
    return raw_decoder(2, info, name,
                       [](const char* at) { return little<int16_t>(at) / 32768.0f; });
  }
  if (format == "f32") return raw_decoder(4, info, name, little<float>);
  if (format == "u8") {  // samples of audio swing about 128, pixels begin at 0
    const bool audio = info.rate > 0;
    return raw_decoder(1, info, name, [audio](const char* at) {
      const auto value = static_cast<float>(static_cast<uint8_t>(*at));
      return audio ? (value - 128) / 128 : value / 255;
    });
  }
  throw std::invalid_argument(fmt::format("--format: \"{}\" is not known", format));
}

}  // namespace rotrnn::cli
