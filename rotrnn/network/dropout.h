#pragma once

#include "rotrnn/base/random.h"
#include "rotrnn/network/network.h"

namespace rotrnn {

/// Fills a mask [sequences, width], one value per sequence and channel, already scaled by
/// 1/(1 - probability): a pure function of the key and the position in the network.
template <class T>
void draw_mask(const DropoutKey& key, size_t block, size_t site, size_t width, double probability,
               T* out) {
  const auto threshold = static_cast<uint32_t>(probability * 0x1p32);
  const T keep = static_cast<T>(1 / (1 - probability));
  for (const int64_t sequence : key.sequences) {
    Random random(key.seed, RandomSite::dropout,
                  {static_cast<uint64_t>(key.step), block, site, static_cast<uint64_t>(sequence)});
    for (size_t i = 0; i < width; ++i) *out++ = random.bits() < threshold ? T(0) : keep;
  }
}

}  // namespace rotrnn
