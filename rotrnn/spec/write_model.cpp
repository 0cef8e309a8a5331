#include <fmt/format.h>

#include <cstring>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "rotrnn/io/formats/safetensors.h"
#include "rotrnn/spec/model_file.h"
#include "rotrnn/spec/model_format.h"

namespace rotrnn {
namespace {

// In a list of model_format.h.
template <class Names, class Enum>
const char* stored_name(const Names& names, Enum value) {
  return names.at(static_cast<size_t>(value));
}

const auto& channel_fields(const ModelFile& model) {
  return std::get<ChannelStepFields<Numbers>>(model.blocks[0].system);
}

}  // namespace

Numbers ModelFile::keep_bytes(std::span<const std::byte> bytes) {
  const size_t count = bytes.size() / sizeof(float);
  auto* numbers = memory_->take<float>(count);
  std::memcpy(numbers, bytes.data(), count * sizeof(float));
  return {numbers, count};
}

int64_t ModelFile::states() const {
  if (features) return features->states;
  return std::visit([](const auto& system) { return system.states; }, blocks[0].system);
}

int64_t ModelFile::degree() const {
  return channels() ? 1 + channel_fields(*this).orders : 1;
}

bool ModelFile::products_inside() const {
  return channels() && channel_fields(*this).liquid_inside;
}

nlohmann::ordered_json model_facts(const ModelFile& model) {
  using namespace model_format;
  const DataShape& shape = model.shape;
  nlohmann::ordered_json json = {{"system", kSystems[model.features     ? 2
                                                     : model.channels() ? 1
                                                                        : 0]},
                                 {"layer", model.layer},
                                 {"task", model.task},
                                 {"version", model.version},
                                 {"width", model.width},
                                 {"states", model.states()},
                                 {"depth", std::ssize(model.blocks)},
                                 {"activation", name_of(model.activation)},
                                 {"norm", stored_name(kNorms, model.norm)},
                                 {"prenorm", model.prenorm},
                                 {"bidirectional", model.bidirectional},
                                 {"pooling", name_of(model.pooling)},
                                 {"input", stored_name(kInputs, shape.input)},
                                 {"inputs", shape.inputs},
                                 {"target", stored_name(kTargets, shape.target)},
                                 {"outputs", shape.outputs},
                                 {"towers", shape.towers},
                                 {"per_token", shape.per_token},
                                 {"classes", model.classes},
                                 {"preprocessing", to_json(model.preprocessing)}};
  if (model.features) {
    json["taps"] = model.features->taps;
    json["differences"] = model.features->differences;
  }
  const FrontendOptions& f = model.frontend;
  switch (f.kind) {
    case FrontendKind::none:
      break;
    case FrontendKind::patch:
      json["frontend"] = {{"kind", name_of(f.kind)}, {"size", f.size}, {"stride", f.stride}};
      break;
    case FrontendKind::rotations:
      json["frontend"] = {{"kind", name_of(f.kind)}, {"hop", f.hop}, {"bands", f.bands}};
  }
  if (model.channels()) {
    json["degree"] = model.degree();
    json["liquid"] = kProducts[model.degree() == 1 ? 0 : model.products_inside() ? 1 : 2];
  }
  return json;
}

std::string model_bytes(const ModelFile& model, const std::string& where) {
  std::vector<NamedTensor> tensors;
  ModelFile::each_tensor(model, [&](const std::string& name, Numbers numbers,
                                    const std::vector<int64_t>& shape, bool optional) {
    if (optional && numbers.empty()) return;
    int64_t count = 1;
    for (const int64_t size : shape) count *= size;
    if (count != std::ssize(numbers)) {
      throw std::logic_error(fmt::format("{}: {} numbers for a tensor [{}]", name, numbers.size(),
                                         fmt::join(shape, ", ")));
    }
    tensors.push_back({name, {Dtype::f32, shape, std::as_bytes(numbers)}});
  });
  return safetensors_bytes(where, tensors,
                           {{"format", model_format::kFormat},
                            {"format_version", model_format::kVersion},
                            {"model", model_facts(model).dump()}});
}

}  // namespace rotrnn
