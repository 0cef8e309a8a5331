// The gradients of the plain scan, which the fast one is compared with, against differences.

#include "rotrnn/kernels/oracle/block_reference.h"
#include "tests/support/numbers.h"

namespace rotrnn::testing {
namespace {

namespace reference = kernels::reference;

TEST(ScanTwin, GradientsEqualFiniteDifferences) {
  const size_t rows = 9, S = 3;
  for (const bool reverse : {false, true}) {
    for (const size_t stride : {size_t{0}, S}) {  // one λ for all tokens, and one for each
      const size_t count = stride == 0 ? S : rows * S;
      Doubles v = normal(rows * 2 * S, 1), re = normal(count, 2, 0.6), im = normal(count, 3, 0.6);
      Doubles start = normal(2 * S, 4);
      const Doubles dz = normal(rows * 2 * S, 5), dlast = normal(2 * S, 6);
      const auto order = reference::visit(0, rows, reverse);
      const auto states = [&](const Doubles& planes) {
        Complexes out;
        for (size_t i = 0; i < S; ++i) out.push_back(reference::state_at(planes, 0, i, S));
        return out;
      };
      const auto run = [&] {
        Doubles z = v;
        reference::scan(z, order, S, re, im, stride, states(start));
        return z;
      };
      const auto loss = [&] {  // of all states, and once more of the last one
        const Doubles z = run();
        double sum = dot(z, dz);
        for (size_t i = 0; i < 2 * S; ++i) sum += z[order.back() * 2 * S + i] * dlast[i];
        return sum;
      };
      Doubles g = dz, dre(count), dim(count), dstart;
      const Complexes first = reference::scan_adjoint(g, run(), order, S, re, im, stride,
                                                      states(start), states(dlast), dre, dim);
      for (const auto& x : first) dstart.push_back(x.real());
      for (const auto& x : first) dstart.push_back(x.imag());
      const auto compare = [&](const char* name, const Doubles& gradient, Doubles& values) {
        Doubles expected;
        for (double& x : values) expected.push_back(derivative(x, loss));
        EXPECT_LE(relative_error(gradient, expected), 1e-8) << name << " " << reverse << stride;
      };
      compare("v", g, v);
      compare("lambda re", dre, re);
      compare("lambda im", dim, im);
      compare("start", dstart, start);
    }
  }
}

}  // namespace
}  // namespace rotrnn::testing
