#pragma once

#include "rotrnn/data/records.h"

namespace rotrnn {

/// Task "text_folder": a user's texts by class (class_folder.h), UTF-8, one text per file.
void read_text_folder(const ReadRequest& request, RecordWriter& out);

}  // namespace rotrnn
