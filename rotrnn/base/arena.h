#pragma once

#include <cstddef>
#include <cstdlib>
#include <new>
#include <vector>

#ifdef __linux__
#include <sys/mman.h>
#endif

namespace rotrnn::kernels {

/// Pages from the system: malloc would keep what an arena gives back, and large pages save TLB
/// misses where weight gradients walk down the columns of a tile.
inline void* allocate_pages(size_t bytes) {
#ifdef __linux__
  void* data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (data == MAP_FAILED) throw std::bad_alloc();
  madvise(data, bytes, MADV_HUGEPAGE);  // a hint: ignored where there are none
#else
  void* data = std::aligned_alloc(64, bytes);
  if (data == nullptr) throw std::bad_alloc();
#endif
  return data;
}

inline void free_pages(void* data, [[maybe_unused]] size_t bytes) {
#ifdef __linux__
  munmap(data, bytes);
#else
  std::free(data);
#endif
}

/// Aligned memory that is grown once and reused. `take` hands out pieces; `reset` frees all pieces
/// at once and keeps the memory, joined into one block, so that from the second step on nothing is
/// allocated: touching fresh pages costs six times as much as reusing them.
class Arena {
 public:
  Arena() = default;
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;
  ~Arena() { release(); }

  /// Uninitialised memory for `count` elements, aligned to a cache line.
  template <class T>
  T* take(size_t count) {
    const size_t bytes = round_up(count * sizeof(T));
    if (blocks_.empty() || blocks_.back().used + bytes > blocks_.back().size) grow(bytes);
    Block& block = blocks_.back();
    T* piece = reinterpret_cast<T*>(block.data + block.used);
    block.used += bytes;
    return piece;
  }

  /// Ends the life of every piece; keeps the memory.
  void reset() {
    if (blocks_.size() > 1) {
      const size_t total = capacity();
      release();
      grow(total);
    }
    if (!blocks_.empty()) blocks_.back().used = 0;
  }

  /// Bytes held.
  size_t capacity() const {
    size_t total = 0;
    for (const Block& block : blocks_) total += block.size;
    return total;
  }

  /// Gives all memory back.
  void release() {
    for (Block& block : blocks_) free_pages(block.data, block.size);
    blocks_.clear();
  }

 private:
  struct Block {
    char* data;
    size_t size, used;
  };
  static constexpr size_t kLine = 64;

  static size_t round_up(size_t bytes) { return (bytes + kLine - 1) / kLine * kLine; }

  void grow(size_t bytes) {
    const size_t size = bytes > kLeast ? bytes : kLeast;
    blocks_.push_back({static_cast<char*>(allocate_pages(size)), size, 0});
  }

  static constexpr size_t kLeast = size_t{1} << 16;
  std::vector<Block> blocks_;
};

/// For vectors that begin at a cache line.
template <class T>
struct LineAllocator {
  using value_type = T;
  static constexpr std::align_val_t kLine{64};

  LineAllocator() = default;
  template <class U>
  LineAllocator(const LineAllocator<U>&) {}

  T* allocate(size_t n) { return static_cast<T*>(::operator new(n * sizeof(T), kLine)); }
  void deallocate(T* p, size_t) { ::operator delete(p, kLine); }
  friend bool operator==(const LineAllocator&, const LineAllocator&) { return true; }
};

using AlignedFloats = std::vector<float, LineAllocator<float>>;

}  // namespace rotrnn::kernels
