#include "rotrnn/kernels/gemm/gemm.h"

#include "rotrnn/kernels/oracle/block_reference.h"
#include "rotrnn/kernels/simd/simd.h"
#include "tests/kernels/test_util.h"

namespace rotrnn::kernels::testing {
namespace {

struct Size {
  size_t M, K, N;
};
const Size kSizes[] = {{1, 1, 1},  {6, 16, 16}, {7, 17, 5},    {96, 128, 64}, {13, 300, 33},
                       {5, 2, 97}, {25, 64, 1}, {131, 40, 19}, {12, 513, 16}};

/// Rows of `width` out of a padded matrix.
Floats unpad(const Floats& padded, size_t rows, size_t ld, size_t width) {
  Floats out;
  for (size_t r = 0; r < rows; ++r) {
    out.insert(out.end(), padded.begin() + static_cast<long>(r * ld),
               padded.begin() + static_cast<long>(r * ld + width));
  }
  return out;
}

constexpr size_t kGuard = 3;  // rows after C that must stay as they are

/// Nothing but C[M, N] was written.
void expect_untouched(const Floats& out, const Floats& before, size_t M, size_t N, size_t ldc) {
  for (size_t i = 0; i < out.size(); ++i) {
    const bool inside = i / ldc < M && i % ldc < N;
    if (inside) continue;
    ASSERT_EQ(out[i], before[i]) << "row " << i / ldc << " column " << i % ldc;
  }
}

void check_multiply(const Gemm& gemm, const Size& s, bool add, bool transposed) {
  const size_t lda = s.K + 3, ldc = s.N + 5;
  const Floats a = normal(s.M * lda, 1), b = normal(s.K * s.N, 2),
               c = normal((s.M + kGuard) * ldc, 3);
  Floats packed(gemm.packed_size(s.K, s.N) + 16), out = c;
  const Floats stored = transposed ? reference::transpose(b, s.K, s.N) : b;
  gemm.pack(packed.data(), stored.data(), s.K, s.N, transposed ? 1 : s.N, transposed ? s.K : 1);
  gemm.multiply(out.data(), ldc, a.data(), lda, packed.data(), s.M, s.K, s.N, add);
  const Floats A = unpad(a, s.M, lda, s.K), C = unpad(c, s.M, ldc, s.N);
  Doubles exact = reference::product(widen(A), widen(b), s.M, s.K, s.N);
  Floats plain = reference::product(A, b, s.M, s.K, s.N);
  for (size_t i = 0; add && i < exact.size(); ++i) exact[i] += C[i], plain[i] += C[i];
  expect_close("multiply", unpad(out, s.M, ldc, s.N), plain, exact);
  expect_untouched(out, c, s.M, s.N, ldc);
}

void check_outer(const Gemm& gemm, const Size& s, bool add) {
  const size_t lda = s.M + 2, ldb = s.N + 7, ldc = s.N + 1;
  const Floats a = normal(s.K * lda, 4), b = normal(s.K * ldb, 5),
               c = normal((s.M + kGuard) * ldc, 6);
  Floats out = c;
  gemm.outer(out.data(), ldc, a.data(), lda, b.data(), ldb, s.M, s.K, s.N, add);
  const Floats A = reference::transpose(unpad(a, s.K, lda, s.M), s.K, s.M);
  const Floats B = unpad(b, s.K, ldb, s.N), C = unpad(c, s.M, ldc, s.N);
  Doubles exact = reference::product(widen(A), widen(B), s.M, s.K, s.N);
  Floats plain = reference::product(A, B, s.M, s.K, s.N);
  for (size_t i = 0; add && i < exact.size(); ++i) exact[i] += C[i], plain[i] += C[i];
  expect_close("outer", unpad(out, s.M, ldc, s.N), plain, exact);
  expect_untouched(out, c, s.M, s.N, ldc);
}

TEST(Gemm, MatchesOracle) {
  for_each_target([] {
    for (const Size& s : kSizes) {
      SCOPED_TRACE(std::to_string(s.M) + "," + std::to_string(s.K) + "," + std::to_string(s.N));
      for (bool add : {false, true}) {
        check_multiply(gemm(), s, add, false);
        check_multiply(gemm(), s, add, true);
        check_outer(gemm(), s, add);
      }
    }
  });
}

TEST(Gemm, OneRowMatchesOracle) {
  for_each_target([] {
    const Table& simd = table();
    for (const size_t K : {1, 3, 96, 129}) {
      for (const size_t N : {1, 15, 16, 33, 96, 128, 200, 275}) {
        SCOPED_TRACE(std::to_string(K) + "," + std::to_string(N));
        const Floats a = normal(K, 1), b = normal(K * N, 2), bias = normal(N, 3);
        Floats packed(gemm().packed_size(K, N));
        simd.pack(packed.data(), b.data(), K, N, N, 1);
        for (const bool with_bias : {false, true}) {
          Floats out = normal(N + 9, 4);
          const Floats before = out;
          simd.multiply_row(out.data(), a.data(), packed.data(), K, N,
                            with_bias ? bias.data() : nullptr);
          Doubles exact = reference::product(widen(a), widen(b), 1, K, N);
          Floats plain = reference::product(a, b, 1, K, N);
          for (size_t i = 0; with_bias && i < N; ++i) exact[i] += bias[i], plain[i] += bias[i];
          expect_close("row", Floats(out.begin(), out.begin() + static_cast<long>(N)), plain,
                       exact);
          for (size_t i = N; i < out.size(); ++i) ASSERT_EQ(out[i], before[i]) << i;
        }
      }
    }
  });
}

TEST(Simd, UnknownTargetSaysWhatThereIs) {
  EXPECT_THROW(set_target("nonsense"), std::invalid_argument);
  EXPECT_GE(available_targets().size(), 2u);
}

TEST(Gemm, PaddedStrideSpreadsOverSets) {
  for (size_t n = 1; n < 600; ++n) {
    EXPECT_GE(padded_stride(n), n);
    EXPECT_EQ(padded_stride(n) % 32, 16u);
  }
}

}  // namespace
}  // namespace rotrnn::kernels::testing
