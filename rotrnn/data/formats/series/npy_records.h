#pragma once

#include "rotrnn/data/records.h"

// NumPy arrays: all series in one array, their classes or values in another.

namespace rotrnn {

/// Reads values [count, time, channels] or [count, time] with labels: [count] whole numbers for
/// classes, [count] or [count, values] for values, [count, time] for the class of every step; and
/// groups [count], if there is such a file. Which files belong together is what pair_files() says;
/// a .npz of numpy.savez is an archive of them.
void read_npy_records(const ReadRequest& request, RecordWriter& out);

}  // namespace rotrnn
