// Groups of parameters, and settings that are refused by their key.

#include <fmt/format.h>

#include "rotrnn/layers/registry.h"
#include "rotrnn/network/single_layer.h"
#include "tests/layers/double_layer.h"
#include "tests/support/folder.h"

namespace rotrnn::testing {
namespace {

ParameterGroup group_in(const LayerOptions& o, const std::string& parameter) {
  for (const ParameterSpec& p : layer_kind(o.layer).tensors(o).parameters) {
    if (p.name == parameter) return p.group;
  }
  ADD_FAILURE() << o.layer << " has no " << parameter;
  return {};
}

void expect_groups(const LayerOptions& o, ParameterGroup group,
                   std::initializer_list<const char*> names) {
  for (const char* name : names) EXPECT_EQ(group_in(o, name), group) << o.layer << " " << name;
}

TEST(Groups, AreThePapers) {
  using G = ParameterGroup;
  LayerOptions o;
  o.bidirectional = true;
  expect_groups(o, G::recurrent, {"theta", "gamma_log", "B"});
  expect_groups(o, G::decay, {"M", "C", "C_reverse", "D"});
  o.rotrnn.init.theta_form = ThetaForm::log;
  expect_groups(o, G::recurrent, {"theta_log"});

  o.layer = "lru";
  expect_groups(o, G::recurrent, {"nu_log", "theta_log", "gamma_log", "B_re", "B_im"});
  expect_groups(o, G::decay, {"C_re", "C_im", "C_reverse_re", "C_reverse_im", "D"});

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
      expect_groups(o, G::recurrent, {"Lambda_re", "Lambda_im"});
      expect_groups(o, row.B, {"B_re", "B_im"});
      expect_groups(o, row.C, {"C_re", "C_im", "C_reverse_re", "C_reverse_im", "D"});
      expect_groups(o, dt_global ? G::decay : G::recurrent, {"log_step"});
    }
  }

  o.width = 8;
  o.state = 4;
  for (const char* layer : {"s4d", "s4", "liquid_s4"}) {
    o.layer = layer;
    expect_groups(o, G::recurrent, {"A_log_re", "A_im", "B_re", "B_im"});
    expect_groups(o, G::decay, {"C_re", "C_im", "C_reverse_re", "C_reverse_im", "D"});
    for (const bool dt_global : {false, true}) {
      o.s4d.dt_global = o.s4.dt_global = dt_global;
      expect_groups(o, dt_global ? G::decay : G::recurrent, {"log_step"});
    }
    if (o.layer != "s4d") expect_groups(o, G::recurrent, {"P_re", "P_im"});
  }
}

TEST(Settings, WrongOnesAreRefusedByTheirKey) {
  const auto refused = [](const char* layer, const char* key, auto change) {
    LayerOptions o;
    o.layer = layer;
    change(o);
    try {
      SingleLayer made(o, 0);
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
  refused("s4d", "state", [](LayerOptions& o) { o.state = 1; });
  refused("s4", "width", [](LayerOptions& o) { o.width = 0; });
  refused("liquid_s4", "liquid_s4.degree", [](LayerOptions& o) { o.liquid_s4.degree = 1; });
  refused("liquid_s4", "liquid_s4.degree", [](LayerOptions& o) { o.liquid_s4.degree = 9; });
  refused("liquid_s4", "liquid_s4.mode", [](LayerOptions& o) {
    o.liquid_s4.form = LiquidForm::kb;
    o.liquid_s4.mode = LiquidMode::reference;
  });
  LayerOptions o;
  o.layer = "lru";
  o.state = 6;
  EXPECT_NO_THROW(SingleLayer(o, 0)) << "32 heads and 8 blocks are not for this layer";
}

TEST(Settings, AnUnknownLayerHasThoseThatThereAreInItsError) {
  LayerOptions o;
  o.layer = "mamba";
  EXPECT_EQ(test::message_of<SettingError>([&] { SingleLayer(o, 0); }),
            fmt::format("unknown layer \"mamba\"; there are {}", fmt::join(layer_names(), ", ")));
}

}  // namespace
}  // namespace rotrnn::testing
