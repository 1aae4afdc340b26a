// What is read from PyTorch's archives, and written to them: genuine files, and pickles made by hand.
#include "longhaul/checkpoint/torch_archive/torch_archive.h"

#include <gmock/gmock.h>

#include <complex>
#include <map>

#include "longhaul/checkpoint/torch_archive/torch_archive_fixture.h"
#include "longhaul/checkpoint/torch_archive/torch_archive_writer.h"
#include "longhaul/testing/error_fixture.h"

namespace longhaul {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::open_torch;
using testing::pickled;
using testing::pickled_dict_of;
using testing::pickled_text;
using testing::PickledTensor;
using testing::torch_file;
using testing::torch_values;

std::vector<std::string> names_in(const std::string& file) {
  std::vector<std::string> names;
  const TorchArchive archive = open_torch(file);
  for (const TorchEntry& entry : archive.entries()) names.push_back(entry.name);
  return names;
}

std::string floats(std::initializer_list<float> values) {
  return {reinterpret_cast<const char*>(values.begin()), values.size() * sizeof(float)};
}

// Written by PyTorch.
std::string genuine(const std::string& name) {
  return read_file(FileSystem::real(), join_path(LONGHAUL_TORCH_FILES, name + ".pt"));
}

// torch.save({"model": OrderedDict("0.weight": arange(6).reshape(2, 3).t(), "0.bias": its second row, "n": 7),
//   "epoch": 3, "lr": 0.5, "done": False, "name": "net", "state": {0: {"step": 2.0}}}) of PyTorch 1.13 and 2.15.
TEST(TorchArchiveFiles, OfPythonAreReadWithTheirViewsAndNestedDicts) {
  for (const char* name : {"python113", "python215"}) {
    const auto values = torch_values(genuine(name));
    ASSERT_EQ(values.size(), 8u) << name;
    const auto expect = [&](size_t i, const std::string& key, const Tensor& tensor) {
      EXPECT_EQ(values[i].first, key);
      EXPECT_TRUE(identical(values[i].second, tensor)) << key << " " << values[i].second.to_string();
    };
    expect(0, "model/0.weight", Tensor::of<float>(Shape{3, 2}, {0, 3, 1, 4, 2, 5}));
    expect(1, "model/0.bias", Tensor::of<float>({3, 4, 5}));
    expect(2, "model/n", Tensor::scalar<int64_t>(7));
    expect(3, "epoch", Tensor::scalar<int64_t>(3));
    expect(4, "lr", Tensor::scalar(0.5));
    expect(5, "done", Tensor::scalar(false));
    expect(6, "name", Tensor::scalar("net"));
    expect(7, "state/0/step", Tensor::scalar(2.0f));
  }
}

// torch::save(module, path) and torch::save(torch::ones({2, 2}), path) of libtorch 1.13, and the first of 2.6.
TEST(TorchArchiveFiles, OfCppAreReadByTheDottedNamesOfTheirModules) {
  for (const char* name : {"module113", "module26"}) {
    EXPECT_THAT(names_in(genuine(name)),
                ElementsAre("own", "buf", "fc.weight", "fc.bias", "seq.0.weight", "seq.0.bias", "seq.1.weight",
                            "seq.1.bias", "seq.1.running_mean", "seq.1.running_var", "seq.1.num_batches_tracked"));
    const auto values = torch_values(genuine(name));
    EXPECT_TRUE(identical(values[0].second, Tensor::of<float>({1, 1})));
    EXPECT_TRUE(identical(values[1].second, Tensor::of<int64_t>({0, 0})));
    EXPECT_EQ(values[4].second.shape(), (Shape{2, 1, 3, 3}));
  }
  EXPECT_TRUE(identical(torch_values(genuine("tensor113")).at(0).second, Tensor::of<float>(Shape{2, 2}, {1, 1, 1, 1})));
}

std::vector<std::pair<std::string, Tensor>> tensors_of_all_kinds() {
  return {
      {"f32", Tensor::of<float>(Shape{1, 2}, {1, -0.5})},
      {"f64", Tensor::of<double>({0.1})},
      {"f16", Tensor::of<Half>({Half(1)})},
      {"bf16", Tensor::of<BFloat16>({BFloat16(1)})},
      {"i64", Tensor::scalar<int64_t>(-2)},
      {"i32", Tensor::of<int32_t>({-1})},
      {"i16", Tensor::of<int16_t>({-2})},
      {"i8", Tensor::of<int8_t>({-3})},
      {"u8", Tensor::of<uint8_t>(Shape{2, 1}, {7, 9})},
      {"bool", Tensor::of<bool>({true, false, true})},
      {"c64", Tensor::of<std::complex<float>>({{1, -2}})},
      {"c128", Tensor::of<std::complex<double>>({{1, -2}})},
      {"u16", Tensor::of<uint16_t>({0x1234})},
      {"u32", Tensor::of<uint32_t>({0xdeadbeef})},
      {"u64", Tensor::of<uint64_t>({0x0102030405060708})},
      {"empty", Tensor(kFloat, Shape{2, 0})},
  };
}

std::string written(const std::vector<std::pair<std::string, Tensor>>& tensors,
                    TorchArchiveKind kind = TorchArchiveKind::kDict) {
  std::vector<TorchTensor> described;
  for (const auto& [name, tensor] : tensors) described.push_back({name, tensor.dtype(), tensor.shape()});
  testing::StringFile file;
  TorchArchiveWriter writer(file, "net", kind, described);
  for (const auto& [name, tensor] : tensors) writer.add(tensor);
  writer.finish();
  EXPECT_LE(file.bytes().size(), torch_archive_bytes(described));
  return file.bytes();
}

TEST(TorchArchiveWriter, WhatIsWrittenIsReadAgainWithEveryDType) {
  const auto tensors = tensors_of_all_kinds();
  const auto values = torch_values(written(tensors));
  ASSERT_EQ(values.size(), tensors.size());
  for (size_t i = 0; i < tensors.size(); ++i) {
    EXPECT_EQ(values[i].first, tensors[i].first);
    EXPECT_TRUE(identical(values[i].second, tensors[i].second)) << tensors[i].first;
  }
}

TEST(TorchArchiveWriter, TheDictIsPickledByteForByteAsTheFormatSays) {
  const std::string file = written({{"w", Tensor::of<float>(Shape{1, 2}, {1, -0.5})}});
  const std::string expected = std::string(
                                   "\x80\x02"
                                   "ccollections\nOrderedDict\n)R(") +
                               pickled_text("w") +
                               pickled({.storage_elements = 2, .sizes = {1, 2}, .strides = {2, 1}}) + "u.";
  EXPECT_THAT(file, HasSubstr(expected));
  EXPECT_THAT(file, HasSubstr("net/byteorder"));
  EXPECT_THAT(file, HasSubstr("net/version"));
}

TEST(TorchArchiveWriter, ModulesHaveAnObjectAndAClassForEach) {
  const std::vector<std::pair<std::string, Tensor>> tensors = {{"fc.weight", Tensor::of<float>({1, 2})},
                                                               {"seq.0.bias", Tensor::scalar(3.0f)},
                                                               {"own", Tensor::scalar<int64_t>(4)}};
  const std::string file = written(tensors, TorchArchiveKind::kModule);
  std::map<std::string, Tensor> values;
  for (const auto& [name, tensor] : torch_values(file)) values[name] = tensor;
  ASSERT_EQ(values.size(), 3u);
  for (const auto& [name, tensor] : tensors) EXPECT_TRUE(identical(values[name], tensor)) << name;
  EXPECT_THAT(file, HasSubstr("class Module(Module):\n  __parameters__ = []\n  __buffers__ = [\"own\", ]\n"
                              "  __annotations__ = []\n  __annotations__[\"own\"] = Tensor\n"
                              "  __annotations__[\"fc\"] = __torch__.Module1\n"
                              "  __annotations__[\"seq\"] = __torch__.Module2\n"
                              "class Module1(Module):\n"));
  EXPECT_THAT(file, HasSubstr("net/constants.pkl"));
}

TEST(TorchArchiveWriter, NamesThatAModuleCannotHaveAreRefused) {
  const auto refusal = [](std::vector<std::string> names) {
    std::vector<std::pair<std::string, Tensor>> tensors;
    for (const std::string& name : names) tensors.emplace_back(name, Tensor::scalar(1.0f));
    return error_of<InvalidArgumentError>([&] { written(tensors, TorchArchiveKind::kModule); });
  };
  EXPECT_THAT(refusal({"a..b"}), HasSubstr("cannot have the tensor a..b: a part of its name is empty; `rename`"));
  EXPECT_THAT(refusal({"a."}), HasSubstr("a part of its name is empty"));
  EXPECT_THAT(refusal({"a\"b"}), HasSubstr("a quotation mark"));
  EXPECT_THAT(refusal({"a", "a.b"}), HasSubstr("another tensor has the name of its module"));
  EXPECT_THAT(refusal({"a.b", "a"}), HasSubstr("a module has its name"));
  std::string deep = "a";
  for (int i = 0; i < 100; ++i) deep += ".a";
  EXPECT_THAT(refusal({deep}), HasSubstr("more than 65 parts"));
}

TEST(TorchArchiveWriter, WhatTheFormatDoesNotHaveIsRefusedByName) {
  EXPECT_THAT(error_of<UnimplementedError>([] { written({{"s", Tensor::scalar("text")}}); }),
              HasSubstr("tensor s has dtype string"));
  EXPECT_THAT(
      error_of<UnimplementedError>([] { written({{"u", Tensor::scalar<uint16_t>(1)}}, TorchArchiveKind::kModule); }),
      HasSubstr("tensor u has dtype uint16"));
  for (const char* name : {"caf\xe9", "\xc0\xaf", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xe2\x82"}) {
    EXPECT_THAT(error_of<InvalidArgumentError>([&] { written({{name, Tensor::scalar(1.0f)}}); }),
                HasSubstr("is not UTF-8"));
  }
  EXPECT_EQ(names_in(written({{"caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80", Tensor::scalar(1.0f)}})).size(), 1u);
}

TEST(TorchArchive, AnyViewIsReadInRowMajorOrder) {
  const std::string storage = floats({0, 1, 2, 3, 4, 5});
  const auto view = [&](const PickledTensor& tensor) {
    return torch_values(torch_file(pickled_dict_of(pickled(tensor)), {storage})).at(0).second;
  };
  EXPECT_TRUE(identical(view({}), Tensor::of<float>(Shape{2, 3}, {0, 1, 2, 3, 4, 5})));
  EXPECT_TRUE(
      identical(view({.sizes = {3, 2}, .strides = {1, 3}}), Tensor::of<float>(Shape{3, 2}, {0, 3, 1, 4, 2, 5})));
  EXPECT_TRUE(identical(view({.offset = 3, .sizes = {3}, .strides = {1}}), Tensor::of<float>({3, 4, 5})));
  EXPECT_TRUE(identical(view({.offset = 1, .sizes = {2}, .strides = {3}}), Tensor::of<float>({1, 4})));
  EXPECT_TRUE(identical(view({.offset = 5, .sizes = {}, .strides = {}}), Tensor::scalar(5.0f)));
  EXPECT_TRUE(
      identical(view({.offset = 2, .sizes = {2, 2}, .strides = {0, 1}}), Tensor::of<float>(Shape{2, 2}, {2, 3, 2, 3})));
  EXPECT_TRUE(identical(view({.sizes = {0, 3}, .strides = {3, 1}}), Tensor(kFloat, Shape{0, 3})));
}

TEST(TorchArchive, TensorsOfOneStorageAreReadTogether) {
  const std::string dict = "\x80\x02}(" + pickled_text("a") + pickled({}) + pickled_text("b") +
                           pickled({.offset = 4, .sizes = {2}, .strides = {1}}) + "u.";
  const auto values = torch_values(torch_file(dict, {floats({0, 1, 2, 3, 4, 5})}));
  EXPECT_TRUE(identical(values.at(1).second, Tensor::of<float>({4, 5})));
}

TEST(TorchArchive, AParameterIsItsTensor) {
  const std::string parameter = "ctorch._utils\n_rebuild_parameter\n(" + pickled({}) +
                                "\x88"
                                "ccollections\nOrderedDict\n)RtR";
  EXPECT_THAT(names_in(torch_file(pickled_dict_of(parameter), {floats({0, 1, 2, 3, 4, 5})})), ElementsAre("w"));
}

TEST(TorchArchive, ADTypeThatWeDoNotHaveIsAnEntryWithoutOne) {
  const std::string tensor = "ctorch._utils\n_rebuild_tensor_v3\n((" + pickled_text("storage") +
                             "ctorch.storage\nUntypedStorage\n" + pickled_text("0") + pickled_text("cpu") + "K\x02tQK" +
                             std::string(1, '\0') +
                             "(K\x02t(K\x01t\x89"
                             "ccollections\nOrderedDict\n)R" +
                             "ctorch\nfloat8_e4m3fn\ntR";
  const TorchArchive archive = open_torch(torch_file(pickled_dict_of(tensor), {"ab"}));
  ASSERT_EQ(archive.entries().size(), 1u);
  EXPECT_EQ(archive.entries()[0].dtype, kInvalid);
  EXPECT_EQ(archive.entries()[0].dtype_name, "float8_e4m3fn");
}

TEST(TorchArchive, ABoolIsZeroOrOne) {
  const PickledTensor bools{.storage_class = "BoolStorage", .storage_elements = 3, .sizes = {3}, .strides = {1}};
  EXPECT_THAT(error_of<DataLossError>(
                  [&] { torch_values(torch_file(pickled_dict_of(pickled(bools)), {std::string("\0\1\2", 3)})); }),
              HasSubstr("x.pt: tensor w: element 2 is 2, not a valid bool"));
}

TEST(TorchArchive, WhatWasSavedBefore16OrOnAnotherByteOrderIsRefusedWithTheRemedy) {
  const std::string old("\x80\x02\x8a\x0al\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19.\x80\x02M\xe9\x03.", 21);
  EXPECT_THAT(
      error_of<UnimplementedError>([&] { open_torch(old); }),
      HasSubstr("x.pt: torch.save wrote it as versions before 1.6 did; in Python, torch.save(torch.load(path)"));
  testing::StringFile file;
  ZipWriter zip(file);
  zip.add("x/data.pkl", "\x80\x02}.");
  zip.add("x/byteorder", "big");
  zip.finish();
  EXPECT_THAT(error_of<UnimplementedError>([&] { open_torch(file.bytes()); }), HasSubstr("on a big-endian machine"));
}

TEST(TorchArchive, AZipFileOfOtherThingsIsNoArchive) {
  testing::StringFile file;
  ZipWriter zip(file);
  zip.add("readme.txt", "hello");
  zip.finish();
  EXPECT_THAT(error_of<DataLossError>([&] { open_torch(file.bytes()); }), HasSubstr("it has no data.pkl"));
  testing::MemoryFileSystem files;
  EXPECT_THROW(TorchArchive("none.pt", files), NotFoundError);
}

}  // namespace
}  // namespace longhaul
