#include "rotrnn/io/formats/audio.h"

#include <gtest/gtest.h>
#include <sndfile.h>
#include <sys/resource.h>

#include <cmath>

#include "rotrnn/base/random.h"
#include "rotrnn/io/atomic_file.h"
#include "tests/support/folder.h"
#include "tests/support/wav.h"

namespace rotrnn {
namespace {

using test::little;
using test::wav_bytes;

std::vector<int16_t> noise(int64_t count) {
  Random random(1, RandomSite::initialise);
  std::vector<int16_t> out{-32768, 32767, 0};
  while (std::ssize(out) < count) out.push_back(static_cast<int16_t>(random.below(65536) - 32768));
  out.resize(static_cast<size_t>(count));
  return out;
}

std::string error_of(const std::string& bytes) {
  return test::message_of<std::runtime_error>([&] { parse_audio(bytes, "f.wav"); });
}

void expect_contains(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << "\"" << text << "\" lacks \"" << part << "\"";
}

TEST(Audio, SixteenBitsAreKeptAsTheyAre) {
  for (const int64_t count : {1, 2, 15999, 40001}) {
    const auto samples = noise(count);
    const Audio audio = parse_audio(wav_bytes(samples, 16000), "f");
    EXPECT_EQ(audio.sample_rate, 16000);
    EXPECT_EQ(audio.channels, 1);
    EXPECT_EQ(audio.frames, count);
    EXPECT_EQ(audio.pcm, samples);
    EXPECT_TRUE(audio.samples.empty());
  }
  const test::Folder folder;
  write_file_atomically(folder / "f.wav", wav_bytes(noise(100), 8000));
  EXPECT_EQ(read_audio(folder / "f.wav").pcm, noise(100));
  EXPECT_EQ(read_audio(folder / "f.wav").sample_rate, 8000);
}

TEST(Audio, MoreThanSixteenBitsAreFloats) {
  const std::vector<float> samples{0.F, 0.5F, -1.F, 0.125F};
  const Audio floats = parse_audio(wav_bytes(samples, 44100), "f");
  EXPECT_EQ(floats.samples, samples);
  EXPECT_TRUE(floats.pcm.empty());
  // 24 bits: 0x400000 of 0x800000 is a half.
  const Audio deep = parse_audio(test::wav_bytes_of(little(0x400000, 3), 1, 24, 8000, 1), "f");
  EXPECT_EQ(deep.samples, std::vector<float>{0.5F});
  // 8 bits are unsigned, 128 is silence; 16 bits hold them.
  const Audio shallow = parse_audio(test::wav_bytes_of("\x80\xc0\xff", 1, 8, 8000, 1), "f");
  EXPECT_EQ(shallow.pcm, (std::vector<int16_t>{0, 16384, 127 * 256}));
  EXPECT_TRUE(shallow.samples.empty());
}

TEST(Audio, ChannelsAreKeptOrMixed) {
  const std::vector<int16_t> stereo{100, 300, -32768, -32768, 32767, -32767, 1, 0};
  const Audio kept = parse_audio(wav_bytes(stereo, 16000, 2), "f");
  EXPECT_EQ(kept.channels, 2);
  EXPECT_EQ(kept.frames, 4);
  EXPECT_EQ(kept.pcm, stereo);
  const Audio mixed = parse_audio(wav_bytes(stereo, 16000, 2), "f", AudioChannels::mean);
  EXPECT_EQ(mixed.channels, 1);
  EXPECT_EQ(mixed.frames, 4);
  EXPECT_EQ(mixed.samples, (std::vector<float>{200.F / 32768, -1.F, 0.F, 0.5F / 32768}));
  EXPECT_TRUE(mixed.pcm.empty());
  const Audio mono = parse_audio(wav_bytes(stereo), "f", AudioChannels::mean);
  EXPECT_EQ(mono.pcm, stereo);
  const std::vector<float> three{0.F, 0.25F, 0.5F};
  EXPECT_EQ(parse_audio(wav_bytes(three, 16000, 3), "f", AudioChannels::mean).samples,
            std::vector<float>{0.25F});
}

// Files made by libsndfile itself: no writer of ours.
TEST(Audio, OtherContainers) {
  const test::Folder folder;
  const auto samples = noise(20000);
  for (const int format : {SF_FORMAT_FLAC, SF_FORMAT_AIFF, SF_FORMAT_AU, SF_FORMAT_W64}) {
    SF_INFO info{};
    info.samplerate = 22050;
    info.channels = 2;
    info.format = format | SF_FORMAT_PCM_16;
    SNDFILE* file = sf_open((folder / "f").c_str(), SFM_WRITE, &info);
    ASSERT_TRUE(file) << sf_strerror(nullptr);
    sf_writef_short(file, samples.data(), 10000);
    sf_close(file);
    const Audio audio = read_audio(folder / "f");
    EXPECT_EQ(audio.pcm, samples) << format;
    EXPECT_EQ(audio.frames, 10000);
    EXPECT_EQ(audio.sample_rate, 22050);
  }
  SF_INFO info{};
  info.samplerate = 22050;
  info.channels = 1;
  info.format = SF_FORMAT_OGG | SF_FORMAT_VORBIS;
  SNDFILE* file = sf_open((folder / "f").c_str(), SFM_WRITE, &info);
  ASSERT_TRUE(file);
  std::vector<float> tone(22050);
  for (size_t t = 0; t < tone.size(); ++t) tone[t] = 0.5F * std::sin(0.1F * static_cast<float>(t));
  sf_writef_float(file, tone.data(), 22050);
  sf_close(file);
  const Audio audio = read_audio(folder / "f");
  ASSERT_EQ(audio.frames, 22050);
  double error = 0, power = 0;
  for (size_t t = 0; t < tone.size(); ++t) {
    error += std::pow(static_cast<float>(audio.pcm[t]) * kPcmScale - tone[t], 2);
    power += tone[t] * tone[t];
  }
  EXPECT_LT(error, 0.01 * power);  // a lossy format, and a tone is easy
}

TEST(Audio, WhatIsNoSoundIsAnError) {
  EXPECT_EQ(error_of(""), "f.wav: the file is empty; expected a sound file");
  expect_contains(error_of("just a text"), "f.wav: not a sound file that can be read (");
  expect_contains(error_of(std::string(1000, '\0')), "f.wav: not a sound file");
  expect_contains(error_of(wav_bytes(std::vector<int16_t>{})), "f.wav: the sound has no samples");
  std::string magic = wav_bytes(noise(100));
  magic[0] = 'X';
  expect_contains(error_of(magic), "f.wav: not a sound file");
  for (size_t size = 1; size < 44; ++size) {
    expect_contains(error_of(wav_bytes(noise(100)).substr(0, size)), "f.wav: ");
  }
  expect_contains(test::message_of<std::runtime_error>([] { read_audio("nowhere.wav"); }),
                  "nowhere.wav");
}

TEST(Audio, CutFilesAreErrors) {
  const std::string whole = wav_bytes(noise(1000));
  for (const size_t size : {44, 45, 46, 1000, 2042, 2043}) {
    expect_contains(error_of(whole.substr(0, size)), "offset 40: the header promises 2000 bytes");
  }
  const test::Folder folder;
  SF_INFO info{0, 16000, 1, SF_FORMAT_FLAC | SF_FORMAT_PCM_16, 0, 0};
  SNDFILE* file = sf_open((folder / "f.flac").c_str(), SFM_WRITE, &info);
  sf_writef_short(file, noise(30000).data(), 30000);
  sf_close(file);
  const std::string flac = read_file(folder / "f.flac");
  EXPECT_EQ(parse_audio(flac, "f").pcm, noise(30000));
  expect_contains(error_of(flac.substr(0, flac.size() / 2)), "f.wav: ");
}

TEST(Audio, AbsurdHeadersTakeNoMemory) {
  rusage before{}, after{};
  getrusage(RUSAGE_SELF, &before);
  std::string claims = wav_bytes(noise(100));
  claims.replace(40, 4, little(0x7ffffe00, 4));
  expect_contains(error_of(claims), "the header promises 2147483136 bytes of sound, 200 follow");
  // As written to a pipe, by a program that could not know: all that is there.
  for (const uint64_t unknown : {0xffffffffU, 0x7fffffffU}) {
    claims.replace(40, 4, little(unknown, 4));
    EXPECT_EQ(parse_audio(claims, "f").pcm, noise(100));
  }
  std::string channels = wav_bytes(noise(100));
  channels.replace(22, 2, little(65535, 2));
  expect_contains(error_of(channels), "f.wav: ");
  std::string none = wav_bytes(noise(100));
  none.replace(22, 2, little(0, 2));
  expect_contains(error_of(none), "f.wav: ");
  getrusage(RUSAGE_SELF, &after);
  EXPECT_LT(after.ru_maxrss - before.ru_maxrss, 50'000) << "KB";
}

TEST(Audio, SamplesThatAreNoNumbersAreErrors) {
  for (const float bad : {NAN, INFINITY}) {
    expect_contains(error_of(wav_bytes(std::vector<float>{0, 0, 0, bad}, 16000, 2)),
                    "f.wav: frame 1: the sample is ");
  }
}

}  // namespace
}  // namespace rotrnn
