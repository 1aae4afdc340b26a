// State dicts of checkpoints and in memory, in each form.
#include "longhaul/checkpoint/state_dict/state_dict.h"

#include <gmock/gmock.h>

#include <map>

#include "longhaul/checkpoint/bundle/bundle_reader.h"
#include "longhaul/checkpoint/bundle/bundle_writer.h"
#include "longhaul/checkpoint/safetensors/safetensors.h"
#include "longhaul/checkpoint/torch_archive/torch_archive.h"
#include "longhaul/testing/error_fixture.h"
#include "longhaul/testing/temporary_directory.h"

namespace longhaul {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<std::string> names_of(const StateDict& dict) {
  std::vector<std::string> names;
  for (const auto& [name, tensor] : dict) names.push_back(name);
  return names;
}

const Tensor& tensor_of(const StateDict& dict, const std::string& name) {
  static const Tensor none;
  for (const auto& [other, tensor] : dict) {
    if (other == name) return tensor;
  }
  return none;
}

class StateDicts : public ::testing::Test {
 protected:
  // A checkpoint of a bound training.
  StateDicts() {
    save({{"0.weight", weight_},
          {"0.bias", Tensor::of<float>({7, 8})},
          {"1.num_batches_tracked", Tensor::scalar<int64_t>(9)},
          {"Adam/0.weight/exp_avg", Tensor::of<float>({1, 2})},
          {"longhaul/optimizer/Adam", Tensor::scalar("group lr=0.1")},
          {"global_step", Tensor::scalar<int64_t>(20)}});
  }
  void save(const std::map<std::string, Tensor>& tensors) const {
    BundleWriter writer(FileSystem::real(), prefix());
    for (const auto& [name, tensor] : tensors) writer.add(name, tensor);
    writer.finish();
  }
  std::string prefix() const { return directory_.file("model.ckpt-20"); }
  std::string file(const std::string& name) const { return directory_.file(name); }

  const testing::TemporaryDirectory directory_;
  const Tensor weight_ = Tensor::of<float>(Shape{2, 3}, {1, 2, 3, 4, 5, 6});
};

TEST_F(StateDicts, OfACheckpointHaveTheModulesTensorsInEachForm) {
  using enum StateDictFormat;
  for (const auto& [name, format] : std::vector<std::pair<std::string, StateDictFormat>>{
           {"net.pt", kByEnding}, {"net.safetensors", kByEnding}, {"module.pt", kTorchModule}}) {
    const StateDictReport report = export_state_dict(prefix(), file(name), {.format = format});
    EXPECT_THAT(report.names, ElementsAre("0.bias", "0.weight", "1.num_batches_tracked"));
    EXPECT_EQ(report.bytes, 40u);
    const StateDict dict = load_state_dict(file(name));
    EXPECT_EQ(dict.size(), 3u) << name;
    EXPECT_TRUE(identical(tensor_of(dict, "0.weight"), weight_)) << name;
    EXPECT_EQ(tensor_of(dict, "1.num_batches_tracked").item<int64_t>(), 9) << name;
  }
  EXPECT_EQ(read_safetensors_header(file("net.safetensors")).metadata.at("global_step"), "20");
  EXPECT_THAT(read_file(FileSystem::real(), file("net.pt")), HasSubstr("net/data.pkl"));
}

TEST_F(StateDicts, TheLatestCheckpointOfADirectoryIsExported) {
  EXPECT_THAT(export_state_dict(directory_.path(), file("net.pt")).names.size(), 3u);
}

TEST_F(StateDicts, ARenameChoosesFromAllVariables) {
  const auto rename = [](const std::string& name) -> std::optional<std::string> {
    return name.starts_with("Adam/") ? std::optional("moments." + name.substr(5)) : std::nullopt;
  };
  EXPECT_THAT(export_state_dict(prefix(), file("net.pt"), {.rename = rename}).names,
              ElementsAre("moments.0.weight/exp_avg"));
}

TEST_F(StateDicts, ACheckpointWithoutAModuleIsToldBeforeAnEmptyFileIsWritten) {
  save({{"hidden/weights", Tensor::scalar(1.0f)}, {"global_step", Tensor::scalar<int64_t>(3)}});
  EXPECT_THAT(
      error_of<NotFoundError>([&] { export_state_dict(prefix(), file("net.pt")); }),
      AllOf(HasSubstr("model.ckpt-20 has no tensors of a module"), HasSubstr("hidden/weights"), HasSubstr("`rename`")));
  EXPECT_FALSE(FileSystem::real().exists(file("net.pt")));
}

TEST_F(StateDicts, ADTypeThatTheFormDoesNotHaveIsRefusedByNameOrSkipped) {
  save({{"text", Tensor::scalar("text")}, {"w", Tensor::scalar(1.0f)}});
  EXPECT_THAT(error_of<UnimplementedError>([&] { export_state_dict(prefix(), file("net.pt")); }),
              HasSubstr("tensor \"text\" has dtype DT_STRING"));
  const StateDictReport report = export_state_dict(prefix(), file("net.pt"), {.skip_unsupported = true});
  EXPECT_THAT(report.names, ElementsAre("w"));
  EXPECT_THAT(report.skipped, ElementsAre("text"));
}

TEST_F(StateDicts, BecomeCheckpointsWithTheSameNames) {
  for (const char* name : {"net.pt", "net.safetensors"}) {
    export_state_dict(prefix(), file(name));
    const StateDictReport report = import_state_dict(file(name), file("imported"));
    EXPECT_EQ(report.names.size(), 3u);
    EXPECT_EQ(report.bytes, 40u);
    const BundleReader reader(FileSystem::real(), file("imported"));
    EXPECT_TRUE(reader.verify().empty());
    EXPECT_TRUE(identical(reader.read("0.weight"), weight_)) << name;
  }
}

TEST_F(StateDicts, TheSameTensorsGiveTheSameBytes) {
  export_state_dict(prefix(), file("net.pt"));
  const std::string first = read_file(FileSystem::real(), file("net.pt"));
  export_state_dict(prefix(), file("net.pt"));
  EXPECT_EQ(read_file(FileSystem::real(), file("net.pt")), first);
}

// In a file that torch.save({"model": ..., "epoch": 3, ...}, path) wrote.
TEST_F(StateDicts, ADictInADictCanBeChosen) {
  const std::string genuine = read_file(FileSystem::real(), join_path(LONGHAUL_TORCH_FILES, "python215.pt"));
  write_file_atomically(FileSystem::real(), file("x.pt"), genuine);
  EXPECT_THAT(names_of(load_state_dict(file("x.pt"))),
              ElementsAre("model/0.weight", "model/0.bias", "model/n", "epoch", "lr", "done", "name", "state/0/step"));
  EXPECT_THAT(names_of(load_state_dict(file("x.pt"), {.dict = "model"})), ElementsAre("0.weight", "0.bias", "n"));
  EXPECT_THAT(names_of(load_state_dict(file("x.pt"), {.dict = "state/0"})), ElementsAre("step"));
  EXPECT_THAT(error_of<NotFoundError>([&] { load_state_dict(file("x.pt"), {.dict = "models"}); }),
              HasSubstr("x.pt has no dict models with values; it has model, state"));
  import_state_dict(file("x.pt"), file("imported"));
  EXPECT_EQ(BundleReader(FileSystem::real(), file("imported")).read("name").item<std::string>(), "net");
  export_state_dict(prefix(), file("net.safetensors"));
  EXPECT_THAT(error_of<NotFoundError>([&] { load_state_dict(file("net.safetensors"), {.dict = "model"}); }),
              HasSubstr("it is a safetensors file, which has no dicts"));
}

TEST_F(StateDicts, InMemoryAreWrittenInEachFormInTheirOrder) {
  using enum StateDictFormat;
  const StateDict dict = {{"b", Tensor::of<double>({1, 2})}, {"a", weight_}};
  for (const auto format : {kTorch, kSafetensors, kTorchModule}) {
    EXPECT_EQ(save_state_dict(dict, file("x"), {.format = format}).bytes, 40u);
    const StateDict loaded = load_state_dict(file("x"));
    EXPECT_TRUE(identical(tensor_of(loaded, "a"), weight_));
    EXPECT_TRUE(identical(tensor_of(loaded, "b"), dict[0].second));
  }
  save_state_dict(dict, file("x.pt"));
  EXPECT_THAT(names_of(load_state_dict(file("x.pt"))), ElementsAre("b", "a"));
  EXPECT_THAT(error_of<InvalidArgumentError>([&] { save_state_dict({{"a", weight_}, {"a", weight_}}, file("x.pt")); }),
              HasSubstr("another tensor has that name"));
  EXPECT_THROW(save_state_dict({{"a", Tensor()}}, file("x.pt")), InvalidArgumentError);
}

TEST_F(StateDicts, AFileOfAnotherKindIsNeither) {
  write_file_atomically(FileSystem::real(), file("x.pt"), "\x89HDF\r\n\x1a\n....");
  EXPECT_THAT(error_of<DataLossError>([&] { load_state_dict(file("x.pt")); }),
              HasSubstr("x.pt: it begins neither like an archive of PyTorch nor like a safetensors file"));
  EXPECT_THROW(load_state_dict(file("none.pt")), NotFoundError);
}

}  // namespace
}  // namespace longhaul
