#include "rotrnn/layers/scan.h"

#include <algorithm>
#include <vector>

namespace rotrnn {
namespace {

using torch::Tensor;

// Rows of a chunk. The loop over them is the sequential part, and a fresh power λ^64 is exact to
// rounding, so errors do not grow with the length of a sequence by more than the recurrence's own.
constexpr int64_t kChunk = 64;

Direction opposite(Direction d) {
  return d == Direction::forward ? Direction::reverse : Direction::forward;
}

Tensor index_tensor(const std::vector<int64_t>& values, torch::Device device) {
  return torch::tensor(values, torch::kInt64).to(device);
}

// How the tokens are laid on a grid [rows, chunks]: each sequence is cut into chunks in the order
// of the scan, the last one filled up with a row of padding (index `tokens`).
struct Grid {
  int64_t rows = 0, chunks = 0, most_chunks = 0;
  Tensor gather;       // [rows * chunks] token of a cell
  Tensor scatter;      // [tokens] cell of a token
  Tensor position;     // [chunks, 1] number of the chunk within its sequence
  Tensor first_chunk;  // [sequences] chunk in which a sequence begins
};

Grid make_grid(const Layout& layout, Direction direction) {
  Grid grid;
  const auto& offsets = layout.offsets();
  grid.rows = std::min(kChunk, layout.longest());
  std::vector<int64_t> first_chunk, position;
  for (int64_t i = 0; i < layout.sequences(); ++i) {
    const int64_t chunks = (offsets[i + 1] - offsets[i] + grid.rows - 1) / grid.rows;
    first_chunk.push_back(grid.chunks);
    for (int64_t k = 0; k < chunks; ++k) position.push_back(k);
    grid.chunks += chunks;
    grid.most_chunks = std::max(grid.most_chunks, chunks);
  }
  std::vector<int64_t> gather(grid.rows * grid.chunks, layout.tokens()), scatter(layout.tokens());
  for (int64_t i = 0; i < layout.sequences(); ++i) {
    const int64_t length = offsets[i + 1] - offsets[i];
    for (int64_t t = 0; t < length; ++t) {
      const int64_t token =
          direction == Direction::forward ? offsets[i] + t : offsets[i + 1] - 1 - t;
      const int64_t cell = (t % grid.rows) * grid.chunks + first_chunk[i] + t / grid.rows;
      gather[cell] = token;
      scatter[token] = cell;
    }
  }
  grid.gather = index_tensor(gather, layout.device());
  grid.scatter = index_tensor(scatter, layout.device());
  grid.position = index_tensor(position, layout.device()).unsqueeze(1);
  grid.first_chunk = index_tensor(first_chunk, layout.device());
  return grid;
}

// [tokens, S] on the grid as [rows, chunks, S], with `fill` in the padding.
Tensor to_grid(const Tensor& values, const Grid& grid, double fill) {
  const auto padding = torch::full({1, values.size(1)}, fill, values.options());
  return torch::cat({values, padding})
      .index_select(0, grid.gather)
      .view({grid.rows, grid.chunks, values.size(1)});
}

// Row k becomes row k - distance, and `fill` where there is none before it in the sequence.
Tensor earlier(const Tensor& values, int64_t distance, const Tensor& inside, double fill) {
  const auto shifted = torch::cat({torch::full_like(values.narrow(0, 0, distance), fill),
                                   values.narrow(0, 0, values.size(0) - distance)});
  return torch::where(inside, shifted, torch::full_like(shifted, fill));
}

// z_t = a_t z_{t-1} + v_t over packed complex v [tokens, S]; a is [S] or [tokens, S].
Tensor recurrence(const Tensor& v, const Tensor& a, const Tensor& initial, const Layout& layout,
                  Direction direction) {
  const Grid grid = make_grid(layout, direction);
  const bool constant = a.dim() == 1;
  Tensor local = to_grid(v, grid, 0.0);

  // Inside every chunk, from a zero state; `carried` is what the state before the chunk is
  // multiplied by at each row.
  Tensor step, carried;
  if (constant) {
    // Powers by repeated multiplication in double: summed angles would lose digits.
    const Tensor exact = a.to(torch::kComplexDouble).expand({grid.rows, a.size(0)});
    carried = exact.cumprod(0).to(v.scalar_type()).unsqueeze(1);
    step = a.to(v.scalar_type());
  } else {
    step = to_grid(a.to(v.scalar_type()), grid, 1.0);
    carried = step.cumprod(0);
  }
  for (int64_t row = 1; row < grid.rows; ++row) {
    local[row].addcmul_(local[row - 1], constant ? step : step[row]);
  }

  // Over the chunks of a sequence: an inclusive scan of their last rows by doubling.
  Tensor end = local[grid.rows - 1];
  Tensor factor = carried[grid.rows - 1].expand_as(end);
  Tensor before = torch::zeros_like(end);
  if (initial.defined()) {
    before = before.index_copy(0, grid.first_chunk, initial);
    end = torch::addcmul(end, before, factor);
  }
  if (grid.most_chunks > 1) {
    for (int64_t distance = 1; distance < grid.most_chunks; distance *= 2) {
      const auto inside = grid.position >= distance;
      end = torch::addcmul(end, factor, earlier(end, distance, inside, 0.0));
      if (2 * distance < grid.most_chunks) {
        factor = constant ? factor * factor : factor * earlier(factor, distance, inside, 1.0);
      }
    }
    before = before + earlier(end, 1, grid.position >= 1, 0.0);
  }
  if (grid.most_chunks > 1 || initial.defined()) {
    local = torch::addcmul(local, carried.expand_as(local), before.unsqueeze(0).expand_as(local));
  }
  return local.flatten(0, 1).index_select(0, grid.scatter);
}

Tensor to_complex(const Tensor& planes) {
  const int64_t states = planes.size(-1) / 2;
  return torch::complex(planes.narrow(-1, 0, states).contiguous(),
                        planes.narrow(-1, states, states).contiguous());
}

Tensor to_planes(const Tensor& z) {
  return torch::cat({torch::real(z), torch::imag(z)}, -1);
}

// Rows of the state before each token, given the states after it: row `tokens + i` of `extended`
// is the initial state of sequence i.
Tensor previous_rows(const Layout& layout, Direction direction) {
  std::vector<int64_t> rows(layout.tokens());
  const auto& offsets = layout.offsets();
  for (int64_t i = 0; i < layout.sequences(); ++i) {
    for (int64_t t = offsets[i]; t < offsets[i + 1]; ++t) {
      const bool begins =
          direction == Direction::forward ? t == offsets[i] : t + 1 == offsets[i + 1];
      rows[t] = begins ? layout.tokens() + i : (direction == Direction::forward ? t - 1 : t + 1);
    }
  }
  return index_tensor(rows, layout.device());
}

const Tensor& begin_rows(const Layout& layout, Direction direction) {
  return direction == Direction::forward ? layout.first() : layout.last();
}

// The λ that the adjoint meets at a token is that of the next token in the scan's order.
Tensor next_lambda(const Tensor& lambda, const Layout& layout, Direction direction) {
  if (lambda.dim() == 1) return lambda;
  const auto extended =
      torch::cat({lambda, torch::zeros({layout.sequences(), lambda.size(1)}, lambda.options())});
  return extended.index_select(0, previous_rows(layout, opposite(direction)));
}

// The adjoint is again a scan, backwards with conj(λ); autograd through the forward operations
// would keep every intermediate of the grid instead of z alone.
struct Scan : torch::autograd::Function<Scan> {
  static Tensor forward(torch::autograd::AutogradContext* context, const Tensor& v,
                        const Tensor& lambda_re, const Tensor& lambda_im,
                        const c10::optional<Tensor>& given,
                        const std::shared_ptr<const Layout>& layout, Direction direction) {
    const Tensor lambda = torch::complex(lambda_re, lambda_im);
    const Tensor initial = given.value_or(Tensor());
    const Tensor z0 = initial.defined() ? to_complex(initial) : Tensor();
    const Tensor z = to_planes(recurrence(to_complex(v), lambda, z0, *layout, direction));
    context->save_for_backward({z, lambda_re, lambda_im, initial});
    context->saved_data["direction"] = static_cast<int64_t>(direction);
    context->saved_data["offsets"] = layout->offsets();
    return z;
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list grads) {
    const auto saved = context->get_saved_variables();
    const auto direction = static_cast<Direction>(context->saved_data["direction"].toInt());
    const Layout layout(context->saved_data["offsets"].toIntVector(), saved[0].device());
    const Tensor z = to_complex(saved[0]), lambda = torch::complex(saved[1], saved[2]);
    const Tensor& initial = saved[3];

    const Tensor g = recurrence(to_complex(grads[0]),
                                torch::conj(next_lambda(lambda, layout, direction)).resolve_conj(),
                                Tensor(), layout, opposite(direction));
    const Tensor z0 = initial.defined()
                          ? to_complex(initial)
                          : torch::zeros({layout.sequences(), z.size(1)}, z.options());
    const Tensor previous = torch::cat({z, z0}).index_select(0, previous_rows(layout, direction));
    Tensor lambda_grad = g * torch::conj(previous);
    if (lambda.dim() == 1) lambda_grad = lambda_grad.sum(0);

    Tensor initial_grad;
    if (initial.defined()) {
      const Tensor& begin = begin_rows(layout, direction);
      const Tensor first_lambda = lambda.dim() == 1 ? lambda : lambda.index_select(0, begin);
      initial_grad =
          to_planes(g.index_select(0, begin) * torch::conj(first_lambda).to(g.scalar_type()));
    }
    return {to_planes(g),
            torch::real(lambda_grad).to(saved[1].scalar_type()),
            torch::imag(lambda_grad).to(saved[2].scalar_type()),
            initial_grad,
            Tensor(),
            Tensor()};
  }
};

}  // namespace

Tensor scan(const Tensor& v, const Tensor& lambda_re, const Tensor& lambda_im,
            const Tensor& initial, const std::shared_ptr<const Layout>& layout,
            Direction direction) {
  if (layout->tokens() == 0) return v;
  // LibTorch's functions take no undefined tensor, but an empty optional.
  const auto given = initial.defined() ? c10::optional<Tensor>(initial) : c10::nullopt;
  return Scan::apply(v, lambda_re, lambda_im, given, layout, direction);
}

}  // namespace rotrnn
