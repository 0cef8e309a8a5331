#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <thread>

#include "rotrnn/runtime/c_api.h"
#include "tests/runtime/cases.h"

namespace rotrnn::runtime::test {
namespace {

constexpr double kTolerance = 1e-5;  // as for streams

struct ModelHandle {
  explicit ModelHandle(const Case& c) {
    EXPECT_EQ(rotrnn_model_load(c.file.c_str(), &model), ROTRNN_OK) << rotrnn_last_error();
  }
  ~ModelHandle() { rotrnn_model_free(model); }
  ModelHandle(const ModelHandle&) = delete;
  rotrnn_model* model = nullptr;
};

struct StreamHandle {
  explicit StreamHandle(const rotrnn_model* model) {
    EXPECT_EQ(rotrnn_stream_new(model, &stream), ROTRNN_OK) << rotrnn_last_error();
  }
  ~StreamHandle() { rotrnn_stream_free(stream); }
  StreamHandle(const StreamHandle&) = delete;
  rotrnn_stream* stream = nullptr;
};

std::string last() {
  return rotrnn_last_error();
}

TEST(CApi, StreamsAndScoresAsNumPyDoes) {
  for (const Case& c : cases()) {
    SCOPED_TRACE(c.name);
    const ModelHandle m(c);
    rotrnn_model_info info{};
    info.size = sizeof info;
    ASSERT_EQ(rotrnn_model_describe(m.model, &info), ROTRNN_OK);
    EXPECT_EQ(info.inputs, c.inputs);
    EXPECT_EQ(info.outputs, c.outputs);
    EXPECT_EQ(info.tokens, c.takes_tokens());
    EXPECT_EQ(info.text, !c.text.empty());
    std::vector<int64_t> offsets{0};
    for (const int64_t length : c.lengths) offsets.push_back(offsets.back() + length);
    std::vector<float> out(static_cast<size_t>((c.steps() + 2) * c.outputs), 7);
    const auto status = c.takes_tokens()
                            ? rotrnn_score_tokens(m.model, c.tokens.data(), offsets.data(),
                                                  c.lengths.size(), 1, out.data(), out.size())
                            : rotrnn_score(m.model, c.values.data(), offsets.data(),
                                           c.lengths.size(), 1, out.data(), out.size());
    ASSERT_EQ(status, ROTRNN_OK) << last();
    const auto want = info.pooling == ROTRNN_POOL_NONE ? std::span(c.logits) : c.row(c.rows() - 1);
    EXPECT_LT(distance(std::span<const float>(out).first(want.size()), want), kTolerance);
    EXPECT_EQ(out[want.size()], 7);
    const auto K = static_cast<size_t>(c.outputs);
    ASSERT_EQ(rotrnn_answer(m.model, out.data() + want.size() - K, K), ROTRNN_OK);
    EXPECT_LT(distance(std::span<const float>(out).subspan(want.size() - K, K),
                       std::span<const double>(c.answer)),
              kTolerance);
    if (!c.streams) {
      rotrnn_stream* none = nullptr;
      EXPECT_EQ(rotrnn_stream_new(m.model, &none), ROTRNN_UNSUPPORTED);
      EXPECT_EQ(none, nullptr);
      EXPECT_NE(last().find("rotrnn_score"), std::string::npos) << last();
      continue;
    }
    const StreamHandle s(m.model);
    if (!c.text.empty()) {
      EXPECT_EQ(rotrnn_stream_push_text(s.stream, c.text.data(), c.text.size()), ROTRNN_OK);
    } else if (c.takes_tokens()) {
      const size_t count = c.tokens.size() - (c.end_mark ? 1 : 0);
      EXPECT_EQ(rotrnn_stream_push_tokens(s.stream, c.tokens.data(), count), ROTRNN_OK);
    } else {
      for (int64_t t = 0; t < c.steps(); ++t) {
        EXPECT_EQ(rotrnn_stream_push(s.stream, c.values.data() + t * c.inputs, 1), ROTRNN_OK);
      }
    }
    EXPECT_EQ(rotrnn_stream_end(s.stream), ROTRNN_OK);
    EXPECT_EQ(rotrnn_stream_steps(s.stream), c.rows());
    std::vector<float> outputs(K);
    EXPECT_EQ(rotrnn_stream_logits(s.stream, outputs.data(), K), ROTRNN_OK);
    EXPECT_LT(distance(std::span<const float>(outputs), c.row(c.rows() - 1)), kTolerance);
    EXPECT_EQ(rotrnn_stream_answer(s.stream, outputs.data(), K), ROTRNN_OK);
    EXPECT_LT(distance(std::span<const float>(outputs), std::span<const double>(c.answer)),
              kTolerance);
    std::vector<float> norms(static_cast<size_t>(info.depth));
    EXPECT_EQ(rotrnn_stream_norms(s.stream, norms.data(), norms.size()), ROTRNN_OK);
    EXPECT_LT(distance(std::span<const float>(norms), std::span<const double>(c.norms)),
              kTolerance);
    EXPECT_EQ(rotrnn_stream_norms(s.stream, norms.data(), norms.size() + 1), ROTRNN_BAD_ARGUMENT);
    EXPECT_NE(last().find("blocks"), std::string::npos) << last();
  }
}

TEST(CApi, SavesRestoresAndResets) {
  const Case& c = case_named("last");
  const ModelHandle m(c);
  const StreamHandle a(m.model), b(m.model);
  rotrnn_stream_push(a.stream, c.values.data(), 100);
  std::vector<char> state(rotrnn_stream_state_size(a.stream));
  ASSERT_EQ(rotrnn_stream_save(a.stream, state.data(), state.size()), ROTRNN_OK);
  ASSERT_EQ(rotrnn_stream_restore(b.stream, state.data(), state.size()), ROTRNN_OK);
  rotrnn_stream_push(b.stream, c.values.data() + 100, 50);
  EXPECT_EQ(rotrnn_stream_steps(b.stream), 150);
  std::vector<float> out(static_cast<size_t>(c.outputs));
  rotrnn_stream_logits(b.stream, out.data(), out.size());
  EXPECT_LT(distance(std::span<const float>(out), c.row(149)), kTolerance);
  EXPECT_EQ(rotrnn_stream_restore(b.stream, state.data(), state.size() - 1), ROTRNN_BAD_ARGUMENT);
  EXPECT_EQ(rotrnn_stream_save(b.stream, state.data(), state.size() - 1), ROTRNN_BAD_ARGUMENT);
  EXPECT_EQ(rotrnn_stream_reset(b.stream), ROTRNN_OK);
  EXPECT_EQ(rotrnn_stream_steps(b.stream), 0);
}

TEST(CApi, AStreamOutlivesItsModel) {
  const Case& c = case_named("last");
  rotrnn_model* model = nullptr;
  const std::string bytes = file_bytes(c.file);
  ASSERT_EQ(rotrnn_model_from_memory(bytes.data(), bytes.size(), &model), ROTRNN_OK);
  const StreamHandle s(model);
  rotrnn_model_free(model);
  EXPECT_EQ(rotrnn_stream_push(s.stream, c.values.data(), 5), ROTRNN_OK);
  std::vector<float> out(static_cast<size_t>(c.outputs));
  rotrnn_stream_logits(s.stream, out.data(), out.size());
  EXPECT_LT(distance(std::span<const float>(out), c.row(4)), kTolerance);
}

TEST(CApi, NamesClassesAndItself) {
  const ModelHandle m(case_named("plain"));
  EXPECT_STREQ(rotrnn_model_class_name(m.model, 3), "class 3");
  EXPECT_EQ(rotrnn_model_class_name(m.model, 4), nullptr);
  EXPECT_EQ(rotrnn_model_class_name(m.model, -1), nullptr);
  EXPECT_STREQ(rotrnn_version(), ROTRNN_VERSION);
}

// A program that was compiled with an older header, or with a newer one than the library's.
TEST(CApi, DescribesModelsToProgramsOfOtherVersions) {
  const ModelHandle m(case_named("plain"));
  rotrnn_model_info now{};
  now.size = sizeof now;
  ASSERT_EQ(rotrnn_model_describe(m.model, &now), ROTRNN_OK);
  struct {
    rotrnn_model_info known;
    int64_t later[2];
  } newer{};
  std::memset(&newer, 0x5a, sizeof newer);
  newer.known.size = sizeof newer.known + sizeof newer.later[0];
  ASSERT_EQ(rotrnn_model_describe(m.model, &newer.known), ROTRNN_OK);
  EXPECT_EQ(newer.known.parameters, now.parameters);
  EXPECT_EQ(newer.known.pooling, now.pooling);
  EXPECT_EQ(newer.later[0], 0);                   // what this library does not know
  EXPECT_EQ(newer.later[1], 0x5a5a5a5a5a5a5a5a);  // and nothing beyond the caller's
  for (const int64_t size : {int64_t{0}, int64_t{-1}, int64_t{72}, INT64_MAX}) {
    rotrnn_model_info wrong{};
    wrong.size = size;
    EXPECT_EQ(rotrnn_model_describe(m.model, &wrong), ROTRNN_BAD_ARGUMENT);
    EXPECT_NE(last().find("info.size"), std::string::npos) << last();
    EXPECT_EQ(wrong.parameters, 0);
  }
}

TEST(CApi, ReportsNullsAndNeverFollowsThem) {
  const ModelHandle m(case_named("plain"));
  const StreamHandle s(m.model);
  std::array<float, 4> out{};
  std::array<int64_t, 2> offsets{0, 1};
  rotrnn_model* model = nullptr;
  rotrnn_stream* stream = nullptr;
  rotrnn_model_info info{};
  info.size = sizeof info;
  const auto wrong = [](rotrnn_status status) {
    EXPECT_EQ(status, ROTRNN_BAD_ARGUMENT);
    EXPECT_NE(last().find("null"), std::string::npos) << last();
    std::thread([] { EXPECT_STREQ(rotrnn_last_error(), ""); }).join();  // of its thread only
  };
  wrong(rotrnn_model_load(nullptr, &model));
  wrong(rotrnn_model_load("x", nullptr));
  wrong(rotrnn_model_from_memory(nullptr, 3, &model));
  wrong(rotrnn_model_from_memory("x", 1, nullptr));
  wrong(rotrnn_model_describe(nullptr, &info));
  wrong(rotrnn_model_describe(m.model, nullptr));
  EXPECT_EQ(rotrnn_model_class_name(nullptr, 0), nullptr);
  wrong(rotrnn_score(nullptr, out.data(), offsets.data(), 1, 1, out.data(), 4));
  wrong(rotrnn_score(m.model, nullptr, offsets.data(), 1, 1, out.data(), 4));
  wrong(rotrnn_score(m.model, out.data(), nullptr, 1, 1, out.data(), 4));
  wrong(rotrnn_score_tokens(nullptr, nullptr, nullptr, 1, 1, out.data(), 4));
  wrong(rotrnn_answer(nullptr, out.data(), 4));
  wrong(rotrnn_answer(m.model, nullptr, 4));
  wrong(rotrnn_stream_new(nullptr, &stream));
  wrong(rotrnn_stream_new(m.model, nullptr));
  wrong(rotrnn_stream_push(nullptr, out.data(), 1));
  wrong(rotrnn_stream_push(s.stream, nullptr, 1));
  wrong(rotrnn_stream_push_tokens(nullptr, nullptr, 1));
  wrong(rotrnn_stream_push_text(nullptr, "a", 1));
  wrong(rotrnn_stream_end(nullptr));
  wrong(rotrnn_stream_reset(nullptr));
  wrong(rotrnn_stream_logits(nullptr, out.data(), 4));
  wrong(rotrnn_stream_logits(s.stream, nullptr, 4));
  wrong(rotrnn_stream_answer(nullptr, out.data(), 4));
  wrong(rotrnn_stream_norms(nullptr, out.data(), 4));
  wrong(rotrnn_stream_norms(s.stream, nullptr, 4));
  wrong(rotrnn_stream_save(nullptr, out.data(), 4));
  wrong(rotrnn_stream_save(s.stream, nullptr, 4));
  wrong(rotrnn_stream_restore(nullptr, out.data(), 4));
  wrong(rotrnn_stream_restore(s.stream, nullptr, 4));
  EXPECT_EQ(rotrnn_stream_steps(nullptr), 0);
  EXPECT_EQ(rotrnn_stream_state_size(nullptr), 0);
  rotrnn_model_free(nullptr);
  rotrnn_stream_free(nullptr);
  EXPECT_EQ(rotrnn_score(m.model, out.data(), offsets.data(), 1, 1, nullptr, 4),
            ROTRNN_BAD_ARGUMENT);
  EXPECT_EQ(rotrnn_stream_push(s.stream, nullptr, 0), ROTRNN_OK);
}

TEST(CApi, TellsKindsOfErrorsApart) {
  rotrnn_model* model = nullptr;
  EXPECT_EQ(rotrnn_model_load("/nowhere/model.safetensors", &model), ROTRNN_BAD_FILE);
  EXPECT_NE(last().find("/nowhere/model.safetensors"), std::string::npos) << last();
  EXPECT_EQ(rotrnn_model_from_memory("nonsense", 8, &model), ROTRNN_BAD_FILE);
  EXPECT_EQ(model, nullptr);
  const std::string endless(5000, 'x');  // a message is cut, not overrun
  EXPECT_EQ(rotrnn_model_load(endless.c_str(), &model), ROTRNN_BAD_FILE);
  EXPECT_LT(last().size(), 1024);

  const ModelHandle values(case_named("none")), tokens(case_named("tokens"));
  const StreamHandle v(values.model), t(tokens.model);
  const std::array<float, 3> step{1, 2, std::numeric_limits<float>::quiet_NaN()};
  const std::array<int32_t, 1> number{11};
  const std::array<int64_t, 3> falling{0, 1, 0}, endless_steps{0, 1, int64_t{1} << 62};
  std::array<float, 4> out{};
  EXPECT_EQ(rotrnn_stream_push(v.stream, step.data(), 1), ROTRNN_BAD_ARGUMENT);
  EXPECT_EQ(rotrnn_stream_push(v.stream, step.data(), SIZE_MAX / 2), ROTRNN_BAD_ARGUMENT);
  EXPECT_EQ(rotrnn_stream_push(t.stream, step.data(), 1), ROTRNN_UNSUPPORTED);
  EXPECT_EQ(rotrnn_stream_push_tokens(v.stream, number.data(), 1), ROTRNN_UNSUPPORTED);
  EXPECT_EQ(rotrnn_stream_push_tokens(t.stream, number.data(), 1), ROTRNN_BAD_ARGUMENT);
  EXPECT_NE(last().find("11"), std::string::npos) << last();
  EXPECT_EQ(rotrnn_stream_push_text(t.stream, "a", 1), ROTRNN_UNSUPPORTED);
  EXPECT_EQ(rotrnn_stream_push_text(v.stream, "a", 1), ROTRNN_UNSUPPORTED);
  EXPECT_EQ(rotrnn_stream_logits(v.stream, out.data(), 3), ROTRNN_BAD_ARGUMENT);
  EXPECT_EQ(rotrnn_stream_logits(v.stream, out.data(), 5), ROTRNN_BAD_ARGUMENT);
  EXPECT_EQ(rotrnn_answer(values.model, out.data(), 3), ROTRNN_BAD_ARGUMENT);
  EXPECT_EQ(rotrnn_score(tokens.model, step.data(), falling.data(), 1, 1, out.data(), 4),
            ROTRNN_UNSUPPORTED);
  EXPECT_EQ(rotrnn_score(values.model, step.data(), falling.data(), 2, 1, out.data(), 4),
            ROTRNN_BAD_ARGUMENT);
  EXPECT_EQ(rotrnn_score(values.model, step.data(), endless_steps.data(), 2, 1, out.data(), 4),
            ROTRNN_BAD_ARGUMENT);
  const std::array<int64_t, 2> one{0, 1};
  const std::array<float, 3> right{1, 2, 3};
  EXPECT_EQ(rotrnn_score(values.model, right.data(), one.data(), 1, -1, out.data(), 4),
            ROTRNN_BAD_ARGUMENT);
  EXPECT_EQ(rotrnn_score(values.model, right.data(), one.data(), 1, 1, out.data(), 3),
            ROTRNN_BAD_ARGUMENT);
  EXPECT_NE(last().find("room for 3"), std::string::npos) << last();
  EXPECT_EQ(rotrnn_score(values.model, right.data(), one.data(), 1, 1, out.data(), 4), ROTRNN_OK);
}

}  // namespace
}  // namespace rotrnn::runtime::test
