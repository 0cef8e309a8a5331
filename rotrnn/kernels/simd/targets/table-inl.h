// The table of one target. The including file defines ROTRNN_TABLE (its function) and ROTRNN_NAME.
#include "rotrnn/kernels/simd/targets/bank-inl.h"
#include "rotrnn/kernels/simd/targets/channel-inl.h"
#include "rotrnn/kernels/simd/targets/fft-inl.h"
#include "rotrnn/kernels/simd/targets/frontend-inl.h"
#include "rotrnn/kernels/simd/targets/gemm-inl.h"
#include "rotrnn/kernels/simd/targets/rows-inl.h"
#include "rotrnn/kernels/simd/targets/scan-inl.h"
#include "rotrnn/kernels/simd/targets/vectors-inl.h"
#if HWY_TARGET == HWY_WASM  // of Highway 1.0
#include "rotrnn/kernels/simd/targets/no_dplr-inl.h"
#else
#include "rotrnn/kernels/simd/targets/double-inl.h"
#include "rotrnn/kernels/simd/targets/dplr-inl.h"
#endif

namespace rotrnn::kernels {

const Table* ROTRNN_TABLE() {
  namespace target = HWY_NAMESPACE;
  static const Table table = {
      .name = ROTRNN_NAME,
      .panel_width = target::panel_lanes(),
      .pack = target::pack,
      .multiply = target::multiply,
      .multiply_row = target::multiply_row,
      .outer = target::outer,
      .double_panel = target::double_panel(),
      .add_product = target::add_product,
      .scan = target::scan,
      .scan_end = target::scan_end,
      .scan_adjoint = target::scan_adjoint,
      .scan_adjoint_end = target::scan_adjoint_end,
      .channel_scan = target::channel_scan,
      .channel_rank_scan = target::channel_rank_scan,
      .channel_adjoint = target::channel_adjoint,
      .dplr_sums = target::dplr_sums,
      .dplr_gradient = target::dplr_gradient,
      .rotate = target::rotate,
      .rotate_adjoint = target::rotate_adjoint,
      .rotation_token = target::rotation_token,
      .bank_count = target::bank_count,
      .bank_forget = target::bank_forget,
      .bank_values = target::bank_values,
      .fft_lanes = hwy::HWY_NAMESPACE::Lanes(target::Full()),
      .fft = target::fft,
      .fft_inverse = target::fft_inverse,
      .fft_convolve = target::fft_convolve,
      .fft_convolve_adjoint = target::fft_convolve_adjoint,
      .fft_load = target::fft_load,
      .fft_store = target::fft_store,
      .affine = target::affine,
      .layer_norm = target::layer_norm,
      .add_rows = target::add_rows,
      .column_sum = target::column_sum,
      .column_statistics = target::column_statistics,
      .preactivate = {{target::preactivate<Curve::gelu>, target::preactivate<Curve::exact_gelu>}},
      .gate = target::gate,
      .residual = target::residual,
      .project = target::project,
      .project_backward = target::project_backward,
      .curve_pair = {{target::curve_pair<Curve::gelu>, target::curve_pair<Curve::exact_gelu>}},
      .gate_backward = target::gate_backward,
      .preactivate_backward = target::preactivate_backward,
      .batch_norm_backward = target::batch_norm_backward,
      .layer_norm_backward = target::layer_norm_backward,
      .finish = target::finish,
      .fma_loop = target::fma_loop,
      .axpy = target::axpy,
      .curve = {{target::curve<Curve::gelu>, target::curve<Curve::exact_gelu>}},
      .curve_backward = {{target::curve_backward<Curve::gelu>,
                          target::curve_backward<Curve::exact_gelu>}},
      .adamw = target::adamw,
  };
  return &table;
}

}  // namespace rotrnn::kernels
