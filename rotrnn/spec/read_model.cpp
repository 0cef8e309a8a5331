#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>
#include <set>
#include <stdexcept>

#include "rotrnn/io/formats/safetensors.h"
#include "rotrnn/spec/model_file.h"
#include "rotrnn/spec/model_format.h"

// Reads what docs/deploy.md describes. Files may come from anywhere: nothing is taken for granted.

namespace rotrnn {
namespace {

using nlohmann::json;

constexpr int64_t kMostWidth = 1 << 16, kMostBlocks = 1 << 12, kMostDegree = 64;
constexpr int64_t kMostHop = 1 << 24;

class Reader {
 public:
  Reader(const SafeTensorFile& file, const std::string& where) : file_(file), where_(where) {}

  ModelFile run() && {
    const json facts = parse_metadata();
    read_facts(facts);
    read_preprocessing(facts);
    read_frontend(facts);
    read_tensors();
    check_frontend();
    return std::move(model_);
  }

 private:
  [[noreturn]] void refuse(const std::string& what) const {
    throw std::runtime_error(where_ + ": " + what);
  }

  [[noreturn]] void damaged(const std::string& what) const {
    refuse(what + "; export the model again");
  }

  const std::string& metadata(const char* key) const {
    const auto found = file_.metadata().find(key);
    if (found == file_.metadata().end() ||
        (std::strcmp(key, "format") == 0 && found->second != model_format::kFormat)) {
      refuse("is a safetensors file but not a model that was exported; make one by rotrnn export");
    }
    return found->second;
  }

  json parse_metadata() const {
    metadata("format");
    const std::string& version = metadata("format_version");
    if (version != model_format::kVersion) {
      refuse(fmt::format("is of format {}, this version reads {}; use a newer rotrnn",
                         version.substr(0, 20), model_format::kVersion));
    }
    json facts = json::parse(metadata("model"), nullptr, false);
    if (!facts.is_object()) damaged("\"model\" of its metadata is not a JSON object");
    return facts;
  }

  template <typename T>
  T get(const json& object, const char* key) const {
    const auto found = object.find(key);
    if (found == object.end()) damaged(fmt::format("\"{}\" is missing in its metadata", key));
    bool fits = false;
    if constexpr (std::is_same_v<T, bool>) {
      fits = found->is_boolean();
    } else if constexpr (std::is_same_v<T, int64_t>) {
      fits = found->is_number_integer() &&
             !(found->is_number_unsigned() && found->get<uint64_t>() > uint64_t{1} << 62);
    } else if constexpr (std::is_same_v<T, std::string>) {
      fits = found->is_string();
    } else {
      fits = found->is_array() && std::all_of(found->begin(), found->end(),
                                              [](const json& item) { return item.is_string(); });
    }
    if (!fits) damaged(fmt::format("\"{}\" of its metadata has the wrong type", key));
    return found->get<T>();
  }

  int64_t get_size(const json& object, const char* key, int64_t most) const {
    const auto value = get<int64_t>(object, key);
    if (value < 1 || value > most) {
      damaged(fmt::format("\"{}\" of its metadata is {}, expected 1 to {}", key, value, most));
    }
    return value;
  }

  // The value whose name stands there.
  template <class Value, class Names>
  Value get_choice(const json& object, const char* key, const Names& names) const {
    const auto name = get<std::string>(object, key);
    for (size_t i = 0; i < names.size(); ++i) {
      if (name == names[i]) return static_cast<Value>(i);
    }
    refuse(
        fmt::format("\"{}\" of its metadata is \"{}\", which this version does not know; use a "
                    "newer rotrnn or export the model again",
                    key, name.substr(0, 40)));
  }

  void read_facts(const json& facts) {
    using namespace model_format;
    ModelFile& m = model_;
    const auto system = get_choice<size_t>(facts, "system", kSystems);
    const bool channels = system == 1, features = system == 2;
    m.layer = get<std::string>(facts, "layer");
    m.task = get<std::string>(facts, "task");
    m.version = get<std::string>(facts, "version");
    m.width = get_size(facts, "width", features ? 6 * kMostWidth : kMostWidth);
    const int64_t states = get_size(facts, "states", kMostWidth);
    const int64_t depth = features ? 0 : get_size(facts, "depth", kMostBlocks);
    m.bidirectional = get<bool>(facts, "bidirectional");
    m.pooling = get_choice<Pooling>(facts, "pooling", kNames<Pooling>);
    m.activation = get_choice<Activation>(facts, "activation", kNames<Activation>);
    m.norm = get_choice<Norm>(facts, "norm", kNorms);
    m.prenorm = get<bool>(facts, "prenorm");
    read_shape(facts);
    if (features) return read_features(facts, states);
    m.blocks.resize(static_cast<size_t>(depth));
    if (!channels) {
      for (ModelFile::Block& b : m.blocks) set_sizes(b.system.emplace<0>(), states);
      return;
    }
    const int64_t degree = get_size(facts, "degree", kMostDegree);
    const auto products = get_choice<size_t>(facts, "liquid", kProducts);
    if ((products == 0) != (degree == 1)) {
      damaged(fmt::format("it has products of {} inputs and says of them \"{}\"", degree,
                          kProducts[products]));
    }
    for (ModelFile::Block& b : m.blocks) {
      auto& system = b.system.emplace<1>();
      set_sizes(system, states);
      system.orders = degree - 1;
      system.liquid_inside = products == 1;
    }
  }

  void read_features(const json& facts, int64_t states) {
    FeatureNumbers& f = model_.features.emplace();
    f.states = states;
    f.taps = get_size(facts, "taps", 3);
    f.differences = get<bool>(facts, "differences");
    const DataShape& s = model_.shape;
    if (states % 16 != 0 || model_.width != 6 * states || s.input == InputKind::tokens ||
        s.towers != 1 || s.per_token || model_.pooling == Pooling::none) {
      damaged(
          "a bank of rotations has a multiple of 16 states, 6 features of each, values as its "
          "input and one answer per sequence");
    }
  }

  // What the bank reads must be there.
  void check_bank(int64_t channels) const {
    const FeatureNumbers& f = *model_.features;
    const auto width = static_cast<float>(f.differences ? 2 * channels : channels);
    for (const float input : f.inputs) {
      if (input != std::floor(input) || input < 0 || input >= width) {
        damaged(fmt::format("its bank reads input {} of {}", input, width));
      }
    }
  }

  template <class System>
  void set_sizes(System& system, int64_t states) const {
    system.width = model_.width;
    system.states = states;
  }

  void read_shape(const json& facts) {
    using namespace model_format;
    DataShape& s = model_.shape;
    s.input = get_choice<InputKind>(facts, "input", kInputs);
    s.inputs = get_size(facts, "inputs", int64_t{1} << 31);
    s.target = get_choice<TargetKind>(facts, "target", kTargets);
    s.outputs = get_size(facts, "outputs", int64_t{1} << 31);
    s.towers = get_size(facts, "towers", 2);
    s.per_token = get<bool>(facts, "per_token");
    model_.classes = get<std::vector<std::string>>(facts, "classes");
    if (std::ssize(model_.classes) != (s.target == TargetKind::classes ? s.outputs : 0)) {
      damaged(fmt::format("it has {} outputs and names of {} classes", s.outputs,
                          model_.classes.size()));
    }
    if (s.towers == 2 && (model_.pooling == Pooling::none || s.per_token)) {
      damaged("a model of pairs cannot predict at every step");
    }
    if (s.per_token && model_.pooling != Pooling::none) {
      damaged("it predicts at every step but has a pooling");
    }
  }

  void read_preprocessing(const json& facts) {
    Preprocessing& p = model_.preprocessing;
    try {
      p = preprocessing_from_json(facts.at("preprocessing"));
    } catch (const json::exception&) {
      damaged("its preprocessing is not complete");
    } catch (const std::runtime_error& error) {
      damaged(error.what());
    }
    const DataShape& s = model_.shape;
    const bool tokens = s.input == InputKind::tokens;
    const auto finite = [](const std::vector<double>& numbers) {
      return std::all_of(numbers.begin(), numbers.end(), [](double x) { return std::isfinite(x); });
    };
    const auto forecast = static_cast<int64_t>(p.target_channels.size());
    const bool inputs_fit =
        p.tokens() == tokens && p.form.towers == s.towers &&
        (tokens ? p.form.channels == 1 && (!p.text() || std::ssize(p.vocabulary) == s.inputs)
                : p.form.channels == s.inputs);
    const bool outputs_fit =
        s.target == TargetKind::classes ||
        (p.horizon > 0 ? s.per_token && forecast > 0 && forecast * p.horizon == s.outputs
                       : std::ssize(p.target_mean) == s.outputs);
    // Only here are standard deviations of 0 and invalid permutations found.
    const bool numbers_fit =
        finite(p.mean) && finite(p.deviation) && finite(p.target_mean) &&
        finite(p.target_deviation) && std::isfinite(p.form.scale) &&
        std::all_of(p.deviation.begin(), p.deviation.end(), [](double x) { return x != 0; });
    if (!inputs_fit || !outputs_fit || !numbers_fit) {
      damaged("its preprocessing does not fit the network");
    }
  }

  void read_frontend(const json& facts) {
    const auto found = facts.find("frontend");
    if (found == facts.end()) return;
    if (!found->is_object()) damaged("\"frontend\" of its metadata is not a JSON object");
    FrontendOptions& f = model_.frontend;
    f.kind = get_choice<FrontendKind>(*found, "kind", kNames<FrontendKind>);
    switch (f.kind) {
      case FrontendKind::none:
        return;
      case FrontendKind::patch:
        f.size = get_size(*found, "size", kMostWidth);
        f.stride = get_size(*found, "stride", kMostHop);
        break;
      case FrontendKind::rotations:
        f.hop = get_size(*found, "hop", kMostHop);
        f.bands = get_size(*found, "bands", kMostWidth);
    }
    const DataShape& s = model_.shape;
    if (s.input == InputKind::tokens || s.per_token || model_.pooling == Pooling::none) {
      damaged("it has a front end but takes tokens or predicts at every step");
    }
  }

  void check_frontend() const {
    for (const float x : model_.deviation) {
      if (x == 0) damaged("a number of tensor \"frontend.deviation\" is 0");
    }
  }

  void read_tensors() {
    std::set<std::string> known;
    const auto read = [&](const std::string& name, Numbers& numbers,
                          const std::vector<int64_t>& shape, bool optional) {
      if (optional && !has_any_with(name)) return;
      known.insert(name);
      numbers = tensor(name, shape);
    };
    ModelFile::each_tensor(model_, read);
    if (model_.features) check_bank(frontend_channels(model_.frontend, model_.shape.inputs));
    for (const std::string& name : file_.names()) {
      if (!known.contains(name)) {
        damaged(fmt::format("tensor \"{}\" does not belong to such a model", name.substr(0, 80)));
      }
    }
  }

  // Whether there is a tensor or one that it must come with: the parts of a complex tensor, and p
  // with q.
  bool has_any_with(const std::string& name) const {
    if (!name.ends_with("_re") && !name.ends_with("_im")) return file_.contains(name);
    std::string base = name.substr(0, name.size() - 3);
    std::vector<std::string> together{base};
    if (base.ends_with(".p") || base.ends_with(".q")) {
      base.pop_back();
      together = {base + "p", base + "q"};
    }
    return std::any_of(together.begin(), together.end(), [this](const std::string& complex) {
      return file_.contains(complex + "_re") || file_.contains(complex + "_im");
    });
  }

  // A tensor of this very shape, in aligned memory.
  Numbers tensor(const std::string& name, const std::vector<int64_t>& shape) {
    const SafeTensor& tensor = file_.at(name);
    if (tensor.dtype != Dtype::f32 || tensor.shape != shape) {
      damaged(
          fmt::format("tensor \"{}\" is {} with {} dimensions or another shape than [{}] of F32",
                      name, dtype_name(tensor.dtype), tensor.shape.size(), fmt::join(shape, ", ")));
    }
    const Numbers numbers = model_.keep_bytes(tensor.data);
    for (size_t i = 0; i < numbers.size(); ++i) {
      if (!std::isfinite(numbers[i])) {
        damaged(fmt::format("number {} of tensor \"{}\" is {}", i, name, numbers[i]));
      }
    }
    return numbers;
  }

  const SafeTensorFile& file_;
  const std::string& where_;
  ModelFile model_;
};

}  // namespace

ModelFile read_model(const SafeTensorFile& file, const std::string& where) {
  return Reader(file, where).run();
}

}  // namespace rotrnn
