// Whole networks of RotRNN by the script of the paper's equations (tests/golden/rotrnn.py).

#include <regex>

#include "tests/layers/golden.h"
#include "tests/network/passes.h"

namespace rotrnn {
namespace {

using testing::array;
using testing::relative_error;

// The script calls the two matrices of a gated unit W1 and W2, as the paper's formula does.
std::string script_name(const std::string& name) {
  return std::regex_replace(std::regex_replace(name, std::regex("\\.value\\."), ".W1."),
                            std::regex("\\.gate\\."), ".W2.");
}

Network golden_network(const nlohmann::json& json) {
  const auto& o = json.at("options");
  ModelOptions m;
  m.width = o.at("D");
  m.state = o.at("N");
  m.rotrnn.heads = o.at("H");
  m.depth = o.at("depth");
  m.norm = o.at("norm") == "batch" ? Norm::batch : Norm::layer;
  m.prenorm = o.at("prenorm");
  m.activation = std::map<std::string, Activation>{{"half_glu1", Activation::half_glu1},
                                                   {"full_glu", Activation::full_glu},
                                                   {"half_glu2", Activation::half_glu2},
                                                   {"gelu", Activation::gelu}}
                     .at(o.at("activation"));
  const DataShape shape{InputKind::channels, o.at("channels"), TargetKind::classes,
                        o.at("classes")};
  Network network(m, shape, 0);
  size_t used = 0;
  const auto take = [&](const std::string& name) {
    const auto values = array(json.at("parameters"), script_name(name));
    const std::span<float> to = network.weights().find(name);
    ASSERT_EQ(to.size(), values.size()) << name;
    std::copy(values.begin(), values.end(), to.begin());
    ++used;
  };
  for (const auto& p : network.layout().parameters) take(p.name);
  for (const auto& b : network.layout().buffers) take(b.name);
  EXPECT_EQ(used, json.at("parameters").size());
  return network;
}

TEST(GoldenNetworks, GiveTheScriptsLogitsAndGradients) {
  int networks = 0, compared = 0;
  for (const auto& [name, json] : testing::golden("rotrnn").at("networks").items()) {
    SCOPED_TRACE(name);
    Network network = golden_network(json);
    const auto u = array(json.at("input"), "u");
    const std::vector<float> values(u.begin(), u.end());
    EXPECT_EQ(std::vector<double>(values.begin(), values.end()), u) << "float32 has the input";
    const auto offsets = json.at("offsets").get<std::vector<int64_t>>();
    testing::PassInput in;
    in.network.batch = {offsets, {}, values};
    in.network.mode = json.at("options").at("training") ? Mode::train : Mode::evaluate;
    const bool gradients = !json.at("gradients").empty();
    in.dy = [&](const std::vector<double>& y) {
      return gradients ? array(json.at("input"), "G") : std::vector<double>(y.size());
    };
    const auto exact = testing::run_twins<double>(network, in), fused = run_fused(network, in);
    const auto expect = [&](const std::string& ours, const nlohmann::json& tree,
                            const std::string& theirs, double tolerance, double floor) {
      const auto expected = array(tree, theirs);
      EXPECT_LE(relative_error(exact.at(ours), expected, floor), tolerance) << ours;
      // Float32 through two blocks and back; the errors themselves are measured in fused_test.cpp.
      EXPECT_LE(relative_error(fused.at(ours), expected, std::max(floor, 1e-3)), 1e-5) << ours;
      ++compared;
    };
    expect("y", json.at("outputs"), "logits", 1e-10, 1e-12);
    ++networks;
    for (const auto& b : network.layout().buffers) {
      if (!json.at("outputs").contains(b.name)) continue;  // only training changes them
      expect(b.name, json.at("outputs"), b.name, 1e-12, 1e-12);
    }
    if (!gradients) continue;
    for (const auto& p : network.layout().parameters) {
      expect("d " + p.name, json.at("gradients"), script_name(p.name), 1e-9, 1e-3);
    }
    expect("d input", json.at("gradients"), "u", 1e-9, 1e-3);
  }
  EXPECT_EQ(networks, 8);
  EXPECT_GT(compared, 50);
}

}  // namespace
}  // namespace rotrnn
