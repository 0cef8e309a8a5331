#include "rotrnn/layers/rotrnn_fused.h"

#include "rotrnn/kernels/rotrnn_map.h"
#include "rotrnn/kernels/stopwatch.h"

namespace rotrnn {
namespace {

using torch::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

kernels::RotrnnMapSizes sizes_of(const RotRNNOptions& o, int threads) {
  kernels::RotrnnMapSizes sizes;
  sizes.D = static_cast<size_t>(o.width);
  sizes.N = static_cast<size_t>(o.state);
  sizes.H = static_cast<size_t>(o.heads);
  sizes.bidirectional = o.bidirectional;
  sizes.stationary = o.stationary_start;
  sizes.normalisation = static_cast<kernels::Normalisation>(o.normalisation);
  sizes.c = o.c;
  sizes.threads = threads;
  return sizes;
}
static_assert(static_cast<int>(kernels::Normalisation::alpha) ==
                  static_cast<int>(Normalisation::alpha) &&
              static_cast<int>(kernels::Normalisation::none) ==
                  static_cast<int>(Normalisation::none));

// The order of the tensors that go in and come out; the optional ones are last.
enum Input { kTheta, kGammaLog, kM, kB, kC, kCReverse };
enum Output { kLambdaRe, kLambdaIm, kW, kV };

template <class T>
kernels::RotrnnParameters<T> parameters_of(const variable_list& t) {
  auto pointer = [&](size_t i) { return i < t.size() ? t[i].data_ptr<float>() : nullptr; };
  return {pointer(kTheta), pointer(kGammaLog), pointer(kM),
          pointer(kB),     pointer(kC),        pointer(kCReverse)};
}

template <class T>
kernels::RotrnnSystem<T> system_of(const variable_list& t, const kernels::RotrnnMapSizes& sizes) {
  auto pointer = [&](size_t i) {
    return i < t.size() && t[i].defined() ? t[i].data_ptr<float>() : nullptr;
  };
  const size_t next = sizes.bidirectional ? kV + 2 : kV + 1;
  return {pointer(kLambdaRe),
          pointer(kLambdaIm),
          pointer(kW),
          pointer(kV),
          sizes.bidirectional ? pointer(kV + 1) : nullptr,
          sizes.stationary ? pointer(next) : nullptr,
          sizes.stationary ? pointer(next + 1) : nullptr};
}

struct Map : torch::autograd::Function<Map> {
  static variable_list forward(AutogradContext* context, at::TensorList parameters,
                               const RotRNNOptions& options, int threads, double* seconds) {
    const kernels::Stopwatch watch(seconds);
    const auto sizes = sizes_of(options, threads);
    const auto S = static_cast<int64_t>(sizes.S());
    auto make = [](at::IntArrayRef shape) { return torch::empty(shape, torch::kFloat32); };
    variable_list out{make({S}), make({S}), make({2 * S, options.width}),
                      make({options.width, 2 * S})};
    if (sizes.bidirectional) out.push_back(make({options.width, 2 * S}));
    if (sizes.stationary) {
      out.push_back(make({S}));
      out.push_back(make({S}));
    }
    const int64_t dh = options.head_size();
    Tensor P = torch::empty({options.heads, dh, dh}, torch::kFloat64);
    const variable_list in = parameters.vec();
    kernels::rotrnn_map_forward<float>(sizes, parameters_of<const float>(in),
                                       system_of<float>(out, sizes), P.data_ptr<double>());
    variable_list saved = in;
    saved.push_back(P);
    context->save_for_backward(saved);
    context->set_materialize_grads(false);
    context->saved_data["sizes"] = std::vector<int64_t>{options.width,
                                                        options.state,
                                                        options.heads,
                                                        options.bidirectional,
                                                        options.stationary_start,
                                                        static_cast<int64_t>(options.normalisation),
                                                        threads};
    context->saved_data["c"] = options.c;
    context->saved_data["seconds"] = reinterpret_cast<int64_t>(seconds);
    return out;
  }

  static variable_list backward(AutogradContext* context, const variable_list& grads) {
    const kernels::Stopwatch watch(
        reinterpret_cast<double*>(context->saved_data["seconds"].toInt()));
    const auto stored = context->saved_data["sizes"].toIntVector();
    RotRNNOptions options;
    options.width = stored[0];
    options.state = stored[1];
    options.heads = stored[2];
    options.bidirectional = stored[3] != 0;
    options.stationary_start = stored[4] != 0;
    options.normalisation = static_cast<Normalisation>(stored[5]);
    options.c = context->saved_data["c"].toDouble();
    const auto sizes = sizes_of(options, static_cast<int>(stored[6]));

    variable_list saved = context->get_saved_variables();
    const Tensor P = saved.back();
    saved.pop_back();
    variable_list given, out;
    const auto S = static_cast<int64_t>(sizes.S());
    for (size_t i = 0; i < grads.size(); ++i) {
      if (grads[i].defined()) {
        given.push_back(grads[i].contiguous());
      } else if (i == kW || (i >= kV && i < kV + 1 + (sizes.bidirectional ? 1 : 0))) {
        given.push_back(i == kW ? torch::zeros({2 * S, options.width})
                                : torch::zeros({options.width, 2 * S}));
      } else {
        given.emplace_back();
      }
    }
    for (const Tensor& parameter : saved) out.push_back(torch::empty_like(parameter));
    kernels::rotrnn_map_backward<float>(sizes, parameters_of<const float>(saved),
                                        P.data_ptr<double>(), system_of<const float>(given, sizes),
                                        parameters_of<float>(out));
    out.resize(out.size() + 3);  // options, threads and seconds have no gradient
    return out;
  }
};

}  // namespace

System fused_system(const RotRNNImpl& layer, int threads, double* seconds) {
  const RotRNNOptions& o = layer.options();
  const Tensor angle = o.init.theta_form == ThetaForm::log ? torch::exp(layer.theta) : layer.theta;
  std::vector<Tensor> in{angle, layer.gamma_log, layer.M, layer.B, layer.C};
  if (o.bidirectional) in.push_back(layer.C_reverse);
  for (Tensor& t : in) t = t.contiguous();
  const at::TensorList list(in);
  const variable_list out = Map::apply(list, o, threads, seconds);
  System s;
  s.lambda_re = out[kLambdaRe];
  s.lambda_im = out[kLambdaIm];
  s.W = out[kW];
  s.V = out[kV];
  size_t next = kV + 1;
  if (o.bidirectional) s.V_reverse = out[next++];
  if (o.stationary_start) {
    s.start_re = out[next];
    s.start_im = out[next + 1];
  }
  s.D = layer.D;
  return s;
}

}  // namespace rotrnn
