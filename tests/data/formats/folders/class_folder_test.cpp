#include <gtest/gtest.h>

#include <cmath>

#include "rotrnn/data/formats/folders/audio_folder.h"
#include "rotrnn/data/formats/folders/image_folder.h"
#include "rotrnn/data/formats/folders/text_folder.h"
#include "rotrnn/io/formats/image.h"
#include "tests/support/sets.h"
#include "tests/support/wav.h"

namespace rotrnn {
namespace {

using test::error_of_files;
using test::expect_contains;
using test::Files;
using test::wav_bytes;
using Names = std::vector<std::string>;
using Samples = std::vector<int16_t>;

Names groups(const Records& r) {
  Names out;
  for (const Record& e : r.examples) out.push_back(e.group);
  return out;
}

TEST(ClassFolder, TheFolderIsTheClass) {
  const Records r = test::read_everywhere(read_text_folder, {{"cat/1.txt", "a"},
                                                             {"cat/deep/er/2.TXT", "b"},
                                                             {"dog/1.md", "\xef\xbb\xbfwoof"},
                                                             {"dog/.hidden.txt", "\xff"},
                                                             {"dog/picture.bmp", "BM"},
                                                             {"__MACOSX/dog/3.txt", "x"},
                                                             {"notes.pdf", "x"}});
  EXPECT_EQ(test::names(r), (Names{"cat/1.txt", "cat/deep/er/2.TXT", "dog/1.md"}));
  EXPECT_EQ(test::labels(r), (Names{"cat", "cat", "dog"}));
  EXPECT_EQ(test::splits(r), std::vector<Split>(3, Split::any));
  EXPECT_EQ(test::text(r, 2), "woof");
}

TEST(ClassFolder, FoldersOfSplits) {
  const Files files{{"Test/cat/1.txt", "a"},
                    {"Test/dog/1.txt", "b"},
                    {"train/cat/1.txt", "c"},
                    {"train/dog/1.txt", "d"},
                    {"val/cat/1.txt", "e"}};
  const Records r = test::read_everywhere(read_text_folder, files);
  EXPECT_EQ(test::labels(r), (Names{"cat", "dog", "cat", "dog", "cat"}));
  EXPECT_EQ(test::splits(r), (std::vector<Split>{Split::test, Split::test, Split::train,
                                                 Split::train, Split::validation}));
  EXPECT_EQ(test::names(r)[0], "Test/cat/1.txt");
  // Without classes below they are classes themselves.
  const Records flat =
      test::read_everywhere(read_text_folder, {{"test/1.txt", "a"}, {"train/1.txt", "b"}});
  EXPECT_EQ(test::labels(flat), (Names{"test", "train"}));
  EXPECT_EQ(test::splits(flat), std::vector<Split>(2, Split::any));
}

TEST(ClassFolder, AClassMayBeCalledTrain) {
  const Records r = test::read_everywhere(
      read_text_folder,
      {{"plane/old/1.txt", "a"}, {"test/old/1.txt", "b"}, {"train/old/1.txt", "c"}});
  EXPECT_EQ(test::labels(r), (Names{"plane", "test", "train"}));
  EXPECT_EQ(test::splits(r), std::vector<Split>(3, Split::any));
}

TEST(ClassFolder, PathsOfSplits) {
  const test::Folder folder;
  test::write_files(folder.path(),
                    {{"a/cat/1.txt", "a"}, {"a/dog/1.txt", "b"}, {"b/cat/1.txt", "c"}});
  RecordWriter out;
  const TaskOptions options;
  read_text_folder({options, folder / "a", Split::train, true, 1}, out);
  read_text_folder({options, folder / "b", Split::test, true, 1}, out);  // one class only
  const Records r = out.finish(RecordWriter::Order::by_name);
  EXPECT_EQ(test::names(r), (Names{"test/1.txt", "train/cat/1.txt", "train/dog/1.txt"}));
  EXPECT_EQ(test::labels(r), (Names{"cat", "cat", "dog"}));
  EXPECT_EQ(test::splits(r), (std::vector<Split>{Split::test, Split::train, Split::train}));
}

// As the Free Spoken Digits are named.
TEST(ClassFolder, PatternsOfNames) {
  const Files files{{"recordings/0_george_0.wav", wav_bytes(Samples{1}, 8000)},
                    {"recordings/7_jackson_12.wav", wav_bytes(Samples{2, 3}, 8000)}};
  TaskOptions options;
  options.label_pattern = "([0-9])_[a-z]+_";
  options.group_pattern = "_([a-z]+)_";
  const Records r = test::read_everywhere(read_audio_folder, files, options);
  EXPECT_EQ(test::names(r), (Names{"0_george_0.wav", "7_jackson_12.wav"}));
  EXPECT_EQ(test::labels(r), (Names{"0", "7"}));
  EXPECT_EQ(groups(r), (Names{"george", "jackson"}));
  options.target = TaskTarget::value;
  const Records values = test::read_everywhere(read_audio_folder, files, options);
  EXPECT_EQ(values.examples[1].values, std::vector<float>{7});
  EXPECT_EQ(values.labels, (std::vector<int64_t>{-1, -1}));

  options.target = TaskTarget::label;
  options.label_pattern = "([0-9])_george";
  EXPECT_EQ(error_of_files<std::invalid_argument>(read_audio_folder, files, options),
            "task.label_pattern: \"([0-9])_george\" is not found in 7_jackson_12.wav");
  options.label_pattern = "[0-9]";
  options.group_pattern = "lucas";
  EXPECT_EQ(error_of_files<std::invalid_argument>(read_audio_folder, files, options),
            "task.group_pattern: \"lucas\" is not found in 0_george_0.wav");
  options.group_pattern = "(";
  expect_contains(error_of_files<std::invalid_argument>(read_audio_folder, files, options),
                  "task.group_pattern: ");
  options.group_pattern = "";
  options.label_pattern = "george|jackson";
  options.target = TaskTarget::value;
  expect_contains(error_of_files(read_audio_folder, files, options),
                  "set/recordings/0_george_0.wav: \"george\" is not a number");
}

TEST(ClassFolder, FilesWithoutAClassAreErrors) {
  EXPECT_EQ(error_of_files(read_text_folder, {{"1.txt", "a"}, {"b/2.txt", "b"}}),
            "set/1.txt: it is not in a folder of its class; move it into one, or extract the class "
            "from its name with task.label_pattern");
  expect_contains(error_of_files(read_text_folder, {{"a/1.bin", "a"}}),
                  "set: no file in it has a name that ends in .txt");
  TaskOptions options;
  options.target = TaskTarget::token_label;
  expect_contains(
      error_of_files<std::invalid_argument>(read_text_folder, {{"a/1.txt", "a"}}, options),
      "task.target: ");
  expect_contains(test::error_of_cut_archive(
                      read_text_folder, {{"a/1.txt", std::string(5000, 'a')}, {"b/1.txt", "b"}}),
                  "a.tar.gz: ");
}

TEST(ClassFolder, FilesToPredict) {
  const test::Folder folder;
  test::write_files(folder.path(), {{"x/1.txt", "a"}, {"x/2.txt", "b"}, {"odd.name", "c"}});
  TaskOptions options;
  options.label_pattern = "never found";
  const Records all = test::read_sorted(read_text_folder, folder.path(), options, false);
  EXPECT_EQ(test::names(all), (Names{"1.txt", "2.txt"}));
  EXPECT_EQ(all.labels, (std::vector<int64_t>{-1, -1}));
  const Records one = test::read_sorted(read_text_folder, folder / "odd.name", options, false);
  EXPECT_EQ(test::names(one), Names{"odd.name"});
}

TEST(TextFolder, BadTextsAreNamed) {
  expect_contains(error_of_files(read_text_folder, {{"a/1.txt", "ok"}, {"b/1.txt", "x\x80"}}),
                  "set/b/1.txt: offset 1: the byte 0x80 is not UTF-8");
  expect_contains(error_of_files(read_text_folder, {{"a/1.txt", ""}}),
                  "set/a/1.txt: the text is empty");
  expect_contains(error_of_files(read_text_folder, {{"a/1.txt", "\xef\xbb\xbf"}}),
                  "set/a/1.txt: the text is empty");
}

TEST(AudioFolder, KeepsChannelsAndBits) {
  const Records stereo = test::read_everywhere(
      read_audio_folder, {{"a/1.wav", wav_bytes(Samples{1, 2, 3, 4}, 8000, 2)},
                          {"b/2.WAV", wav_bytes(Samples{-5, 6}, 8000, 2)}});
  EXPECT_EQ(stereo.form, (RecordForm{Element::i16, 2, 1.0 / 32768, 1, 8000}));
  EXPECT_EQ(stereo.steps(0), 2);
  EXPECT_EQ(test::numbers<int16_t>(stereo, 1), (Samples{-5, 6}));
  const Records floats = test::read_everywhere(
      read_audio_folder, {{"a/1.wav", wav_bytes(std::vector<float>{0.25F})},
                          {"b/2.wav", wav_bytes(std::vector<float>{-0.5F, 1.F})}});
  EXPECT_EQ(floats.form, (RecordForm{Element::f32, 1, 1, 1, 16000}));
  EXPECT_EQ(test::numbers<float>(floats, 1), (std::vector<float>{-0.5F, 1.F}));
}

TEST(AudioFolder, BadSoundsAreNamed) {
  const std::pair<std::string, std::string> good{"a/1.wav", wav_bytes(Samples{1, 2})};
  const auto error = [&](const std::string& bytes) {
    return error_of_files(read_audio_folder, {good, {"b/2.wav", bytes}});
  };
  EXPECT_EQ(
      error(wav_bytes(Samples{1}, 8000)),
      "set/b/2.wav: 8000 samples per second, the files before it have 16000; resample them to "
      "one rate");
  expect_contains(error(wav_bytes(Samples{1, 2}, 16000, 2)), "set/b/2.wav: 2 channels");
  expect_contains(error(wav_bytes(std::vector<float>{0.F})),
                  "set/b/2.wav: its numbers have another type");
  expect_contains(error(wav_bytes(std::vector<float>{NAN})),
                  "set/b/2.wav: frame 0: the sample is nan");
  expect_contains(error(wav_bytes(Samples{})), "set/b/2.wav: the sound has no samples");
  expect_contains(error(""), "set/b/2.wav: the file is empty");
  expect_contains(error("ID3"), "set/b/2.wav: ");
}

std::string png(int64_t width, int64_t height, int64_t channels, uint8_t first) {
  Image image{width, height, channels, {}};
  for (int64_t i = 0; i < width * height * channels; ++i) {
    image.pixels.push_back(static_cast<uint8_t>(first + i));
  }
  return encode_png(image);
}

TEST(ImageFolder, PixelsRowAfterRow) {
  const Records grey = test::read_everywhere(
      read_image_folder, {{"a/1.png", png(3, 2, 1, 10)}, {"b/1.PNG", png(3, 2, 1, 200)}});
  EXPECT_EQ(grey.form, (RecordForm{Element::u8, 1, 1.0 / 255, 1}));
  EXPECT_EQ(test::numbers<uint8_t>(grey, 0), (std::vector<uint8_t>{10, 11, 12, 13, 14, 15}));
  EXPECT_EQ(test::labels(grey), (Names{"a", "b"}));
  const Records colour = test::read_everywhere(read_image_folder, {{"a/1.png", png(2, 2, 3, 0)}});
  EXPECT_EQ(colour.form.channels, 3);
  EXPECT_EQ(colour.steps(0), 4);
}

TEST(ImageFolder, BadPicturesAreNamed) {
  const auto error = [&](const std::string& bytes) {
    return error_of_files(read_image_folder, {{"a/1.png", png(4, 4, 1, 0)}, {"b/2.png", bytes}});
  };
  expect_contains(error(""), "set/b/2.png: ");
  expect_contains(error("GIF89a"), "set/b/2.png: ");
  expect_contains(error(png(4, 4, 1, 0).substr(0, 50)), "set/b/2.png: ");
  EXPECT_EQ(error(png(4, 3, 1, 0)),
            "set/b/2.png: 4 × 3 pixels, the files before it have 4 × 4; scale them to one size");
  expect_contains(error(png(4, 4, 3, 0)), "set/b/2.png: 3 channels");
}

}  // namespace
}  // namespace rotrnn
