#include "longhaul/console/upkeep/conversion.h"

#include <unistd.h>

#include "longhaul/checkpoint/directory/checkpoint_reader.h"
#include "longhaul/checkpoint/state_dict/state_dict.h"
#include "longhaul/console/checkpoints/checkpoint_fixture.h"
#include "longhaul/console/checkpoints/tensor_source.h"
#include "longhaul/io/lock/directory_lock.h"

namespace longhaul::console {
namespace {

using ::testing::ElementsAre;

class ConversionTest : public CheckpointsTest {
 protected:
  ConversionTest() {
    write("m-1", {{"0.weight", Tensor::of<float>({1, 2})},
                  {"Adam/0.weight/exp_avg", Tensor::of<float>({3, 4})},
                  {"global_step", Tensor::scalar<int64_t>(1)}});
  }
  std::vector<std::string> convert(const std::string& from, const std::string& to, ConversionOptions options = {}) {
    options.from = path(from);
    options.to = path(to);
    convert_tensors(files_, options, {});
    std::vector<std::string> names;
    const auto source = open_tensors(files_, path(to));
    for (const StoredTensor& tensor : source->tensors()) names.push_back(tensor.name);
    return names;
  }
};

TEST_F(ConversionTest, CopiesBetweenAllFormats) {
  const auto all = ElementsAre("0.weight", "Adam/0.weight/exp_avg", "global_step");
  EXPECT_THAT(convert("m-1", "a.safetensors"), all);
  EXPECT_THAT(convert("m-1", "a.pt"), all);
  EXPECT_THAT(convert("a.pt", "b.safetensors"), all);
  EXPECT_THAT(convert("b.safetensors", "b.pt"), all);
  EXPECT_THAT(convert("a.pt", "from_pt-1"), all);
  EXPECT_THAT(convert("m-1", "copy-1"), all);
  EXPECT_TRUE(identical(load_variable(path("copy-1"), "0.weight"), Tensor::of<float>({1, 2})));
  EXPECT_TRUE(identical(load_variable(path("from_pt-1"), "0.weight"), Tensor::of<float>({1, 2})));
}

TEST_F(ConversionTest, ChoosesAndRenamesByRules) {
  EXPECT_THAT(convert("m-1", "a.safetensors", {.rules = {{"^([0-9]+)\\.", "layer$1."}}, .only = "^[0-9]"}),
              ElementsAre("layer0.weight"));
  EXPECT_THAT(convert("m-1", "b-1", {.rules = {{"^Adam/", ""}, {"weight", "w"}}, .only = "weight"}),
              ElementsAre("0.w", "0.weight/exp_avg"))
      << "the first that is found";
  EXPECT_THAT(convert("m-1", "c.pt", {.rules = {{"^", "net."}}, .module_only = true}), ElementsAre("net.0.weight"));
}

TEST_F(ConversionTest, ReplacesNothingUnlessToldTo) {
  convert("m-1", "a.pt");
  EXPECT_THROW(convert("m-1", "a.pt"), AlreadyExistsError);
  EXPECT_THROW(convert("a.pt", "m-1"), AlreadyExistsError);
  EXPECT_THAT(convert("m-1", "a.pt", {.only = "0", .replaces = true}),
              ElementsAre("0.weight", "Adam/0.weight/exp_avg"));
}

TEST_F(ConversionTest, ALinkToNothingIsNotReplaced) {
  for (const std::string name : {"a.pt", "copy-1.index"}) {
    ASSERT_EQ(::symlink("not mounted", path(name).c_str()), 0);
    EXPECT_THROW(convert("m-1", name == "a.pt" ? name : "copy-1"), AlreadyExistsError);
    char target[100];
    EXPECT_EQ(::readlink(path(name).c_str(), target, sizeof target), 11) << name;
  }
  EXPECT_THAT(convert("m-1", "a.pt", {.replaces = true}).size(), 3u);
}

TEST_F(ConversionTest, WritesNothingIfNothingIsWanted) {
  convert("m-1", "b.pt");
  for (const std::string to : {"a.pt", "a.safetensors", "copy-1"}) {
    for (const std::string from : {"m-1", "b.pt"}) {
      EXPECT_THROW(convert(from, to, {.only = "nothing"}), NotFoundError) << from << to;
    }
  }
  EXPECT_FALSE(files_.exists(path("a.pt")) || files_.exists(path("a.safetensors")));
  EXPECT_FALSE(files_.exists(path("copy-1.index")));
}

TEST_F(ConversionTest, RefusesEmptyNamesAndLongPatterns) {
  EXPECT_THROW(check_conversion({.from = "a", .to = ""}), InvalidArgumentError);
  EXPECT_THROW(check_conversion({.from = "a", .to = "b/"}), InvalidArgumentError);
  EXPECT_THROW(check_conversion({.from = "", .to = "b"}), InvalidArgumentError);
  EXPECT_THROW(check_conversion({.from = "a", .to = "b", .only = "("}), InvalidArgumentError);
  EXPECT_THROW(check_conversion({.from = "a", .to = "b", .only = std::string(100000, '(')}), InvalidArgumentError);
  EXPECT_THROW(parse_name_rule(std::string(100000, '(') + "=x"), InvalidArgumentError);
  EXPECT_NO_THROW(check_conversion({.from = "a", .to = "b", .only = std::string(1000, 'x')}));
}

TEST_F(ConversionTest, RefusesAPrefixThatNamesADirectoryOrADevice) {
  for (const std::string name : {".", "..", "a/.", "a/..", "../.."}) {
    EXPECT_THROW(check_conversion({.from = "a", .to = name}), InvalidArgumentError) << name;
  }
  EXPECT_NO_THROW(check_conversion({.from = "a", .to = "../..."}));
  files_.make_directories(path("runs"));
  for (const std::string& to : {path("runs"), path("m-1.index"), std::string("/dev/full")}) {
    for (const bool replaces : {false, true}) {
      const ConversionOptions options{.from = path("m-1"), .to = to, .replaces = replaces};
      EXPECT_THROW(convert_tensors(files_, options, {}), InvalidArgumentError) << to;
    }
    EXPECT_FALSE(files_.exists(to + ".index"));
  }
}

TEST_F(ConversionTest, RefusesWhatIsAmbiguousOrNoRule) {
  EXPECT_THROW(convert("m-1", "a.safetensors", {.rules = {{".*", "w"}}}), InvalidArgumentError);
  EXPECT_FALSE(files_.exists(path("a.safetensors")));
  EXPECT_THROW(convert("m-1", "a-1", {.rules = {{".+", "w"}}}), InvalidArgumentError);
  EXPECT_FALSE(checkpoint_exists(files_, path("a-1")));
  EXPECT_THROW(parse_name_rule("no rule"), InvalidArgumentError);
  EXPECT_THROW(parse_name_rule("(=x"), InvalidArgumentError);
  EXPECT_EQ(parse_name_rule("a=b=c").pattern, "a=b");
}

TEST_F(ConversionTest, ALongNameIsRefusedByRulesInsteadOfTakingTheStack) {
  write("long-1", {{std::string(1 << 20, 'x'), Tensor::scalar(1.0f)}});
  EXPECT_THROW(convert("long-1", "a-1", {.rules = {{"(x*)*y", "z"}}}), InvalidArgumentError);
}

TEST_F(ConversionTest, ATrainingIsNotDisturbed) {
  const DirectoryLock chief(directory_.path());
  convert("m-1", "a.pt");
  EXPECT_THROW(convert("a.pt", "b-1"), DirectoryLockedError);
}

}  // namespace
}  // namespace longhaul::console
