#include "rotrnn/runtime/stream.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <optional>
#include <stdexcept>

#include "rotrnn/base/subnormals.h"
#include "rotrnn/base/text/utf8.h"
#include "rotrnn/runtime/packed_model.h"

namespace rotrnn::runtime {
namespace {

constexpr uint64_t kStateMagic = 0x3154535f4e4e5252;  // "RRNN_ST1"

constexpr size_t kSamples = 512;  // numbers that a front end takes together

// The part of a state that is not an array of numbers.
struct Position {
  int64_t steps = 0;          // that the network made: tokens of a front end
  int64_t received = 0;       // that were pushed
  std::array<char, 4> cut{};  // the bytes of a character whose end has not come yet
  uint32_t cut_bytes = 0;
  uint32_t ended = 0;
  int32_t waiting = 0;  // samples in a front end (Frontend::run)
};

struct StateHeader {
  uint64_t magic, fingerprint, size;
  Position position;
};

void check_streams(const PackedModel& n) {
  const std::string why = n.whole_only();
  if (why.empty()) return;
  throw std::invalid_argument(
      why + ", so it cannot stream; score whole sequences (Scorer, rotrnn_score)" +
      (n.info.bidirectional ? ", or train with model.bidirectional = false" : ""));
}

// Whether a saved state may have so many samples in its front end.
bool waiting_fits(const Frontend& frontend, int32_t waiting) {
  const FrontendOptions& o = frontend.options();
  switch (o.kind) {
    case FrontendKind::none:
      break;
    case FrontendKind::patch:
      return waiting < o.size && waiting >= std::min<int64_t>(0, o.size - o.stride);
    case FrontendKind::rotations:
      return waiting >= 0 && waiting < o.hop;
  }
  return waiting == 0;
}

}  // namespace

struct Stream::Impl {
  std::shared_ptr<const Model> model;
  const PackedModel& n;
  size_t rows;  // of a chunk
  Position position;
  // One piece of memory. A saved state holds sums, states, front and the position.
  std::vector<double> sums;       // [D] of all outputs of the last block, for the mean
  kernels::AlignedFloats states;  // of every block, then the last output [D]
  kernels::AlignedFloats front;   // state of the front end
  kernels::AlignedFloats x, scratch, outputs;
  kernels::AlignedFloats samples, token;   // on their way through the front end
  std::vector<kernels::StepState> many;    // states of the streams of push_each
  std::optional<kernels::BankState> bank;  // of a fitted model, in place of sums and states

  Impl(std::shared_ptr<const Model> m, size_t r)
      : model(std::move(m)), n(model->packed()), rows(r) {
    check_streams(n);
    outputs.assign(2 * n.outputs(), 0.0f);
    if (n.frontend.used()) {
      front.assign(n.frontend.state_size(), 0.0f);
      samples.resize(std::max(kSamples, n.inputs()));
      token.resize(n.frontend.outputs());
    }
    if (n.features) {
      bank.emplace(n.features->view());
      x.resize(rows * n.token_inputs());
      scratch.resize(n.features->features());
      return;
    }
    sums.assign(n.D(), 0.0);
    states.assign(n.blocks.size() * n.state_size() + n.D(), 0.0f);
    x.resize(rows * n.D());
    scratch.resize(std::max(n.steps[0].scratch(rows), rows * n.D()));
    many.resize(rows);
  }

  float* state(size_t block) { return states.data() + block * n.state_size(); }
  float* last() { return states.data() + n.blocks.size() * n.state_size(); }
  size_t numbers_size() const {
    if (bank) return bank->size() + front.size() * sizeof(float);
    return sums.size() * sizeof(double) + (states.size() + front.size()) * sizeof(float);
  }

  void reset() {
    position = {};
    if (bank) bank->reset();
    std::fill(sums.begin(), sums.end(), 0.0);
    std::fill(states.begin(), states.end(), 0.0f);
    std::fill(front.begin(), front.end(), 0.0f);
    std::fill(outputs.begin(), outputs.end(), 0.0f);
  }

  void check_goes_on() const {
    if (position.ended != 0) {
      throw std::invalid_argument(
          "the sequence has ended; reset() the stream to begin another one");
    }
  }

  /// The state before the head, from the last output of a step.
  void add_output(const float* out) {
    const size_t D = n.D();
    if (n.info.pooling == Pooling::mean) {
      for (size_t d = 0; d < D; ++d) sums[d] += static_cast<double>(out[d]);
    } else {
      std::copy_n(out, D, last());
    }
    ++position.steps;
  }

  void pooled(float* to) {
    const size_t D = n.D();
    if (n.info.pooling == Pooling::mean) {
      const double scale = 1.0 / static_cast<double>(std::max<int64_t>(position.steps, 1));
      for (size_t d = 0; d < D; ++d) to[d] = static_cast<float>(sums[d] * scale);
    } else {
      std::copy_n(last(), D, to);
    }
  }

  /// Runs the rows of x, encoded, through all blocks; logits after every one go to `each`.
  void run(size_t count, float* each) {
    const kernels::SubnormalsAreZero zero;
    if (bank) return run_bank(count, each);
    for (size_t b = 0; b < n.steps.size(); ++b) {
      const kernels::StepState s{state(b), position.steps == 0};
      n.steps[b].run(x.data(), count, &s, 1, scratch.data());
    }
    for (size_t r = 0; r < count; ++r) {
      add_output(x.data() + r * n.D());
      if (each != nullptr) pooled(scratch.data() + r * n.D());
    }
    if (each != nullptr) n.head.run(*n.simd, scratch.data(), count, each);
  }

  void run_bank(size_t count, float* each) {
    const kernels::Bank view = n.features->view();
    const size_t part = each == nullptr ? count : 1;
    for (size_t r = 0; r < count; r += part) {
      bank->push(view, x.data() + r * view.channels, part);
      position.steps += static_cast<int64_t>(part);
      if (each != nullptr) bank_logits(each + r * n.outputs());
    }
  }

  void bank_logits(float* out) {
    bank->features(scratch.data());
    n.head.run(*n.simd, scratch.data(), 1, out);
  }

  /// Floats of a row of x: what the first block reads, or the bank.
  size_t row() const { return bank ? n.token_inputs() : n.D(); }

  /// A row of x from the values of a token.
  void encode_token(const float* values, float* out) const {
    if (bank) {
      std::copy_n(values, n.token_inputs(), out);
    } else {
      n.encode(values, out);
    }
  }

  float scaled(const float* values, size_t c, int64_t step) const {
    const Preprocessing& p = n.preprocessing;
    const size_t at = p.per_step ? static_cast<size_t>(step) : c;
    return static_cast<float>((static_cast<double>(values[c]) - p.mean[at]) / p.deviation[at]);
  }

  void encode_values(const float* values, float* out, int64_t step) const {
    const size_t C = n.inputs();
    // On the stack for the usual few channels.
    std::array<float, 64> few;
    if (bank) {
      for (size_t c = 0; c < C; ++c) out[c] = scaled(values, c, step);
      return;
    }
    if (C <= few.size()) {
      for (size_t c = 0; c < C; ++c) few[c] = scaled(values, c, step);
      n.encode(few.data(), out);
      return;
    }
    std::copy_n(n.encoder_bias, n.D(), out);
    for (size_t c = 0; c < C; ++c)
      n.simd->axpy(out, n.encoder + c * n.D(), scaled(values, c, step), n.D());
  }

  /// Steps that are kept of those from `from` to `to`.
  int64_t kept(int64_t from, int64_t to) const {
    const int64_t k = n.preprocessing.keep_every;
    const auto until = [k](int64_t received) { return (received + k - 1) / k; };
    return until(to) - until(from);
  }

  /// Steps of `count` received ones that the network makes.
  int64_t kept(int64_t count) const { return kept(position.received, position.received + count); }

  void check_each(size_t steps, std::span<float> each) const {
    if (!each.empty() && each.size() < steps * n.outputs()) {
      throw std::invalid_argument(fmt::format("room for {} numbers, the logits of {} steps are {}",
                                              each.size(), steps, steps * n.outputs()));
    }
  }

  int64_t push_values(std::span<const float> values, std::span<float> each) {
    n.check_values(values);
    check_goes_on();
    const size_t C = n.inputs();
    const auto count = static_cast<int64_t>(values.size() / C);
    const Preprocessing& p = n.preprocessing;
    if (p.per_step && position.received + count > p.max_length) {
      throw std::invalid_argument(
          fmt::format("this model was trained with a mean for every one of {} steps and cannot go "
                      "beyond; reset() the stream",
                      p.max_length));
    }
    const int64_t made = kept(count);
    if (n.frontend.used()) return push_samples(values, made, each);
    check_each(static_cast<size_t>(made), each);
    size_t waiting = 0;
    float* to = each.empty() ? nullptr : each.data();
    for (int64_t i = 0; i < count; ++i) {
      if (position.received++ % p.keep_every != 0) continue;
      encode_values(values.data() + static_cast<size_t>(i) * C, x.data() + waiting * row(),
                    position.received - 1);
      if (++waiting == rows) flush(waiting, to);
    }
    if (waiting > 0) flush(waiting, to);
    return made;
  }

  // Through a front end; returns the tokens.
  int64_t push_samples(std::span<const float> values, int64_t kept_samples, std::span<float> each) {
    const FrontendOptions& o = n.frontend.options();
    const int64_t before = kept(0, position.received), until = before + kept_samples;
    const int64_t made = frontend_complete(o, until) - frontend_complete(o, before);
    check_each(static_cast<size_t>(made), each);
    const size_t C = n.inputs(), room = samples.size() / C;
    size_t filled = 0, waiting = 0;
    float* to = each.empty() ? nullptr : each.data();
    for (size_t i = 0; i < values.size(); i += C) {
      const int64_t step = position.received++;
      if (step % n.preprocessing.keep_every != 0) continue;
      for (size_t c = 0; c < C; ++c) {
        samples[filled * C + c] = scaled(values.data() + i, c, step);
      }
      if (++filled == room) read_samples(filled, waiting, to);
    }
    read_samples(filled, waiting, to);
    if (waiting > 0) flush(waiting, to);
    return made;
  }

  // The first `filled` samples; tokens that they complete go to the rows of x, and on when these
  // are full.
  void read_samples(size_t& filled, size_t& waiting, float*& to) {
    const kernels::SubnormalsAreZero zero;
    for (size_t at = 0; at < filled;) {
      bool complete = false;
      at += n.frontend.run(samples.data() + at * n.inputs(), filled - at, front.data(),
                           position.waiting, token.data(), complete);
      if (!complete) continue;
      encode_token(token.data(), x.data() + waiting * row());
      if (++waiting == rows) flush(waiting, to);
    }
    filled = 0;
  }

  // A sequence that is shorter than a token ends: the token of what there is.
  void end_samples() {
    if (position.steps > 0 || position.received == 0) return;
    n.frontend.partial(front.data(), position.waiting, token.data());
    encode_token(token.data(), x.data());
    run(1, nullptr);
  }

  void flush(size_t& waiting, float*& to) {
    run(waiting, to);
    if (to != nullptr) to += waiting * n.outputs();
    waiting = 0;
  }

  int64_t push_tokens(std::span<const int32_t> tokens, std::span<float> each) {
    n.check_tokens(tokens);
    check_goes_on();
    check_each(tokens.size(), each);
    size_t waiting = 0;
    float* to = each.empty() ? nullptr : each.data();
    for (const int32_t token : tokens) {
      ++position.received;
      n.encode(token, x.data() + waiting * n.D());
      if (++waiting == rows) flush(waiting, to);
    }
    if (waiting > 0) flush(waiting, to);
    return static_cast<int64_t>(tokens.size());
  }

  int64_t push_text(std::string_view text, std::span<float> each);
  void check_text(std::string_view text) const;
};

namespace {

/// Bytes of the character that this byte begins; 0 when no character of UTF-8 begins with it.
size_t bytes_from(char first) {
  const auto c = static_cast<uint8_t>(first);
  return c < 0x80 ? 1 : c < 0xC2 ? 0 : c < 0xE0 ? 2 : c < 0xF0 ? 3 : c < 0xF5 ? 4 : 0;
}

/// Bytes at the end of `text` that may be the beginning of a character.
size_t cut_at_end(std::string_view text) {
  for (size_t back = 1; back <= std::min<size_t>(3, text.size()); ++back) {
    const char c = text[text.size() - back];
    if ((static_cast<uint8_t>(c) & 0xC0) == 0x80) continue;
    return bytes_from(c) > back ? back : 0;
  }
  return 0;
}

}  // namespace

/// Refuses what is not UTF-8, the cut character in front included.
void Stream::Impl::check_text(std::string_view text) const {
  const size_t had = position.cut_bytes;
  size_t begin = 0;
  if (had > 0) {
    std::array<char, 4> joined = position.cut;
    const size_t whole = bytes_from(joined[0]), more = std::min(whole - had, text.size());
    std::copy_n(text.data(), more, joined.data() + had);
    const std::string_view first(joined.data(), had + more);
    size_t at = 0;
    const bool complete = first.size() == whole;
    if (complete ? next_code_point(first, at) == kNotUtf8 : cut_at_end(first) != first.size()) {
      throw std::invalid_argument(fmt::format("byte 0: {}", not_utf8_message(first, 0)));
    }
    begin = more;
  }
  const std::string_view rest = text.substr(begin);
  const std::string_view whole = rest.substr(0, rest.size() - cut_at_end(rest));
  const size_t wrong = find_not_utf8(whole);
  if (wrong != std::string_view::npos) {
    throw std::invalid_argument(
        fmt::format("byte {}: {}", begin + wrong, not_utf8_message(whole, wrong)));
  }
}

int64_t Stream::Impl::push_text(std::string_view text, std::span<float> each) {
  if (!n.info.text) {
    throw std::invalid_argument("text for a model that does not take it; push " +
                                std::string(n.info.tokens ? "token numbers" : "values"));
  }
  check_goes_on();
  check_each(text.size(), each);
  const bool bytes = n.preprocessing.kind == Preprocessing::Kind::bytes;
  if (!bytes) check_text(text);
  size_t waiting = 0;
  int64_t made = 0;
  float* to = each.empty() ? nullptr : each.data();
  for (const char c : text) {
    int32_t token = 0;
    if (bytes) {
      token = kFirstToken + static_cast<uint8_t>(c);
    } else {
      position.cut[position.cut_bytes++] = c;
      if (position.cut_bytes < bytes_from(position.cut[0])) continue;
      token = n.preprocessing.characters.number({position.cut.data(), position.cut_bytes});
      position.cut_bytes = 0;
    }
    ++position.received;
    ++made;
    n.encode(token, x.data() + waiting * n.D());
    if (++waiting == rows) flush(waiting, to);
  }
  if (waiting > 0) flush(waiting, to);
  return made;
}

Stream::Stream(std::shared_ptr<const Model> model, size_t rows) {
  if (model == nullptr) throw std::invalid_argument("a stream needs a model");
  if (rows < 1 || rows > 4096) {
    throw std::invalid_argument(fmt::format("{} rows of a chunk; choose 1 to 4096", rows));
  }
  impl_ = std::make_unique<Impl>(std::move(model), rows);
}

Stream::~Stream() = default;
Stream::Stream(Stream&&) noexcept = default;
Stream& Stream::operator=(Stream&&) noexcept = default;

int64_t Stream::push(std::span<const float> values, std::span<float> each) {
  return impl_->push_values(values, each);
}

int64_t Stream::push_tokens(std::span<const int32_t> tokens, std::span<float> each) {
  return impl_->push_tokens(tokens, each);
}

int64_t Stream::push_text(std::string_view text, std::span<float> each) {
  return impl_->push_text(text, each);
}

void Stream::end() {
  Impl& s = *impl_;
  if (s.position.ended != 0) return;
  if (s.position.cut_bytes > 0) {
    throw std::invalid_argument("the text ends inside a character");
  }
  if (s.n.preprocessing.end_mark) s.push_tokens(std::array{kTokenEnd}, {});
  if (s.n.frontend.used()) s.end_samples();
  s.position.ended = 1;
}

void Stream::set_memory(double memory) {
  Impl& s = *impl_;
  if (!s.bank) {
    throw std::invalid_argument(
        "a memory is for models that rotrnn fit made; others forget by themselves or not at all: "
        "use --segment, or reset() the stream");
  }
  if (!(memory >= 0) || s.position.received > 0) {
    throw std::invalid_argument(
        fmt::format("a memory of {} steps after {}; choose 0 or more before the first step", memory,
                    s.position.received));
  }
  const auto hop = static_cast<double>(s.n.info.hop * s.n.info.keep_every);
  s.bank->set_keep(memory > 0 ? std::exp(-hop / memory) : 1);
}

std::span<const float> Stream::logits() {
  Impl& s = *impl_;
  const std::span<float> out(s.outputs.data(), s.n.outputs());
  if (s.position.steps == 0) {
    std::fill(out.begin(), out.end(), 0.0f);
    return out;
  }
  if (s.bank) {
    s.bank_logits(out.data());
    return out;
  }
  s.pooled(s.x.data());
  s.n.head.run(*s.n.simd, s.x.data(), 1, out.data());
  return out;
}

std::span<const float> Stream::answer() {
  const std::span<const float> from = logits();
  const std::span<float> out(impl_->outputs.data() + from.size(), from.size());
  std::copy(from.begin(), from.end(), out.begin());
  impl_->model->answer(out);
  return out;
}

void Stream::norms(std::span<float> out) const {
  const Impl& s = *impl_;
  if (out.size() != s.n.steps.size()) {
    throw std::invalid_argument(
        fmt::format("room for {} norms, the model has {} blocks", out.size(), s.n.steps.size()));
  }
  for (size_t b = 0; b < out.size(); ++b) {
    out[b] = s.n.steps[b].state_norm(s.states.data() + b * s.n.state_size());
  }
}

int64_t Stream::steps() const {
  return impl_->position.steps;
}

void Stream::reset() {
  impl_->reset();
}

size_t Stream::state_size() const {
  return sizeof(StateHeader) + impl_->numbers_size();
}

void Stream::save(std::span<std::byte> state) const {
  if (state.size() != state_size()) {
    throw std::invalid_argument(
        fmt::format("{} bytes for a state of {}", state.size(), state_size()));
  }
  const Impl& s = *impl_;
  const StateHeader header{kStateMagic, s.n.fingerprint, state.size(), s.position};
  std::byte* at = state.data();
  const auto put = [&at](const void* data, size_t size) {
    if (size > 0) std::memcpy(at, data, size);  // memcpy takes no null, of no size either
    at += size;
  };
  put(&header, sizeof header);
  if (s.bank) {
    s.bank->save(at);
    at += s.bank->size();
    put(s.front.data(), s.front.size() * sizeof(float));
    return;
  }
  put(s.sums.data(), s.sums.size() * sizeof(double));
  put(s.states.data(), s.states.size() * sizeof(float));
  put(s.front.data(), s.front.size() * sizeof(float));
}

void Stream::restore(std::span<const std::byte> state) {
  Impl& s = *impl_;
  StateHeader header{};
  if (state.size() >= sizeof header) std::memcpy(&header, state.data(), sizeof header);
  if (state.size() < sizeof header || header.magic != kStateMagic) {
    throw std::invalid_argument("these bytes are not a saved state of a stream");
  }
  const Position& p = header.position;
  const bool fits = header.size == state.size() && state.size() == state_size() && p.steps >= 0 &&
                    p.received >= 0 && p.ended <= 1 && waiting_fits(s.n.frontend, p.waiting) &&
                    (p.cut_bytes == 0 || (p.cut_bytes < 4 && bytes_from(p.cut[0]) > p.cut_bytes));
  if (header.fingerprint != s.n.fingerprint || !fits) {
    throw std::invalid_argument(
        "this state was saved by a stream of another model; restore it with the file it came from");
  }
  const std::byte* at = state.data() + sizeof header;
  const size_t sums = s.sums.size() * sizeof(double);
  s.position = p;
  if (s.bank) {
    s.bank->restore(at);
    const size_t front = s.front.size() * sizeof(float);
    if (front > 0) std::memcpy(s.front.data(), at + s.bank->size(), front);
    return;
  }
  std::memcpy(s.sums.data(), at, sums);
  const size_t states = s.states.size() * sizeof(float);
  std::memcpy(s.states.data(), at + sums, states);
  if (s.front.empty()) return;
  std::memcpy(s.front.data(), at + sums + states, s.front.size() * sizeof(float));
}

size_t Stream::memory() const {
  const Impl& s = *impl_;
  return sizeof(Stream) + sizeof(Impl) + (s.bank ? s.bank->size() : 0) +
         s.sums.capacity() * sizeof(double) +
         (s.states.capacity() + s.front.capacity() + s.x.capacity() + s.scratch.capacity() +
          s.outputs.capacity() + s.samples.capacity() + s.token.capacity()) *
             sizeof(float) +
         s.many.capacity() * sizeof(kernels::StepState);
}

const Model& Stream::model() const {
  return *impl_->model;
}

void Stream::push_each(std::span<Stream* const> streams, std::span<const float> values) {
  if (streams.empty()) return;
  for (const Stream* stream : streams) {
    if (stream == nullptr || stream->impl_->model != streams[0]->impl_->model) {
      throw std::invalid_argument("push_each: the streams must be of one model");
    }
    stream->impl_->check_goes_on();
  }
  Impl& first = *streams[0]->impl_;
  const PackedModel& n = first.n;
  n.check_values(values);
  const size_t C = n.inputs(), D = n.D(), room = first.rows;
  if (values.size() != streams.size() * C) {
    throw std::invalid_argument(fmt::format("push_each: {} values for {} streams of {} channels",
                                            values.size(), streams.size(), C));
  }
  if (n.preprocessing.keep_every != 1 || n.preprocessing.per_step || n.frontend.used() ||
      n.features) {
    // Their steps are not all alike.
    for (size_t i = 0; i < streams.size(); ++i) streams[i]->push(values.subspan(i * C, C));
    return;
  }
  const kernels::SubnormalsAreZero zero;
  for (size_t begin = 0; begin < streams.size(); begin += room) {
    const size_t count = std::min(room, streams.size() - begin);
    for (size_t r = 0; r < count; ++r) {
      first.encode_values(values.data() + (begin + r) * C, first.x.data() + r * D, 0);
    }
    for (size_t b = 0; b < n.steps.size(); ++b) {
      for (size_t r = 0; r < count; ++r) {
        Impl& s = *streams[begin + r]->impl_;
        first.many[r] = {s.state(b), s.position.steps == 0};
      }
      n.steps[b].run(first.x.data(), count, first.many.data(), count, first.scratch.data());
    }
    for (size_t r = 0; r < count; ++r) {
      Impl& s = *streams[begin + r]->impl_;
      ++s.position.received;
      s.add_output(first.x.data() + r * D);
    }
  }
}

}  // namespace rotrnn::runtime
