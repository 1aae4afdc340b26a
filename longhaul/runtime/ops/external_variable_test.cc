#include "longhaul/ops/external_variable.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "longhaul/runtime/direct_session.h"
#include "longhaul/runtime/install.h"
#include "longhaul/testing/temporary_directory.h"
#include "longhaul/train/saving/saver.h"

namespace longhaul {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A program that counts epochs and remembers words.
class ExternalVariableTest : public ::testing::Test {
 protected:
  ExternalVariableTest() {
    epoch_ = ops::external_variable(root_, "epoch",
                                    {.dtype = kInt64,
                                     .read = [this] { return Tensor::scalar(epochs_); },
                                     .assign = [this](const Tensor& value) { epochs_ = value.item<int64_t>(); },
                                     .initial = [] { return Tensor::scalar<int64_t>(1); }});
    words_ = ops::external_variable(root_, "words",
                                    {.dtype = kString,
                                     .shape = {-1},
                                     .read = [this] { return Tensor::of(spoken_); },
                                     .assign =
                                         [this](const Tensor& value) {
                                           const auto words = value.flat<std::string>();
                                           spoken_.assign(words.begin(), words.end());
                                         }});
    init_ = ops::global_variables_initializer(root_);
  }

  int64_t epochs_ = 5;
  std::vector<std::string> spoken_{"yes"};
  Graph graph_;
  Scope root_{graph_};
  Variable epoch_, words_;
  Operation init_;
  DirectSession session_{graph_, SessionOptions{}};
};

TEST_F(ExternalVariableTest, StartsWithItsInitialValueOrStaysAsItIs) {
  session_.run(init_);
  EXPECT_EQ(epochs_, 1);
  EXPECT_THAT(spoken_, ElementsAre("yes"));
}

TEST_F(ExternalVariableTest, IsReadAsTheProgramHasItNow) {
  session_.run(init_);
  epochs_ = 9;
  spoken_ = {"one", "two"};
  EXPECT_EQ(session_.run(epoch_).item<int64_t>(), 9);
  EXPECT_EQ(session_.run(words_).num_elements(), 2);
}

TEST_F(ExternalVariableTest, EachSessionHasToInitialiseOrRestoreIt) {
  session_.run(init_);
  DirectSession another(graph_, {});
  EXPECT_THROW(another.run(epoch_), FailedPreconditionError);
  EXPECT_FALSE(another.run(ops::is_variable_initialized(root_, epoch_)).item<bool>());
  EXPECT_TRUE(session_.run(ops::is_variable_initialized(root_, words_)).item<bool>());
}

TEST_F(ExternalVariableTest, IsSavedAndRestored) {
  const testing::TemporaryDirectory directory;
  Saver saver({.graph = &graph_});
  session_.run(init_);
  epochs_ = 7;
  spoken_ = {"a", "b", "c"};
  const std::string saved = saver.save(session_, directory.file("model"));
  epochs_ = 8;
  spoken_ = {};
  DirectSession another(graph_, {});
  saver.restore(another, saved);
  EXPECT_EQ(epochs_, 7);
  EXPECT_THAT(spoken_, ElementsAre("a", "b", "c"));
}

TEST_F(ExternalVariableTest, AValueOfAnotherShapeIsRefused) {
  const Output two = ops::constant(root_, Tensor::of<std::string>(Shape{1, 1}, {"x"}));
  EXPECT_THROW(session_.run(ops::assign(root_, words_, two)), InvalidArgumentError);
}

TEST_F(ExternalVariableTest, IsNotAddedTo) {
  const Output one = ops::constant(root_, Tensor::scalar<int64_t>(1));
  const Operation add = ops::assign_add(root_, epoch_, one).op();
  session_.run(init_);
  EXPECT_THROW(session_.run(add), InvalidArgumentError);
  EXPECT_EQ(epochs_, 1);
}

TEST_F(ExternalVariableTest, WhatACheckpointMayLackNeedsNoInitializer) {
  const testing::TemporaryDirectory directory;
  session_.run(init_);
  const std::string without = Saver({.graph = &graph_}).save(session_, directory.file("without"));
  int64_t taken = 3;
  std::vector<int64_t> checked;
  ops::optional_program_value(
      root_, "taken",
      {.dtype = kInt64,
       .shape = Shape::unknown_rank(),
       .read = [&] { return Tensor::scalar(taken); },
       .assign = [&](const Tensor& value) { taken = value.num_elements() == 1 ? value.item<int64_t>() : -1; }},
      "kept/taken", [&](const Tensor& value) {
        checked.push_back(value.num_elements());
        if (value.num_elements() == 1 && value.item<int64_t>() == 4) throw InvalidArgumentError("it is four");
      });
  EXPECT_EQ(ops::global_variables(graph_).size(), 2u);
  DirectSession session(graph_, {});
  session.run(init_);
  Saver saver({.graph = &graph_});
  const std::string three = saver.save(session, directory.file("three"));
  taken = 4;
  const std::string four = saver.save(session, directory.file("four"));
  saver.restore(session, three);
  EXPECT_EQ(taken, 3);
  epochs_ = 77;
  EXPECT_THROW(saver.restore(session, four), InvalidArgumentError);
  EXPECT_EQ(epochs_, 77) << "the check comes before all writes";
  saver.restore(session, without);
  EXPECT_EQ(taken, -1);
  EXPECT_THAT(checked, ElementsAre(1, 1, 0));
}

TEST_F(ExternalVariableTest, ANameIsTakenOnce) {
  try {
    ops::external_variable(root_, "epoch", {.read = [] { return Tensor::scalar(1.0f); }});
    FAIL() << "the name is taken";
  } catch (const AlreadyExistsError& error) {
    EXPECT_THAT(error.what(), ::testing::HasSubstr("add it outside begin()")) << "a hook's second session";
  }
}

TEST_F(ExternalVariableTest, AStepOfTheProgramCountsOnlyIfItSucceeds) {
  const Variable step = ops::global_step(root_);
  std::vector<int64_t> numbers;
  const Operation train = ops::program_step(root_, step, {}, [&](int64_t number, const auto&) {
    numbers.push_back(number);
    if (numbers.size() == 2) throw UnavailableError("not now");
  });
  session_.run(ops::global_variables_initializer(root_));
  session_.run(train);
  EXPECT_THROW(session_.run(train), UnavailableError);
  session_.run(train);
  EXPECT_THAT(numbers, ElementsAre(0, 1, 1));
  EXPECT_EQ(session_.run(step, {}, {.snapshot = true}).item<int64_t>(), 2);
}

TEST_F(ExternalVariableTest, WhatIsWrittenBesideAStepThatFailsIsNotWritten) {
  const Variable taken = ops::variable(root_, "taken", Tensor::scalar<int64_t>(0), {.trainable = false});
  const Operation advance = ops::assign_add(root_, taken, ops::constant(root_, Tensor::scalar<int64_t>(16))).op();
  bool fails = true;
  const Operation train = ops::program_step(root_, ops::global_step(root_), {}, [&](int64_t, const auto&) {
    if (fails) throw UnavailableError("not now");
  });
  const Operation step = ops::group(root_, {train, advance});
  session_.run(ops::global_variables_initializer(root_));
  EXPECT_THROW(session_.run(step), UnavailableError);
  EXPECT_EQ(session_.run(taken).item<int64_t>(), 0);
  fails = false;
  session_.run(step);
  EXPECT_EQ(session_.run(taken).item<int64_t>(), 16);
}

TEST_F(ExternalVariableTest, AStepNeedsACounterThatIsInitialised) {
  const Operation train = ops::program_step(root_, ops::global_step(root_), {}, [](int64_t, const auto&) { FAIL(); });
  EXPECT_THROW(session_.run(train), FailedPreconditionError);
}

}  // namespace
}  // namespace longhaul
