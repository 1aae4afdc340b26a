#include "longhaul/console/checkpoints/checkpoint_check.h"

#include <filesystem>

#include "longhaul/checkpoint/files/checkpoint_state.h"
#include "longhaul/checkpoint/state_dict/state_dict.h"
#include "longhaul/console/checkpoints/checkpoint_fixture.h"

namespace longhaul::console {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class CheckpointCheckTest : public CheckpointsTest {
 protected:
  Report check(const std::vector<std::string>& names, bool all = false, const Progress& progress = {}) {
    CheckOptions options{.all = all};
    for (const std::string& name : names) options.paths.push_back(path(name));
    return check_checkpoints(files_, options, {}, progress);
  }
};

TEST_F(CheckpointCheckTest, AnIntactOneIsFine) {
  write_step(1);
  const Report report = check({"model.ckpt-1"});
  EXPECT_TRUE(report.is_fine);
  EXPECT_THAT(report.text, AllOf(HasSubstr("intact  "), HasSubstr("model.ckpt-1: 2 tensors, ")));
  EXPECT_EQ(report.json["checkpoints"][0]["state"], "intact");
}

TEST_F(CheckpointCheckTest, NamesTheDamagedTensor) {
  write_step(1);
  damage("model.ckpt-1.data-00000-of-00001");
  const Report report = check({"model.ckpt-1"});
  EXPECT_FALSE(report.is_fine);
  EXPECT_THAT(report.text, AllOf(HasSubstr("damaged"), HasSubstr("tensor w")));
}

TEST_F(CheckpointCheckTest, ADirectoryIsItsLatestOrAll) {
  write_step(1);
  write_step(2);
  damage("model.ckpt-1.data-00000-of-00001");
  EXPECT_TRUE(check({""}).is_fine);
  EXPECT_FALSE(check({""}, true).is_fine);
  EXPECT_EQ(check({""}, true).json["checkpoints"].size(), 2u);
}

TEST_F(CheckpointCheckTest, OneThatATrainingDeletesMeanwhileIsNotDamaged) {
  write_step(1);
  write_step(2);
  const Report report = check({""}, true, [&](uint64_t, uint64_t) {
    if (checkpoint_exists(files_, path("model.ckpt-2"))) remove_checkpoint(files_, path("model.ckpt-2"));
  });
  EXPECT_TRUE(report.is_fine) << report.text;
  EXPECT_THAT(report.text, HasSubstr("deleted meanwhile"));
}

TEST_F(CheckpointCheckTest, ACopyThatLacksFilesIsNotFineForTheOriginals) {
  for (const int64_t step : {50, 60}) write_step(step);
  write_checkpoint_state(files_, directory_.path(),
                         {.model_checkpoint_path = path("model.ckpt-60"),
                          .all_model_checkpoint_paths = {path("model.ckpt-50"), path("model.ckpt-60")}});
  const testing::TemporaryDirectory copy;
  std::filesystem::copy(directory_.path(), copy.path());
  const auto verify = [&] { return check_checkpoints(files_, {.paths = {copy.path()}}, {}); };
  EXPECT_TRUE(verify().is_fine);
  const auto lose = [&](const std::string& name) {
    files_.remove(copy.file(name));
    const Report report = verify();
    EXPECT_FALSE(report.is_fine) << name;
    return report.text;
  };
  EXPECT_THAT(lose("model.ckpt-60.data-00000-of-00001"), AllOf(HasSubstr("intact  " + copy.file("model.ckpt-50")),
                                                               HasSubstr("damaged  " + copy.file("model.ckpt-60"))));
  EXPECT_THAT(lose("model.ckpt-60.index"), HasSubstr("elsewhere  " + path("model.ckpt-60")));
}

TEST_F(CheckpointCheckTest, AnIndexThatIsALinkToItselfIsNotTakenForOneThatWasDeleted) {
  write_step(1);
  std::filesystem::remove(path("model.ckpt-1.index"));
  std::filesystem::create_symlink("model.ckpt-1.index", path("model.ckpt-1.index"));
  write_step(2);
  const Report report = check({""}, true);
  EXPECT_FALSE(report.is_fine);
  EXPECT_THAT(report.text, AllOf(HasSubstr("unreadable  " + path("model.ckpt-1")), HasSubstr("intact  ")));
}

TEST_F(CheckpointCheckTest, WhatIsNotThereIsWrong) {
  EXPECT_FALSE(check({"model.ckpt-1"}).is_fine);
  EXPECT_FALSE(check({""}).is_fine) << "a backup without checkpoints is none";
  EXPECT_FALSE(check({""}, true).is_fine);
}

TEST_F(CheckpointCheckTest, SaysThatAFormatHasNoChecksums) {
  save_state_dict({{"w", Tensor::of<float>({1, 2})}}, path("net.safetensors"));
  const Report report = check({"net.safetensors"});
  EXPECT_TRUE(report.is_fine);
  EXPECT_THAT(report.text, HasSubstr("the format has no checksums"));
}

}  // namespace
}  // namespace longhaul::console
