#include "rotrnn/layers/dplr_fused.h"

#include "rotrnn/kernels/dplr.h"

namespace rotrnn {
namespace {

using torch::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

double* numbers(const Tensor& complex) {
  return torch::view_as_real(complex).data_ptr<double>();
}

struct Spectrum : torch::autograd::Function<Spectrum> {
  static Tensor forward(AutogradContext* context, const Tensor& terms, const Tensor& step,
                        const kernels::DplrSizes& sizes) {
    context->save_for_backward({terms, step});
    auto facts = c10::make_intrusive<Facts>();
    facts->sizes = sizes;
    context->saved_data["facts"] = c10::IValue::make_capsule(facts);
    const Tensor out = torch::empty({static_cast<int64_t>(sizes.pairs.size()), step.size(0),
                                     static_cast<int64_t>(sizes.frequencies())},
                                    torch::kComplexDouble);
    kernels::dplr_forward(sizes, terms.data_ptr<double>(), step.data_ptr<double>(), numbers(out));
    return out;
  }

  static variable_list backward(AutogradContext* context, const variable_list& grads) {
    const auto capsule = context->saved_data["facts"].toCapsule();
    const auto* facts = static_cast<const Facts*>(capsule.get());
    const variable_list saved = context->get_saved_variables();
    const Tensor &terms = saved[0], &step = saved[1];
    const Tensor given = grads[0].resolve_conj().contiguous();
    const Tensor dterms = torch::empty_like(terms), dstep = torch::empty_like(step);
    kernels::dplr_backward(facts->sizes, terms.data_ptr<double>(), step.data_ptr<double>(),
                           numbers(given), dterms.data_ptr<double>(), dstep.data_ptr<double>());
    return {dterms, dstep, Tensor()};  // sizes have no gradient
  }

 private:
  struct Facts : torch::CustomClassHolder {
    kernels::DplrSizes sizes;
  };
};

}  // namespace

Tensor fused_spectrum(const Dplr& s, const DplrPorts& ports, int64_t length) {
  kernels::DplrSizes sizes;
  sizes.D = static_cast<size_t>(s.width());
  sizes.n = static_cast<size_t>(s.states());
  sizes.length = static_cast<size_t>(length);
  sizes.inputs = ports.inputs.size();
  sizes.outputs = ports.outputs.size();
  sizes.threads = torch::get_num_threads();
  for (const auto& [input, output] : ports.pairs) {
    sizes.pairs.emplace_back(static_cast<size_t>(input), static_cast<size_t>(output));
  }
  const Tensor Ph = torch::conj(s.P);
  variable_list products{s.P * Ph};
  for (const Tensor& B : ports.inputs) products.push_back(B * Ph);
  for (const Tensor& C : ports.outputs) products.push_back(s.P * C);
  for (const auto& [input, output] : ports.pairs) {
    products.push_back(ports.inputs[input] * ports.outputs[output]);
  }
  const Tensor mu = s.step * s.Lambda, re = torch::real(mu), im = torch::imag(mu);
  variable_list terms{re.square() + im.square(), re};
  for (const Tensor& v : products) {
    const Tensor a = torch::real(v);
    terms.push_back(a.expand_as(re));
    terms.push_back(a * re + torch::imag(v) * im);  // Re(v conj μ)
  }
  return Spectrum::apply(torch::stack(terms, -1).contiguous(), s.step.squeeze(1).contiguous(),
                         sizes);
}

}  // namespace rotrnn
