#include "rotrnn/io/formats/wav_stream.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "rotrnn/io/formats/audio.h"
#include "tests/support/folder.h"
#include "tests/support/wav.h"

namespace rotrnn {
namespace {

using test::little;
using test::wav_bytes;
using test::wav_bytes_of;

std::vector<float> samples_of(const std::string& bytes, size_t piece) {
  WavStream wav("f");
  std::vector<float> out;
  for (size_t at = 0; at < bytes.size(); at += piece) {
    wav.feed(std::string_view(bytes).substr(at, piece), out);
  }
  wav.end();
  return out;
}

std::string refused(const std::string& bytes) {
  return test::message_of<std::runtime_error>([&] { samples_of(bytes, 3); });
}

const std::vector<int16_t> kRamp{0, 1, -1, 32767, -32768, 1234, -4321, 77};

// A file with this in place of the length of its data.
std::string with_length(std::string bytes, uint32_t length) {
  return bytes.replace(bytes.find("data") + 4, 4, little(length, 4));
}

TEST(WavStream, GivesTheSamplesHoweverTheBytesCome) {
  for (const size_t piece : {1, 2, 3, 5, 44, 1000}) {
    const auto got = samples_of(wav_bytes(kRamp), piece);
    ASSERT_EQ(got.size(), kRamp.size()) << piece;
    for (size_t i = 0; i < got.size(); ++i) EXPECT_EQ(got[i], kRamp[i] / 32768.0f);
  }
  WavStream wav("f");
  std::vector<float> out;
  const std::string bytes = wav_bytes(kRamp, 8000, 2);
  wav.feed(bytes.substr(0, 43), out);
  EXPECT_FALSE(wav.ready());
  wav.feed(bytes.substr(43, 1), out);
  EXPECT_TRUE(wav.ready());
  EXPECT_EQ(wav.rate(), 8000);
  EXPECT_EQ(wav.channels(), 2);
  wav.feed(bytes.substr(44, 3), out);  // three quarters of a frame
  EXPECT_TRUE(out.empty());
  wav.feed(bytes.substr(47, 1), out);
  EXPECT_EQ(out.size(), 2);
}

// libsndfile is the other opinion on every format.
TEST(WavStream, ReadsWhatLibsndfileReads) {
  std::string data;
  for (int i = 0; i < 24 * 5; ++i) data += static_cast<char>(i * 37 + i * i);
  for (const int bits : {8, 16, 24, 32}) {
    for (const int channels : {1, 3}) {
      const std::string bytes = wav_bytes_of(data, 1, bits, 16000, channels);
      const Audio other = parse_audio(bytes, "f");
      const auto got = samples_of(bytes, 7);
      ASSERT_EQ(got.size(), static_cast<size_t>(other.frames * other.channels)) << bits;
      for (size_t i = 0; i < got.size(); ++i) {
        const float want =
            other.pcm.empty() ? other.samples[i] : static_cast<float>(other.pcm[i]) * kPcmScale;
        EXPECT_EQ(got[i], want) << bits << " " << i;
      }
    }
  }
  const std::vector<float> floats{0.5f, -1.0f, 3.25f, 1e-20f};
  EXPECT_EQ(samples_of(wav_bytes(floats), 3), floats);
}

TEST(WavStream, ReadsTheExtensibleForm) {
  const std::string guid = little(1, 2) + std::string("\x00\x00\x00\x00\x10\x00\x80\x00", 8) +
                           std::string("\x00\xaa\x00\x38\x9b\x71", 6);
  const std::string data = little(0x4000, 2);
  const std::string bytes = "RIFF" + little(100, 4) + "WAVEfmt " + little(40, 4) +
                            little(0xfffe, 2) + little(1, 2) + little(16000, 4) + little(32000, 4) +
                            little(2, 2) + little(16, 2) + little(22, 2) + little(16, 2) +
                            little(4, 4) + guid + "data" + little(2, 4) + data;
  EXPECT_EQ(samples_of(bytes, 1), std::vector<float>{0.5f});
}

TEST(WavStream, GoesOnToTheEndWhenTheLengthIsNotKnown) {
  // What ffmpeg, sox and arecord write to a pipe, and 0.
  for (const uint32_t length : {0xffffffffu, 0x7ffff000u, 0x80000000u, 0u}) {
    EXPECT_EQ(samples_of(with_length(wav_bytes(kRamp), length), 11).size(), kRamp.size());
  }
  // Also when the end comes within a sample, as of a program that was stopped.
  const std::string cut = with_length(wav_bytes(kRamp), 0xffffffff) + "x";
  EXPECT_EQ(samples_of(cut, 11).size(), kRamp.size());
}

TEST(WavStream, PassesOverOtherChunks) {
  std::string bytes = wav_bytes(kRamp);
  bytes.insert(12, "LIST" + little(5, 4) + "abcde" + std::string(1, '\0') + "fact" + little(0, 4));
  bytes += "LIST" + little(4, 4) + "abcd";
  for (const size_t piece : {1, 6, 500}) EXPECT_EQ(samples_of(bytes, piece).size(), kRamp.size());
}

TEST(WavStream, SaysWhatIsWrong) {
  const std::string good = wav_bytes(kRamp);
  const auto with = [&](size_t at, const std::string& part) {
    return std::string(good).replace(at, part.size(), part);
  };
  EXPECT_EQ(refused("ID3 something else"),
            "f: offset 0: \"ID3 somethin\" is not the beginning of a WAV file; say what it is by "
            "--format");
  EXPECT_NE(refused(with(20, little(6, 2))).find("format 6 of 16 bits"), std::string::npos);
  EXPECT_NE(refused(with(34, little(12, 2))).find("of 12 bits"), std::string::npos);
  EXPECT_NE(refused(with(22, little(0, 2))).find("0 channels"), std::string::npos);
  EXPECT_NE(refused(with(24, little(0, 4))).find("0 samples per second"), std::string::npos);
  EXPECT_NE(refused(with(32, little(3, 2))).find("3 bytes per frame"), std::string::npos);
  EXPECT_NE(refused(with(16, little(1 << 20, 4))).find("1048576 bytes"), std::string::npos);
  EXPECT_NE(refused(with(12, "junk")).find("before the format"), std::string::npos);
  EXPECT_NE(refused(good.substr(0, 40)).find("inside its header"), std::string::npos);
  EXPECT_NE(refused("").find("inside its header"), std::string::npos);
  EXPECT_NE(refused(good.substr(0, good.size() - 3)).find("3 bytes before"), std::string::npos);
}

}  // namespace
}  // namespace rotrnn
