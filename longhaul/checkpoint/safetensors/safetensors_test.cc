// What is exported to safetensors and imported from it, against bytes made by hand.
#include "longhaul/checkpoint/safetensors/safetensors.h"

#include <gmock/gmock.h>

#include <complex>

#include "longhaul/checkpoint/bundle/bundle_reader.h"
#include "longhaul/checkpoint/bundle/bundle_writer.h"
#include "longhaul/checkpoint/files/checkpoint_files.h"
#include "longhaul/checkpoint/genuine_test.h"
#include "longhaul/checkpoint/safetensors/safetensors_test.h"
#include "longhaul/testing/error_fixture.h"
#include "longhaul/testing/temporary_directory.h"

namespace longhaul {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using testing::from_hex;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using testing::safetensors_file;
using ::testing::UnorderedElementsAre;

using Tensors = std::map<std::string, Tensor>;

Tensors tensors_of_all_dtypes() {
  return {
      {"u64", Tensor::of<uint64_t>({0x0102030405060708})},
      {"i64", Tensor::scalar<int64_t>(-2)},
      {"f64", Tensor::of<double>({1})},
      {"c64", Tensor::of<std::complex<float>>({{1, -2}})},
      {"f32", Tensor::of<float>({1, -0.5})},
      {"u32", Tensor::of<uint32_t>({0xdeadbeef})},
      {"i32", Tensor::of<int32_t>({-1})},
      {"bf16", Tensor::of<BFloat16>({BFloat16(1)})},
      {"f16", Tensor::of<Half>({Half(1)})},
      {"u16", Tensor::of<uint16_t>({0x1234})},
      {"i16", Tensor::of<int16_t>({-2})},
      {"i8", Tensor::of<int8_t>({-3})},
      {"u8", Tensor::of<uint8_t>(Shape{2, 1}, {7, 9})},
      {"bool", Tensor::of<bool>({true, false, true})},
      {"empty", Tensor(kBool, Shape{2, 0})},
  };
}

class Safetensors : public ::testing::Test {
 protected:
  std::string prefix() const { return directory_.file("m-7"); }
  std::string path() const { return directory_.file("m.safetensors"); }

  void save(const Tensors& tensors) const {
    BundleWriter writer(files_, prefix());
    for (const auto& [name, tensor] : tensors) writer.add(name, tensor);
    writer.finish();
  }
  std::string exported(const SafetensorsOptions& options = {}) const {
    export_safetensors(prefix(), path(), options);
    return read_file(files_, path());
  }
  SafetensorsHeader exported_header(const SafetensorsOptions& options = {}) const {
    export_safetensors(prefix(), path(), options);
    return read_safetensors_header(path());
  }
  SafetensorsReport import(const std::string& bytes, const SafetensorsOptions& options = {}) const {
    write_file_atomically(files_, path(), bytes);
    return import_safetensors(path(), prefix(), options);
  }
  void expect_imported(const Tensors& tensors) const {
    const BundleReader reader(files_, prefix());
    EXPECT_THAT(reader.verify(), IsEmpty());
    EXPECT_EQ(reader.keys().size(), tensors.size());
    for (const auto& [name, tensor] : tensors) EXPECT_TRUE(identical(reader.read(name), tensor)) << name;
  }

  FileSystem& files_ = FileSystem::real();
  testing::TemporaryDirectory directory_;
};

TEST_F(Safetensors, EveryDTypeIsExportedAsTheSpecificationSays) {
  save(tensors_of_all_dtypes());
  const std::string json =
      R"({"__metadata__":{"format":"pt","global_step":"7","source":"m-7"},)" + std::string(testing::kJsonOfAllDTypes);
  const std::string padding(7 - (json.size() + 7) % 8, ' ');
  EXPECT_EQ(exported(), safetensors_file(json + padding, from_hex(testing::kHexOfAllDTypes)));
}

TEST_F(Safetensors, EveryDTypeIsImportedAsTheSpecificationSays) {
  import(safetensors_file("{" + std::string(testing::kJsonOfAllDTypes), from_hex(testing::kHexOfAllDTypes)));
  expect_imported(tensors_of_all_dtypes());
}

TEST_F(Safetensors, TheReportSaysWhatWasCopied) {
  save({{"a", Tensor::of<float>({1, 2})}, {"b", Tensor::scalar<int8_t>(3)}});
  const SafetensorsReport out = export_safetensors(prefix(), path(), {.metadata = {{"author", "me"}}});
  EXPECT_THAT(out.names, ElementsAre("a", "b"));
  EXPECT_THAT(out.skipped, IsEmpty());
  EXPECT_THAT(out.metadata,
              ElementsAre(Pair("author", "me"), Pair("format", "pt"), Pair("global_step", "7"), Pair("source", "m-7")));
  EXPECT_EQ(out.bytes, 9u);
  const SafetensorsReport in = import_safetensors(path(), directory_.file("n"));
  EXPECT_EQ(in.names, out.names);
  EXPECT_EQ(in.metadata, out.metadata);
  EXPECT_EQ(in.bytes, 9u);
}

TEST_F(Safetensors, TheStepIsThatOfTheVariableAndElseThatOfTheName) {
  save({{"global_step", Tensor::scalar<int64_t>(123)}});
  EXPECT_EQ(exported_header().metadata.at("global_step"), "123");
  save({{"global_step", Tensor::of<float>({1, 2})}});
  EXPECT_EQ(exported_header().metadata.at("global_step"), "7");
  BundleWriter writer(files_, directory_.file("final"));
  writer.finish();
  EXPECT_FALSE(export_safetensors(directory_.file("final"), path()).metadata.contains("global_step"));
}

TEST_F(Safetensors, TheMetadataCanBeChosen) {
  save({});
  EXPECT_THAT(
      exported_header({.metadata = {{"format", "tf"}, {"licence", "MIT"}}}).metadata,
      ElementsAre(Pair("format", "tf"), Pair("global_step", "7"), Pair("licence", "MIT"), Pair("source", "m-7")));
}

TEST_F(Safetensors, MetadataSurviveAnImportAndAnExport) {
  const std::string file = safetensors_file(R"({"__metadata__":{"format":"mlx","source":"elsewhere"}})", "");
  EXPECT_THAT(import(file, {.metadata = {{"b", "2"}}}).metadata,
              ElementsAre(Pair("b", "2"), Pair("format", "mlx"), Pair("source", "elsewhere")));
  expect_imported(
      {{"__metadata__", Tensor::of<std::string>(Shape{3, 2}, {"b", "2", "format", "mlx", "source", "elsewhere"})}});
  EXPECT_THAT(exported_header().metadata, ElementsAre(Pair("b", "2"), Pair("format", "mlx"), Pair("global_step", "7"),
                                                      Pair("source", "elsewhere")));
}

TEST_F(Safetensors, TensorsGetTheNamesThatAreChosenOrAreLeftOut) {
  save({{"model/w", Tensor::scalar(1.0f)}, {"model/w/Adam", Tensor::scalar(2.0f)}});
  const auto rename = [](const std::string& name) -> std::optional<std::string> {
    return name.ends_with("/Adam") ? std::nullopt : std::optional("renamed." + name);
  };
  EXPECT_THAT(exported_header({.rename = rename}).tensors,
              ElementsAre(SafetensorsEntry{"renamed.model/w", "F32", Shape{}, 0, 4}));
  import(read_file(files_, path()), {.rename = [](const std::string& name) { return name.substr(8); }});
  EXPECT_EQ(BundleReader(files_, prefix()).read("model/w").item<float>(), 1.0f);
}

TEST_F(Safetensors, TwoTensorsDoNotGetOneName) {
  save({{"a", Tensor::scalar(1.0f)}, {"b", Tensor::scalar(2.0f)}});
  const SafetensorsOptions all_x{.rename = [](const std::string&) { return "x"; }};
  EXPECT_THAT(error_of<InvalidArgumentError>([&] { exported(all_x); }),
              HasSubstr(R"(m-7: tensor "b" cannot be called "x": another tensor has that name; `rename`)"));
  exported();
  EXPECT_THAT(error_of<InvalidArgumentError>([&] { import_safetensors(path(), prefix(), all_x); }),
              HasSubstr(R"(m.safetensors: tensor "b" cannot be called "x": another tensor has that name)"));
}

TEST_F(Safetensors, NamesThatTheOtherFormatDoesNotHaveAreRefusedByName) {
  save({{"__metadata__", Tensor::scalar(1.0f)}});
  EXPECT_THAT(error_of<InvalidArgumentError>([&] { exported(); }), HasSubstr("that is the name of the metadata"));
  save({{"caf\xe9", Tensor::scalar(1.0f)}});
  EXPECT_THAT(error_of<InvalidArgumentError>([&] { exported(); }), HasSubstr("is not UTF-8"));
  for (const std::string name : {"", R"(\u0000w)"}) {
    const std::string json = R"({")" + name + R"(":{"dtype":"U8","shape":[],"data_offsets":[0,1]}})";
    EXPECT_THAT(error_of<InvalidArgumentError>([&] { import(safetensors_file(json, "x")); }),
                HasSubstr("that is not a valid name; `rename`"));
  }
  EXPECT_THAT(error_of<InvalidArgumentError>([&] {
                import(safetensors_file(R"({"w":{"dtype":"U8","shape":[],"data_offsets":[0,1]}})", "x"),
                       {.rename = [](const std::string&) { return "__metadata__"; }});
              }),
              HasSubstr("that is the name of the metadata"));
}

TEST_F(Safetensors, WhatTheFormatHasNoDTypeForIsRefusedByNameOrSkipped) {
  save({{"s", Tensor::scalar("text")}, {"c", Tensor::of<std::complex<double>>({{1, 2}})}, {"w", Tensor::scalar(1.0f)}});
  EXPECT_THAT(error_of<UnimplementedError>([&] { exported(); }),
              AllOf(HasSubstr(R"(m-7: tensor "c" has dtype DT_COMPLEX128)"), HasSubstr("`skip_unsupported`")));
  EXPECT_FALSE(files_.exists(path()));
  const SafetensorsReport report = export_safetensors(prefix(), path(), {.skip_unsupported = true});
  EXPECT_THAT(report.names, ElementsAre("w"));
  EXPECT_THAT(report.skipped, ElementsAre("c", "s"));
  const SafetensorsOptions without{
      .rename = [](const std::string& name) { return name == "w" ? std::optional(name) : std::nullopt; }};
  EXPECT_THAT(export_safetensors(prefix(), path(), without).skipped, IsEmpty());
}

TEST_F(Safetensors, WhatWeHaveNoDTypeForIsRefusedByNameOrSkipped) {
  const std::string file = safetensors_file(R"({"q":{"dtype":"F8_E4M3","shape":[2],"data_offsets":[0,2]},)"
                                            R"("n":{"dtype":"F3","shape":[8],"data_offsets":[2,5]},)"
                                            R"("w":{"dtype":"U8","shape":[],"data_offsets":[5,6]}})",
                                            "abcde\x07");
  EXPECT_THAT(error_of<UnimplementedError>([&] { import(file); }),
              HasSubstr(R"(m.safetensors: tensor "q" has dtype F8_E4M3)"));
  EXPECT_FALSE(checkpoint_exists(files_, prefix()));
  EXPECT_THAT(import(file, {.skip_unsupported = true}).skipped, ElementsAre("n", "q"));
  expect_imported({{"w", Tensor::scalar<uint8_t>(7)}});
}

TEST_F(Safetensors, ATensorInSlicesIsExportedWhole) {
  BundleWriter writer(files_, prefix(), 2);
  writer.add_slice("w", Shape{2, 2}, {{{1, 1}, {0, -1}}}, Tensor::of<uint8_t>(Shape{1, 2}, {3, 4}));
  writer.use_shard(1);
  writer.add_slice("w", Shape{2, 2}, {{{0, 1}, {0, -1}}}, Tensor::of<uint8_t>(Shape{1, 2}, {1, 2}));
  writer.finish();
  const std::string file = exported();
  EXPECT_THAT(file, ::testing::EndsWith("\x01\x02\x03\x04"));
  EXPECT_THAT(read_safetensors_header(path()).tensors, ElementsAre(SafetensorsEntry{"w", "U8", Shape{2, 2}, 0, 4}));
}

TEST_F(Safetensors, TensorsLargerThanABatchComeThroughWhole) {
  Tensors tensors;
  for (const int megabytes : {65, 1, 1}) {
    Tensor tensor(kInt32, Shape{megabytes << 18});
    const auto flat = tensor.mutable_flat<int32_t>();
    for (size_t i = 0; i < flat.size(); ++i) flat[i] = static_cast<int32_t>(i * 2654435761u) ^ megabytes;
    tensors["w" + std::to_string(tensors.size())] = tensor;
  }
  save(tensors);
  EXPECT_EQ(export_safetensors(prefix(), path()).bytes, uint64_t{67} << 20);
  import_safetensors(path(), prefix());
  const BundleReader reader(files_, prefix());
  for (const auto& [name, tensor] : tensors) EXPECT_TRUE(identical(reader.read(name), tensor)) << name;
}

TEST_F(Safetensors, ACheckpointThatTensorFlowWroteIsExported) {
  testing::write_bundle(testing::counter_bundle(), prefix());
  EXPECT_THAT(exported_header().tensors, ElementsAre(SafetensorsEntry{"counter", "F32", Shape{}, 0, 4}));
}

TEST_F(Safetensors, TheNewestCheckpointOfADirectoryIsExported) {
  save({{"w", Tensor::scalar(1.0f)}});
  EXPECT_EQ(export_safetensors(directory_.path(), path()).metadata.at("source"), "m-7");
}

TEST_F(Safetensors, ABoolIsZeroOrOne) {
  EXPECT_THAT(error_of<DataLossError>([&] {
                import(safetensors_file(R"({"b":{"dtype":"BOOL","shape":[3],"data_offsets":[0,3]}})",
                                        std::string("\x00\x01\x02", 3)));
              }),
              HasSubstr(R"(m.safetensors: tensor "b": element 2 is 2, not a valid BOOL)"));
  EXPECT_THAT(files_.list(directory_.path()), ElementsAre("m.safetensors"));
}

TEST_F(Safetensors, ADamagedFileIsImportedByNoByte) {
  EXPECT_THROW(import(safetensors_file(R"({"b":{"dtype":"U8","shape":[3],"data_offsets":[0,3]}})", "ab")),
               DataLossError);
  EXPECT_THROW(import_safetensors(directory_.file("none"), prefix()), NotFoundError);
  EXPECT_THAT(files_.list(directory_.path()), ElementsAre("m.safetensors"));
}

}  // namespace
}  // namespace longhaul
