#include "rotrnn/training/config/config.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tests/support/folder.h"

namespace rotrnn {
namespace {

using test::message_of;

std::string parse_error(const std::string& text) {
  return message_of<std::invalid_argument>([&] { check(parse_config(text, "x.toml")); });
}

void expect_contains(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << "\"" << text << "\" lacks \"" << part << "\"";
}

TEST(Config, UnknownKeysNameTheNearest) {
  EXPECT_EQ(parse_error("[model]\n\nwidht = 3\n"),
            "x.toml:3: unknown key \"widht\" in [model]; did you mean \"width\"?");
  expect_contains(parse_error("[model.init]\ngama_min = 0.1"), "did you mean \"gamma_min\"?");
  expect_contains(parse_error("[trainning]\nsteps = 3"), "did you mean the section [training]?");
  expect_contains(parse_error("[model]\nzzzzzz = 3"), "docs/config.md");
  expect_contains(parse_error("[model]\nsteps = 3"), "did you mean \"training.steps\"?");
  expect_contains(parse_error("steps = 3"), "x.toml:1: unknown key \"steps\"");
}

TEST(Config, WrongTypesAndRangesAreRefusedWithTheirLine) {
  expect_contains(parse_error("[model]\nwidth = \"big\""),
                  "x.toml:2: model.width must be an integer");
  expect_contains(parse_error("[model]\nwidth = 1.5"), "must be an integer");
  expect_contains(parse_error("[model]\nwidth = 0"),
                  "x.toml:2: model.width is 0; it must be between 1 and 65536");
  expect_contains(parse_error("[model]\ndropout = 1.0"), "model.dropout is 1");
  expect_contains(parse_error("[model]\ndropout = nan"), "model.dropout is nan");
  expect_contains(parse_error("[model]\nprenorm = 1"), "must be true or false");
  expect_contains(parse_error("[model]\nnorm = \"group\""), "one of batch, layer");
  expect_contains(parse_error("[task]\npath = 3"), "must be text in quotes");
  expect_contains(parse_error("model = 3"), "unknown key");
  expect_contains(parse_error("[model\n"), "x.toml:1: not valid TOML");
  expect_contains(parse_error("[model]\nwidth = 99999999999999999999"), "not valid TOML");
}

TEST(Config, SettingsThatDoNotFitAreRefused) {
  EXPECT_EQ(parse_error("[model]\nstate = 10\nheads = 3"),
            "x.toml:3: RotRNN: heads = 3 does not divide state = 10; make the state a multiple "
            "of the heads");
  expect_contains(parse_error("[model]\nstate = 8\nheads = 8"), "use at most 4 heads");
  expect_contains(parse_error("[model.init]\ngamma_min = 0.9\ngamma_max = 0.5"),
                  "0 <= gamma_min < gamma_max < 1");
  expect_contains(parse_error("[model]\nstationary_start = true\nnormalisation = \"none\""),
                  "needs normalisation");
  expect_contains(parse_error("[training]\nbatch = 10\naccumulate = 3"), "does not divide");
  expect_contains(parse_error("[task]\nname = \"listop\""), "unknown task");
  expect_contains(parse_error("[task]\nmin_length = 60\nmax_length = 50"), "max_length");
  expect_contains(parse_error("[model]\npooling = \"none\""), "every token");
  expect_contains(parse_error("[model]\nlayer = \"gru\""), "there are rotrnn, lru, s5");
}

TEST(Config, SettingsOfEveryLayerAreCheckedAndSizesOfTheOneInUse) {
  // A config for comparing holds all of them.
  const std::string all =
      "[model]\nlayer = \"lru\"\nstate = 64\nheads = 16\n[model.init]\ngamma_min = 0.1\n"
      "[model.lru]\nr_min = 0.5\n[model.s5]\nblocks = 4\n";
  EXPECT_NO_THROW(check(parse_config(all, "x.toml")));
  EXPECT_NO_THROW(check(parse_config("[model]\nlayer = \"lru\"\nstate = 6\n", "x.toml")))
      << "heads and blocks that do not fit are not used";
  EXPECT_EQ(parse_error("[model]\nlayer = \"lru\"\nstate = 7\n"),
            "x.toml:3: LRU: state is 7; it counts real dimensions, two for a complex state, so it "
            "must be even and at least 2");
  expect_contains(parse_error("[model]\nlayer = \"s5\"\nstate = 24\n[model.s5]\nblocks = 8\n"),
                  "x.toml:5: S5: blocks = 8 does not cut state = 24 into blocks of an even size");
  // Not in use, and still wrong.
  EXPECT_EQ(parse_error("[model.lru]\nr_min = 0.9\nr_max = 0.8\n"),
            "x.toml:2: LRU: r_min = 0.9 and r_max = 0.8, but 0 <= r_min < r_max <= 1");
  expect_contains(parse_error("[model.lru]\nr_max = 1.5\n"), "r_max = 1.5");
  expect_contains(parse_error("[model.s5]\ndt_min = 0.5\n"), "x.toml:2: S5: dt_min = 0.5");
  expect_contains(parse_error("[model.s5]\ngroups = \"fast\"\n"),
                  "one of standard, BandCdecay, BfastandCdecay, noBCdecay");
  expect_contains(parse_error("[model.lru]\ngamma = \"free\"\n"), "one of learned, fixed");
  expect_contains(parse_error("[model.s5]\nblock = 2\n"), "did you mean \"blocks\"?");
  expect_contains(parse_error("[model]\nlayer = \"rotrn\""), "did you mean \"rotrnn\"?");
}

TEST(Config, SettingsOnTheCommandLineWin) {
  Config c = parse_config("[model]\nwidth = 3\n", "x.toml");
  apply_setting(c, "model.width=64");
  apply_setting(c, "training.global_lr=1e-4");
  apply_setting(c, "training.weight_decay=1");
  apply_setting(c, "model.norm=layer");
  apply_setting(c, "model.activation=\"gelu\"");
  apply_setting(c, "task.path=some/folder 1");
  apply_setting(c, "model.prenorm=false");
  EXPECT_EQ(c.model.width, 64);
  EXPECT_EQ(c.training.global_lr, 1e-4);
  EXPECT_EQ(c.training.weight_decay, 1.0);
  EXPECT_EQ(c.model.norm, Norm::layer);
  EXPECT_EQ(c.model.activation, Activation::gelu);
  EXPECT_EQ(c.task.path, "some/folder 1");
  EXPECT_FALSE(c.model.prenorm);
  auto error = [&](const char* setting) {
    return message_of<std::invalid_argument>([&] { apply_setting(c, setting); });
  };
  expect_contains(error("model.widht=3"), "--set model.widht=3: unknown key");
  expect_contains(error("model.width"), "expected key=value");
  expect_contains(error("=3"), "expected key=value");
  expect_contains(error("model.width=x"), "must be an integer");
  expect_contains(error("model.width=3\nother=4"), "expected one value");
}

TEST(Config, ResolvedTomlReadsBackTheSame) {
  Config c = default_config({});
  apply_setting(c, "task.path=a \"quoted\" \\ path\twith tab");
  apply_setting(c, "model.init.theta_max=0.031415926535897934");
  apply_setting(c, "training.clip=1e-05");
  const Config back = parse_config(to_toml(c), "saved");
  EXPECT_TRUE(differences(c, back).empty());
  EXPECT_EQ(to_toml(back), to_toml(c));
  EXPECT_EQ(back.model.rotrnn.init.theta_max, c.model.rotrnn.init.theta_max);
  Config other = c;
  other.model.width += 1;
  EXPECT_EQ(differences(c, other), std::vector<std::string>{"model.width"});
}

int valid_configs_below(const std::string& folder) {
  int read = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (entry.path().extension() != ".toml") continue;
    EXPECT_NO_THROW(load_config(entry.path(), {})) << entry.path();
    ++read;
  }
  return read;
}

TEST(Config, ShippedConfigsAreValid) {
  EXPECT_GE(valid_configs_below(ROTRNN_SOURCE "/configs"), 30);
  // The runs in docs/results.md can be repeated.
  EXPECT_GE(valid_configs_below(ROTRNN_SOURCE "/benchmarks/results/runs"), 7);
}

TEST(Config, PaperRowOfListOpsIsThePapers) {
  const Config c = load_config(ROTRNN_SOURCE "/configs/lra/listops.toml", {});
  EXPECT_EQ(c.model.width, 128);
  EXPECT_EQ(c.model.state, 256);
  EXPECT_EQ(c.model.rotrnn.heads, 32);
  EXPECT_EQ(c.model.depth, 6);
  EXPECT_EQ(c.training.steps, 80'000);
  EXPECT_EQ(c.training.batch, 32);
  EXPECT_EQ(c.training.global_lr, 1e-3);
  EXPECT_EQ(c.training.recurrent_lr, 1e-3);
  EXPECT_EQ(c.training.weight_decay, 0.05);
  EXPECT_EQ(c.model.dropout, 0.0);
  EXPECT_EQ(c.model.rotrnn.init.gamma_min, 0.5);
  EXPECT_EQ(c.model.rotrnn.init.gamma_max, 0.999);
  EXPECT_NEAR(c.model.rotrnn.init.theta_max, 3.14159265358979 / 100, 1e-12);
  EXPECT_EQ(c.task.counts.train, 96'000);
  EXPECT_EQ(c.task.listops.min_length, 500);
}

// The table of the paper's hyperparameters, row by row.
TEST(Config, PaperRowsAreThePapers) {
  constexpr double pi = 3.14159265358979;
  struct Row {
    const char* name;
    int64_t width, state;
    double global_lr, recurrent_lr;
    int64_t batch;
    double decay, dropout;
    int64_t steps;
    double gamma_min, gamma_max, theta_max;
    bool bidirectional;
  };
  const Row rows[] = {
      {"lra/listops", 128, 256, 1e-3, 1e-3, 32, 0.05, 0.0, 80'000, 0.5, 0.999, pi / 100, false},
      {"lra/text", 256, 192, 1e-3, 1e-3, 32, 0.05, 0.1, 50'000, 0.5, 0.8, pi / 10, false},
      {"lra/retrieval", 128, 256, 1e-4, 1e-5, 32, 0.01, 0.1, 50'000, 0.5, 0.999, 2 * pi, false},
      {"lra/image", 512, 384, 4.5e-3, 1e-3, 50, 0.05, 0.1, 250'000, 0.99, 0.999, 2 * pi, false},
      {"lra/pathfinder", 192, 256, 4.5e-3, 1e-3, 64, 0.03, 0.05, 500'000, 0.1, 0.9999, pi / 10,
       true},
      {"lra/pathx", 192, 256, 4.5e-3, 1e-3, 32, 0.03, 0.2, 250'000, 0.999, 0.9999, pi / 10, true},
      {"speech_commands", 96, 128, 8e-3, 1e-3, 16, 0.04, 0.1, 212'000, 0.1, 0.9999, pi / 10, false},
      {"speech_commands_bidirectional", 96, 128, 8e-3, 1e-3, 16, 0.04, 0.1, 212'000, 0.1, 0.9999,
       pi / 10, true},
  };
  for (const Row& row : rows) {
    const Config c = load_config(std::string(ROTRNN_SOURCE "/configs/") + row.name + ".toml", {});
    EXPECT_EQ(c.model.layer, "rotrnn") << row.name;
    EXPECT_EQ(c.model.width, row.width) << row.name;
    EXPECT_EQ(c.model.state, row.state) << row.name;
    EXPECT_EQ(c.model.rotrnn.heads, 32) << row.name;
    EXPECT_EQ(c.model.depth, 6) << row.name;
    EXPECT_EQ(c.model.norm, Norm::batch) << row.name;
    EXPECT_EQ(c.model.bidirectional, row.bidirectional) << row.name;
    EXPECT_EQ(c.model.dropout, row.dropout) << row.name;
    EXPECT_EQ(c.training.global_lr, row.global_lr) << row.name;
    EXPECT_EQ(c.training.recurrent_lr, row.recurrent_lr) << row.name;
    EXPECT_EQ(c.training.batch, row.batch) << row.name;
    EXPECT_EQ(c.training.weight_decay, row.decay) << row.name;
    EXPECT_EQ(c.training.steps, row.steps) << row.name;
    EXPECT_EQ(c.model.rotrnn.init.gamma_min, row.gamma_min) << row.name;
    EXPECT_EQ(c.model.rotrnn.init.gamma_max, row.gamma_max) << row.name;
    EXPECT_NEAR(c.model.rotrnn.init.theta_max, row.theta_max, 1e-12) << row.name;
  }
}

TEST(Config, PaperRowsOfS5AreThePapers) {
  const auto s5 = [](const char* name) {
    return load_config(std::string(ROTRNN_SOURCE "/configs/s5/") + name + ".toml", {});
  };
  const Config listops = s5("listops"), text = s5("text"), speech = s5("speech_commands");
  // Epochs times batches of an epoch.
  EXPECT_EQ(listops.training.steps, 40 * (96'000 / 50));
  EXPECT_EQ(text.training.steps, 35 * (25'000 / 50));
  EXPECT_EQ(speech.training.steps, 40 * ((84'843 + 15) / 16));
  EXPECT_EQ(listops.model.s5.groups, S5Groups::b_fast_and_c_decay);
  EXPECT_EQ(text.model.s5.groups, S5Groups::standard);
  EXPECT_TRUE(text.model.s5.dt_global);
  EXPECT_EQ(speech.model.s5.groups, S5Groups::no_bc_decay);
  EXPECT_DOUBLE_EQ(listops.training.global_lr, 3e-3);
  EXPECT_DOUBLE_EQ(text.training.global_lr, 4e-3);
  EXPECT_DOUBLE_EQ(speech.training.global_lr, 8e-3);
  EXPECT_EQ(listops.model.depth, 8);
  EXPECT_EQ(listops.model.state, 16);
  EXPECT_EQ(text.model.state, 192);
  for (const Config& c : {listops, text, speech}) {
    EXPECT_EQ(c.model.layer, "s5");
    EXPECT_TRUE(c.model.bidirectional);
    EXPECT_EQ(c.model.s5.c_init, S5CInit::lecun_normal);
    EXPECT_EQ(c.training.warmup, 1.0);
  }
}

TEST(Config, PaperRowsOfTheS4FamilyAreThePapers) {
  struct Row {
    const char* name;
    int64_t width, state, liquid_state;
    bool prenorm, tied, dt_global;
    double dropout;
    int64_t batch;
    double lr, dt_min;
  };
  for (const Row& row : {Row{"listops", 256, 4, 7, false, true, true, 0, 32, 0.01, 1e-3},
                         Row{"text", 256, 4, 7, true, true, true, 0, 16, 0.01, 1e-3},
                         Row{"retrieval", 256, 4, 64, true, true, true, 0, 64, 0.01, 1e-3},
                         Row{"image", 512, 64, 512, false, true, false, 0.1, 50, 0.01, 1e-3},
                         Row{"pathfinder", 256, 64, 64, true, false, false, 0, 64, 0.004, 1e-3},
                         Row{"pathx", 256, 64, 64, true, false, false, 0, 16, 1e-3, 1e-4},
                         Row{"speech_commands", 128, 64, 7, true, true, true, 0, 16, 0.01, 1e-3}}) {
    for (const std::string layer : {"s4d", "s4", "liquid_s4"}) {
      SCOPED_TRACE(layer + " " + row.name);
      const Config c =
          load_config(fmt::format("{}/configs/{}/{}.toml", ROTRNN_SOURCE, layer, row.name), {});
      const bool liquid = layer == "liquid_s4", image = row.name == std::string("image");
      EXPECT_EQ(c.model.layer, layer);
      EXPECT_EQ(c.model.width, row.width);
      EXPECT_EQ(c.model.state, liquid ? row.liquid_state : row.state);
      EXPECT_EQ(c.model.depth, 6);
      EXPECT_EQ(c.model.activation, Activation::exact_glu);
      EXPECT_EQ(c.model.norm, liquid && image ? Norm::layer : Norm::batch);
      EXPECT_EQ(c.model.prenorm, row.prenorm);
      EXPECT_EQ(c.model.dropout, row.dropout);
      EXPECT_EQ(c.model.bidirectional, !liquid || image);
      EXPECT_EQ(layer == "s4d" ? c.model.s4d.tied : c.model.s4.tied, row.tied && !liquid);
      EXPECT_EQ(layer == "s4d" ? c.model.s4d.dt_global : c.model.s4.dt_global, row.dt_global);
      EXPECT_EQ(layer == "s4d" ? c.model.s4d.dt_min : c.model.s4.dt_min, row.dt_min);
      EXPECT_EQ(c.training.batch, row.batch);
      EXPECT_EQ(c.training.global_lr, row.lr);
      EXPECT_EQ(c.training.recurrent_lr, 1e-3);
      EXPECT_EQ(c.training.weight_decay, 0.05);
      EXPECT_EQ(c.training.warmup, 0.1);
    }
  }
}

// docs/results.md compares them there with equal budgets.
TEST(Config, MediumConfigsHaveSettingsForThreeLayers) {
  for (const std::string name : {"text", "listops_short", "listops_middle", "listops"}) {
    SCOPED_TRACE(name);
    const std::string file = ROTRNN_SOURCE "/configs/medium/" + name + ".toml";
    const Config rotrnn = load_config(file, {});
    const Config lru = load_config(file, {"model.layer=lru"});
    const Config s5 = load_config(file, {"model.layer=s5"});
    EXPECT_EQ(lru.model.lru.r_min, rotrnn.model.rotrnn.init.gamma_min);
    EXPECT_EQ(lru.model.lru.r_max, rotrnn.model.rotrnn.init.gamma_max);
    EXPECT_EQ(lru.model.lru.max_phase, rotrnn.model.rotrnn.init.theta_max);
    EXPECT_EQ(s5.model.s5.blocks, 8);
    EXPECT_EQ(s5.model.s5.dt_global, name == "text");
  }
}

TEST(Config, EveryKeyIsInTheDocumentation) {
  std::ifstream in(ROTRNN_SOURCE "/docs/config.md");
  const std::string docs(std::istreambuf_iterator<char>(in), {});
  for (const ConfigKey& key : config_keys()) {
    expect_contains(docs, "| `" + key.name + "` | " + key.default_value + " | " + key.type + " | " +
                              key.help + " |");
  }
}

TEST(Config, MissingFileIsAnError) {
  expect_contains(message_of<std::invalid_argument>([] { load_config("nowhere.toml", {}); }),
                  "nowhere.toml: there is no such config file");
}

}  // namespace
}  // namespace rotrnn
