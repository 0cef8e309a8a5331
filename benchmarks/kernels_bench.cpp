// Google Benchmark of each kernel on one tile of 96 rows: items are tokens, and the GEMMs count
// FLOP.
#include <benchmark/benchmark.h>

#include <cmath>
#include <vector>

#include "rotrnn/kernels/block/block.h"
#include "rotrnn/kernels/block/embedding.h"
#include "rotrnn/kernels/block/pooling.h"
#include "rotrnn/kernels/frontend/rotations.h"
#include "rotrnn/kernels/maps/expm.h"
#include "rotrnn/kernels/maps/rotrnn_map.h"
#include "rotrnn/kernels/optimiser/adamw.h"
#include "rotrnn/kernels/recurrence/channel.h"
#include "rotrnn/kernels/recurrence/convolve.h"
#include "rotrnn/kernels/recurrence/fft.h"
#include "rotrnn/kernels/simd/simd.h"

namespace rotrnn::kernels {
namespace {

constexpr size_t kRows = 96;

std::vector<float> values(size_t count) {
  std::vector<float> v(count);
  for (size_t i = 0; i < count; ++i) v[i] = 0.01f * static_cast<float>(i % 97) - 0.5f;
  return v;
}

void count_flop(benchmark::State& state, double flop) {
  state.counters["GFLOP/s"] = benchmark::Counter(
      flop * static_cast<double>(state.iterations()) / 1e9, benchmark::Counter::kIsRate);
}

void multiply(benchmark::State& state) {
  const Gemm& g = gemm();
  const auto K = static_cast<size_t>(state.range(0)), N = static_cast<size_t>(state.range(1));
  const size_t lda = padded_stride(K), ldc = padded_stride(N);
  const auto a = values(kRows * lda), b = values(K * N);
  std::vector<float> c(kRows * ldc), packed(g.packed_size(K, N));
  g.pack(packed.data(), b.data(), K, N, N, 1);
  for (auto _ : state) {
    g.multiply(c.data(), ldc, a.data(), lda, packed.data(), kRows, K, N, false);
    benchmark::ClobberMemory();
  }
  count_flop(state, 2.0 * kRows * static_cast<double>(K * N));
}

void outer(benchmark::State& state) {
  const Gemm& g = gemm();
  const auto R = static_cast<size_t>(state.range(0)), N = static_cast<size_t>(state.range(1));
  const size_t lda = padded_stride(R), ldb = padded_stride(N);
  const auto a = values(kRows * lda), b = values(kRows * ldb);
  std::vector<float> c(R * N);
  for (auto _ : state) {
    g.outer(c.data(), N, a.data(), lda, b.data(), ldb, R, kRows, N, true);
    benchmark::ClobberMemory();
  }
  count_flop(state, 2.0 * kRows * static_cast<double>(R * N));
}

void gemm_sizes(benchmark::internal::Benchmark* b) {
  for (auto [K, N] : {std::pair{128, 256},
                      {256, 128},
                      {128, 128},
                      {256, 192},
                      {192, 256},
                      {256, 256},
                      {96, 128},
                      {128, 96},
                      {96, 96}}) {
    b->Args({K, N});
  }
}
BENCHMARK(multiply)->Apply(gemm_sizes);
BENCHMARK(outer)->Apply(gemm_sizes);

/// A tile kernel on D = 128, 2S = 256; f gets buffers a .. e of kRows × 272 floats.
template <class F>
void tile_kernel(benchmark::State& state, const F& f) {
  std::vector<std::vector<float>> b(6, values(kRows * 272));
  for (auto _ : state) {
    f(b);
    benchmark::ClobberMemory();
  }
  state.SetItemsProcessed(static_cast<int64_t>(state.iterations() * kRows));
}

using Buffers = std::vector<std::vector<float>>;
constexpr size_t kD = 128, kLd = 144, kS = 128, kLdz = 272;

void scan(benchmark::State& state) {
  std::vector<float> zero(2 * kS), re(kS, 0.9f), im(kS, 0.1f);
  tile_kernel(state, [&](Buffers& b) {
    table().scan({b[0].data(), kLdz}, kRows, kS, {re.data(), im.data(), 0}, zero.data());
    std::fill(zero.begin(), zero.end(), 0.0f);
  });
}
BENCHMARK(scan);

void scan_adjoint(benchmark::State& state) {
  std::vector<float> zero(2 * kS), re(kS, 0.9f), im(kS, 0.1f);
  std::vector<double> sum(2 * kS);
  tile_kernel(state, [&](Buffers& b) {
    table().scan_adjoint({b[0].data(), kLdz}, kRows, kS, {re.data(), im.data(), 0},
                         {b[1].data(), kLdz}, zero.data(), zero.data(),
                         {sum.data(), nullptr, nullptr, false});
    b[0][0] = 0;
  });
}
BENCHMARK(scan_adjoint);

void affine(benchmark::State& state) {
  tile_kernel(state, [&](Buffers& b) {
    table().affine(b[0].data(), kD, b[1].data(), b[2].data(), b[3].data(), kLd, kRows, kD);
  });
}
BENCHMARK(affine);

void layer_norm(benchmark::State& state) {
  tile_kernel(state, [&](Buffers& b) {
    table().layer_norm(b[0].data(), kD, b[1].data(), b[2].data(), 1e-5f, b[3].data(), kLd, kRows,
                       kD);
  });
}
BENCHMARK(layer_norm);

void preactivate(benchmark::State& state) {
  std::vector<float> skip(kD, 0.0f);
  tile_kernel(state, [&](Buffers& b) {
    table().preactivate[Curve::gelu](b[0].data(), kLd, b[1].data(), kLd, skip.data(), nullptr,
                                     nullptr, b[2].data(), kLd, kRows, kD);
  });
}
BENCHMARK(preactivate);

void preactivate_exact(benchmark::State& state) {
  std::vector<float> skip(kD, 0.0f);
  tile_kernel(state, [&](Buffers& b) {
    table().preactivate[Curve::exact_gelu](b[0].data(), kLd, b[1].data(), kLd, skip.data(), nullptr,
                                           nullptr, b[2].data(), kLd, kRows, kD);
  });
}
BENCHMARK(preactivate_exact);

void gate(benchmark::State& state) {
  std::vector<float> statistics(3 * kD);
  const TileStatistics s{statistics.data(), statistics.data() + kD, statistics.data() + 2 * kD};
  tile_kernel(state, [&](Buffers& b) {
    table().gate(b[0].data(), kLd, nullptr, b[1].data(), kLd, b[5].data(), nullptr, b[2].data(), kD,
                 b[3].data(), kD, kRows, kD, &s);
  });
}
BENCHMARK(gate);

void gelu_pair(benchmark::State& state) {
  tile_kernel(state, [&](Buffers& b) {
    table().curve_pair[Curve::gelu](b[0].data(), kLd, nullptr, b[1].data(), kLd, b[2].data(), kLd,
                                    kRows, kD);
  });
}
BENCHMARK(gelu_pair);

void gelu_pair_exact(benchmark::State& state) {
  tile_kernel(state, [&](Buffers& b) {
    table().curve_pair[Curve::exact_gelu](b[0].data(), kLd, nullptr, b[1].data(), kLd, b[2].data(),
                                          kLd, kRows, kD);
  });
}
BENCHMARK(gelu_pair_exact);

void gate_backward(benchmark::State& state) {
  tile_kernel(state, [&](Buffers& b) {
    table().gate_backward(b[0].data(), kD, nullptr, b[1].data(), kLd, b[2].data(), kD, nullptr, 0,
                          b[3].data(), kLd, nullptr, b[4].data(), kRows, kD);
  });
}
BENCHMARK(gate_backward);

void preactivate_backward(benchmark::State& state) {
  std::vector<float> zero(kRows * kLd);
  tile_kernel(state, [&](Buffers& b) {
    table().preactivate_backward(b[0].data(), kLd, zero.data(), kLd, b[2].data(), kD, nullptr,
                                 b[3].data(), kD, true, false, b[4].data(), kLd, b[5].data(),
                                 nullptr, kRows, kD);
  });
}
BENCHMARK(preactivate_backward);

void batch_norm_backward(benchmark::State& state) {
  std::vector<float> v(5 * kD);
  tile_kernel(state, [&](Buffers& b) {
    table().batch_norm_backward(b[0].data(), kLd, b[1].data(), kLd, v.data(), b[2].data(), kD,
                                v.data(), v.data(), v.data(), b[3].data(), kD, b[4].data(), kD,
                                v.data() + 3 * kD, v.data() + 4 * kD, kRows, kD);
  });
}
BENCHMARK(batch_norm_backward);

void adamw_step(benchmark::State& state) {
  const auto n = static_cast<size_t>(state.range(0));
  auto w = values(n), g = values(n), m = values(n);
  std::vector<float> v(n, 1.0f);
  for (auto _ : state) adamw({}, 10, w.data(), g.data(), m.data(), v.data(), n, 1);
  state.SetItemsProcessed(static_cast<int64_t>(static_cast<size_t>(state.iterations()) * n));
}
BENCHMARK(adamw_step)->Arg(1 << 16)->Arg(1 << 20);

void expm(benchmark::State& state) {
  const auto d = static_cast<size_t>(state.range(0));
  std::vector<double> A(d * d), P(d * d);
  for (size_t i = 0; i < d; ++i) {
    for (size_t j = 0; j < i; ++j) {
      A[i * d + j] = static_cast<double>((i * 7 + j * 3) % 5) - 2.0;
      A[j * d + i] = -A[i * d + j];
    }
  }
  for (auto _ : state) expm_skew(A.data(), P.data(), d);
}
BENCHMARK(expm)->Arg(2)->Arg(4)->Arg(8)->Arg(12)->Arg(32)->Arg(64);

/// The map of one layer: D, N, H.
void map(benchmark::State& state) {
  RotrnnMapSizes s;
  s.D = static_cast<size_t>(state.range(0)), s.N = static_cast<size_t>(state.range(1));
  s.H = static_cast<size_t>(state.range(2));
  auto theta = values(s.H * s.angles()), log = values(s.H), M = values(s.N * s.head());
  auto B = values(s.N * s.D), C = values(s.N * s.D);
  Diagonal<float> layer;
  layer.lambda_re = layer.lambda_im = values(s.S());
  layer.W = layer.V = values(2 * s.S() * s.D);
  std::vector<double> P(s.N * s.head());
  const RotrnnParameters<const float> p{theta.data(), log.data(), M.data(),
                                        B.data(),     C.data(),   nullptr};
  auto dtheta = theta, dlog = log, dM = M, dB = B, dC = C;
  RotrnnForward<float> forward{p, {}, P.data()};
  point_to(layer, forward.layer);
  RotrnnBackward<float> backward{
      p, P.data(), {}, {dtheta.data(), dlog.data(), dM.data(), dB.data(), dC.data(), nullptr}};
  point_to(layer, backward.dlayer);
  for (auto _ : state) {
    rotrnn_map_forward<float>(s, {&forward, 1});
    if (state.range(3) == 1) rotrnn_map_backward<float>(s, {&backward, 1});
  }
}
BENCHMARK(map)
    ->Args({128, 256, 32, 0})
    ->Args({128, 256, 32, 1})
    ->Args({512, 384, 32, 1})
    ->Unit(benchmark::kMicrosecond);

void pool(benchmark::State& state) {
  const std::vector<int64_t> offsets{0, 2048, 4096, 6144, 8192};
  const auto x = values(8192 * kD);
  std::vector<float> out(4 * kD);
  for (auto _ : state) pool_mean({offsets.data(), 4}, x.data(), kD, out.data(), 1);
  state.SetItemsProcessed(static_cast<int64_t>(state.iterations()) * 8192);
}
BENCHMARK(pool);

void embedding_gradient(benchmark::State& state) {
  std::vector<int64_t> tokens(8192);
  for (size_t i = 0; i < tokens.size(); ++i) tokens[i] = static_cast<int64_t>(i * i % 18);
  const auto g = values(8192 * kD);
  std::vector<float> out(18 * kD);
  for (auto _ : state) {
    embedding_backward(tokens.data(), tokens.size(), g.data(), kD, 18, out.data(), 1);
  }
  state.SetItemsProcessed(static_cast<int64_t>(state.iterations()) * 8192);
}
BENCHMARK(embedding_gradient);

/// Multiply-adds in registers, one thread: what channel() is a fraction of.
void peak(benchmark::State& state) {
  double flop = 0;
  for (auto _ : state) flop += table().fma_loop(1000);
  count_flop(state, flop / static_cast<double>(state.iterations()));
}
BENCHMARK(peak);

/// Channel systems of 8 sequences of 2,048 tokens on one or more threads: D, N, bidirectional,
/// threads. Counted are 12 flop per state, token and direction forward; 28 backward.
void channel(benchmark::State& state, bool backward) {
  const auto D = static_cast<size_t>(state.range(0)), N = static_cast<size_t>(state.range(1));
  const bool bidirectional = state.range(2) == 1;
  std::vector<int64_t> offsets;
  for (int64_t i = 0; i <= 8; ++i) offsets.push_back(i * 2048);
  const PackedSequences sequences{offsets.data(), 8};
  const size_t n = sequences.tokens();
  const std::vector<float> re(N * D, 0.9f), im(N * D, 0.1f), c = values(N * D), skip = values(D);
  const auto u = values(n * D);
  std::vector<float> y(n * D), gradients(6 * N * D), skip_gradient(D);
  ChannelLayer layer;
  layer.width = state.range(0), layer.states = state.range(1);
  layer.lambda_re = re.data(), layer.lambda_im = im.data(), layer.D = skip.data();
  layer.c_re = layer.c_im = c.data();
  if (bidirectional) layer.c_reverse_re = layer.c_reverse_im = c.data();
  ChannelGradients to;
  to.u = y.data(), to.layer.D = skip_gradient.data();
  float* next = gradients.data();
  for (float** g : {&to.layer.lambda_re, &to.layer.lambda_im, &to.layer.c_re, &to.layer.c_im,
                    &to.layer.c_reverse_re, &to.layer.c_reverse_im}) {
    *g = next;
    next += N * D;
  }
  const ChannelConfig config{static_cast<int>(state.range(3))};
  Arena scratch;
  for (auto _ : state) {
    if (backward) {
      channel_backward(config, sequences, layer, {u.data(), nullptr}, {u.data(), nullptr}, to,
                       scratch);
    } else {
      channel_forward(config, sequences, layer, {u.data(), nullptr}, {y.data(), nullptr}, scratch);
    }
  }
  state.SetItemsProcessed(static_cast<int64_t>(static_cast<size_t>(state.iterations()) * n));
  count_flop(state,
             (backward ? 28.0 : 12.0) * (bidirectional ? 2 : 1) * static_cast<double>(n * N * D));
}

void channel_sizes(benchmark::internal::Benchmark* b) {
  for (int64_t threads : {1, 2}) {
    b->Args({256, 32, 0, threads})->Args({256, 32, 1, threads})->Args({256, 2, 0, threads});
  }
  b->Args({70, 33, 0, 1})->Unit(benchmark::kMillisecond)->UseRealTime();
}
BENCHMARK_CAPTURE(channel, forward, false)->Apply(channel_sizes);
BENCHMARK_CAPTURE(channel, backward, true)->Apply(channel_sizes);

/// Convolutions of a batch: D, length, sequences, threads. Counted are 5n·log2 n flop per FFT of n
/// points: 2 of them a pair of sequences and 1 for the kernels forward; 3, and 2, backward.
void convolution(benchmark::State& state, bool backward) {
  const auto D = static_cast<size_t>(state.range(0)), length = static_cast<size_t>(state.range(1));
  const auto count = static_cast<size_t>(state.range(2));
  const int threads = static_cast<int>(state.range(3));
  std::vector<int64_t> offsets;
  for (size_t i = 0; i <= count; ++i) offsets.push_back(static_cast<int64_t>(i * length));
  const PackedSequences sequences{offsets.data(), count};
  const size_t n = sequences.tokens();
  const auto u = values(n * D), K = values(length * D);
  std::vector<float> y(n * D), dK(length * D);
  Arena scratch;
  for (auto _ : state) {
    if (backward) {
      convolve_backward(threads, sequences, {D, length, K.data(), nullptr}, u.data(), u.data(),
                        {y.data(), false, dK.data(), nullptr}, scratch);
    } else {
      convolve_forward(threads, sequences, {D, length, K.data(), nullptr}, u.data(), y.data(),
                       false, scratch);
    }
  }
  const auto points = static_cast<double>(fft_size(2 * length - 1));
  const double pairs = static_cast<double>((count + 1) / 2);
  const double transforms = backward ? 3 * pairs + 2 : 2 * pairs + 1;
  state.SetItemsProcessed(static_cast<int64_t>(static_cast<size_t>(state.iterations()) * n));
  count_flop(state, transforms * 5 * points * std::log2(points) * static_cast<double>(D));
}

void convolution_sizes(benchmark::internal::Benchmark* b) {
  for (int64_t threads : {1, 2}) {
    b->Args({256, 2048, 8, threads})->Args({64, 784, 50, threads})->Args({128, 16000, 2, threads});
  }
  b->Unit(benchmark::kMillisecond)->UseRealTime();
}
BENCHMARK_CAPTURE(convolution, forward, false)->Apply(convolution_sizes);
BENCHMARK_CAPTURE(convolution, backward, true)->Apply(convolution_sizes);

/// A bank of rotations on clips of a second of audio: bands, clips, threads. Items are samples.
void rotations(benchmark::State& state, bool backward) {
  constexpr size_t kRate = 16000, kHop = 160;
  const auto bands = static_cast<size_t>(state.range(0)),
             clips = static_cast<size_t>(state.range(1));
  const int threads = static_cast<int>(state.range(2));
  std::vector<int64_t> offsets, tokens;
  for (size_t i = 0; i <= clips; ++i) {
    offsets.push_back(static_cast<int64_t>(i * kRate));
    tokens.push_back(static_cast<int64_t>(i * (kRate / kHop)));
  }
  const auto x = values(clips * kRate);
  std::vector<float> theta, gamma_log(bands, -3.0f);
  for (size_t k = 0; k < bands; ++k) theta.push_back(0.03f * static_cast<float>(k + 1));
  Arena memory, scratch;
  const RotationBank bank({1, bands, kHop, theta.data(), gamma_log.data()}, memory);
  const auto count = static_cast<size_t>(tokens.back());
  std::vector<float> out(count * bands);
  AlignedFloats kept(count * bank.kept_size());
  std::vector<double> dtheta(bands), dgamma(bands);
  const PackedSequences sequences{offsets.data(), clips};
  rotations_forward(bank, sequences, tokens.data(), x.data(), out.data(), kept.data(), threads);
  for (auto _ : state) {
    if (backward) {
      rotations_backward(bank, sequences, tokens.data(), x.data(), kept.data(), out.data(),
                         {dtheta.data(), dgamma.data(), nullptr}, threads, scratch);
    } else {
      rotations_forward(bank, sequences, tokens.data(), x.data(), out.data(), nullptr, threads);
    }
  }
  state.SetItemsProcessed(
      static_cast<int64_t>(static_cast<size_t>(state.iterations()) * clips * kRate));
}

void rotation_sizes(benchmark::internal::Benchmark* b) {
  for (int64_t threads : {1, 2}) b->Args({64, 16, threads})->Args({32, 16, threads});
  b->Unit(benchmark::kMillisecond)->UseRealTime();
}
BENCHMARK_CAPTURE(rotations, forward, false)->Apply(rotation_sizes);
BENCHMARK_CAPTURE(rotations, backward, true)->Apply(rotation_sizes);

}  // namespace
}  // namespace rotrnn::kernels
