#include "rotrnn/runtime/model.h"

#include <algorithm>
#include <array>

#include "rotrnn/runtime/c_api.h"
#include "rotrnn/runtime/score.h"
#include "rotrnn/runtime/stream.h"
#include "tests/runtime/cases.h"
#include "tests/runtime/mutate.h"
#include "tests/support/folder.h"

namespace rotrnn::runtime::test {
namespace {

TEST(Model, SaysWhatItIs) {
  const ModelInfo a = case_named("plain").load()->info();
  EXPECT_EQ(a.layer, "rotrnn");
  EXPECT_EQ(a.activation, "half_glu1");
  EXPECT_EQ(a.task, "test");
  EXPECT_EQ(a.version, "0.0.0");
  EXPECT_EQ(a.width, 7);
  EXPECT_EQ(a.states, 5);
  EXPECT_EQ(a.depth, 2);
  EXPECT_EQ(a.inputs, 1);
  EXPECT_EQ(a.outputs, 4);
  EXPECT_EQ(a.towers, 1);
  EXPECT_EQ(a.pooling, Pooling::mean);
  EXPECT_TRUE(a.classifies && !a.tokens && !a.text && !a.bidirectional && !a.per_step);
  EXPECT_EQ(a.classes, (std::vector<std::string>{"class 0", "class 1", "class 2", "class 3"}));
  // Encoder, two blocks (λ, W, V, D, b, e, gate), head.
  EXPECT_EQ(a.parameters, 2 * 7 + 2 * (2 * 5 + 2 * 70 + 7 + 10 + 7 + 49 + 7) + 4 * 8);

  EXPECT_EQ(a.system, "diagonal");
  EXPECT_EQ(a.degree, 1);

  const ModelInfo s = case_named("liquid kb 3").load()->info();
  EXPECT_EQ(s.system, "channel");
  EXPECT_EQ(s.activation, "exact_glu");
  EXPECT_EQ(s.width, 5);
  EXPECT_EQ(s.states, 6);
  EXPECT_EQ(s.degree, 3);
  // Encoder, two blocks (λ, p, q, b, c, products, D, norm, value, gate), head.
  EXPECT_EQ(s.parameters, 2 * 5 + 2 * (5 * 2 * 30 + 10 + 5 + 10 + 2 * 30) + 4 * 6);

  const ModelInfo f = case_named("forecast").load()->info();
  EXPECT_FALSE(f.classifies);
  EXPECT_TRUE(f.classes.empty());
  EXPECT_EQ(f.horizon, 3);
  EXPECT_EQ(f.rate, 100);
  EXPECT_EQ(f.pooling, Pooling::none);
  EXPECT_TRUE(f.per_step);

  const ModelInfo v = case_named("values").load()->info();
  EXPECT_EQ(v.values, (std::vector<std::string>{"value 0", "value 1", "value 2"}));
  EXPECT_EQ(v.pooling, Pooling::last);

  const ModelInfo t = case_named("characters").load()->info();
  EXPECT_TRUE(t.text && t.tokens);
  EXPECT_EQ(t.max_length, 120);
  EXPECT_EQ(t.inputs, 14);
  const ModelInfo ids = case_named("tokens").load()->info();
  EXPECT_TRUE(ids.tokens && !ids.text);
  const ModelInfo b = case_named("bidirectional pairs").load()->info();
  EXPECT_TRUE(b.bidirectional);
  EXPECT_EQ(b.towers, 2);
}

TEST(Model, FromBytesIsThatOfTheFile) {
  const Case& c = case_named("plain");
  const auto model = Model::from_bytes(file_bytes(c.file), "bytes");
  Stream a(model), b(c.load());
  a.push(std::span(c.values).first(20));
  b.push(std::span(c.values).first(20));
  EXPECT_TRUE(std::equal(a.logits().begin(), a.logits().end(), b.logits().begin()));
}

TEST(Model, CutsTextsAsTrainingDid) {
  const auto model = case_named("characters").load();
  std::string text;
  for (int i = 0; i < 200; ++i) text += i % 2 == 0 ? "Ω" : "x";
  const auto tokens = model->tokens(text);
  ASSERT_EQ(tokens.size(), 120);
  EXPECT_EQ(tokens[0], 10);  // Ω in the vocabulary
  EXPECT_EQ(tokens[1], 1);   // x is not
  EXPECT_EQ(tokens[119], 2);
  EXPECT_EQ(model->tokens(""), std::vector<int32_t>{2});
  EXPECT_THROW(model->tokens("\xff"), std::invalid_argument);
  EXPECT_THROW(case_named("plain").load()->tokens("a"), std::invalid_argument);
  std::vector<float> few(3);
  EXPECT_THROW(model->answer(few), std::invalid_argument);
}

TEST(Model, NamesTheFileAndWhatIsWrong) {
  const rotrnn::test::Folder folder;
  const auto says = [](const std::filesystem::path& file, const std::string& part) {
    const auto what = thrown<std::runtime_error>([&] { Model::load(file); });
    EXPECT_EQ(what.find(file.string() + ": "), 0) << what;
    EXPECT_NE(what.find(part), std::string::npos) << what;
  };
  says(folder / "missing.safetensors", "");
  says(folder.path(), "rotrnn export");
  std::ofstream(folder / "empty").close();
  says(folder / "empty", "");
  std::ofstream(folder / "text") << "this is not a model at all, whatever its name says";
  says(folder / "text", "");
  std::string bytes = file_bytes(case_named("plain").file);
  const auto write = [&](const char* name, const std::string& from, const std::string& to) {
    std::string changed = bytes;
    const size_t at = changed.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    changed.replace(at, from.size(), to);
    std::ofstream(folder / name, std::ios::binary) << changed;
  };
  write("format", "rotrnn-model", "rotrnn_model");
  says(folder / "format", "rotrnn export");
  write("version", R"("format_version": "1")", R"("format_version": "7")");
  says(folder / "version", "format 7");
  write("width", R"(\"width\": 7)", R"(\"width\": 8)");
  says(folder / "width", "encoder.weight");
  write("tensor", "blocks.1.D", "blocks.9.D");
  says(folder / "tensor", "blocks.1.D");
  write("activation", "half_glu1", "half_glu9");
  says(folder / "activation", "half_glu9");
}

// Channels that lack a part, or say of their products what is not so.
TEST(Model, OfChannelsIsWholeOrRefused) {
  const std::string s4 = file_bytes(case_named("s4").file);
  const auto refused = [](const std::string& bytes, const std::string& part) {
    const auto what = thrown<std::runtime_error>([&] { Model::from_bytes(bytes, "f"); });
    EXPECT_NE(what.find(part), std::string::npos) << part << ": " << what;
  };
  // Under another name: a file with a hole would not be read at all.
  const auto without = [&](const std::vector<std::string>& names) {
    return Mutator::with_header(s4, [&](nlohmann::json& j) {
      for (const std::string& name : names) j["x." + name] = j[name], j.erase(name);
    });
  };
  const auto lacks = [&](const std::vector<std::string>& names) {
    const auto what = thrown<std::runtime_error>([&] { Model::from_bytes(without(names), "f"); });
    EXPECT_NE(what.find("has no tensor \"" + names[0] + "\""), std::string::npos)
        << names[0] << ": " << what;
    EXPECT_EQ(what.find("x."), std::string::npos) << names[0] << ": " << what;
  };
  for (const char* name :
       {"lambda_im", "c_re", "p_re", "q_re", "q_im", "b_im", "D", "norm.scale", "value.bias"}) {
    lacks({std::string("blocks.1.") + name});
  }
  lacks({"blocks.0.q_re", "blocks.0.q_im"});  // p has no meaning alone
  const std::string liquid = file_bytes(case_named("liquid pb 3").file);
  const auto with = [](const std::string& bytes, const char* key, const nlohmann::json& value) {
    return Mutator::with_model(bytes, [&](nlohmann::json& model) { model[key] = value; });
  };
  refused(with(liquid, "degree", 2), "blocks.0.liquid");
  refused(with(liquid, "degree", 1), "products of 1 inputs");
  refused(with(liquid, "degree", 0), "degree");
  refused(with(liquid, "degree", 1000), "degree");
  refused(with(liquid, "liquid", "none"), "products of 3 inputs");
  refused(with(liquid, "liquid", "ka"), "ka");
  refused(with(s4, "degree", 2), "products of 2 inputs");
  refused(with(s4, "liquid", "kb"), "products of 1 inputs");
  refused(with(s4, "system", "diagonal"), "blocks.0.lambda_re");
  refused(with(s4, "system", "tensor"), "tensor");
  refused(with(file_bytes(case_named("plain").file), "system", "channel"), "degree");
}

TEST(Model, OfSizesWhoseSumsWouldOverflowIsRefused) {
  const std::string bytes = file_bytes(case_named("plain").file);
  for (const char* key : {"keep_every", "horizon"}) {
    const std::string changed = Mutator::with_model(bytes, [&](nlohmann::json& model) {
      model["preprocessing"][key] = std::numeric_limits<int64_t>::max();
    });
    const auto what = thrown<std::runtime_error>([&] { Model::from_bytes(changed, "f"); });
    EXPECT_NE(what.find("sizes do not fit"), std::string::npos) << key << ": " << what;
  }
}

// A model that loaded may be used in every way; only documented errors may come.
void use(const std::shared_ptr<const Model>& model) {
  const ModelInfo& info = model->info();
  const std::vector<float> values(static_cast<size_t>(info.tokens ? 0 : 10 * info.inputs), 0.5f);
  const std::vector<int32_t> tokens(10, static_cast<int32_t>(info.inputs - 1));
  try {
    Stream stream(model);
    for (int i = 0; i < 2; ++i) {
      if (info.tokens) {
        stream.push_tokens(tokens);
        if (info.text) stream.push_text("a\xce\xa9");
      } else {
        stream.push(values);
      }
      stream.logits();
      stream.answer();
      std::vector<std::byte> state(stream.state_size());
      stream.save(state);
      stream.restore(state);
      stream.end();
      stream.reset();
    }
  } catch (const std::invalid_argument&) {
  }
  try {
    Scorer scorer(model, 2);
    const std::array<int64_t, 3> offsets{0, 3, 10};
    info.tokens ? scorer.score_tokens(tokens, offsets) : scorer.score(values, offsets);
  } catch (const std::invalid_argument&) {
  }
  if (!info.text) return;
  try {
    model->tokens("abc \xce\xa9");
  } catch (const std::invalid_argument&) {
  }
}

bool use_by_c(const std::string& bytes) {
  rotrnn_model* model = nullptr;
  const rotrnn_status status = rotrnn_model_from_memory(bytes.data(), bytes.size(), &model);
  EXPECT_EQ(status == ROTRNN_OK, model != nullptr);
  if (status != ROTRNN_OK) {
    EXPECT_EQ(status, ROTRNN_BAD_FILE) << rotrnn_last_error();
    EXPECT_NE(rotrnn_last_error()[0], '\0');
    return false;
  }
  rotrnn_model_info info{};
  info.size = sizeof info;
  EXPECT_EQ(rotrnn_model_describe(model, &info), ROTRNN_OK);
  rotrnn_stream* stream = nullptr;
  if (rotrnn_stream_new(model, &stream) == ROTRNN_OK) {
    const std::vector<float> values(static_cast<size_t>(info.tokens ? 0 : 10 * info.inputs), 0.5f);
    const std::vector<int32_t> tokens(10, 0);
    info.tokens ? rotrnn_stream_push_tokens(stream, tokens.data(), tokens.size())
                : rotrnn_stream_push(stream, values.data(), 10);
    rotrnn_stream_end(stream);
    std::vector<float> out(static_cast<size_t>(info.outputs));
    EXPECT_EQ(rotrnn_stream_answer(stream, out.data(), out.size()), ROTRNN_OK);
  }
  rotrnn_stream_free(stream);
  rotrnn_model_free(model);
  return true;
}

TEST(Model, OfDamagedBytesLoadsOrIsRefused) {
  const std::vector<std::string> names{"half_glu1 layer pre",
                                       "full_glu affine post",
                                       "start",
                                       "forecast",
                                       "per step",
                                       "keep every",
                                       "characters",
                                       "bytes",
                                       "values",
                                       "bidirectional start",
                                       "pairs",
                                       "permuted",
                                       "s4d",
                                       "channels exact_glu layer post",
                                       "liquid kb 3",
                                       "liquid pb bidirectional"};
  std::vector<std::string> whole;
  for (const std::string& name : names) whole.push_back(file_bytes(case_named(name).file));
  int loaded = 0, refused = 0;
  for (uint32_t i = 0; i < 1600; ++i) {
    const std::string& name = names[i % names.size()];
    SCOPED_TRACE(name + " " + std::to_string(i));
    const std::string bytes = Mutator(i)(whole[i % whole.size()]);
    std::shared_ptr<const Model> model;
    try {
      model = Model::from_bytes(bytes, "mutation");
    } catch (const std::runtime_error& error) {
      EXPECT_EQ(std::string(error.what()).find("mutation"), 0) << error.what();
    }
    model ? ++loaded : ++refused;
    if (model) use(model);
    EXPECT_EQ(use_by_c(bytes), model != nullptr);
  }
  // Weights and names may change without harm; most else must not pass.
  EXPECT_GT(loaded, 50);
  EXPECT_GT(refused, 800);
  std::printf("%d loaded, %d refused\n", loaded, refused);
}

TEST(Model, CutAnywhereIsRefused) {
  const std::string bytes = file_bytes(case_named("one of all").file);
  for (size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_THROW(Model::from_bytes(bytes.substr(0, size), "cut"), std::runtime_error) << size;
  }
}

}  // namespace
}  // namespace rotrnn::runtime::test
