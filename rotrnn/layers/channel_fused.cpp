#include "rotrnn/layers/channel_fused.h"

#include "rotrnn/kernels/arena.h"
#include "rotrnn/kernels/channel.h"

namespace rotrnn {
namespace {

using torch::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// The tensors of the autograd function, in its order; those after kSkip only where they are given.
enum Slot { kU, kLambdaRe, kLambdaIm, kCRe, kCIm, kSkip, kFixed };

struct Facts {
  std::vector<int64_t> offsets;
  bool bidirectional = false, initial = false;

  size_t reverse() const { return kFixed; }
  size_t state() const { return kFixed + (bidirectional ? 2 : 0); }
};

// Between calls nothing is in it; kept, since fresh pages are dear.
kernels::Arena& scratch() {
  thread_local kernels::Arena arena;
  return arena;
}

float* data(const Tensor& t) {
  return t.data_ptr<float>();
}

kernels::ChannelSystem system_of(const variable_list& t, const Facts& f) {
  kernels::ChannelSystem s;
  s.N = static_cast<size_t>(t[kLambdaRe].size(0));
  s.D = static_cast<size_t>(t[kLambdaRe].size(1));
  s.lambda_re = data(t[kLambdaRe]);
  s.lambda_im = data(t[kLambdaIm]);
  s.c_re = data(t[kCRe]);
  s.c_im = data(t[kCIm]);
  s.skip = data(t[kSkip]);
  if (f.bidirectional) {
    s.c_reverse_re = data(t[f.reverse()]);
    s.c_reverse_im = data(t[f.reverse() + 1]);
  }
  return s;
}

kernels::ChannelConfig config() {
  return {.threads = at::get_num_threads()};
}

struct Run : torch::autograd::Function<Run> {
  static variable_list forward(AutogradContext* context, at::TensorList tensors,
                               const Facts& facts) {
    const variable_list t = tensors.vec();
    const kernels::Sequences sequences{facts.offsets.data(), facts.offsets.size() - 1};
    const Tensor y = torch::empty_like(t[kU]);
    const Tensor final =
        torch::empty({static_cast<int64_t>(sequences.count), 2 * t[kLambdaRe].numel()});
    kernels::channel_forward(
        config(), sequences, system_of(t, facts),
        {.u = data(t[kU]), .initial = facts.initial ? data(t[facts.state()]) : nullptr},
        {.y = data(y), .final = data(final)}, scratch());
    context->save_for_backward(t);
    context->saved_data["offsets"] = facts.offsets;
    context->saved_data["bidirectional"] = facts.bidirectional;
    context->saved_data["initial"] = facts.initial;
    context->set_materialize_grads(false);
    return {y, final};
  }

  static variable_list backward(AutogradContext* context, const variable_list& grads) {
    const variable_list t = context->get_saved_variables();
    Facts facts;
    facts.offsets = context->saved_data["offsets"].toIntVector();
    facts.bidirectional = context->saved_data["bidirectional"].toBool();
    facts.initial = context->saved_data["initial"].toBool();
    variable_list out;
    for (const Tensor& tensor : t) out.push_back(torch::empty_like(tensor));
    const Tensor dy = grads[0].defined() ? grads[0].contiguous() : torch::zeros_like(t[kU]);
    const Tensor dfinal = grads[1].defined() ? grads[1].contiguous() : Tensor();
    kernels::ChannelGradients g;
    g.u = data(out[kU]);
    g.lambda_re = data(out[kLambdaRe]);
    g.lambda_im = data(out[kLambdaIm]);
    g.c_re = data(out[kCRe]);
    g.c_im = data(out[kCIm]);
    g.skip = data(out[kSkip]);
    if (facts.bidirectional) {
      g.c_reverse_re = data(out[facts.reverse()]);
      g.c_reverse_im = data(out[facts.reverse() + 1]);
    }
    if (facts.initial) g.initial = data(out[facts.state()]);
    kernels::channel_backward(
        config(), {facts.offsets.data(), facts.offsets.size() - 1}, system_of(t, facts),
        {.u = data(t[kU]), .initial = facts.initial ? data(t[facts.state()]) : nullptr},
        {.y = data(dy), .final = dfinal.defined() ? data(dfinal) : nullptr}, g, scratch());
    out.emplace_back();  // the facts have no gradient
    return out;
  }
};

// States [sequences, 2·D·N] with the channels outside, to the kernel's order, or back.
Tensor swap(const Tensor& states, int64_t outer, int64_t inner) {
  return states.view({states.size(0), 2, outer, inner}).transpose(2, 3).flatten(1).contiguous();
}

}  // namespace

SystemOutput run_channels_fused(const ChannelSystem& s, const Packed& u, const States& initial) {
  check_channels(s, u, initial);
  const int64_t D = s.lambda_re.size(0), N = s.lambda_re.size(1);
  const auto plane = [](const Tensor& t) { return t.t().to(torch::kFloat32).contiguous(); };
  Facts facts;
  facts.offsets = u.layout->offsets();
  facts.bidirectional = s.bidirectional();
  facts.initial = initial.forward.defined();
  variable_list tensors{u.values.contiguous(), plane(s.lambda_re), plane(s.lambda_im),
                        plane(s.c_re),         plane(s.c_im),      s.D.to(torch::kFloat32)};
  if (facts.bidirectional) {
    tensors.push_back(plane(s.c_reverse_re));
    tensors.push_back(plane(s.c_reverse_im));
  }
  if (facts.initial) tensors.push_back(swap(initial.forward, D, N));
  const variable_list out = Run::apply(at::TensorList(tensors), facts);
  SystemOutput result;
  result.y = out[0];
  result.final.forward = swap(out[1], N, D);
  return result;
}

}  // namespace rotrnn
