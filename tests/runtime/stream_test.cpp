#include "rotrnn/runtime/stream.h"

#include <algorithm>
#include <array>
#include <limits>
#include <thread>

#include "rotrnn/runtime/score.h"
#include "tests/runtime/cases.h"

namespace rotrnn::runtime::test {
namespace {

// Float32 rounds at 6e-8 and a row goes through up to three blocks, whose states sum some hundred
// to thousand steps; the largest difference seen on these cases is given by
// TheDistanceIsOfRounding.
constexpr double kTolerance = 1e-5;

// Pushes steps [begin, end) of a case; the rows after each.
std::vector<float> push(Stream& stream, const Case& c, int64_t begin, int64_t end) {
  const auto from = static_cast<size_t>(begin), count = static_cast<size_t>(end - begin);
  std::vector<float> each(count * static_cast<size_t>(c.outputs));
  int64_t made = 0;
  if (c.takes_tokens()) {
    made = stream.push_tokens(std::span(c.tokens).subspan(from, count), each);
  } else {
    const auto C = static_cast<size_t>(c.inputs);
    made = stream.push(std::span(c.values).subspan(from * C, count * C), each);
  }
  each.resize(static_cast<size_t>(made * c.outputs));
  return each;
}

// The sizes of chunks, for ever.
std::function<int64_t()> always(int64_t size) {
  return [size] { return size; };
}

std::function<int64_t()> randomly(uint32_t seed) {
  return [engine = std::mt19937(seed)]() mutable {
    return std::uniform_int_distribution<int64_t>(1, 40)(engine);
  };
}

// Every row of a case against NumPy, pushed in chunks; the largest distance. After every chunk
// logits() must be the last row.
double check_chunks(const Case& c, Stream& stream, const std::function<int64_t()>& next) {
  double most = 0;
  int64_t row = 0;
  for (int64_t t = 0; t < c.steps();) {
    const int64_t end = std::min(c.steps(), t + next());
    const auto each = push(stream, c, t, end);
    const auto made = std::ssize(each) / c.outputs;
    for (int64_t r = 0; r < made; ++r, ++row) {
      const auto got = std::span<const float>(each).subspan(static_cast<size_t>(r * c.outputs),
                                                            static_cast<size_t>(c.outputs));
      most = std::max(most, distance(got, c.row(row)));
      if (r + 1 == made) most = std::max(most, distance(stream.logits(), c.row(row)));
    }
    EXPECT_EQ(stream.steps(), row);
    t = end;
  }
  EXPECT_EQ(row, c.rows());
  return most;
}

TEST(Stream, EqualsFloat64AtEveryPrefixInChunksOfAnySize) {
  int streamed = 0;
  for (const Case& c : cases()) {
    if (!c.streams) continue;
    SCOPED_TRACE(c.name);
    ++streamed;
    const auto model = c.load();
    for (const size_t rows : {size_t{12}, size_t{1}, size_t{50}}) {
      Stream stream(model, rows);
      for (const int64_t chunk : {1, 7, 64, 1000}) {
        stream.reset();
        EXPECT_LT(check_chunks(c, stream, always(chunk)), kTolerance) << chunk;
      }
      for (uint32_t seed = 0; seed < 3; ++seed) {
        stream.reset();
        EXPECT_LT(check_chunks(c, stream, randomly(seed)), kTolerance);
      }
    }
  }
  EXPECT_GE(streamed, 70);
}

TEST(Stream, TheDistanceIsOfRounding) {
  double most = 0;
  for (const Case& c : cases()) {
    if (!c.streams) continue;
    Stream stream(c.load());
    most = std::max(most, check_chunks(c, stream, always(1)));
  }
  RecordProperty("largest_distance", std::to_string(most));
  std::printf("largest distance to float64: %.2g\n", most);
  EXPECT_GT(most, 1e-8);  // or nothing was compared
}

TEST(Stream, AnswersProbabilitiesAndValuesInUnitsOfTheData) {
  for (const Case& c : cases()) {
    if (!c.streams) continue;
    SCOPED_TRACE(c.name);
    Stream stream(c.load());
    push(stream, c, 0, c.steps());
    EXPECT_LT(distance(stream.answer(), std::span(c.answer)), kTolerance);
  }
}

TEST(Stream, GoesOnFromASavedStateToTheBit) {
  for (const Case& c : cases()) {
    if (!c.streams) continue;
    SCOPED_TRACE(c.name);
    const auto model = c.load();
    const int64_t middle = c.steps() / 2 + 1;
    Stream one(model);
    push(one, c, 0, middle);
    std::vector<std::byte> state(one.state_size());
    one.save(state);
    Stream other(Model::load(c.file), 5);  // another load of the same file, other chunks
    push(other, c, 0, 3);                  // and a past of its own
    other.restore(state);
    EXPECT_EQ(other.steps(), one.steps());
    const std::vector<float> at(one.logits().begin(), one.logits().end());
    EXPECT_TRUE(std::equal(at.begin(), at.end(), other.logits().begin()));
    for (int64_t t = middle; t < c.steps(); ++t)
      EXPECT_EQ(push(one, c, t, t + 1), push(other, c, t, t + 1));
    EXPECT_LT(distance(other.logits(), c.row(c.rows() - 1)), kTolerance);
    std::vector<std::byte> a(one.state_size()), b(one.state_size());
    one.save(a);
    other.save(b);
    EXPECT_EQ(a, b);
  }
}

TEST(Stream, ResetBeginsAnew) {
  for (const Case& c : cases()) {
    if (!c.streams) continue;
    SCOPED_TRACE(c.name);
    Stream stream(c.load());
    for (const float x : stream.logits()) EXPECT_EQ(x, 0);
    EXPECT_EQ(stream.steps(), 0);
    push(stream, c, 0, c.steps() / 2);
    stream.end();
    stream.reset();
    EXPECT_EQ(stream.steps(), 0);
    for (const float x : stream.logits()) EXPECT_EQ(x, 0);
    EXPECT_LT(check_chunks(c, stream, always(9)), kTolerance);
  }
}

TEST(Stream, OfManyAtOnceIsThatOfEach) {
  for (const char* name : {"plain", "last", "none", "start", "per step", "keep every", "wide",
                           "s4d", "s4", "liquid kb 4", "liquid pb 3", "s4d none"}) {
    SCOPED_TRACE(name);
    const Case& c = case_named(name);
    const auto model = c.load();
    const auto C = static_cast<size_t>(c.inputs);
    // Stream i is i steps ahead of the others, so that their states differ.
    constexpr int64_t kStreams = 31, kTogether = 20;
    std::vector<Stream> streams;
    std::vector<Stream*> pointers;
    for (int64_t i = 0; i < kStreams; ++i) {
      streams.emplace_back(model);
      if (i > 0) push(streams.back(), c, 0, i);
    }
    for (Stream& stream : streams) pointers.push_back(&stream);
    for (int64_t t = 0; t < kTogether; ++t) {
      std::vector<float> values;
      for (int64_t i = 0; i < kStreams; ++i) {
        const auto at = static_cast<ptrdiff_t>((t + i) * c.inputs);
        values.insert(values.end(), c.values.begin() + at, c.values.begin() + at + c.inputs);
      }
      Stream::push_each(pointers, values);
      EXPECT_THROW(Stream::push_each(pointers, std::span(values).subspan(C)),
                   std::invalid_argument);
    }
    for (int64_t i = 0; i < kStreams; ++i) {
      const int64_t row = streams[static_cast<size_t>(i)].steps() - 1;
      EXPECT_LT(distance(streams[static_cast<size_t>(i)].logits(), c.row(row)), kTolerance) << i;
    }
  }
}

TEST(Stream, PushEachWantsStreamsOfOneModel) {
  const Case& c = case_named("plain");
  Stream one(c.load()), other(c.load());
  std::array<Stream*, 2> both{&one, &other}, null{&one, nullptr};
  const std::array<float, 2> values{1, 2};
  EXPECT_THROW(Stream::push_each(both, values), std::invalid_argument);
  EXPECT_THROW(Stream::push_each(null, values), std::invalid_argument);
  EXPECT_EQ(one.steps(), 0);
  Stream::push_each({}, {});
}

TEST(Stream, TakesTextCutInsideCharacters) {
  for (const char* name : {"bytes", "characters"}) {
    SCOPED_TRACE(name);
    const Case& c = case_named(name);
    const auto model = c.load();
    EXPECT_EQ(model->tokens(c.text), c.tokens);
    for (const size_t chunk : {1, 2, 3, 7, 1000}) {
      Stream stream(model);
      int64_t row = 0;
      double most = 0;
      for (size_t at = 0; at < c.text.size(); at += chunk) {
        const std::string_view part = std::string_view(c.text).substr(at, chunk);
        std::vector<float> each(part.size() * static_cast<size_t>(c.outputs));
        const int64_t made = stream.push_text(part, each);
        for (int64_t r = 0; r < made; ++r, ++row) {
          most = std::max(most, distance(std::span<const float>(each).subspan(
                                             static_cast<size_t>(r * c.outputs),
                                             static_cast<size_t>(c.outputs)),
                                         c.row(row)));
        }
      }
      EXPECT_LT(most, kTolerance) << chunk;
      EXPECT_EQ(row, c.rows() - 1);  // the end mark is missing
      stream.end();
      EXPECT_EQ(stream.steps(), c.rows());
      EXPECT_LT(distance(stream.logits(), c.row(c.rows() - 1)), kTolerance);
    }
  }
}

TEST(Stream, ASavedStateHoldsHalfACharacter) {
  const Case& c = case_named("characters");
  const auto model = c.load();
  const std::string text = "ab世e";
  Stream whole(model), cut(model), rest(model);
  whole.push_text(text);
  cut.push_text(std::string_view(text).substr(0, 4));
  std::vector<std::byte> state(cut.state_size());
  cut.save(state);
  EXPECT_THROW(cut.end(), std::invalid_argument);
  rest.restore(state);
  EXPECT_EQ(rest.push_text(std::string_view(text).substr(4)), 2);
  EXPECT_TRUE(std::equal(whole.logits().begin(), whole.logits().end(), rest.logits().begin()));
}

TEST(Stream, EndAddsTheMarkOnce) {
  const Case& c = case_named("tokens with an end mark");
  Stream stream(c.load());
  push(stream, c, 0, c.steps() - 1);  // the mark is the last token of the case
  stream.end();
  EXPECT_EQ(stream.steps(), c.steps());
  EXPECT_LT(distance(stream.logits(), c.row(c.rows() - 1)), kTolerance);
  stream.end();
  EXPECT_EQ(stream.steps(), c.steps());
  EXPECT_THROW(stream.push_tokens(std::array{3}), std::invalid_argument);
  // A model without one is as it was.
  const Case& plain = case_named("plain");
  Stream values(plain.load());
  push(values, plain, 0, 10);
  values.end();
  EXPECT_EQ(values.steps(), 10);
}

TEST(Stream, ThinsOutTheInputFromItsFirstStepOn) {
  const Case& c = case_named("keep every");
  Stream stream(c.load());
  int64_t made = 0;
  for (int64_t t = 0; t < 10; ++t) {
    const auto row = push(stream, c, t, t + 1);
    EXPECT_EQ(row.empty(), t % 3 != 0) << t;
    made += !row.empty();
    EXPECT_EQ(stream.steps(), made);
  }
}

TEST(Stream, GoesNoFurtherThanItsMeans) {
  const Case& c = case_named("per step");
  Stream stream(c.load());
  push(stream, c, 0, 299);
  const auto what = thrown<std::invalid_argument>([&] { stream.push(std::vector<float>(2)); });
  EXPECT_NE(what.find("300 steps"), std::string::npos) << what;
  EXPECT_EQ(stream.steps(), 299);
  push(stream, c, 299, 300);
  EXPECT_LT(distance(stream.logits(), c.row(299)), kTolerance);
}

// What the stream said before and after a refused call is the same.
void expect_refused(Stream& stream, const char* part, const std::function<void()>& call) {
  std::vector<std::byte> before(stream.state_size()), after(stream.state_size());
  stream.save(before);
  const std::string what = thrown<std::invalid_argument>(call);
  EXPECT_NE(what.find(part), std::string::npos) << "\"" << what << "\" does not say " << part;
  stream.save(after);
  EXPECT_EQ(before, after);
}

TEST(Stream, RefusesWhatItCannotTakeAndStaysAsItWas) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  constexpr float kInf = std::numeric_limits<float>::infinity();
  const Case& none = case_named("none");  // three channels
  Stream values(none.load());
  push(values, none, 0, 5);
  std::vector<float> room(4);
  expect_refused(values, "whole steps", [&] { values.push(std::array{1.0f, 2.0f}); });
  expect_refused(values, "step 1", [&] { values.push(std::array{1.f, 2.f, 3.f, 4.f, kNan, 6.f}); });
  expect_refused(values, "inf", [&] { values.push(std::array{1.f, -kInf, 3.f}); });
  expect_refused(values, "tokens", [&] { values.push_tokens(std::array{1}); });
  expect_refused(values, "text", [&] { values.push_text("a"); });
  expect_refused(values, "room", [&] {
    values.push(std::array{1.f, 2.f, 3.f, 4.f, 5.f, 6.f}, room);
  });
  Stream tokens(case_named("tokens").load());
  tokens.push_tokens(std::array{1, 2, 3});
  expect_refused(tokens, "11", [&] { tokens.push_tokens(std::array{1, 11}); });
  expect_refused(tokens, "-1", [&] { tokens.push_tokens(std::array{-1}); });
  expect_refused(tokens, "values", [&] { tokens.push(std::array{1.0f}); });
  expect_refused(tokens, "text", [&] { tokens.push_text("a"); });
  Stream text(case_named("characters").load());
  text.push_text("ab");
  expect_refused(text, "UTF-8", [&] { text.push_text("ab\xffz"); });
  expect_refused(text, "UTF-8", [&] { text.push_text("\x80"); });
  text.push_text("\xe4\xb8");
  expect_refused(text, "UTF-8", [&] { text.push_text("a"); });
  expect_refused(text, "inside a character", [&] { text.end(); });
  EXPECT_EQ(text.push_text("\x96"), 1);
  EXPECT_EQ(values.push({}), 0);
  EXPECT_EQ(text.push_text(""), 0);
}

TEST(Stream, RefusesStatesThatAreNotOfItsModel) {
  const Case &c = case_named("plain"), &o = case_named("half_glu1 none pre");  // same sizes
  Stream stream(c.load()), other(o.load());
  push(stream, c, 0, 3);
  push(other, o, 0, 3);
  std::vector<std::byte> state(other.state_size());
  other.save(state);
  ASSERT_EQ(state.size(), stream.state_size());
  expect_refused(stream, "another model", [&] { stream.restore(state); });
  stream.save(state);
  expect_refused(stream, "", [&] { stream.restore(std::span(state).first(state.size() - 1)); });
  for (size_t size = 0; size < state.size(); size += 5) {
    EXPECT_THROW(stream.restore(std::span(state).first(size)), std::invalid_argument) << size;
  }
  auto longer = state;
  longer.push_back({});
  EXPECT_THROW(stream.restore(longer), std::invalid_argument);
  EXPECT_THROW(stream.save(longer), std::invalid_argument);
  stream.restore(state);
}

TEST(Stream, SaysWhyAModelCannotStream) {
  const auto says = [](const char* name, const char* part) {
    const auto model = case_named(name).load();
    const auto what = thrown<std::invalid_argument>([&] { Stream stream(model); });
    EXPECT_NE(what.find(part), std::string::npos) << what;
    EXPECT_NE(what.find("Scorer"), std::string::npos) << what;
  };
  says("bidirectional mean", "bidirectional");
  says("bidirectional none", "bidirectional");
  says("s4d bidirectional mean", "bidirectional");
  says("liquid kb bidirectional", "bidirectional");
  says("s4d pairs", "pairs");
  says("pairs", "pairs");
  says("permuted", "order");
  EXPECT_THROW(Stream(nullptr), std::invalid_argument);
  const auto model = case_named("plain").load();
  EXPECT_THROW(Stream(model, 0), std::invalid_argument);
}

TEST(Stream, OutlivesTheHandleOfItsModelAndMoves) {
  const Case& c = case_named("last");
  auto model = c.load();
  Stream first(model);
  model.reset();
  push(first, c, 0, 10);
  Stream second(std::move(first));
  push(second, c, 10, 20);
  EXPECT_LT(distance(second.logits(), c.row(19)), kTolerance);
  Stream third(c.load());
  third = std::move(second);
  EXPECT_LT(distance(third.logits(), c.row(19)), kTolerance);
  EXPECT_EQ(third.model().info().outputs, c.outputs);
}

TEST(Stream, OfOneModelInManyThreads) {
  for (const char* name : {"plain", "none", "wide", "s4d none", "liquid kb 2"}) {
    const Case& c = case_named(name);
    const auto model = c.load();
    std::array<double, 4> most{};
    std::vector<std::thread> threads;
    for (size_t i = 0; i < most.size(); ++i) {
      threads.emplace_back([&, i] {
        Stream stream(model);
        for (int round = 0; round < 3; ++round) {
          stream.reset();
          int64_t row = 0;
          for (int64_t t = 0; t < c.steps();) {
            const int64_t end = std::min(c.steps(), t + static_cast<int64_t>(i) + 1);
            push(stream, c, t, end);
            row = end - 1;
            most[i] = std::max(most[i], distance(stream.logits(), c.row(row)));
            t = end;
          }
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    for (const double d : most) EXPECT_LT(d, kTolerance) << name;
  }
}

TEST(Stream, MemoryDoesNotGrow) {
  const Case& c = case_named("plain");
  Stream stream(c.load());
  const size_t before = stream.memory(), state = stream.state_size();
  push(stream, c, 0, c.steps());
  EXPECT_EQ(stream.memory(), before);
  EXPECT_EQ(stream.state_size(), state);
  EXPECT_GT(before, state / 2);
}

}  // namespace
}  // namespace rotrnn::runtime::test
