// A steady training step allocates nothing large: what it needs was grown in the first steps and is
// reused. In a program of its own, because it stands between the C library and everybody who
// allocates.

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <numeric>

#include "rotrnn/training/batch.h"
#include "rotrnn/training/optimiser.h"
#include "tests/support/examples.h"

namespace {

constexpr size_t kLarge = 1'000'000;
std::atomic<int64_t> large{0};

void count(size_t size) {
  if (size > kLarge) large.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace

extern "C" {
void* __libc_malloc(size_t);
void* __libc_calloc(size_t, size_t);
void* __libc_realloc(void*, size_t);
void* __libc_memalign(size_t, size_t);

void* malloc(size_t size) {
  count(size);
  return __libc_malloc(size);
}
void* calloc(size_t n, size_t size) {
  count(n * size);
  return __libc_calloc(n, size);
}
void* realloc(void* p, size_t size) {
  count(size);
  return __libc_realloc(p, size);
}
void* aligned_alloc(size_t alignment, size_t size) {
  count(size);
  return __libc_memalign(alignment, size);
}
int posix_memalign(void** p, size_t alignment, size_t size) {
  count(size);
  *p = __libc_memalign(alignment, size);
  return *p ? 0 : ENOMEM;
}
void* mmap(void* address, size_t size, int protection, int flags, int file, off_t offset) {
  count(size);
  return reinterpret_cast<void*>(syscall(SYS_mmap, address, size, protection, flags, file, offset));
}
}

namespace rotrnn {
namespace {

// Largest number of large allocations in one of the last steps.
int64_t steady_allocations(const ModelOptions& options, Kernels kernels, MemoryMode memory) {
  constexpr int64_t kBatch = 4, kLength = 1024;  // a tensor of all tokens has 2 MB
  const DataShape shape{InputKind::tokens, 18, TargetKind::classes, 10};
  const Examples examples = test::token_examples(kBatch, kLength, 18);
  std::vector<int64_t> numbers(kBatch);
  std::iota(numbers.begin(), numbers.end(), 0);
  Network network(options, shape, 1);
  network.engine.kernels = kernels;
  network.engine.memory = memory;
  Workspace workspace;
  Optimiser optimiser(network.layout());
  FlatArray gradients(network.layout());
  std::vector<float> dy;
  int64_t most = 0;
  for (int64_t step = 0; step < 6; ++step) {
    const int64_t before = large;
    const Batch batch = make_batch(examples, shape, numbers);
    train_pass(network, workspace, batch, {1, step, batch.sequences}, {}, gradients, dy);
    optimiser.step(step + 1, {1e-3, 1e-3, 0.1}, gradients, network.weights(), 2);
    if (step >= 3) most = std::max(most, large - before);
  }
  return most;
}

ModelOptions options() {
  ModelOptions m;
  m.width = 128;
  m.state = 256;
  m.rotrnn.heads = 32;
  m.depth = 2;
  m.dropout = 0.1;
  return m;
}

TEST(Allocation, SteadyStepAllocatesNothingLarge) {
  for (const auto memory : {MemoryMode::normal, MemoryMode::low}) {
    ModelOptions m = options();
    EXPECT_EQ(steady_allocations(m, Kernels::fused, memory), 0);
    m.bidirectional = true;
    m.prenorm = false;
    m.activation = Activation::full_glu;
    EXPECT_EQ(steady_allocations(m, Kernels::fused, memory), 0);
  }
}

TEST(Allocation, TheCountSeesWhatTheReferencePathAllocates) {
  EXPECT_GT(steady_allocations(options(), Kernels::reference, MemoryMode::normal), 10);
}

}  // namespace
}  // namespace rotrnn
