#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace rotrnn::kernels {

/// A packed ragged batch: sequence i holds tokens offsets[i] .. offsets[i+1].
struct PackedSequences {
  const int64_t* offsets = nullptr;
  size_t count = 0;

  size_t begin(size_t i) const { return static_cast<size_t>(offsets[i]); }
  size_t end(size_t i) const { return static_cast<size_t>(offsets[i + 1]); }
  size_t tokens() const { return count == 0 ? 0 : end(count - 1); }
};

/// A stretch of one sequence that one thread walks; a whole sequence unless the plan is chunked.
struct Segment {
  size_t id, sequence, begin, end;
};

/// `rows` tokens from `begin`; `index` counts tiles over the whole batch.
struct Tile {
  size_t sequence, begin, rows, index;
  bool first, last;
};

/// Who does what. A unit has its own accumulators; units are summed in order, so results depend on
/// the units, not on the threads. Units depend on the offsets alone, except in a chunked plan.
struct Plan {
  size_t tile = 0;
  bool chunked = false;
  std::vector<std::vector<Segment>> units;
  std::vector<std::vector<size_t>> units_of_thread;
  std::vector<size_t> first_tile;  // of each sequence
  std::vector<std::vector<Segment>> segments_of_sequence;
  size_t tiles = 0, segments = 0;

  size_t count_tiles(const Segment& s) const { return (s.end - s.begin + tile - 1) / tile; }
  /// Tile k of a segment.
  Tile tile_at(const PackedSequences& sequences, const Segment& segment, size_t k) const;
};

/// Threads over groups of sequences, longest first. Over time chunks when there are fewer sequences
/// than threads, or (if balance) when whole sequences would leave a thread idle a tenth of the
/// time.
Plan make_plan(const PackedSequences& sequences, size_t tile, int threads, bool balance);

}  // namespace rotrnn::kernels
