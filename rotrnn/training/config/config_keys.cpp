#include "rotrnn/training/config/config_keys.h"

#include <fmt/format.h>

#include "rotrnn/data/task_keys.h"
#include "rotrnn/layers/registry.h"

namespace rotrnn {
namespace {

// Adds keys under one section.
struct Section {
  std::vector<BoundKey>& keys;
  std::string prefix;

  template <typename Place>
  void operator()(const char* name, Place place, std::string help) const {
    keys.push_back({prefix + name, std::move(place), std::move(help)});
  }
};

// Far above any use, and such that products of two of them fit any number here.
constexpr int64_t kMostSize = 1 << 16;

void bind_model(const Section& add, ModelOptions& m) {
  add("body", choice(m.body),
      "blocks: layers, trained; features: a bank of fixed rotations, fitted by rotrnn fit; "
      "docs/fit.md");
  add("layer", &m.layer,
      fmt::format("the recurrent layer: {}; docs/layers.md", fmt::join(layer_names(), ", ")));
  add("width", IntegerKey{&m.width, 1, kMostSize}, "D: channels between the layers");
  add("state", IntegerKey{&m.state, 1, kMostSize},
      "N: real dimensions of a layer's state; LRU and S5 keep N / 2 complex numbers, "
      "S4D, S4 and Liquid-S4 as many in every channel");
  add("heads", IntegerKey{&m.rotrnn.heads, 1},
      "RotRNN: H, rotations in a layer; N / H is at least 2");
  add("depth", IntegerKey{&m.depth, 1, 1000}, "number of blocks");
  add("activation", choice(m.activation), "what follows the layer in a block");
  add("norm", choice(m.norm), "normalisation in a block");
  add("norm_momentum", NumberKey{&m.norm_momentum, 0, 1},
      "share of the old running statistics that a step of batch norm keeps");
  add("prenorm", &m.prenorm, "normalise before the layer; false: after the residual sum");
  add("dropout", NumberKey{&m.dropout, 0, 1}, "probability; one mask per sequence and channel");
  add("bidirectional", &m.bidirectional, "run every layer in both directions");
  add("pooling", choice(m.pooling),
      "how a sequence becomes one vector; none: an output for every token");
  add("normalisation", choice(m.rotrnn.normalisation),
      "RotRNN: how the input is scaled; xi is the paper's");
  add("c", NumberKey{&m.rotrnn.c, 0, 1e6, true},
      "RotRNN: mean square norm of a head's state to aim at");
  add("stationary_start", &m.rotrnn.stationary_start,
      "RotRNN: scale the first input so that the norm is c from the first step on");
  add("learn_rotation", &m.rotrnn.learn_rotation, "RotRNN: false keeps P = I and trains no M");
}

void bind_frontend(const Section& add, FrontendOptions& f) {
  add("kind", choice(f.kind),
      "what turns samples into tokens: nothing, consecutive samples, or log powers of decayed "
      "rotations; docs/layers.md");
  add("hop", IntegerKey{&f.hop, 0, 1 << 24},
      "rotations: samples of one token; 0: 10 ms, or 16 without a sample rate");
  add("bands", IntegerKey{&f.bands, 1, kMostSize}, "rotations: rotations per channel");
  add("low", NumberKey{&f.low},
      "rotations: frequency of the first band, in Hz, or in cycles per step without a sample rate; "
      "0: 0.00375 of the rate");
  add("high", NumberKey{&f.high}, "rotations: that of the last band; 0: 0.48125 of the rate");
  add("learn", &f.learn, "rotations: train their angles and decays, at the recurrent rate");
  add("size", IntegerKey{&f.size, 0, kMostSize}, "patch: samples of one token; 0: 16");
  add("stride", IntegerKey{&f.stride, 0, 1 << 24},
      "patch: samples from one token to the next; 0: the size");
}

void bind_features(const Section& add, FeatureOptions& f) {
  add("states", IntegerKey{&f.states, 16, kMostSize}, "fitted: rotations in the bank");
  add("differences", &f.differences, "fitted: first differences of the channels are inputs too");
  add("taps", IntegerKey{&f.taps, 0, 3}, "fitted: inputs of a rotation; 0: rotrnn fit chooses");
}

void bind_init(const Section& add, RotRNNInit& i) {
  add("preset", choice(i.preset),
      "what the automatic choices below follow: the paper's text or its authors' code");
  add("gamma_min", NumberKey{&i.gamma_min, 0, 1}, "smallest decay γ at the start");
  add("gamma_max", NumberKey{&i.gamma_max, 0, 1, true}, "largest decay γ at the start");
  add("theta_max", NumberKey{&i.theta_max, 0, 1e3, true}, "largest angle θ at the start");
  add("gamma_init", choice(i.gamma_init),
      "distribution of γ: on the ring (paper), or uniform in log(-log γ) (authors)");
  add("theta_form", choice(i.theta_form),
      "whether θ (paper) or its logarithm (authors) is the parameter");
  add("bc_init", choice(i.bc_init), "standard deviation of B and C");
  add("m_init", choice(i.m_init), "standard deviation of M");
}

void bind_lru(const Section& add, LruOptions& l) {
  add("r_min", NumberKey{&l.r_min}, "LRU: smallest modulus of λ at the start");
  add("r_max", NumberKey{&l.r_max}, "LRU: largest modulus of λ at the start, at most 1");
  add("max_phase", NumberKey{&l.max_phase, 0, 1e3, true}, "LRU: largest angle of λ at the start");
  add("gamma", choice(l.gamma),
      "LRU: scale of the input, a parameter (paper), or √(1 - abs(λ)²) in every pass (RotRNN's "
      "authors)");
}

void bind_s5(const Section& add, S5Options& s) {
  add("blocks", IntegerKey{&s.blocks, 1}, "S5: J, HiPPO blocks in the state; N / J is even");
  add("discretisation", choice(s.discretisation), "S5: zero-order hold, or the bilinear rule");
  add("c_init", choice(s.c_init), "S5: distribution of C at the start");
  add("dt_min", NumberKey{&s.dt_min, 0, 1e3, true}, "S5: smallest time step at the start");
  add("dt_max", NumberKey{&s.dt_max, 0, 1e3, true}, "S5: largest time step at the start");
  add("clip", &s.clip, "S5: keep the real parts of Λ at -1e-4 or below");
  add("step_rescale", NumberKey{&s.step_rescale, 0, 1e3, true},
      "S5: multiplies the time steps; 2 at half the sampling rate");
  add("groups", choice(s.groups), "S5: learning rates and decay of B, C and D; docs/layers.md");
  add("dt_global", &s.dt_global, "S5: the time steps at the global rate, with decay");
}

void bind_s4d(const Section& add, S4DOptions& s) {
  add("init", choice(s.init), "S4D: frequencies at the start");
  add("discretisation", choice(s.discretisation), "S4D: zero-order hold, or the bilinear rule");
  add("tied", &s.tied, "S4D: one Λ and B for all channels");
  add("train_b", &s.train_b, "S4D: false keeps B as it starts");
  add("dt_min", NumberKey{&s.dt_min, 0, 1e3, true}, "S4D: smallest time step at the start");
  add("dt_max", NumberKey{&s.dt_max, 0, 1e3, true}, "S4D: largest time step at the start");
  add("dt_global", &s.dt_global, "S4D: the time steps at the global rate, with decay");
  add("step_rescale", NumberKey{&s.step_rescale, 0, 1e3, true},
      "S4D: multiplies the time steps; 2 at half the sampling rate");
}

void bind_s4(const Section& add, S4Options& s) {
  add("tied", &s.tied, "S4, Liquid-S4: one Λ, P and B for all channels");
  add("dt_min", NumberKey{&s.dt_min, 0, 1e3, true},
      "S4, Liquid-S4: smallest time step at the start");
  add("dt_max", NumberKey{&s.dt_max, 0, 1e3, true},
      "S4, Liquid-S4: largest time step at the start");
  add("dt_global", &s.dt_global,
      "S4, Liquid-S4: the time steps at the global rate, with decay; false: at the recurrent one");
  add("max_length", IntegerKey{&s.max_length, 0, int64_t{1} << 30},
      "S4, Liquid-S4: length of the kernel at the start, which longer sequences double; 0: the "
      "longest sequence of the data");
}

void bind_liquid_s4(const Section& add, LiquidS4Options& l) {
  add("form", choice(l.form),
      "Liquid-S4: products of inputs as they are, or through the kernel of S4");
  add("mode", choice(l.mode),
      "Liquid-S4: products of an input with those before it; reference: as the authors' code, not "
      "causal");
  add("coefficient", choice(l.coefficient),
      "Liquid-S4: coefficients of the products, of the theory or of the authors' code");
  add("degree", IntegerKey{&l.degree, 2, kMostDegree}, "Liquid-S4: inputs in the longest product");
  add("train_liquid", &l.train_liquid,
      "Liquid-S4: false: no gradient through the coefficients, as in the authors' code");
}

void bind_training(const Section& add, TrainingOptions& t) {
  add("steps", IntegerKey{&t.steps, 1}, "optimiser steps");
  add("batch", IntegerKey{&t.batch, 1}, "sequences of one step, of all processes together");
  add("batch_tokens", IntegerKey{&t.batch_tokens},
      "instead: fill a step with sequences up to this many tokens; 0: by count");
  add("accumulate", IntegerKey{&t.accumulate, 1},
      "parts that a batch is computed in, to save memory; divides the batch");
  add("loss", choice(t.loss),
      "what training minimises; automatic: cross_entropy for classes, mean_square for values");
  add("huber_delta", NumberKey{&t.huber_delta, 0, 1e6, true},
      "huber: errors above this, in standard deviations of a target, count linearly");
  add("class_weights", choice(t.class_weights),
      "balanced: rare classes count as much as frequent ones in the loss");
  add("global_lr", NumberKey{&t.global_lr, 0, 1e3}, "largest learning rate of most parameters");
  add("recurrent_lr", NumberKey{&t.recurrent_lr, 0, 1e3},
      "largest learning rate of the recurrent parameters (docs/layers.md)");
  add("lr_floor", NumberKey{&t.lr_floor, 0, 1}, "share of the rate that the cosine ends at");
  add("weight_decay", NumberKey{&t.weight_decay, 0, 1e3}, "AdamW's decay, on matrices only");
  add("warmup", NumberKey{&t.warmup, 0, 1e6},
      "linear warm-up: a share of the steps when below 1, else a number of epochs");
  add("clip", NumberKey{&t.clip, 0, 1e9}, "largest norm of the whole gradient; 0: no clipping");
  add("seed", IntegerKey{&t.seed}, "seed of the weights, the order of the data, and dropout");
  add("log_every", IntegerKey{&t.log_every, 1}, "steps between lines of metrics.jsonl");
  add("evaluate_every", IntegerKey{&t.evaluate_every, 1}, "steps between evaluations");
  add("checkpoint_every", IntegerKey{&t.checkpoint_every, 1}, "steps between checkpoints");
  add("keep_checkpoint_every", IntegerKey{&t.keep_checkpoint_every},
      "steps between checkpoints that are kept for good, as step-N; 0: the last two and the best");
  add("non_finite_limit", IntegerKey{&t.non_finite_limit, 1},
      "a step whose loss or gradient is not finite is skipped; training stops after so many in a "
      "row");
  add("norms_every", IntegerKey{&t.norms_every},
      "steps between measurements of the hidden states' norms; 0: at every evaluation");
  add("tensorboard", &t.tensorboard,
      "write the numbers of metrics.jsonl to an event file of TensorBoard too");
  add("threads", IntegerKey{&t.threads, 0, 4096}, "0: as many as the process may use");
  add("kernels", choice(t.kernels),
      "what does the sequence work: the fused kernels, or their plain twins in double, to compare "
      "with (slow)");
  add("memory", choice(t.memory), "low: keep less for the backward pass and compute it again");
}

}  // namespace

std::vector<BoundKey> bind_keys(Config& config) {
  std::vector<BoundKey> keys;
  for (TaskKey& k : bind_task_keys(config.task)) keys.push_back(std::move(k.key));
  bind_model({keys, "model."}, config.model);
  bind_features({keys, "model.features."}, config.model.features);
  bind_frontend({keys, "frontend."}, config.model.frontend);
  bind_init({keys, "model.init."}, config.model.rotrnn.init);
  bind_lru({keys, "model.lru."}, config.model.lru);
  bind_s5({keys, "model.s5."}, config.model.s5);
  bind_s4d({keys, "model.s4d."}, config.model.s4d);
  bind_s4({keys, "model.s4."}, config.model.s4);
  bind_liquid_s4({keys, "model.liquid_s4."}, config.model.liquid_s4);
  bind_training({keys, "training."}, config.training);
  return keys;
}

}  // namespace rotrnn
