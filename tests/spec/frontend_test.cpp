#include "rotrnn/spec/frontend.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

namespace rotrnn {
namespace {

FrontendOptions rotations() {
  FrontendOptions o;
  o.kind = FrontendKind::rotations;
  return o;
}

TEST(Frontend, AutomaticSettingsScaleWithTheRate) {
  const FrontendOptions audio = resolve_frontend(rotations(), 16000);
  EXPECT_EQ(audio.hop, 160);
  EXPECT_NEAR(audio.low, 60, 1e-9);
  EXPECT_NEAR(audio.high, 7700, 1e-9);
  const FrontendOptions phone = resolve_frontend(rotations(), 8000);
  EXPECT_EQ(phone.hop, 80);
  EXPECT_NEAR(phone.high, 3850, 1e-9);
  const FrontendOptions series = resolve_frontend(rotations(), 0);
  EXPECT_EQ(series.hop, 16);
  EXPECT_NEAR(series.low, 60.0 / 16000, 1e-12);
  // The same bands, seen per step.
  const auto a = frontend_rotations(audio), s = frontend_rotations(series);
  for (size_t k = 0; k < 64; ++k) {
    EXPECT_NEAR(a.theta[k], s.theta[k], 1e-12);
    EXPECT_NEAR(a.gamma_log[k], s.gamma_log[k], 1e-12);
  }
}

TEST(Frontend, BandsAreGeometricWithWidthsOfAnEighth) {
  FrontendOptions o = rotations();
  o.bands = 3, o.low = 100, o.high = 6400;
  const auto r = frontend_rotations(resolve_frontend(o, 16000));
  const double frequencies[] = {100, 800, 6400};
  for (size_t k = 0; k < 3; ++k) {
    const double width = frequencies[k] / 8 + 25;
    EXPECT_NEAR(r.theta[k], 2 * std::numbers::pi * frequencies[k] / 16000, 1e-12);
    EXPECT_NEAR(std::exp(-std::exp(r.gamma_log[k])),
                std::exp(-2 * std::numbers::pi * width / 16000), 1e-12);
  }
}

TEST(Frontend, IsDescribed) {
  FrontendOptions o = rotations();
  EXPECT_EQ(describe_frontend(resolve_frontend(o, 16000)),
            "64 rotations per channel from 60 to 7700 Hz, one token per 160 samples");
  o.learn = true, o.low = 0.0125;
  EXPECT_EQ(
      describe_frontend(resolve_frontend(o, 0)),
      "64 trained rotations per channel from 0.0125 to 0.48125 cycles per step, one token per "
      "16 samples");
  o.kind = FrontendKind::patch;
  EXPECT_EQ(describe_frontend(resolve_frontend(o, 0)), "patches of 16 samples, one per 16");
}

TEST(Frontend, CountsTokens) {
  FrontendOptions o = rotations();
  o.hop = 4;
  o = resolve_frontend(o, 0);
  EXPECT_EQ(frontend_tokens(o, 1), 1);
  EXPECT_EQ(frontend_tokens(o, 4), 1);
  EXPECT_EQ(frontend_tokens(o, 7), 1);
  EXPECT_EQ(frontend_tokens(o, 8), 2);
  EXPECT_EQ(frontend_samples(o, 1), 8);
  EXPECT_EQ(frontend_channels(o, 2), 128);
  FrontendOptions p;
  EXPECT_EQ(frontend_tokens(p, 7), 7);
  EXPECT_EQ(frontend_channels(p, 2), 2);
  p.kind = FrontendKind::patch, p.size = 4, p.stride = 2;
  EXPECT_EQ(frontend_tokens(p, 3), 1);
  EXPECT_EQ(frontend_tokens(p, 5), 1);
  EXPECT_EQ(frontend_tokens(p, 6), 2);
  EXPECT_EQ(frontend_samples(p, 1), 6);
  EXPECT_EQ(frontend_channels(p, 2), 8);
  const int64_t samples[] = {0, 3, 9};
  std::vector<int64_t> tokens;
  frontend_offsets(p, samples, 2, tokens);
  EXPECT_EQ(tokens, (std::vector<int64_t>{0, 1, 3}));
}

TEST(Frontend, WrongSettingsAreNamed) {
  const auto message = [](FrontendOptions o, double rate) {
    try {
      resolve_frontend(o, rate);
    } catch (const std::invalid_argument& e) {
      return std::string(e.what());
    }
    return std::string();
  };
  FrontendOptions o = rotations();
  o.high = 9000;
  EXPECT_NE(message(o, 16000).find("high = 9000 Hz"), std::string::npos);
  EXPECT_NE(message(o, 0).find("cycles per step"), std::string::npos);
  o = rotations(), o.bands = 0;
  EXPECT_NE(message(o, 0).find("bands is 0"), std::string::npos);
  o = rotations(), o.hop = -1;
  EXPECT_NE(message(o, 0).find("hop is -1"), std::string::npos);
  o = {}, o.kind = FrontendKind::patch, o.stride = -2;
  EXPECT_NE(message(o, 0).find("stride is -2"), std::string::npos);
}

}  // namespace
}  // namespace rotrnn
