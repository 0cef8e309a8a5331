#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <type_traits>
#include <variant>
#include <vector>

/// What a layer's parameters are mapped to, and all that the sequence kernels know of a layer.
/// `each` lists the fields once: visit(name, values, shape). A field that a layer does not have is
/// empty. The gradient of a description is a description.
namespace rotrnn {

/// A layer that mixes channels:
///
///     z_t = λ ⊙ z_{t-1} + W u_t + b        y_t = V·[Re z_t; Im z_t] + D ⊙ u_t + e
///
/// with S complex states z, kept as two real planes: all real parts, then all imaginary parts. The
/// reverse direction runs the same recurrence from the end and adds V_reverse·[Re z; Im z].
/// Without an initial state z_0 = start ⊙ (W u_1 + b), u_1 being the first input in that direction;
/// without start it is 0. `Field` holds the numbers of one field: a vector, a pointer, or a view of
/// them in a file.
template <class Field>
struct DiagonalFields {
  int64_t width = 0, states = 0;  // D, S
  Field lambda_re{}, lambda_im{}, W{}, V{}, V_reverse{}, D{}, b{}, e{}, start_re{}, start_im{};

  bool bidirectional() const { return !V_reverse.empty(); }

  template <class Visit>
  void each(const Visit& visit) {
    list(*this, visit);
  }
  template <class Visit>
  void each(const Visit& visit) const {
    list(*this, visit);
  }

 private:
  using Shape = std::initializer_list<int64_t>;
  template <class Self, class Visit>
  static void list(Self& s, const Visit& visit) {
    const int64_t d = s.width, n = s.states;
    visit("lambda_re", s.lambda_re, Shape{n});
    visit("lambda_im", s.lambda_im, Shape{n});
    visit("W", s.W, Shape{2 * n, d});
    visit("V", s.V, Shape{d, 2 * n});
    visit("V_reverse", s.V_reverse, Shape{d, 2 * n});
    visit("D", s.D, Shape{d});
    visit("b", s.b, Shape{2 * n});
    visit("e", s.e, Shape{d});
    visit("start_re", s.start_re, Shape{n});
    visit("start_im", s.start_im, Shape{n});
  }
};

template <class T>
using Diagonal = DiagonalFields<std::vector<T>>;

/// How Liquid-S4's products of neighbouring inputs enter, where a layer has them.
enum class ProductUse {
  outside,    // added to y
  inside,     // added to what drives the recurrence
  reference,  // added to y, of the combinations that the authors' code takes: not causal
};

/// A layer whose channels do not meet. Either a recurrence with N complex states in each channel,
///
///     x_t = λ ⊙ x_{t-1} + u_t        y_t = Σ_n Re(c_n x_{t,n}) + D·u_t
///
/// whose reverse direction x←_t = λ ⊙ x←_{t+1} + u_t adds Σ_n Re(c'_n x←_{t+1,n}): it starts at the
/// next sample, so that no input enters twice; or a convolution with kernels of L steps,
///
///     y_t = Σ_{s≤t} K_{t-s} u_s + Σ_{s>t} K_reverse_{s-t-1} u_s + D·u_t
///
/// and with either Σ_p products_p·Π_{j<p} u_{t-j}, p = 2 …, in the way that `kind` says.
/// Planes are [N, D], kernels [L, D]. `Field` is as in DiagonalFields.
template <class Field>
struct ChannelFields {
  int64_t width = 0, states = 0, length = 0, orders = 0;  // D, N, L, rows of products
  ProductUse kind = ProductUse::outside;
  Field lambda_re{}, lambda_im{}, c_re{}, c_im{}, c_reverse_re{}, c_reverse_im{};
  Field K{}, K_reverse{}, products{}, D{};

  bool bidirectional() const { return !c_reverse_re.empty() || !K_reverse.empty(); }

  template <class Visit>
  void each(const Visit& visit) {
    list(*this, visit);
  }
  template <class Visit>
  void each(const Visit& visit) const {
    list(*this, visit);
  }

 private:
  using Shape = std::initializer_list<int64_t>;
  template <class Self, class Visit>
  static void list(Self& s, const Visit& visit) {
    const int64_t d = s.width, n = s.states;
    visit("lambda_re", s.lambda_re, Shape{n, d});
    visit("lambda_im", s.lambda_im, Shape{n, d});
    visit("c_re", s.c_re, Shape{n, d});
    visit("c_im", s.c_im, Shape{n, d});
    visit("c_reverse_re", s.c_reverse_re, Shape{n, d});
    visit("c_reverse_im", s.c_reverse_im, Shape{n, d});
    visit("K", s.K, Shape{s.length, d});
    visit("K_reverse", s.K_reverse, Shape{s.length, d});
    visit("products", s.products, Shape{s.orders, d});
    visit("D", s.D, Shape{d});
  }
};

template <class T>
using Channel = ChannelFields<std::vector<T>>;

template <class T>
using Description = std::variant<Diagonal<T>, Channel<T>>;

/// visit(name, field of `a`, field of `b`) for each field of two lists of one kind.
template <class A, class B, class Visit>
void each_pair(A& a, B& b, const Visit& visit) {
  std::array<std::remove_reference_t<decltype((a.D))>*, 16> fields{};
  size_t count = 0;
  a.each([&](const char*, auto& field, auto) { fields.at(count++) = &field; });
  size_t i = 0;
  b.each([&](const char* name, auto& field, auto) { visit(name, *fields[i++], field); });
}

/// Makes the fields of `to` pointers to those of `from`; null where the layer has none.
template <class From, class To>
void point_to(From& from, To& to) {
  to.width = from.width, to.states = from.states;
  each_pair(from, to, [](const char*, auto& values, auto& pointer) {
    pointer = values.empty() ? nullptr : values.data();
  });
}

/// Makes the fields of `to` as long as those of `like`.
template <class Like, class To>
void size_like(const Like& like, To& to) {
  to.width = like.width, to.states = like.states;
  each_pair(like, to,
            [](const char*, const auto& from, auto& field) { field.resize(from.size()); });
}

/// Copies a description, rounding where the number type asks for it; memory is used again.
template <class From, class To>
void convert(const Description<From>& from, Description<To>& to) {
  const auto copy = [](const auto& source, auto& target) {
    target.width = source.width, target.states = source.states;
    each_pair(source, target, [](const char*, const std::vector<From>& values, auto& out) {
      out.assign(values.begin(), values.end());
    });
  };
  if (const auto* diagonal = std::get_if<Diagonal<From>>(&from)) {
    if (!std::holds_alternative<Diagonal<To>>(to)) to = Diagonal<To>();
    copy(*diagonal, std::get<Diagonal<To>>(to));
    return;
  }
  const auto& channel = std::get<Channel<From>>(from);
  if (!std::holds_alternative<Channel<To>>(to)) to = Channel<To>();
  auto& target = std::get<Channel<To>>(to);
  target.length = channel.length, target.orders = channel.orders, target.kind = channel.kind;
  copy(channel, target);
}

/// A trained layer whose channels do not meet, as streams run it; [D, N], empty where there is
/// none:
///
///     x_t = λ ⊙ x_{t-1} + p·Re Σ_n q_n x_{t-1,n} + b·w_t        y_t = Re Σ_n c_n x_{t,n} + D·u_t
///
/// Without p and q the states do not meet either, without b it is 1. w is u; or, with products
/// inside, u_t + Σ_p liquid[p-2]·Π_{j<p} u_{t-j}: else these sums are added to y. In the reverse
/// direction c_reverse reads the state of the next sample, of the same recurrence driven by u.
/// `Field` is as in DiagonalFields.
template <class Field>
struct ChannelStepFields {
  int64_t width = 0, states = 0, orders = 0;
  bool liquid_inside = false;
  Field lambda_re{}, lambda_im{}, c_re{}, c_im{}, c_reverse_re{}, c_reverse_im{};
  Field p_re{}, p_im{}, q_re{}, q_im{}, b_re{}, b_im{};
  Field D{}, liquid{};  // [D], [orders, D]

  template <class Visit>
  void each(const Visit& visit) {
    list(*this, visit);
  }
  template <class Visit>
  void each(const Visit& visit) const {
    list(*this, visit);
  }

 private:
  using Shape = std::initializer_list<int64_t>;
  template <class Self, class Visit>
  static void list(Self& s, const Visit& visit) {
    const int64_t d = s.width, n = s.states;
    visit("D", s.D, Shape{d});
    visit("liquid", s.liquid, Shape{s.orders, d});
    visit("lambda_re", s.lambda_re, Shape{d, n});
    visit("lambda_im", s.lambda_im, Shape{d, n});
    visit("c_re", s.c_re, Shape{d, n});
    visit("c_im", s.c_im, Shape{d, n});
    visit("c_reverse_re", s.c_reverse_re, Shape{d, n});
    visit("c_reverse_im", s.c_reverse_im, Shape{d, n});
    visit("p_re", s.p_re, Shape{d, n});
    visit("p_im", s.p_im, Shape{d, n});
    visit("q_re", s.q_re, Shape{d, n});
    visit("q_im", s.q_im, Shape{d, n});
    visit("b_re", s.b_re, Shape{d, n});
    visit("b_im", s.b_im, Shape{d, n});
  }
};

using ChannelSteps = ChannelStepFields<std::vector<double>>;

/// A trained layer as a stream runs it.
using Recurrence = std::variant<Diagonal<double>, ChannelSteps>;

}  // namespace rotrnn
