// LRU, S5 and what all layers share. The oracles are loops over std::complex<double> that follow
// the papers' recurrences and share nothing with the library but the parameters.

#include <gtest/gtest.h>

#include <complex>
#include <numbers>

#include "rotrnn/layers/draw.h"
#include "rotrnn/layers/hippo.h"
#include "rotrnn/layers/registry.h"
#include "rotrnn/layers/rotrnn.h"
#include "rotrnn/layers/s5.h"
#include "tests/support/folder.h"
#include "tests/support/tensors.h"

namespace rotrnn {
namespace {

using test::finite_differences;
using test::message_of;
using test::relative_error;
using torch::Tensor;
using Complex = std::complex<double>;
using Numbers = std::vector<Complex>;

// ------------------------------------------------------------------ the oracle

Numbers numbers(const Tensor& re, const Tensor& im = {}) {
  const Tensor a = re.detach().to(torch::kFloat64).contiguous().view(-1);
  const Tensor b =
      im.defined() ? im.detach().to(torch::kFloat64).contiguous().view(-1) : torch::zeros_like(a);
  Numbers out;
  for (int64_t i = 0; i < a.numel(); ++i) {
    out.emplace_back(a[i].item<double>(), b[i].item<double>());
  }
  return out;
}

// x_t = lambda x_{t-1} + B u_t, y = factor·Re(C x) + D u, in both directions if C_reverse is given.
struct Recurrence {
  Numbers lambda, B, C, C_reverse, D;
  double factor = 1;
};

Recurrence recurrence_of(const LruImpl& l) {
  Recurrence r;
  const Numbers nu = numbers(l.nu_log), theta = numbers(l.theta_log), B = numbers(l.B_re, l.B_im);
  for (size_t k = 0; k < nu.size(); ++k) {
    const Complex lambda = std::exp(Complex(-std::exp(nu[k].real()), std::exp(theta[k].real())));
    const double gamma = l.options().gamma == LruGamma::fixed
                             ? std::sqrt(1 - std::norm(lambda))
                             : std::exp(numbers(l.gamma_log)[k].real());
    r.lambda.push_back(lambda);
    const size_t width = B.size() / nu.size();
    for (size_t d = 0; d < width; ++d) r.B.push_back(gamma * B[k * width + d]);
  }
  r.C = numbers(l.C_re, l.C_im);
  if (l.options().bidirectional) r.C_reverse = numbers(l.C_reverse_re, l.C_reverse_im);
  r.D = numbers(l.D);
  return r;
}

// (e^{ΛΔ} - 1)/Λ in long double, by a Taylor sum where the difference would lose digits.
Complex zoh_input(Complex lambda, double step) {
  using Long = std::complex<long double>;
  const Long w = Long(lambda) * static_cast<long double>(step);
  Long sum = 1, term = 1;
  if (std::abs(w) > 0.5L) {
    sum = (std::exp(w) - 1.0L) / w;
  } else {
    for (int k = 2; k < 40; ++k) sum += term *= w / static_cast<long double>(k);
  }
  return Complex(sum * static_cast<long double>(step));
}

Recurrence recurrence_of(const S5Impl& l) {
  const S5Options& o = l.options();
  Recurrence r;
  const Numbers Lambda = numbers(l.Lambda_re, l.Lambda_im), B = numbers(l.B_re, l.B_im);
  const Numbers log_step = numbers(l.log_step);
  for (size_t k = 0; k < Lambda.size(); ++k) {
    Complex lambda = Lambda[k];
    if (o.clip && lambda.real() > -1e-4) lambda.real(-1e-4);
    const double step = o.step_rescale * std::exp(log_step[k].real());
    const bool zoh = o.discretisation == Discretisation::zoh;
    r.lambda.push_back(zoh ? std::exp(lambda * step)
                           : (1.0 + step * lambda / 2.0) / (1.0 - step * lambda / 2.0));
    const Complex scale = zoh ? zoh_input(lambda, step) : step / (1.0 - step * lambda / 2.0);
    const size_t width = B.size() / Lambda.size();
    for (size_t d = 0; d < width; ++d) r.B.push_back(scale * B[k * width + d]);
  }
  r.C = numbers(l.C_re, l.C_im);
  if (o.bidirectional) r.C_reverse = numbers(l.C_reverse_re, l.C_reverse_im);
  r.D = numbers(l.D);
  r.factor = 2;
  return r;
}

Recurrence recurrence_of(const Layer& layer) {
  if (const auto* lru = dynamic_cast<const LruImpl*>(&layer)) return recurrence_of(*lru);
  return recurrence_of(dynamic_cast<const S5Impl&>(layer));
}

struct Expected {
  Tensor y, final, final_reverse;
};

Expected run_oracle(const Recurrence& r, const Packed& u, const States& initial) {
  const size_t S = r.lambda.size(), width = r.D.size();
  const auto& offsets = u.layout->offsets();
  Expected out{torch::zeros_like(u.values),
               torch::zeros({u.layout->sequences(), 2 * (int64_t)S}, torch::kFloat64),
               {}};
  out.final_reverse = torch::zeros_like(out.final);
  const Tensor values = u.values.detach();
  auto input = values.accessor<double, 2>();
  auto y = out.y.accessor<double, 2>();
  for (int64_t i = 0; i + 1 < static_cast<int64_t>(offsets.size()); ++i) {
    for (const bool reverse : {false, true}) {
      if (reverse && r.C_reverse.empty()) continue;
      const Tensor& start = reverse ? initial.reverse : initial.forward;
      Numbers x(S);
      for (size_t k = 0; k < S && start.defined(); ++k) {
        x[k] = {start[i][k].item<double>(), start[i][S + k].item<double>()};
      }
      const int64_t length = offsets[i + 1] - offsets[i];
      for (int64_t j = 0; j < length; ++j) {
        const int64_t t = reverse ? offsets[i + 1] - 1 - j : offsets[i] + j;
        for (size_t k = 0; k < S; ++k) {
          x[k] *= r.lambda[k];
          for (size_t d = 0; d < width; ++d) x[k] += r.B[k * width + d] * input[t][d];
        }
        const Numbers& C = reverse ? r.C_reverse : r.C;
        for (size_t d = 0; d < width; ++d) {
          for (size_t k = 0; k < S; ++k) y[t][d] += r.factor * (C[d * S + k] * x[k]).real();
          if (!reverse) y[t][d] += r.D[d].real() * input[t][d];
        }
      }
      Tensor& final = reverse ? out.final_reverse : out.final;
      for (size_t k = 0; k < S; ++k) {
        final[i][k] = x[k].real();
        final[i][S + k] = x[k].imag();
      }
    }
  }
  return out;
}

// ------------------------------------------------------------------ what is tested

struct Variant {
  const char* name;
  LayerOptions options;
};

// Every branch of the maps, in both directions.
std::vector<Variant> variants() {
  std::vector<Variant> out;
  auto add = [&](const char* name, const char* layer, auto change) {
    for (const bool bidirectional : {false, true}) {
      LayerOptions o;
      o.layer = layer;
      o.width = 3;
      o.state = 8;
      o.heads = 2;
      o.s5.blocks = 2;
      o.bidirectional = bidirectional;
      change(o);
      out.push_back({name, o});
    }
  };
  add("lru learned", "lru", [](LayerOptions& o) { o.lru.r_min = 0.4; });
  add("lru fixed", "lru", [](LayerOptions& o) { o.lru.gamma = LruGamma::fixed; });
  add("s5 zoh", "s5", [](LayerOptions&) {});
  add("s5 bilinear", "s5", [](LayerOptions& o) { o.s5.discretisation = Discretisation::bilinear; });
  add("s5 rescaled, large steps", "s5", [](LayerOptions& o) {
    o.s5.step_rescale = 2;
    o.s5.dt_max = 1;
    o.s5.c_init = S5CInit::complex_normal;
  });
  add("s5 clipped", "s5", [](LayerOptions& o) {
    o.s5.clip = true;
    o.s5.blocks = 1;
    o.s5.c_init = S5CInit::trunc_standard_normal;
  });
  return out;
}

std::shared_ptr<DiagonalLayer> make_diagonal(const LayerOptions& o, uint64_t seed = 1) {
  return std::dynamic_pointer_cast<DiagonalLayer>(make_layer(o, seed, 0));
}

// In double, with the first state of a clipping S5 outside the bound.
std::shared_ptr<DiagonalLayer> double_layer(const LayerOptions& o, uint64_t seed = 1) {
  auto layer = make_diagonal(o, seed);
  layer->to(torch::kFloat64);
  const torch::NoGradGuard no_grad;
  if (o.layer == "s5" && o.s5.clip) dynamic_cast<S5Impl&>(*layer).Lambda_re[0] = 0.3;
  return layer;
}

Packed noise(const std::vector<int64_t>& lengths, int64_t width, uint64_t seed = 7) {
  std::vector<int64_t> offsets{0};
  for (int64_t length : lengths) offsets.push_back(offsets.back() + length);
  torch::manual_seed(seed);
  return {torch::randn({offsets.back(), width}, torch::kFloat64), offsets};
}

States noise_states(const DiagonalLayer& layer, int64_t sequences) {
  const System s = layer.system();
  auto make = [&] {
    return torch::randn({sequences, 2 * s.states()}, torch::kFloat64).requires_grad_();
  };
  return {make(), s.bidirectional() ? make() : Tensor()};
}

TEST(Layers, OutputsAndFinalStatesAreTheRecurrences) {
  for (const Variant& v : variants()) {
    const auto layer = double_layer(v.options);
    const Packed u = noise({70, 1, 5, 130}, 3);
    for (const bool with_states : {false, true}) {
      const States initial = with_states ? noise_states(*layer, 4) : States{};
      const Expected expected = run_oracle(recurrence_of(*layer), u, initial);
      const SystemOutput actual = layer->forward(u, initial);
      EXPECT_LE(relative_error(actual.y, expected.y), 1e-12) << v.name;
      EXPECT_LE(relative_error(actual.final.forward, expected.final), 1e-12) << v.name;
      if (v.options.bidirectional) {
        EXPECT_LE(relative_error(actual.final.reverse, expected.final_reverse), 1e-12) << v.name;
      }
    }
  }
}

TEST(Layers, GradientsEqualFiniteDifferences) {
  for (const Variant& v : variants()) {
    const auto layer = double_layer(v.options);
    Packed u = noise({4, 1, 6}, 3);
    u.values.requires_grad_();
    States initial = noise_states(*layer, 3);
    const Tensor g = torch::randn({11, 3}, torch::kFloat64),
                 gf = torch::randn_like(initial.forward);
    auto loss = [&] {  // outputs and final states, so that both carry gradients back
      const SystemOutput out = layer->forward(u, initial);
      Tensor sum = (out.y * g).sum() + (out.final.forward * gf).sum();
      if (v.options.bidirectional) sum = sum + (out.final.reverse * gf.flip(0)).sum();
      return sum;
    };
    loss().backward();
    auto compare = [&](const std::string& name, const Tensor& x) {
      EXPECT_LE(relative_error(x.grad(), finite_differences(x.detach(), loss), 1.0), 1e-7)
          << v.name << " " << name;
    };
    for (const auto& p : layer->named_parameters()) compare(p.key(), p.value());
    compare("u", u.values);
    compare("initial", initial.forward);
    if (v.options.bidirectional) compare("initial reverse", initial.reverse);
  }
}

// The one node that the default fused map is, against the map itself.
TEST(Layers, FusedMapIsTheMapRounded) {
  for (const Variant& v : variants()) {
    const auto layer = make_diagonal(v.options);
    auto tensors = [](const System& s) {
      std::vector<Tensor> t{s.lambda_re, s.lambda_im, s.W, s.V, s.D};
      if (s.bidirectional()) t.push_back(s.V_reverse);
      return t;
    };
    auto gradients = [&](const std::vector<Tensor>& system) {
      layer->zero_grad();
      torch::manual_seed(3);
      Tensor sum = torch::zeros({}, torch::kFloat64);
      for (const Tensor& t : system) sum = sum + (t * torch::randn(t.sizes())).sum();
      sum.backward();
      std::vector<Tensor> out;
      for (const Tensor& p : layer->parameters()) out.push_back(p.grad().clone());
      return out;
    };
    double seconds = 0;
    const auto exact = tensors(layer->system()),
               fused = tensors(layer->fused_systems({layer.get()}, 1, &seconds).front());
    const double forward = seconds;
    EXPECT_GT(forward, 0);
    for (size_t i = 0; i < exact.size(); ++i) {
      ASSERT_EQ(fused[i].scalar_type(), torch::kFloat32);
      EXPECT_TRUE(fused[i].equal(exact[i].to(torch::kFloat32))) << v.name << " " << i;
    }
    const auto expected = gradients(exact), actual = gradients(fused);
    EXPECT_GT(seconds, forward) << "backward takes time too";
    for (size_t i = 0; i < expected.size(); ++i) {
      EXPECT_LE(relative_error(actual[i], expected[i], 1e-2), 1e-6) << v.name << " " << i;
    }
    const torch::NoGradGuard no_grad;
    EXPECT_TRUE(layer->fused_systems({layer.get()}, 1).front().W.equal(fused[2]));
    EXPECT_FALSE(layer->fused_systems({layer.get()}, 1).front().W.requires_grad());
  }
}

TEST(Layers, StepByStepIsTheSequence) {
  std::vector<LayerOptions> all;
  for (const Variant& v : variants()) {
    if (!v.options.bidirectional) all.push_back(v.options);
  }
  for (const bool stationary : {false, true}) {
    LayerOptions o = all[0];
    o.layer = "rotrnn";
    o.state = 10;  // an odd head
    o.stationary_start = stationary;
    all.push_back(o);
  }
  for (const LayerOptions& o : all) {
    const auto layer = double_layer(o);
    const int64_t T = 90, batch = 2;
    const Packed u = noise({T, T}, 3);
    const States initial = noise_states(*layer, batch);
    const torch::NoGradGuard no_grad;
    for (const bool with_states : {false, true}) {
      const SystemOutput whole = layer->forward(u, with_states ? initial : States{});
      const System system = layer->system();
      Tensor z = with_states ? initial.forward : Tensor();
      std::vector<Tensor> y;
      for (int64_t t = 0; t < T; ++t) {
        const StepOutput out = step(system, z, u.values.view({batch, T, 3}).select(1, t));
        z = out.z;
        y.push_back(out.y);
      }
      EXPECT_LE(relative_error(torch::stack(y, 1).view({-1, 3}), whole.y), 1e-12) << o.layer;
      EXPECT_LE(relative_error(z, whole.final.forward), 1e-12) << o.layer;
    }
    LayerOptions both = o;
    both.bidirectional = true;
    const System system = double_layer(both)->system();
    EXPECT_NE(message_of<std::invalid_argument>([&] {
                step(system, {}, torch::zeros({1, 3}, torch::kFloat64));
              }).find("bidirectional"),
              std::string::npos);
    EXPECT_THROW(step(layer->system(), {}, torch::zeros({1, 4})), std::invalid_argument);
    EXPECT_THROW(step(layer->system(), torch::zeros({2, 8}), torch::zeros({1, 3})),
                 std::invalid_argument);
  }
}

TEST(Layers, StateNormsAreThoseOfTheRealState) {
  LayerOptions o;
  o.width = 3;
  o.state = 10;
  o.heads = 2;
  RotRNN rotrnn(o.rotrnn_options());
  rotrnn->to(torch::kFloat64);
  const Packed u = noise({20, 3}, 3);
  const auto out = rotrnn->forward(u, {}, true);
  const Tensor z = rotrnn->DiagonalLayer::forward(u).z;
  EXPECT_LE(relative_error(rotrnn->state_norms(z), out.head_norms), 1e-12);

  o.layer = "lru";
  EXPECT_LE(relative_error(make_layer(o, 1, 0)->state_norms(z.narrow(1, 0, 10)),
                           z.narrow(1, 0, 10).square().sum(1, true).sqrt()),
            1e-14);

  // S5 in the basis of HiPPO: x = V z + its conjugate, block by block.
  o.layer = "s5";
  o.state = 8;
  o.s5.blocks = 2;
  const Tensor V = hippo_normal(4).V;
  const Tensor s = torch::randn({6, 8}, torch::kFloat64);
  const Tensor kept = torch::complex(s.narrow(1, 0, 4), s.narrow(1, 4, 4)).view({6, 2, 2});
  const Tensor x = 2 * torch::real(torch::matmul(kept, V.t()));  // [6, 2, 4]
  EXPECT_LE(relative_error(make_layer(o, 1, 0)->state_norms(s),
                           x.square().sum(at::IntArrayRef{1, 2}).sqrt().unsqueeze(1)),
            1e-12);
}

TEST(Layers, ValuesAreAPureFunctionOfSeedAndStream) {
  for (const Variant& v : variants()) {
    const auto a = make_layer(v.options, 5, 2), b = make_layer(v.options, 5, 2);
    const auto c = make_layer(v.options, 6, 2), d = make_layer(v.options, 5, 3);
    for (const auto& p : a->named_parameters()) {
      EXPECT_EQ(p.value().scalar_type(), torch::kFloat32);
      EXPECT_TRUE(p.value().isfinite().all().item<bool>()) << p.key();
      EXPECT_TRUE(p.value().equal(b->named_parameters()[p.key()])) << p.key();
      if (p.key().starts_with("Lambda")) continue;  // HiPPO, not drawn
      EXPECT_FALSE(p.value().equal(c->named_parameters()[p.key()])) << p.key();
      EXPECT_FALSE(p.value().equal(d->named_parameters()[p.key()])) << p.key();
    }
    // No two parameters share numbers.
    EXPECT_FALSE(a->named_parameters()["C_re"].equal(a->named_parameters()["C_im"]));
    if (v.options.bidirectional) {
      EXPECT_FALSE(a->named_parameters()["C_re"].equal(a->named_parameters()["C_reverse_re"]));
    }
  }
}

// ------------------------------------------------------------------ groups and settings

ParameterGroup group_in(const LayerOptions& o, const char* parameter) {
  const auto layer = make_layer(o, 1, 0);
  EXPECT_TRUE(layer->named_parameters().contains(parameter)) << parameter;
  return layer->group(parameter);
}

TEST(Layers, GroupsAreThePapers) {
  using G = ParameterGroup;
  LayerOptions o;
  o.layer = "lru";
  o.bidirectional = true;
  for (const char* name : {"nu_log", "theta_log", "gamma_log", "B_re", "B_im"}) {
    EXPECT_EQ(group_in(o, name), G::recurrent) << name;
  }
  for (const char* name : {"C_re", "C_im", "C_reverse_re", "C_reverse_im", "D"}) {
    EXPECT_EQ(group_in(o, name), G::decay) << name;
  }

  o.layer = "s5";
  struct Row {
    S5Groups groups;
    G B, C;
  };
  for (const Row& row : {Row{S5Groups::standard, G::recurrent, G::decay},
                         Row{S5Groups::b_and_c_decay, G::recurrent_decay, G::decay},
                         Row{S5Groups::b_fast_and_c_decay, G::decay, G::decay},
                         Row{S5Groups::no_bc_decay, G::recurrent, G::recurrent}}) {
    for (const bool dt_global : {false, true}) {
      o.s5.groups = row.groups;
      o.s5.dt_global = dt_global;
      for (const char* name : {"Lambda_re", "Lambda_im"}) {
        EXPECT_EQ(group_in(o, name), G::recurrent) << name;
      }
      for (const char* name : {"B_re", "B_im"}) EXPECT_EQ(group_in(o, name), row.B) << name;
      for (const char* name : {"C_re", "C_im", "C_reverse_re", "C_reverse_im", "D"}) {
        EXPECT_EQ(group_in(o, name), row.C) << name;
      }
      EXPECT_EQ(group_in(o, "log_step"), dt_global ? G::decay : G::recurrent);
    }
  }

  o.width = 8;
  o.state = 4;
  for (const char* layer : {"s4d", "s4", "liquid_s4"}) {
    o.layer = layer;
    for (const char* name : {"A_log_re", "A_im", "B_re", "B_im"}) {
      EXPECT_EQ(group_in(o, name), G::recurrent) << layer << " " << name;
    }
    for (const char* name : {"C_re", "C_im", "C_reverse_re", "C_reverse_im", "D"}) {
      EXPECT_EQ(group_in(o, name), G::decay) << layer << " " << name;
    }
    for (const bool dt_global : {false, true}) {
      o.s4d.dt_global = o.s4.dt_global = dt_global;
      EXPECT_EQ(group_in(o, "log_step"), dt_global ? G::decay : G::recurrent) << layer;
    }
  }
  for (const char* name : {"P_re", "P_im"}) EXPECT_EQ(group_in(o, name), G::recurrent) << name;
}

TEST(Layers, WrongSettingsAreRefusedByTheirKey) {
  auto refused = [](const char* layer, const char* key, auto change) {
    LayerOptions o;
    o.layer = layer;
    change(o);
    try {
      make_layer(o, 0, 0);
      ADD_FAILURE() << "accepted, expected an error of " << key;
    } catch (const SettingError& error) {
      EXPECT_EQ(error.key(), key) << error.what();
    }
  };
  refused("lru", "width", [](LayerOptions& o) { o.width = 0; });
  refused("lru", "state", [](LayerOptions& o) { o.state = 7; });
  refused("lru", "state", [](LayerOptions& o) { o.state = 0; });
  refused("lru", "lru.r_min", [](LayerOptions& o) { o.lru.r_min = 1; });
  refused("lru", "lru.r_min", [](LayerOptions& o) { o.lru.r_max = 1.01; });
  refused("lru", "lru.r_min", [](LayerOptions& o) { o.lru.r_min = NAN; });
  refused("lru", "lru.max_phase", [](LayerOptions& o) { o.lru.max_phase = 0; });
  refused("s5", "width", [](LayerOptions& o) { o.width = 0; });
  refused("s5", "state", [](LayerOptions& o) { o.state = 15; });
  refused("s5", "s5.blocks", [](LayerOptions& o) { o.s5.blocks = 0; });
  refused("s5", "s5.blocks", [](LayerOptions& o) { o.s5.blocks = 3; });
  refused("s5", "s5.blocks", [](LayerOptions& o) { o.s5.blocks = 256; });  // blocks of size 1
  refused("s5", "s5.dt_min", [](LayerOptions& o) { o.s5.dt_min = 0.2; });
  refused("s5", "s5.dt_min", [](LayerOptions& o) { o.s5.dt_min = 0; });
  refused("s5", "s5.step_rescale", [](LayerOptions& o) { o.s5.step_rescale = -1; });
  // Of a layer that is not in use the settings count, the shared sizes do not.
  refused("lru", "s5.dt_min", [](LayerOptions& o) { o.s5.dt_min = 0.2; });
  refused("rotrnn", "lru.r_min", [](LayerOptions& o) { o.lru.r_max = 0; });
  LayerOptions o;
  o.layer = "lru";
  o.state = 6;
  EXPECT_NO_THROW(make_layer(o, 0, 0)) << "32 heads and 8 blocks are not for this layer";

  auto unknown = [](const char* name) {
    LayerOptions o;
    o.layer = name;
    return message_of<std::invalid_argument>([&] { make_layer(o, 0, 0); });
  };
  EXPECT_EQ(unknown("rotrn"),
            "unknown layer \"rotrn\"; there are rotrnn, lru, s5, s4d, s4, liquid_s4; did you mean "
            "\"rotrnn\"?");
  EXPECT_EQ(unknown("mamba"),
            "unknown layer \"mamba\"; there are rotrnn, lru, s5, s4d, s4, liquid_s4");
}

// ------------------------------------------------------------------ LRU

TEST(Lru, InitialValuesHaveTheirDistributions) {
  LruOptions o;
  o.width = 64;
  o.state = 4000;
  o.r_min = 0.5;
  o.r_max = 0.99;
  o.max_phase = 1;
  o.bidirectional = true;
  const Lru layer(o, 3);
  const torch::NoGradGuard no_grad;
  const Tensor radius = torch::exp(-torch::exp(layer->nu_log.to(torch::kFloat64)));
  // Bounds up to the rounding of nu_log in float32.
  EXPECT_GE(radius.min().item<double>(), 0.5 - 1e-6);
  EXPECT_LE(radius.max().item<double>(), 0.99 + 1e-6);
  // Uniform on the ring: |λ|² is uniform; 2,000 draws, five standard errors.
  const double width = 0.9801 - 0.25;
  EXPECT_NEAR(radius.square().mean().item<double>(), (0.9801 + 0.25) / 2,
              5 * width / std::sqrt(12 * 2000.0));
  const Tensor phase = torch::exp(layer->theta_log);
  EXPECT_LE(phase.max().item<double>(), 1 + 1e-6);
  EXPECT_NEAR(phase.mean().item<double>(), 0.5, 5 / std::sqrt(12 * 2000.0));
  EXPECT_LE(relative_error(layer->gamma_log, 0.5 * torch::log(1 - radius.square())), 1e-6);
  for (const Tensor& b : {layer->B_re, layer->B_im}) {
    EXPECT_NEAR(b.std().item<double>() * std::sqrt(2 * 64.0), 1, 0.01);
  }
  for (const Tensor& c : {layer->C_re, layer->C_im, layer->C_reverse_re, layer->C_reverse_im}) {
    EXPECT_NEAR(c.std().item<double>() * std::sqrt(2000.0), 1, 0.01);
  }
  EXPECT_NEAR(layer->D.std().item<double>(), 1, 0.5);

  o.gamma = LruGamma::fixed;
  EXPECT_FALSE(Lru(o, 3)->named_parameters().contains("gamma_log"));
}

// A RotRNN that has been trained, so that no initial symmetry is left, and the LRU made of it.
TEST(Lru, OfARotRnnGivesItsOutputs) {
  for (const int64_t dh : {2, 5, 8}) {
    for (const bool bidirectional : {false, true}) {
      RotRNNOptions o{.width = 4, .state = 3 * dh, .heads = 3, .bidirectional = bidirectional};
      RotRNN rotrnn(o, 1);
      torch::optim::AdamW optimiser(rotrnn->parameters(), torch::optim::AdamWOptions(0.05));
      const Packed u = noise({40, 1, 17}, 4);
      const Packed u32 = u.with(u.values.to(torch::kFloat32));
      const Tensor target = torch::randn({58, 4});
      for (int i = 0; i < 8; ++i) {
        optimiser.zero_grad();
        torch::mse_loss(rotrnn->forward(u32).y, target).backward();
        optimiser.step();
      }
      LruOptions l;
      l.width = 4;
      l.state = 2 * 3 * ((dh + 1) / 2);
      l.bidirectional = bidirectional;
      Lru lru(l, 9);
      lru->to(torch::kFloat64);
      lru->load(to_lru(*rotrnn));
      const RotRNNOutput expected = rotrnn->forward(u);
      const SystemOutput actual = lru->forward(u);
      EXPECT_LE(relative_error(actual.y, expected.y), 1e-11) << dh;
      EXPECT_LE(relative_error(actual.final.forward, expected.final.forward), 1e-11) << dh;

      Lru single(l, 9);  // as it would be trained on: the parameters rounded
      single->load(to_lru(*rotrnn));
      EXPECT_LE(relative_error(single->forward(u32).y, expected.y), 1e-5) << dh;
    }
  }
}

TEST(Lru, LoadRefusesWhatDoesNotFit) {
  const RotRNN rotrnn(RotRNNOptions{.width = 4, .state = 8, .heads = 2});
  const LruParameters p = to_lru(*rotrnn);
  LruOptions o;
  o.width = 4;
  o.state = 8;
  EXPECT_NO_THROW(Lru(o)->load(p));
  const auto refused = [&](auto change) {
    LruOptions wrong = o;
    change(wrong);
    Lru layer(wrong);
    const Tensor before = layer->D.detach().clone();
    EXPECT_THROW(layer->load(p), std::invalid_argument);
    EXPECT_TRUE(layer->D.equal(before)) << "nothing is changed by a failed load";
  };
  refused([](LruOptions& w) { w.state = 10; });
  refused([](LruOptions& w) { w.width = 5; });
  refused([](LruOptions& w) { w.bidirectional = true; });
  refused([](LruOptions& w) { w.gamma = LruGamma::fixed; });
}

// ------------------------------------------------------------------ HiPPO and S5

TEST(Hippo, SmallCasesByHand) {
  const HippoLegS two = hippo_legs(2);
  const double root3 = std::sqrt(3.0);
  EXPECT_LE(relative_error(two.A, torch::tensor({{-1.0, 0.0}, {-root3, -2.0}}, torch::kFloat64)),
            1e-15);
  // HiPPO-N is [[-½, √3/2], [-√3/2, -½]]: Λ = -½ - i√3/2, V = (1, -i)/√2.
  const HippoNormal n = hippo_normal(2);
  auto near = [](const Tensor& value, Complex expected) {
    const auto z = value.item<c10::complex<double>>();
    EXPECT_NEAR(z.real(), expected.real(), 1e-14);
    EXPECT_NEAR(z.imag(), expected.imag(), 1e-14);
  };
  ASSERT_EQ(n.lambda.sizes().vec(), std::vector<int64_t>{1});
  ASSERT_EQ(n.V.sizes().vec(), (std::vector<int64_t>{2, 1}));
  near(n.lambda[0], {-0.5, -root3 / 2});
  near(n.V[0][0], {1 / std::sqrt(2.0), 0});
  near(n.V[1][0], {0, -1 / std::sqrt(2.0)});
  near(n.B[0], {1 / std::sqrt(2.0), root3 / std::sqrt(2.0)});
  near(n.P[0], {0.5, root3 / 2});

  // N = 4: the skew part has entries ½√((2n+1)(2k+1)), so its characteristic polynomial is
  // μ⁴ - 43/2 μ² + 105/16 (half the sum of squares, the Pfaffian squared).
  const HippoNormal four = hippo_normal(4);
  near(four.lambda[0], {-0.5, -std::sqrt((21.5 + std::sqrt(436.0)) / 2)});
  near(four.lambda[1], {-0.5, -std::sqrt((21.5 - std::sqrt(436.0)) / 2)});
  EXPECT_EQ(hippo_normal(1).lambda.numel(), 0);
}

TEST(Hippo, EigenpairsSolveTheEquation) {
  for (const int64_t N : {2, 4, 5, 9, 16, 64}) {
    const HippoLegS h = hippo_legs(N);
    const HippoNormal n = hippo_normal(N);
    const int64_t half = N / 2;
    ASSERT_EQ(n.lambda.numel(), half);
    // By the definitions, entry by entry.
    auto A = h.A.accessor<double, 2>();
    Tensor normal = torch::zeros({N, N}, torch::kFloat64);
    for (int64_t i = 0; i < N; ++i) {
      for (int64_t k = 0; k < N; ++k) {
        const double product = std::sqrt((2.0 * i + 1) * (2.0 * k + 1));
        EXPECT_DOUBLE_EQ(A[i][k], i > k ? -product : i == k ? -(i + 1.0) : 0);
        normal[i][k] = A[i][k] + std::sqrt((i + 0.5) * (k + 0.5));
      }
    }
    const Tensor dense = normal.to(torch::kComplexDouble);
    const double scale = static_cast<double>(N * N);  // the size of the largest eigenvalue
    EXPECT_LE(torch::abs(torch::matmul(dense, n.V) - n.V * n.lambda).max().item<double>(),
              1e-14 * scale);
    EXPECT_LE(torch::abs(torch::matmul(torch::conj(n.V).t(), n.V) -
                         torch::eye(half, torch::kComplexDouble))
                  .max()
                  .item<double>(),
              1e-13);
    EXPECT_EQ(torch::imag(n.V[0]).abs().max().item<double>(), 0) << "first entries are real";
    EXPECT_GT(torch::real(n.V[0]).min().item<double>(), 0);
    const Tensor im = torch::imag(n.lambda);
    EXPECT_LT(im.max().item<double>(), 0);
    EXPECT_TRUE(im.equal(std::get<0>(torch::sort(im)))) << "ascending";
    EXPECT_EQ((torch::real(n.lambda) + 0.5).abs().max().item<double>(), 0);
    for (int64_t k = 0; k < half; ++k) {
      Complex b = 0, p = 0;
      for (int64_t i = 0; i < N; ++i) {
        const auto v = n.V[i][k].item<c10::complex<double>>();
        b += Complex(v.real(), -v.imag()) * std::sqrt(2.0 * i + 1);
        p += Complex(v.real(), -v.imag()) * std::sqrt(i + 0.5);
      }
      const auto B = n.B[k].item<c10::complex<double>>(), P = n.P[k].item<c10::complex<double>>();
      EXPECT_LE(std::abs(b - Complex(B.real(), B.imag())), 1e-12);
      EXPECT_LE(std::abs(p - Complex(P.real(), P.imag())), 1e-12);
    }
  }
}

TEST(S5, InitialValuesHaveTheirDistributions) {
  S5Options o;
  o.width = 96;
  o.state = 128;
  o.blocks = 4;
  o.bidirectional = true;
  const torch::NoGradGuard no_grad;
  const S5 layer(o, 3);
  const HippoNormal block = hippo_normal(32);
  EXPECT_LE(relative_error(layer->Lambda_im, torch::imag(block.lambda).repeat({4})), 1e-7);
  EXPECT_LE(relative_error(layer->Lambda_re, torch::full({64}, -0.5)), 1e-7);

  // VᴴB of a real B and a unitary V with its conjugates: 2·Re(V·VᴴB) is B again.
  const Tensor kept = torch::complex(layer->B_re, layer->B_im).to(torch::kComplexDouble);
  const Tensor B = 2 * torch::real(torch::matmul(block.V, kept.view({4, 16, 96})));
  EXPECT_NEAR(B.std().item<double>() * std::sqrt(128.0), 1, 0.02);
  const double cut = 2 / 0.87962566103423978 / std::sqrt(128.0);
  EXPECT_LE(B.abs().max().item<double>(), cut + 1e-6);
  EXPECT_GE(B.abs().max().item<double>(), 0.98 * cut);

  EXPECT_NEAR(layer->D.std().item<double>(), 1, 0.4);
  EXPECT_GE(layer->log_step.min().item<double>(), std::log(1e-3) - 1e-6);
  EXPECT_LE(layer->log_step.max().item<double>(), std::log(1e-1) + 1e-6);
  EXPECT_NEAR(layer->log_step.mean().item<double>(), std::log(1e-2),
              5 * std::log(100.0) / std::sqrt(12 * 64.0));

  // Mean |C̃|²: twice the variance of a part, V having unit columns. 12,288 numbers.
  for (const auto& [init, expected] : {std::pair{S5CInit::lecun_normal, 2.0 / (128 * 96)},
                                       std::pair{S5CInit::trunc_standard_normal, 2.0 / 128},
                                       std::pair{S5CInit::complex_normal, 1.0}}) {
    o.c_init = init;
    const S5 other(o, 3);
    for (const auto& [re, im] : {std::pair{other->C_re, other->C_im},
                                 std::pair{other->C_reverse_re, other->C_reverse_im}}) {
      const double mean = (re.square() + im.square()).mean().item<double>();
      EXPECT_NEAR(mean / expected, 1, 0.05) << static_cast<int>(init);
      EXPECT_NEAR(re.square().mean().item<double>() / (mean / 2), 1, 0.1);
    }
  }
}

TEST(S5, TruncatedNormalKeepsItsDeviation) {
  const Tensor x = draw_truncated_normal({100000}, 3, Random(1, RandomSite::initialise));
  // The deviation of the deviation of 100,000 draws is below 0.2 %.
  EXPECT_NEAR(x.std().item<double>(), 3, 0.02);
  EXPECT_NEAR(x.mean().item<double>(), 0, 0.05);
  EXPECT_LE(x.abs().max().item<double>(), 6 / 0.87962566103423978);
}

// Two samples that are held are one of twice the duration: what the zero-order hold assumes.
TEST(S5, RescaledStepsReadHalfTheSamples) {
  S5Options o;
  o.width = 3;
  o.state = 16;
  o.blocks = 2;
  S5 full(o, 4);
  o.step_rescale = 2;
  S5 half(o, 4);
  full->to(torch::kFloat64);
  half->to(torch::kFloat64);
  const Packed u = noise({50}, 3);
  const Packed held(u.values.repeat_interleave(2, 0), {0, 100});
  const Tensor every_second = full->forward(held).y.view({50, 2, 3}).select(1, 1);
  EXPECT_LE(relative_error(half->forward(u).y, every_second), 1e-12);
}

// From steps so small that e^{ΛΔ} - 1 has no digits, through where the series ends, to large ones,
// and at Λ = 0 itself.
TEST(S5, ZeroOrderHoldIsExactForAnyStep) {
  S5Options o;
  o.width = 1;
  o.state = 2;
  o.blocks = 1;
  S5 layer(o);
  layer->to(torch::kFloat64);
  auto set = [&](Complex lambda, double step) {
    const torch::NoGradGuard no_grad;
    layer->Lambda_re.fill_(lambda.real());
    layer->Lambda_im.fill_(lambda.imag());
    layer->log_step.fill_(std::log(step));
    layer->B_re.fill_(1);
    layer->B_im.fill_(0);
  };
  const auto input = [&] {
    const System s = layer->system();
    return Complex(s.W[0][0].item<double>(), s.W[1][0].item<double>());
  };
  for (const double size : {1e-16, 1e-12, 1e-8, 9.9e-5, 1.01e-4, 1e-3, 0.1, 1.0, 7.0}) {
    for (const Complex direction : {Complex(-1, 0), Complex(-0.6, -0.8), Complex(0, -1)}) {
      set(direction, size);
      const double step = std::exp(layer->log_step.item<double>());
      EXPECT_LE(std::abs(input() - zoh_input(direction, step)) / step, 1e-14) << size;
      // d(input)/dΛ in the direction of Λ_re, against the same in long double.
      layer->zero_grad();
      layer->system().W[0][0].backward();
      const double h = 1e-4;
      const double slope = (zoh_input(direction + h, step) - zoh_input(direction - h, step)).real();
      EXPECT_LE(std::abs(layer->Lambda_re.grad().item<double>() - slope / (2 * h)) / step,
                1e-8 * std::max(1.0, size * size))
          << size;
    }
  }
  set(0, 0.25);
  EXPECT_EQ(input(), Complex(0.25, 0));
  layer->system().W.sum().backward();
  for (const Tensor& p : layer->parameters()) {
    EXPECT_TRUE(!p.grad().defined() || p.grad().isfinite().all().item<bool>());
  }
}

}  // namespace
}  // namespace rotrnn
