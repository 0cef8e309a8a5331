#pragma once

#include "rotrnn/data/records.h"

namespace rotrnn {

/// Task "audio_folder": a user's sound files by class (class_folder.h), of any format that
/// libsndfile reads. All have the same channels and samples per second.
void read_audio_folder(const ReadRequest& request, RecordWriter& out);

}  // namespace rotrnn
