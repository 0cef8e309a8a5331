#pragma once

#include "rotrnn/data/records.h"

namespace rotrnn {

/// Task "image_folder": a user's pictures by class (class_folder.h), PNG or JPEG, read pixel by
/// pixel, row after row. All have the same size, and all are grey or all in colour.
void read_image_folder(const ReadRequest& request, RecordWriter& out);

}  // namespace rotrnn
