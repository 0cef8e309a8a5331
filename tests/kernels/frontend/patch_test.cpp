#include "rotrnn/kernels/frontend/patch.h"

#include "tests/kernels/test_util.h"

namespace rotrnn::kernels::testing {
namespace {

TEST(Patches, TakeSamplesAndFillUpTheOnlyShortOne) {
  const Patches p{2, 3, 2};
  const int64_t offsets[] = {0, 6, 7}, tokens[] = {0, 2, 3};
  const Floats x = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13};
  for (const int threads : {1, 3}) {
    Floats out(3 * p.outputs(), NAN), dx(x.size(), NAN);
    patches_forward(p, {offsets, 2}, tokens, x.data(), out.data(), threads);
    EXPECT_EQ(out, (Floats{0, 1, 2, 3, 4, 5, 4, 5, 6, 7, 8, 9, 12, 13, 0, 0, 0, 0}));
    // Samples that two tokens share get both gradients, the sixth, which none has, no gradient.
    const Floats dout = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18};
    patches_backward(p, {offsets, 2}, tokens, dout.data(), dx.data(), threads);
    EXPECT_EQ(dx, (Floats{1, 2, 3, 4, 12, 14, 9, 10, 11, 12, 0, 0, 13, 14}));
  }
}

}  // namespace
}  // namespace rotrnn::kernels::testing
