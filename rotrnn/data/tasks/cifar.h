#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "rotrnn/data/task.h"

// Task "image": CIFAR-10 in grey, pixel by pixel. The binary version: data_batch_*.bin and
// test_batch.bin in a folder or in cifar-10-binary.tar.gz; a record is a label and the red, green
// and blue planes of 32 × 32 pixels.

namespace rotrnn {

inline constexpr int64_t kCifarSide = 32, kCifarPixels = kCifarSide * kCifarSide;
inline constexpr int64_t kCifarRecord = 1 + 3 * kCifarPixels;

/// Calls `visit` for every record with its label and grey pixels. A file that does not end with a
/// record, or with a label above 9, throws std::runtime_error `where: offset N: …`.
void parse_cifar(std::string_view bytes, const std::string& where,
                 const std::function<void(int label, std::span<const uint8_t> pixels)>& visit);

/// Reads the batches that are there, at least one of train and the test batch. To predict, any file
/// of records.
void read_cifar(const ReadRequest& request, RecordWriter& out);

/// Pixels become (x - 122.6) / 61, or x/255 without normalisation.
Preprocessing prepare_cifar(const TaskOptions& options, const Records& records,
                            std::span<const int64_t> train);

}  // namespace rotrnn
