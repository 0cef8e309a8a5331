#pragma once

#include "rotrnn/data/records.h"

// IDX files in the form of MNIST's, of images of any size and classes 0 to 255.

namespace rotrnn {

/// Reads images as sequences of pixels, row after row, with their labels; files belong together as
/// pair_files() says: train-images-idx3-ubyte and train-labels-idx1-ubyte.
void read_idx_records(const ReadRequest& request, RecordWriter& out);

}  // namespace rotrnn
