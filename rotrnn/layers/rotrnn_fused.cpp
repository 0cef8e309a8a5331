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

// The order of a layer's tensors that go in and come out; the optional ones are last.
enum Input { kTheta, kGammaLog, kM, kB, kC, kCReverse };
enum Output { kLambdaRe, kLambdaIm, kW, kV };

size_t inputs_of(const kernels::RotrnnMapSizes& s) {
  return s.bidirectional ? kCReverse + 1 : kC + 1;
}

size_t outputs_of(const kernels::RotrnnMapSizes& s) {
  return kV + 1 + (s.bidirectional ? 1 : 0) + (s.stationary ? 2 : 0);
}

float* pointer(const Tensor& t) {
  return t.defined() ? t.data_ptr<float>() : nullptr;
}

// Of the layer whose tensors begin at t[0].
template <class T>
kernels::RotrnnParameters<T> parameters_of(const Tensor* t, const kernels::RotrnnMapSizes& s) {
  return {pointer(t[kTheta]), pointer(t[kGammaLog]),
          pointer(t[kM]),     pointer(t[kB]),
          pointer(t[kC]),     s.bidirectional ? pointer(t[kCReverse]) : nullptr};
}

template <class T>
kernels::RotrnnSystem<T> system_of(const Tensor* t, const kernels::RotrnnMapSizes& s) {
  const size_t next = s.bidirectional ? kV + 2 : kV + 1;
  return {pointer(t[kLambdaRe]),
          pointer(t[kLambdaIm]),
          pointer(t[kW]),
          pointer(t[kV]),
          s.bidirectional ? pointer(t[kV + 1]) : nullptr,
          s.stationary ? pointer(t[next]) : nullptr,
          s.stationary ? pointer(t[next + 1]) : nullptr};
}

variable_list empty_system(const kernels::RotrnnMapSizes& s) {
  const auto S = static_cast<int64_t>(s.S()), D = static_cast<int64_t>(s.D);
  auto make = [](at::IntArrayRef shape) { return torch::empty(shape, torch::kFloat32); };
  variable_list out{make({S}), make({S}), make({2 * S, D}), make({D, 2 * S})};
  if (s.bidirectional) out.push_back(make({D, 2 * S}));
  if (s.stationary) out.insert(out.end(), {make({S}), make({S})});
  return out;
}

// All layers as one node of the graph: a step of a small network is mostly such overhead.
struct Map : torch::autograd::Function<Map> {
  static variable_list forward(AutogradContext* context, at::TensorList parameters,
                               const kernels::RotrnnMapSizes& sizes, double* seconds) {
    const kernels::Stopwatch watch(seconds);
    const variable_list in = parameters.vec();
    const size_t layers = in.size() / inputs_of(sizes), rotations = sizes.N * sizes.head();
    Tensor P = torch::empty({static_cast<int64_t>(layers * rotations)}, torch::kFloat64);
    variable_list out;
    for (size_t i = 0; i < layers; ++i) {
      for (Tensor& t : empty_system(sizes)) out.push_back(std::move(t));
    }
    std::vector<kernels::RotrnnForward<float>> jobs;
    for (size_t i = 0; i < layers; ++i) {
      jobs.push_back({parameters_of<const float>(&in[i * inputs_of(sizes)], sizes),
                      system_of<float>(&out[i * outputs_of(sizes)], sizes),
                      P.data_ptr<double>() + i * rotations});
    }
    kernels::rotrnn_map_forward<float>(sizes, jobs);
    variable_list saved = in;
    saved.push_back(P);
    context->save_for_backward(saved);
    context->set_materialize_grads(false);
    auto facts = c10::make_intrusive<Facts>();
    facts->sizes = sizes;
    facts->seconds = seconds;
    context->saved_data["facts"] = c10::IValue::make_capsule(facts);
    return out;
  }

  static variable_list backward(AutogradContext* context, const variable_list& grads) {
    const auto capsule = context->saved_data["facts"].toCapsule();
    const auto* facts = static_cast<const Facts*>(capsule.get());
    const kernels::RotrnnMapSizes& sizes = facts->sizes;
    const kernels::Stopwatch watch(facts->seconds);
    variable_list in = context->get_saved_variables();
    const Tensor P = in.back();
    in.pop_back();
    variable_list given = grads, out;
    for (size_t i = 0; i < given.size(); ++i) given[i] = complete(given[i], i, sizes);
    for (const Tensor& parameter : in) out.push_back(torch::empty_like(parameter));
    std::vector<kernels::RotrnnBackward<float>> jobs;
    for (size_t i = 0; i < in.size() / inputs_of(sizes); ++i) {
      jobs.push_back({parameters_of<const float>(&in[i * inputs_of(sizes)], sizes),
                      P.data_ptr<double>() + i * sizes.N * sizes.head(),
                      system_of<const float>(&given[i * outputs_of(sizes)], sizes),
                      parameters_of<float>(&out[i * inputs_of(sizes)], sizes)});
    }
    kernels::rotrnn_map_backward<float>(sizes, jobs);
    out.resize(out.size() + 2);  // sizes and seconds have no gradient
    return out;
  }

 private:
  struct Facts : torch::CustomClassHolder {
    kernels::RotrnnMapSizes sizes;
    double* seconds = nullptr;
  };

  // The kernels take the gradients of λ and κ as null when there is none, but not those of W and V.
  static Tensor complete(const Tensor& gradient, size_t i, const kernels::RotrnnMapSizes& s) {
    if (gradient.defined()) return gradient.contiguous();
    const auto S = static_cast<int64_t>(s.S()), D = static_cast<int64_t>(s.D);
    const size_t output = i % outputs_of(s);
    if (output == kW) return torch::zeros({2 * S, D});
    const bool is_v = output == kV || (s.bidirectional && output == kV + 1);
    return is_v ? torch::zeros({D, 2 * S}) : gradient;
  }
};

}  // namespace

std::vector<System> fused_systems(const std::vector<const RotRNNImpl*>& layers, int threads,
                                  double* seconds) {
  const RotRNNOptions& o = layers.front()->options();
  const auto sizes = sizes_of(o, threads);
  std::vector<Tensor> in;
  for (const RotRNNImpl* layer : layers) {
    const bool log = o.init.theta_form == ThetaForm::log;
    in.insert(in.end(), {(log ? torch::exp(layer->theta) : layer->theta).contiguous(),
                         layer->gamma_log.contiguous(), layer->M.contiguous(),
                         layer->B.contiguous(), layer->C.contiguous()});
    if (o.bidirectional) in.push_back(layer->C_reverse.contiguous());
  }
  const at::TensorList list(in);
  const variable_list out = Map::apply(list, sizes, seconds);
  std::vector<System> systems;
  for (size_t i = 0; i < layers.size(); ++i) {
    const Tensor* t = &out[i * outputs_of(sizes)];
    System s;
    s.lambda_re = t[kLambdaRe];
    s.lambda_im = t[kLambdaIm];
    s.W = t[kW];
    s.V = t[kV];
    size_t next = kV + 1;
    if (o.bidirectional) s.V_reverse = t[next++];
    if (o.stationary_start) {
      s.start_re = t[next];
      s.start_im = t[next + 1];
    }
    s.D = layers[i]->D;
    systems.push_back(std::move(s));
  }
  return systems;
}

}  // namespace rotrnn
