// Streams through a front end: when rows come, what a short sequence gives, and that no bit depends
// on how the samples were cut.

#include <algorithm>
#include <array>

#include "rotrnn/runtime/score.h"
#include "tests/runtime/cases.h"
#include "tests/runtime/mutate.h"

namespace rotrnn::runtime::test {
namespace {

const std::vector<const char*> kNames = {"rotations",     "rotations last", "rotations keep every",
                                         "rotations s4d", "patch",          "patch overlapping",
                                         "patch apart"};

// All rows, of samples pushed in these portions.
std::vector<float> rows(const Case& c, Stream& stream, const std::vector<int64_t>& portions) {
  std::vector<float> out, each(static_cast<size_t>(c.steps() * c.outputs));
  const auto C = static_cast<size_t>(c.inputs);
  int64_t at = 0;
  for (size_t k = 0; at < c.steps(); ++k) {
    const int64_t count = std::min(portions[k % portions.size()], c.steps() - at);
    const int64_t made = stream.push(
        std::span(c.values).subspan(static_cast<size_t>(at) * C, static_cast<size_t>(count) * C),
        each);
    out.insert(out.end(), each.begin(), each.begin() + made * c.outputs);
    at += count;
  }
  return out;
}

TEST(FrontendStream, AnyPortionsGiveTheSameBits) {
  for (const char* name : kNames) {
    SCOPED_TRACE(name);
    const Case& c = case_named(name);
    const auto model = c.load();
    // Of one row at a time: blocks round several together otherwise.
    Stream whole(model, 1);
    const auto expected = rows(c, whole, {c.steps()});
    EXPECT_EQ(std::ssize(expected), c.rows() * c.outputs);
    EXPECT_EQ(whole.steps(), c.rows());
    for (const auto& portions : std::vector<std::vector<int64_t>>{{1}, {2, 5}, {8}, {97, 1}}) {
      Stream stream(model, 1);
      EXPECT_EQ(rows(c, stream, portions), expected) << portions[0];
    }
  }
}

TEST(FrontendStream, WholeSequencesAreTheSame) {
  for (const char* name : kNames) {
    SCOPED_TRACE(name);
    const Case& c = case_named(name);
    const auto model = c.load();
    Scorer scorer(model);
    for (const int64_t steps : {int64_t{1}, int64_t{2}, int64_t{7}, int64_t{50}, c.steps()}) {
      const auto part = std::span(c.values).first(static_cast<size_t>(steps * c.inputs));
      const auto scored = scorer.score(part, std::array<int64_t, 2>{0, steps});
      Stream stream(model);
      stream.push(part);
      stream.end();
      const auto logits = stream.logits();
      const std::vector<double> expected(scored.begin(), scored.end());
      EXPECT_LT(distance(logits, std::span<const double>(expected)), 1e-5) << steps;
    }
  }
}

TEST(FrontendStream, SaysNothingBeforeTheFirstToken) {
  const Case& c = case_named("rotations");  // hop 8
  Stream stream(c.load());
  EXPECT_EQ(stream.push(std::span(c.values).first(7)), 0);
  EXPECT_EQ(stream.steps(), 0);
  for (const float x : stream.logits()) EXPECT_EQ(x, 0);
  EXPECT_EQ(stream.push(std::span(c.values).subspan(7, 1)), 1);
  EXPECT_LT(distance(stream.logits(), c.row(0)), 1e-5);
  // An empty sequence has nothing to end with.
  stream.reset();
  stream.end();
  EXPECT_EQ(stream.steps(), 0);
}

TEST(FrontendStream, RefusesTooLittleRoomAndStatesThatCannotBe) {
  const Case& c = case_named("rotations");
  Stream stream(c.load());
  std::vector<float> room(static_cast<size_t>(2 * c.outputs - 1));
  EXPECT_THROW(stream.push(std::span(c.values).first(16), room), std::invalid_argument);
  EXPECT_EQ(stream.push(std::span(c.values).first(15), room), 1);
  std::vector<std::byte> state(stream.state_size());
  stream.save(state);
  // The samples of the current hop are the last number in front of the arrays.
  const auto changed = [&](int32_t waiting) {
    auto copy = state;
    for (size_t at = 0; at + 4 <= 64; at += 4) {
      int32_t seen = 0;
      std::memcpy(&seen, copy.data() + at, 4);
      if (seen != 7) continue;
      std::memcpy(copy.data() + at, &waiting, 4);
      return copy;
    }
    ADD_FAILURE() << "the state does not hold the 7 samples";
    return copy;
  };
  EXPECT_THROW(stream.restore(changed(8)), std::invalid_argument);
  EXPECT_THROW(stream.restore(changed(-1)), std::invalid_argument);
  stream.restore(changed(6));
}

TEST(FrontendModel, WrongMetadataAreNamed) {
  const auto message = [](const char* name, const char* key, const nlohmann::json& value) {
    const std::string bytes = file_bytes(case_named(name).file);
    const std::string other =
        Mutator::with_model(bytes, [&](nlohmann::json& j) { j["frontend"][key] = value; });
    return thrown<std::runtime_error>([&] { Model::from_bytes(other, "model.file"); });
  };
  const auto expect = [](const std::string& text, const char* part) {
    EXPECT_NE(text.find(part), std::string::npos) << text;
  };
  expect(message("rotations", "hop", 0), "\"hop\"");
  expect(message("rotations", "hop", int64_t{1} << 40), "\"hop\"");
  expect(message("rotations", "bands", 22), "frontend.theta");
  expect(message("rotations", "kind", "wavelets"), "wavelets");
  expect(message("rotations", "kind", "patch"), "\"size\" is missing");
  expect(message("patch", "size", -1), "\"size\"");
  expect(message("patch", "stride", "one"), "\"stride\"");
  expect(message("tokens", "kind", "patch"), "\"size\" is missing");
  EXPECT_EQ(case_named("rotations").load()->info().frontend,
            "21 rotations per channel, one token per 8 samples");
  EXPECT_EQ(case_named("patch apart").load()->info().window, 3);
  EXPECT_EQ(case_named("patch apart").load()->info().hop, 5);
}

}  // namespace
}  // namespace rotrnn::runtime::test
