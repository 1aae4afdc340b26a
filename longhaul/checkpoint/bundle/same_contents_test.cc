#include "longhaul/checkpoint/bundle/same_contents.h"

#include <gtest/gtest.h>

#include "longhaul/checkpoint/bundle/bundle_writer.h"
#include "longhaul/checkpoint/files/checkpoint_files.h"
#include "longhaul/testing/temporary_directory.h"

namespace longhaul {
namespace {

// A checkpoint of a few tensors: a large one, a text, a part of a larger one, one without a byte.
class SameContents : public ::testing::Test {
 protected:
  SameContents() { save(tensors); }

  void save(const std::vector<ExpectedTensor>& saved) {
    BundleWriter writer(FileSystem::real(), prefix);
    for (const ExpectedTensor& one : saved) {
      if (one.slice.empty()) {
        writer.add(one.name, one.value);
      } else {
        const auto [shape, slice] = parse_shape_and_slice(one.slice);
        writer.add_slice(one.name, shape, slice, one.value);
      }
    }
    writer.finish();
  }
  bool has(const std::vector<ExpectedTensor>& wanted) { return has_exactly(FileSystem::real(), prefix, wanted); }
  static Tensor large(float last) {
    std::vector<float> values(200'000, 1.5f);
    values.back() = last;
    return Tensor::of(values);
  }

  testing::TemporaryDirectory directory;
  const std::string prefix = directory.file("model-7");
  std::vector<ExpectedTensor> tensors{{"w", "", large(2)},
                                      {"words", "", Tensor::of<std::string>({"a", "", "bcd"})},
                                      {"part", "5 2 0,3:0,2", Tensor::of<int64_t>({3, 2}, {1, 2, 3, 4, 5, 6})},
                                      {"none", "", Tensor(kFloat, Shape{0, 4})}};
};

TEST_F(SameContents, AreFoundInWhatWasJustSaved) {
  EXPECT_TRUE(has(tensors));
  std::swap(tensors[0], tensors[2]);
  EXPECT_TRUE(has(tensors)) << "in whatever order";
}

TEST_F(SameContents, DifferInOneByteOfOneTensor) {
  for (const auto& [i, value] :
       std::vector<std::pair<size_t, Tensor>>{{0, large(3)},
                                              {1, Tensor::of<std::string>({"a", "", "bcD"})},
                                              {1, Tensor::of<std::string>({"a", "b", "cd"})},
                                              {2, Tensor::of<int64_t>({3, 2}, {1, 2, 3, 4, 5, 7})}}) {
    auto changed = tensors;
    changed[i].value = value;
    EXPECT_FALSE(has(changed)) << i << value.to_string();
  }
}

TEST_F(SameContents, DifferInDtypeAndShape) {
  auto changed = tensors;
  changed[3].value = Tensor(kFloat, Shape{4, 0});
  EXPECT_FALSE(has(changed));
  changed[3].value = Tensor(kDouble, Shape{0, 4});
  EXPECT_FALSE(has(changed));
  changed[3] = {"none", "", Tensor::scalar(1.0f)};
  EXPECT_FALSE(has(changed));
}

TEST_F(SameContents, DifferInNamesAndInHowMuchOfThemThereIs) {
  auto fewer = tensors;
  fewer.pop_back();
  EXPECT_FALSE(has(fewer)) << "another saver's, which has more";
  auto more = tensors;
  more.push_back({"v", "", Tensor::scalar(1.0f)});
  EXPECT_FALSE(has(more));
  auto renamed = tensors;
  renamed[0].name = "v";
  EXPECT_FALSE(has(renamed));
  auto elsewhere = tensors;
  elsewhere[2].slice = "5 2 1,3:0,2";
  EXPECT_FALSE(has(elsewhere));
  EXPECT_FALSE(has({}));
}

TEST_F(SameContents, AreNotThereWhereAFileIsGoneOrDamaged) {
  const std::string data = data_path(prefix, 0, 1), index = index_path(prefix);
  for (const std::string& path : {data, index}) {
    const std::string bytes = read_file(FileSystem::real(), path);
    for (std::string other : {bytes.substr(0, bytes.size() / 2), std::string(bytes).replace(40, 1, "?")}) {
      write_file_atomically(FileSystem::real(), path, other);
      EXPECT_FALSE(has(tensors)) << path;
    }
    FileSystem::real().remove(path);
    EXPECT_FALSE(has(tensors)) << path;
    write_file_atomically(FileSystem::real(), path, bytes);
    EXPECT_TRUE(has(tensors));
  }
}

TEST_F(SameContents, AreComparedTensorByTensorInSeveralDataFiles) {
  BundleWriter writer(FileSystem::real(), prefix, 2);
  writer.add("a", large(1));
  writer.use_shard(1);
  writer.add("b", large(2));
  writer.finish();
  EXPECT_TRUE(has({{"a", "", large(1)}, {"b", "", large(2)}}));
  EXPECT_FALSE(has({{"a", "", large(2)}, {"b", "", large(1)}}));
}

TEST_F(SameContents, MayLeaveOutTensorsByName) {
  const auto has_but_for_w = [&](const std::vector<ExpectedTensor>& wanted) {
    return has_but_for(FileSystem::real(), prefix, wanted, [](const std::string& name) { return name == "w"; });
  };
  EXPECT_TRUE(has_but_for_w(tensors));
  std::vector<ExpectedTensor> others = tensors;
  others[0].value = large(3);
  EXPECT_TRUE(has_but_for_w(others));
  EXPECT_FALSE(has(others));
  others[1].value = Tensor::of<std::string>({"a", "", "bce"});
  EXPECT_FALSE(has_but_for_w(others)) << "another one differs, too";
  EXPECT_FALSE(has_but_for_w({tensors[0]})) << "the others are missing";
  EXPECT_FALSE(has_but_for(FileSystem::real(), directory.file("none"), tensors, [](auto&) { return true; }));
}

}  // namespace
}  // namespace longhaul
