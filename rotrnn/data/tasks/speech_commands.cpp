#include "rotrnn/data/tasks/speech_commands.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "rotrnn/base/text/nearest.h"
#include "rotrnn/base/text/text_place.h"
#include "rotrnn/data/tasks/set_files.h"
#include "rotrnn/io/formats/audio.h"
#include "rotrnn/io/sha.h"

namespace rotrnn {
namespace {

constexpr int64_t kRate = 16000;
constexpr const char *kNoise = "_background_noise_", *kValidation = "validation_list.txt",
                     *kTesting = "testing_list.txt";

// "yes" of "set/yes/1.wav"; empty for what is no clip.
std::string word_of(const std::string& name) {
  const std::string_view tail = name_tail(name, 2);
  if (tail.empty() || !tail.ends_with(".wav") || is_hidden(name)) return "";
  std::string word(tail.substr(0, tail.find('/')));
  return word == kNoise ? "" : word;
}

// The clips that the lists name, as WORD/FILE.
class Lists {
 public:
  explicit Lists(const ReadRequest& request) {
    visit_set(
        request,
        [](const std::string& name) {
          return name_tail(name, 1) == kValidation || name_tail(name, 1) == kTesting;
        },
        [&](const SetFile& file) {
          const bool validation = name_tail(file.name, 1) == kValidation;
          (validation ? validation_ : testing_) = true;
          add(file, validation ? Split::validation : Split::test);
        });
    if (validation_ != testing_) {
      throw std::runtime_error(fmt::format(
          "{}: there is {} but no {}; get the missing list, or remove both to split by the "
          "published rule",
          request.path.string(), validation_ ? kValidation : kTesting,
          validation_ ? kTesting : kValidation));
    }
  }

  Split split_of(const std::string& clip) const {
    if (!validation_) return speech_split(name_tail(clip, 1));
    const auto found = splits_.find(clip);
    return found == splits_.end() ? Split::train : found->second;
  }

 private:
  void add(const SetFile& file, Split split) {
    TextPlace place{file.where, 0};
    for (std::string_view rest = file.bytes; !rest.empty();) {
      std::string_view line = rest.substr(0, rest.find('\n'));
      rest.remove_prefix(std::min(rest.size(), line.size() + 1));
      if (line.ends_with('\r')) line.remove_suffix(1);
      ++place.line;
      if (line.empty()) continue;
      if (std::count(line.begin(), line.end(), '/') != 1 || !line.ends_with(".wav")) {
        place.fail(fmt::format("{} is not WORD/FILE.wav", excerpt(line)));
      }
      const auto [known, fresh] = splits_.emplace(line, split);
      if (!fresh && known->second != split) {
        place.fail(fmt::format("{} is in both lists", excerpt(line)));
      }
    }
  }

  std::unordered_map<std::string, Split> splits_;
  bool validation_ = false, testing_ = false;
};

Audio read_clip(const SetFile& file) {
  Audio audio = parse_audio(file.bytes, file.where);
  if (audio.sample_rate != kRate || audio.channels != 1 || audio.pcm.empty()) {
    throw std::runtime_error(fmt::format(
        "{}: {} channel(s), {} samples per second{}; Speech Commands has one channel of "
        "16 bits and {} samples per second",
        file.where, audio.channels, audio.sample_rate, audio.pcm.empty() ? ", not of 16 bits" : "",
        kRate));
  }
  return audio;
}

void check_words(const std::vector<std::string>& words, const std::set<std::string>& there,
                 const std::set<std::string>& found) {
  for (const std::string& word : words) {
    if (found.contains(word)) continue;
    const std::vector<std::string> all(there.begin(), there.end());
    const std::string near = nearest(word, all);
    throw std::invalid_argument(
        fmt::format("task.words: there are no clips of \"{}\"; {}", word,
                    near.empty() ? fmt::format("the words are {}", fmt::join(all, ", "))
                                 : fmt::format("did you mean \"{}\"?", near)));
  }
}

void read_labelled_clips(const ReadRequest& request, RecordWriter& out) {
  const Lists lists(request);
  const auto words = split_names(request.options.words);
  if (!words.empty()) out.classes(words);
  std::set<std::string> there, found;
  visit_set(
      request,
      [&](const std::string& name) {
        const std::string word = word_of(name);
        if (word.empty()) return false;
        there.insert(word);
        return words.empty() || std::find(words.begin(), words.end(), word) != words.end();
      },
      [&](const SetFile& file) {
        Record record;
        record.name = name_tail(file.name, 2);
        record.label = word_of(file.name);
        record.split = lists.split_of(record.name);
        record.group = speech_speaker(name_tail(file.name, 1));
        found.insert(record.label);
        const Audio audio = read_clip(file);
        out.add_values(std::move(record), std::span<const int16_t>(audio.pcm));
      });
  if (there.empty()) {
    fail_missing(request, "WORD/*.wav",
                 "the folder of Speech Commands, or speech_commands_v0.02.tar.gz as downloaded");
  }
  check_words(words, there, found);
}

}  // namespace

std::string_view speech_speaker(std::string_view file) {
  return file.substr(0, file.find("_nohash_"));
}

Split speech_split(std::string_view file) {
  // The published rule takes the sum modulo 2^27: its last 7 digits hold 28 bits.
  constexpr uint32_t kMost = (1U << 27) - 1;
  const std::string sum = sha1_hex(speech_speaker(file));
  const auto hash =
      static_cast<uint32_t>(std::stoul(sum.substr(sum.size() - 7), nullptr, 16)) & kMost;
  const double percentage = hash * (100.0 / kMost);
  return percentage < 10 ? Split::validation : percentage < 20 ? Split::test : Split::train;
}

void read_speech_commands(const ReadRequest& request, RecordWriter& out) {
  require_one_path(request);
  out.form({Element::i16, 1, kPcmScale, 1, kRate}, request.path.string());
  if (request.labelled) {
    read_labelled_clips(request, out);
    return;
  }
  visit_set(
      request, [](const std::string& name) { return name.ends_with(".wav") && !is_hidden(name); },
      [&](const SetFile& file) {
        Record record;
        record.name = file.name;
        const Audio audio = read_clip(file);
        out.add_values(std::move(record), std::span<const int16_t>(audio.pcm));
      });
}

}  // namespace rotrnn
