#pragma once

#include "rotrnn/data/task.h"

// Pathfinder and Path-X as tasks: pictures read pixel by pixel, row after row, one channel, two
// classes; made on the spot, or read in the public layout
// pathfinder{32,128}/curv_contour_length_14/{imgs/K/sample_i.png, metadata/K.npy}, unpacked or as
// an archive.

namespace rotrnn {

/// Pictures of 32 pixels a side; to predict, one picture or a folder of them.
void read_pathfinder(const ReadRequest& request, RecordWriter& out);
void make_pathfinder(const TaskOptions& options, int threads, RecordWriter& out);

/// Pictures of 128 pixels a side.
void read_pathx(const ReadRequest& request, RecordWriter& out);
void make_pathx(const TaskOptions& options, int threads, RecordWriter& out);

/// Pixels become (x/255 - ½) / ½.
Preprocessing prepare_pathfinder(const TaskOptions& options, const Records& records,
                                 std::span<const int64_t> train);

}  // namespace rotrnn
