#include "rotrnn/onnx/network.h"

#include <fmt/format.h>

#include <algorithm>

#include "rotrnn/onnx/branch.h"
#include "rotrnn/onnx/frontend.h"

namespace rotrnn {
namespace {

class Builder {
 public:
  Builder(const OnnxSource& source, OnnxKind kind)
      : source_(source),
        info_(source.info()),
        p_(source.preprocessing()),
        front_(onnx_frontend(source.file())),
        g_(name_of(kind)) {
    frame_.kind = kind;
  }

  OnnxGraph run() && {
    g_.place("input.");
    const OnnxValue in = take_inputs();
    measure(in);
    take_states();
    // Behind a front end rows, steps and lengths are those of tokens.
    const OnnxValue tokens = front_.options.used() ? read_samples(in) : "";
    place_rows();
    OnnxValue x = tokens.empty() ? encode(in) : onnx_map(g_, source_, "encoder", tokens);
    for (int64_t i = 0; i < info_.depth; ++i) x = block(i, x);
    g_.place("pooling.");
    const OnnxValue pooled = pool(x);
    g_.place("head.");
    add_head(info_.towers == 2 ? join_pairs(pooled) : pooled);
    give_states();
    return std::move(g_);
  }

 private:
  bool whole() const { return frame_.kind == OnnxKind::sequence; }
  bool mean() const { return info_.pooling == Pooling::mean; }
  std::string batch_name() const { return info_.towers == 2 ? "sequences" : "batch"; }

  // ------------------------------------------------------------------------------------ inputs

  OnnxValue take_inputs() {
    OnnxShape shape{batch_name()};
    if (!frame_.step()) {
      shape.emplace_back("steps");
    } else if (front_.options.used()) {
      shape.emplace_back(frontend_samples(front_.options, 0));
    }
    const std::string pairs =
        info_.towers == 2 ? ", two sequences that follow each other being a pair" : "";
    OnnxValue in;
    if (info_.tokens) {
      in = g_.input("tokens", OnnxType::i64, shape,
                    fmt::format("token numbers 0 to {}{}", info_.inputs - 1, pairs));
    } else {
      shape.emplace_back(info_.inputs);
      in = g_.input("x", OnnxType::f32, shape, "values in natural units" + pairs);
    }
    if (whole()) {
      lengths_ = g_.input("lengths", OnnxType::i64, {batch_name()},
                          "steps of every sequence, 1 or more; what is behind them is not used");
    }
    return in;
  }

  // Sizes and places that several parts need.
  void measure(const OnnxValue& in) {
    const OnnxValue shape = g_.add("Shape", {in});
    frame_.batch = g_.add("Gather", {shape, g_.integers({0})});
    if (frame_.step()) return;
    steps_ = g_.add("Gather", {shape, g_.integer(1)});
  }

  // Samples [batch, steps, channels], or one step of them, to rows of tokens.
  OnnxValue read_samples(const OnnxValue& in) {
    OnnxValue x = in;
    if (!p_.order.empty()) {
      const std::vector<int64_t> order(p_.order.begin(), p_.order.end());
      x = g_.add("Gather", {x, g_.integers(order)}, {{"axis", int64_t{1}}});
    }
    x = scaled(g_.add("Transpose", {x}, {{"perm", std::vector<int64_t>{1, 0, 2}}}));
    const OnnxSystem tokens = onnx_tokens(g_, front_, frame_, {x, front_state_, lengths_});
    front_state_ = tokens.state;
    if (whole()) lengths_ = onnx_token_lengths(g_, front_, lengths_);
    if (!frame_.step()) {
      const OnnxValue rows = g_.add("Gather", {g_.add("Shape", {tokens.y}), g_.integers({0})});
      const OnnxValue steps = g_.add("Div", {rows, frame_.batch});
      steps_ = g_.add("Squeeze", {steps, g_.integers({0})});
    }
    return tokens.y;
  }

  int64_t state_size() const {
    return info_.depth * onnx_state_size(source_) + front_.state_size();
  }

  void take_states() {
    const int64_t size = state_size();
    OnnxValue state;
    if (whole()) {
      const OnnxValue shape =
          g_.add("Concat", {frame_.batch, g_.integers({onnx_state_size(source_)})},
                 {{"axis", int64_t{0}}});
      const OnnxValue zeros = g_.zeros(shape, OnnxType::f32);
      states_.assign(static_cast<size_t>(info_.depth), zeros);
    } else {
      state = g_.input("state", OnnxType::f32, {"batch", size}, "0 at the beginning");
      states_ = {state};
      std::vector<int64_t> parts(static_cast<size_t>(info_.depth), onnx_state_size(source_));
      if (front_.state_size() > 0) parts.push_back(front_.state_size());
      if (parts.size() > 1) {
        states_ = g_.add_several("Split", {state, g_.integers(parts)}, parts.size(),
                                 {{"axis", int64_t{1}}});
      }
      if (front_.state_size() > 0) {
        front_state_ = states_.back();
        states_.pop_back();
      }
      if (mean()) {
        sum_ = g_.input("sum", OnnxType::f64, {"batch", info_.width}, "0 at the beginning");
      }
      count_ = g_.input("count", OnnxType::i64, {"batch"}, "steps so far; 0 at the beginning");
    }
  }

  // Which step of its sequence every row is, where that matters.
  void place_rows() {
    const bool starts = source_.has("blocks.0.start_re");
    if (frame_.step()) {
      if (p_.per_step) place_ = count_;
      if (starts) frame_.first = column(g_.add("Equal", {count_, g_.integer(0)}));
      return;
    }
    if (!starts && !p_.per_step && !whole()) return;
    place_steps();
    if (starts) frame_.first = column(g_.add("Equal", {place_, g_.integer(0)}));
    if (!whole()) return;
    frame_.inside = column(g_.add("Less", {place_, row(lengths_)}));
    if (starts && info_.bidirectional) {
      const OnnxValue end = g_.add("Sub", {row(lengths_), g_.integer(1)});
      frame_.last = column(g_.add("Equal", {place_, end}));
    }
  }

  OnnxValue row(const OnnxValue& x) { return g_.add("Unsqueeze", {x, g_.integers({0})}); }
  OnnxValue column(const OnnxValue& x) { return g_.add("Reshape", {x, g_.integers({-1, 1})}); }

  // place_ [time, batch]: which step of its sequence a row is.
  void place_steps() {
    const OnnxValue range = g_.add("Range", {g_.integer(0), steps_, g_.integer(1)});
    const OnnxValue begin = whole() ? g_.zeros(frame_.batch, OnnxType::i64) : count_;
    place_ = g_.add("Add", {g_.add("Unsqueeze", {range, g_.integers({1})}), row(begin)});
  }

  // ----------------------------------------------------------------------------------- encoder

  OnnxValue encode(const OnnxValue& in) {
    OnnxValue x = in;
    if (!frame_.step()) {
      if (!p_.order.empty()) {
        const std::vector<int64_t> order(p_.order.begin(), p_.order.end());
        x = g_.add("Gather", {x, g_.integers(order)}, {{"axis", int64_t{1}}});
      }
      std::vector<int64_t> perm{1, 0};
      if (!info_.tokens) perm.push_back(2);
      x = g_.add("Transpose", {x}, {{"perm", perm}});
      x = g_.add("Reshape",
                 {x, info_.tokens ? g_.integers({-1}) : g_.integers({-1, info_.inputs})});
    }
    const OnnxValue weight = source_.tensor(g_, "encoder.weight");
    if (info_.tokens) return g_.add("Gather", {weight, x});
    return onnx_linear(g_, scaled(x), weight, source_.tensor(g_, "encoder.bias"));
  }

  // (x - mean) / deviation. The mean is two numbers, which are subtracted one after the other: so
  // float32 keeps what is left of values far from 0.
  OnnxValue scaled(OnnxValue x) {
    std::vector<double> mean = p_.mean, deviation = p_.deviation;
    if (p_.per_step) {  // of the steps that the network sees
      size_t kept = 0;
      for (size_t i = 0; i < static_cast<size_t>(p_.max_length);
           i += static_cast<size_t>(p_.keep_every)) {
        mean[kept] = p_.mean[i];
        deviation[kept++] = p_.deviation[i];
      }
      mean.resize(kept);
      deviation.resize(kept);
    }
    std::vector<float> high, low, scale;
    for (size_t i = 0; i < mean.size(); ++i) {
      high.push_back(static_cast<float>(mean[i]));
      low.push_back(static_cast<float>(mean[i] - static_cast<double>(high.back())));
      scale.push_back(static_cast<float>(deviation[i]));
    }
    const auto all = [](const std::vector<float>& list, float value) {
      return std::all_of(list.begin(), list.end(), [&](float one) { return one == value; });
    };
    if (!all(high, 0)) x = g_.add("Sub", {x, scale_tensor("mean", high)});
    if (!all(low, 0)) x = g_.add("Sub", {x, scale_tensor("mean_rest", low)});
    if (!all(scale, 1)) x = g_.add("Div", {x, scale_tensor("deviation", scale)});
    return x;
  }

  // One number per channel, or one per row of the only channel where every step has its own.
  OnnxValue scale_tensor(const std::string& name, const std::vector<float>& numbers) {
    const OnnxValue table = g_.tensor(name, {std::ssize(numbers)}, numbers);
    if (!p_.per_step) return table;
    if (rows_of_table_.empty()) {
      const OnnxValue most = g_.integer(std::ssize(numbers) - 1);
      rows_of_table_ = column(stored_order(g_.add("Min", {place_, most})));
    }
    return g_.add("Gather", {table, rows_of_table_});
  }

  // Means belong to stored steps, which the network may read in an order of its own.
  OnnxValue stored_order(const OnnxValue& place) {
    if (p_.order.empty()) return place;
    const std::vector<int64_t> order(p_.order.begin(), p_.order.end());
    return g_.add("Gather", {g_.integers(order), place});
  }

  // ------------------------------------------------------------------------------------ blocks

  OnnxValue block(int64_t i, const OnnxValue& x) {
    const std::string at = fmt::format("blocks.{}.", i);
    g_.place(at);
    const bool prenorm = source_.file().prenorm;
    const OnnxValue u = prenorm ? onnx_norm(g_, source_, at, x) : x;
    const auto system = info_.system == "diagonal" ? onnx_diagonal : onnx_channels;
    OnnxValue& state = states_[static_cast<size_t>(i)];
    const OnnxSystem s = system(g_, source_, at, frame_, u, state);
    state = s.state;
    const OnnxValue out = g_.add("Add", {x, onnx_activation(g_, source_, at, s.y)});
    return prenorm ? out : onnx_norm(g_, source_, at, out);
  }

  // ------------------------------------------------------------------------- pooling and head

  // [batch, D] of rows, or the rows where there is no pooling.
  OnnxValue pool(const OnnxValue& rows) {
    if (!whole()) {
      count_next_ =
          g_.add("Add", {count_, frame_.step() ? g_.integer(1) : steps_}, {}, "count_next");
    }
    if (info_.pooling == Pooling::none) return rows;
    if (mean()) return pool_mean(rows);
    if (frame_.step()) return rows;
    const OnnxValue x = frame_.by_time(g_, rows, {info_.width});
    if (!whole()) return g_.add("Gather", {x, g_.integer(-1)}, {{"axis", int64_t{0}}});
    const OnnxValue by_batch = g_.add("Transpose", {x}, {{"perm", std::vector<int64_t>{1, 0, 2}}});
    const OnnxValue end = column(g_.add("Sub", {lengths_, g_.integer(1)}));
    return g_.add("GatherND", {by_batch, end}, {{"batch_dims", int64_t{1}}});
  }

  // Sums are of double, as those of the runtime: a stream may be long.
  OnnxValue pool_mean(OnnxValue rows) {
    if (whole()) rows = g_.add("Where", {frame_.inside, rows, g_.number(0)});
    OnnxValue sum = g_.cast(rows, OnnxType::f64);
    if (!frame_.step()) {
      sum = g_.add("ReduceSum", {frame_.by_time(g_, sum, {info_.width}), g_.integers({0})},
                   {{"keepdims", int64_t{0}}});
    }
    OnnxValue count = lengths_;
    if (!whole()) {
      sum = sum_next_ = g_.add("Add", {sum_, sum}, {}, "sum_next");
      count = count_next_;
    }
    const OnnxValue divisor = column(g_.cast(count, OnnxType::f64));
    return g_.cast(g_.add("Div", {sum, divisor}), OnnxType::f32);
  }

  OnnxValue join_pairs(const OnnxValue& pooled) {
    const OnnxValue pairs = g_.add("Reshape", {pooled, g_.integers({-1, 2, info_.width})});
    const auto one = [&](int64_t i) {
      return g_.add("Gather", {pairs, g_.integer(i)}, {{"axis", int64_t{1}}});
    };
    const OnnxValue a = one(0), b = one(1);
    const OnnxValue all = g_.add("Concat", {a, b, g_.add("Sub", {a, b}), g_.add("Mul", {a, b})},
                                 {{"axis", int64_t{1}}});
    return onnx_gelu(g_, onnx_map(g_, source_, "hidden", all));
  }

  void add_head(const OnnxValue& pooled) {
    const bool every = info_.pooling == Pooling::none && !frame_.step();
    OnnxShape shape{info_.towers == 2 ? "pairs" : "batch"};
    OnnxValue y;
    if (every) {
      shape.emplace_back("steps");
      OnnxValue logits = onnx_map(g_, source_, "head", pooled);
      if (whole()) logits = g_.add("Where", {frame_.inside, logits, g_.number(0)});
      const OnnxValue by_time = frame_.by_time(g_, logits, {info_.outputs});
      y = g_.add("Transpose", {by_time}, {{"perm", std::vector<int64_t>{1, 0, 2}}}, "y");
    } else {
      y = g_.add("Identity", {onnx_map(g_, source_, "head", pooled)}, {}, "y");
    }
    shape.emplace_back(info_.outputs);
    g_.output(y, OnnxType::f32, shape, info_.classifies ? "logits" : "values, still scaled");
    if (info_.classifies) {
      g_.add("Softmax", {y}, {{"axis", int64_t{-1}}}, "answer");
    } else {
      answer_values(y);
    }
    g_.output(
        "answer", OnnxType::f32, shape,
        info_.classifies ? "probabilities of the classes" : "values in the units of the data");
  }

  void answer_values(const OnnxValue& y) {
    std::vector<float> scale, shift;
    const auto K = static_cast<size_t>(info_.outputs);
    for (size_t k = 0; k < K; ++k) {
      const bool forecast = p_.horizon > 0;
      const size_t at =
          forecast ? static_cast<size_t>(p_.target_channels[k % p_.target_channels.size()]) : k;
      scale.push_back(static_cast<float>(forecast ? p_.deviation[at] : p_.target_deviation[at]));
      shift.push_back(static_cast<float>(forecast ? p_.mean[at] : p_.target_mean[at]));
    }
    const OnnxValue by = g_.tensor("answer.deviation", {info_.outputs}, scale);
    const OnnxValue plus = g_.tensor("answer.mean", {info_.outputs}, shift);
    g_.add("Add", {g_.add("Mul", {y, by}), plus}, {}, "answer");
  }

  void give_states() {
    if (whole()) return;
    const int64_t size = state_size();
    if (front_.state_size() > 0) states_.push_back(front_state_);
    g_.place("state.");
    g_.add("Concat", states_, {{"axis", int64_t{1}}}, "state_next");
    g_.output("state_next", OnnxType::f32, {"batch", size}, "state of the next call");
    if (mean()) {
      g_.output("sum_next", OnnxType::f64, {"batch", info_.width}, "sum of the next call");
    }
    g_.output("count_next", OnnxType::i64, {"batch"}, "count of the next call");
  }

  const OnnxSource& source_;
  const runtime::ModelInfo& info_;
  const Preprocessing& p_;
  const OnnxFrontend front_;
  OnnxGraph g_;
  OnnxFrame frame_;
  OnnxValue lengths_, steps_, place_, rows_of_table_;
  OnnxValue sum_, count_, sum_next_, count_next_;
  std::vector<OnnxValue> states_;  // of every block
  OnnxValue front_state_;
};

}  // namespace

OnnxGraph onnx_network(const OnnxSource& source, OnnxKind kind) {
  return Builder(source, kind).run();
}

}  // namespace rotrnn
