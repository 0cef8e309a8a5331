#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <initializer_list>

namespace rotrnn {

/// What a stream of random numbers is for. Two sites never share numbers.
enum class RandomSite : uint64_t {
  initialise = 1,
  shuffle,
  dropout,
  split,
  listops,
  permutation,
  pathfinder,
  trial,
  fit
};

/// Philox4x32-10 (Salmon et al. 2011): a counter-based generator. The numbers are a pure function
/// of (seed, site, stream), so nothing has to be saved for a run to continue where it stopped, and
/// any thread or process can draw its own part.
class Random {
 public:
  Random(uint64_t seed, RandomSite site, std::initializer_list<uint64_t> stream = {})
      : key_{low(seed), high(seed)}, stream_(mix(static_cast<uint64_t>(site))) {
    for (uint64_t part : stream) stream_ = mix(stream_ ^ mix(part + 0x9e3779b97f4a7c15u));
  }

  /// 32 uniform bits.
  uint32_t bits() {
    if (used_ == block_.size()) {
      block_ = philox({low(counter_), high(counter_), low(stream_), high(stream_)}, key_);
      ++counter_;
      used_ = 0;
    }
    return block_[used_++];
  }

  /// Uniform in [0, 1), 53 bits.
  double uniform() {
    const uint64_t high = bits();
    return static_cast<double>((high << 21) ^ (bits() >> 11)) * 0x1p-53;
  }

  /// Uniform in {0, ..., n - 1}, without bias (Lemire 2019); n is at least 1.
  uint32_t below(uint32_t n) {
    uint64_t product = static_cast<uint64_t>(bits()) * n;
    const uint32_t threshold = (0u - n) % n;
    while (static_cast<uint32_t>(product) < threshold) product = static_cast<uint64_t>(bits()) * n;
    return static_cast<uint32_t>(product >> 32);
  }

  /// Standard normal (Box-Muller).
  double normal() {
    if (has_spare_) {
      has_spare_ = false;
      return spare_;
    }
    const double radius = std::sqrt(-2.0 * std::log1p(-uniform()));
    const double angle = 6.283185307179586476925 * uniform();
    spare_ = radius * std::sin(angle);
    has_spare_ = true;
    return radius * std::cos(angle);
  }

  /// One block: four words from a counter and a key.
  static std::array<uint32_t, 4> philox(std::array<uint32_t, 4> c, std::array<uint32_t, 2> key) {
    for (int round = 0; round < 10; ++round) {
      const uint64_t a = uint64_t{0xD2511F53u} * c[0], b = uint64_t{0xCD9E8D57u} * c[2];
      c = {high(b) ^ c[1] ^ key[0], low(b), high(a) ^ c[3] ^ key[1], low(a)};
      key[0] += 0x9E3779B9u;
      key[1] += 0xBB67AE85u;
    }
    return c;
  }

 private:
  static uint32_t low(uint64_t x) { return static_cast<uint32_t>(x); }
  static uint32_t high(uint64_t x) { return static_cast<uint32_t>(x >> 32); }

  // The finaliser of SplitMix64: a bijection of 64 bits in which every input bit reaches all.
  static uint64_t mix(uint64_t x) {
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
  }

  std::array<uint32_t, 2> key_;
  uint64_t stream_;
  uint64_t counter_ = 0;
  std::array<uint32_t, 4> block_{};
  size_t used_ = 4;
  bool has_spare_ = false;
  double spare_ = 0;
};

}  // namespace rotrnn
