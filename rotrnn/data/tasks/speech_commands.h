#pragma once

#include <string_view>

#include "rotrnn/data/task.h"

// Task "speech_commands": spoken words of one second (Warden 2018), WORD/*.wav of 16,000 samples a
// second and 16 bits, with validation_list.txt and testing_list.txt, in a folder or in
// speech_commands_v0.0{1,2}.tar.gz. True lengths: clips are not padded.

namespace rotrnn {

/// Where the published rule puts a clip: by the SHA-1 of its speaker, so that all clips of one
/// speaker are in one split.
Split speech_split(std::string_view file);

/// The speaker in the name of a clip: what is in front of "_nohash_".
std::string_view speech_speaker(std::string_view file);

/// Reads the words of task.words, or all; _background_noise_ is none. Splits are those of the two
/// lists; without either list, those of the published rule. To predict, any such sound files.
void read_speech_commands(const ReadRequest& request, RecordWriter& out);

}  // namespace rotrnn
