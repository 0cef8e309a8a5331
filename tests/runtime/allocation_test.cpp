// A stream allocates nothing after its construction. In a program of its own, because it stands
// between the C library and everybody who allocates.

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>

#include "rotrnn/runtime/score.h"
#include "rotrnn/runtime/stream.h"
#include "tests/runtime/cases.h"

namespace {

std::atomic<int64_t> allocations{0};

void count() {
  allocations.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace

extern "C" {
void* __libc_malloc(size_t);
void* __libc_calloc(size_t, size_t);
void* __libc_realloc(void*, size_t);
void* __libc_memalign(size_t, size_t);

void* malloc(size_t size) {
  count();
  return __libc_malloc(size);
}
void* calloc(size_t n, size_t size) {
  count();
  return __libc_calloc(n, size);
}
void* realloc(void* p, size_t size) {
  count();
  return __libc_realloc(p, size);
}
void* aligned_alloc(size_t alignment, size_t size) {
  count();
  return __libc_memalign(alignment, size);
}
int posix_memalign(void** p, size_t alignment, size_t size) {
  count();
  *p = __libc_memalign(alignment, size);
  return *p ? 0 : ENOMEM;
}
void* mmap(void* address, size_t size, int protection, int flags, int file, off_t offset) {
  count();
  return reinterpret_cast<void*>(syscall(SYS_mmap, address, size, protection, flags, file, offset));
}
}

namespace rotrnn::runtime::test {
namespace {

// Everything that a stream can do, from its first step on.
void use(Stream& stream, const Case& c, std::span<float> each, std::span<std::byte> state) {
  const auto C = static_cast<size_t>(c.inputs);
  for (const size_t chunk : {1, 7, 40}) {
    stream.reset();
    for (size_t t = 0; t + chunk <= 50; t += chunk) {
      if (!c.text.empty()) {
        stream.push_text(std::string_view(c.text).substr(t, chunk), each);
      } else if (c.takes_tokens()) {
        stream.push_tokens(std::span(c.tokens).subspan(t, chunk), each);
      } else {
        stream.push(std::span(c.values).subspan(t * C, chunk * C), each);
      }
      stream.logits();
      stream.answer();
    }
    stream.save(state);
    stream.restore(state);
    if (c.text.empty()) stream.end();  // a text may be cut inside a character
  }
}

TEST(Allocation, AStreamAllocatesNothingAfterConstruction) {
  for (const Case& c : cases()) {
    if (!c.streams) continue;
    const auto model = c.load();
    Stream stream(model);
    std::vector<float> each(64 * static_cast<size_t>(c.outputs));
    std::vector<std::byte> state(stream.state_size());
    const int64_t before = allocations;
    use(stream, c, each, state);
    EXPECT_EQ(allocations - before, 0) << c.name;
  }
}

TEST(Allocation, NorDoManyStreamsPushedTogether) {
  const Case& c = case_named("plain");
  const auto model = c.load();
  std::vector<Stream> streams;
  std::vector<Stream*> pointers;
  for (int i = 0; i < 30; ++i) streams.emplace_back(model);
  for (Stream& stream : streams) pointers.push_back(&stream);
  const int64_t before = allocations;
  for (size_t t = 0; t < 5; ++t) {
    Stream::push_each(pointers, std::span(c.values).subspan(t, streams.size()));
  }
  EXPECT_EQ(allocations - before, 0);
}

TEST(Allocation, TheCountSeesWhatAScorerAllocates) {
  const Case& c = case_named("plain");
  Scorer scorer(c.load(), 1);
  const int64_t before = allocations;
  scorer.score(c.values, std::array<int64_t, 2>{0, c.steps()});
  EXPECT_GT(allocations - before, 0);
}

}  // namespace
}  // namespace rotrnn::runtime::test
