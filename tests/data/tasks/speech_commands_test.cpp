#include "rotrnn/data/tasks/speech_commands.h"

#include <gtest/gtest.h>

#include <map>

#include "rotrnn/io/files.h"
#include "rotrnn/io/formats/audio.h"
#include "tests/support/sets.h"
#include "tests/support/wav.h"

namespace rotrnn {
namespace {

using test::expect_contains;
using test::Files;
using test::wav_bytes;
using Names = std::vector<std::string>;
using Samples = std::vector<int16_t>;

// Clips of the public set with the splits that its lists give them; the first of each two are the
// nearest to a border.
constexpr std::pair<const char*, Split> kClips[] = {
    {"yes/f3cee168_nohash_0.wav", Split::validation},
    {"yes/026290a7_nohash_0.wav", Split::validation},
    {"yes/fce96bac_nohash_1.wav", Split::test},
    {"yes/20d3f11f_nohash_0.wav", Split::test},
    {"yes/a4e8a997_nohash_0.wav", Split::test},
    {"yes/d9b8fab2_nohash_0.wav", Split::train},
    {"yes/0132a06d_nohash_2.wav", Split::train},
    {"yes/042186b8_nohash_3.wav", Split::train}};

Files clips() {
  Files files{{"LICENSE", "CC BY"},
              {"README.md", "Speech Commands"},
              {"_background_noise_/pink_noise.wav", wav_bytes(Samples(99, 9))},
              {"no/0132a06d_nohash_0.wav", wav_bytes(Samples{5, 6})},
              {"testing_list.txt", "no/aaaaaaaa_nohash_0.wav\nyes/20d3f11f_nohash_0.wav\n"},
              {"up/0a9f9af7_nohash_0.wav", wav_bytes(Samples(16000, -7))},
              {"validation_list.txt", "yes/0132a06d_nohash_2.wav\r\n"}};
  for (const auto& [name, split] : kClips) files.emplace_back(name, wav_bytes(Samples{1, -2, 3}));
  return files;
}

std::map<std::string, Split> splits_by_name(const Records& r) {
  std::map<std::string, Split> out;
  for (const Record& e : r.examples) out[e.name] = e.split;
  return out;
}

TEST(SpeechCommands, TheListsDecide) {
  const Records r = test::read_everywhere(read_speech_commands, clips());
  EXPECT_EQ(r.size(), 10);
  EXPECT_EQ(r.classes, (Names{"no", "up", "yes"}));
  EXPECT_EQ(r.form, (RecordForm{Element::i16, 1, 1.0 / 32768, 1, 16000}));
  auto splits = splits_by_name(r);
  EXPECT_EQ(splits["yes/0132a06d_nohash_2.wav"], Split::validation);
  EXPECT_EQ(splits["yes/20d3f11f_nohash_0.wav"], Split::test);
  EXPECT_EQ(splits["yes/026290a7_nohash_0.wav"], Split::train);
  EXPECT_EQ(splits["no/0132a06d_nohash_0.wav"], Split::train);
  EXPECT_EQ(r.examples[0].name, "no/0132a06d_nohash_0.wav");
  EXPECT_EQ(r.examples[0].group, "0132a06d");
  EXPECT_EQ(test::numbers<int16_t>(r, 0), (Samples{5, 6}));  // its true length
  EXPECT_EQ(test::numbers<int16_t>(r, 1), Samples(16000, -7));
}

TEST(SpeechCommands, WithoutListsThePublishedRule) {
  for (const auto& [name, split] : kClips)
    EXPECT_EQ(speech_split(name_tail(name, 1)), split) << name;
  Files files = clips();
  std::erase_if(files, [](const auto& f) { return f.first.ends_with("_list.txt"); });
  auto splits = splits_by_name(test::read_everywhere(read_speech_commands, files));
  for (const auto& [name, split] : kClips) EXPECT_EQ(splits[name], split) << name;
  EXPECT_EQ(speech_speaker("0132a06d_nohash_2.wav"), "0132a06d");
}

TEST(SpeechCommands, AChoiceOfWords) {
  TaskOptions options;
  options.words = "up, no";
  const Records r = test::read_everywhere(read_speech_commands, clips(), options);
  EXPECT_EQ(test::labels(r), (Names{"no", "up"}));
  EXPECT_EQ(r.classes, (Names{"up", "no"}));  // as asked for
  options.words = "up,yess";
  EXPECT_EQ(test::error_of_files<std::invalid_argument>(read_speech_commands, clips(), options),
            "task.words: there are no clips of \"yess\"; did you mean \"yes\"?");
  options.words = "_background_noise_";
  expect_contains(
      test::error_of_files<std::invalid_argument>(read_speech_commands, clips(), options),
      "the words are no, up, yes");
}

TEST(SpeechCommands, BadFilesAreNamed) {
  const auto error = [](const std::string& name, const std::string& bytes) {
    Files files = clips();
    std::erase_if(files, [&](const auto& f) { return f.first == name; });
    files.emplace_back(name, bytes);
    return test::error_of_files(read_speech_commands, files);
  };
  const std::string clip = "no/1_nohash_0.wav";
  EXPECT_EQ(error(clip, ""), "set/no/1_nohash_0.wav: the file is empty; expected a sound file");
  expect_contains(error(clip, wav_bytes(Samples{})),
                  "set/no/1_nohash_0.wav: the sound has no samples");
  expect_contains(error(clip, "RIFX"), "set/no/1_nohash_0.wav: not a sound file");
  expect_contains(error(clip, wav_bytes(Samples(100)).substr(0, 99)), "the file is cut off");
  expect_contains(
      error(clip, wav_bytes(Samples(4), 8000)),
      "set/no/1_nohash_0.wav: 1 channel(s), 8000 samples per second; Speech Commands has");
  expect_contains(error(clip, wav_bytes(Samples(4), 16000, 2)), "2 channel(s), 16000 samples");
  expect_contains(error(clip, wav_bytes(std::vector<float>{0.F})), "not of 16 bits");
  EXPECT_EQ(error("testing_list.txt", "\nyes/20d3f11f_nohash_0.wav\nup/x.mp3\n"),
            "set/testing_list.txt:3: \"up/x.mp3\" is not WORD/FILE.wav");
  EXPECT_EQ(error("testing_list.txt", "x.wav"),
            "set/testing_list.txt:1: \"x.wav\" is not WORD/FILE.wav");
  // Read after the testing list, since its name comes later.
  EXPECT_EQ(error("validation_list.txt", "yes/20d3f11f_nohash_0.wav"),
            "set/validation_list.txt:1: \"yes/20d3f11f_nohash_0.wav\" is in both lists");
  expect_contains(test::error_of_cut_archive(read_speech_commands, clips()), "a.tar.gz: ");
}

TEST(SpeechCommands, OneMissingListIsAnError) {
  Files files = clips();
  std::erase_if(files, [](const auto& f) { return f.first == "validation_list.txt"; });
  EXPECT_EQ(test::error_of_files(read_speech_commands, files),
            "set: there is testing_list.txt but no validation_list.txt; get the missing list, or "
            "remove both to split by the published rule");
  files = clips();
  std::erase_if(files, [](const auto& f) { return f.first == "testing_list.txt"; });
  expect_contains(test::error_of_files(read_speech_commands, files), "but no testing_list.txt");
  expect_contains(test::error_of_files(read_speech_commands, {{"a.txt", ""}}),
                  "set: there is no WORD/*.wav in it");
}

TEST(SpeechCommands, ClipsToPredict) {
  const test::Folder folder;
  test::write_files(folder.path(),
                    {{"a.wav", wav_bytes(Samples{1})}, {"b/c.wav", wav_bytes(Samples{2})}});
  const Records r = test::read_sorted(read_speech_commands, folder.path(), {}, false);
  EXPECT_EQ(test::names(r), (Names{"a.wav", "b/c.wav"}));
  EXPECT_EQ(r.labels, (std::vector<int64_t>{-1, -1}));
  EXPECT_EQ(test::read_sorted(read_speech_commands, folder / "a.wav", {}, false).size(), 1);
}

}  // namespace
}  // namespace rotrnn
