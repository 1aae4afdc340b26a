// Programs that write to what a pending snapshot has yet to copy, in every way that we know; the copier is late.
#include <ATen/core/grad_mode.h>
#include <ATen/ops/_foreach_mul.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/mul.h>
#include <ATen/record_function.h>
#include <torch/csrc/jit/api/compilation_unit.h>
#include <torch/jit.h>
#include <torch/library.h>
#include <unistd.h>

#include <cstdio>
#include <thread>

#include "longhaul/binding/overlap/overlap_fixture.h"

namespace longhaul {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

void halve(at::Tensor self) {
  float* const data = self.data_ptr<float>();
  for (int64_t i = 0; i < self.numel(); ++i) data[i] *= 0.5f;
}

TORCH_LIBRARY(longhaul_overlap_test, library) {
  library.def("halve_(Tensor(a!) self) -> ()", halve);
  library.def("halve_secretly(Tensor self) -> ()", halve);
}

void call(const char* name, const at::Tensor& tensor) {
  c10::Dispatcher::singleton().findSchemaOrThrow(name, "").typed<void(at::Tensor)>().call(tensor);
}

void fill_from_a_file(const at::Tensor& tensor) {
  const at::Tensor others = torch::rand(tensor.sizes());
  std::FILE* const file = std::tmpfile();
  ASSERT_EQ(std::fwrite(others.data_ptr(), 1, others.nbytes(), file), others.nbytes());
  std::rewind(file);
  EXPECT_EQ(::read(::fileno(file), tensor.data_ptr(), tensor.nbytes()), static_cast<ssize_t>(tensor.nbytes()));
  std::fclose(file);
}

struct ProgramCase {
  const char* name;
  OverlappedProgram::Step step;
};

// In what libtorch announces. The name stands before the step's usual update, or after it.
std::vector<ProgramCase> open_programs() {
  using P = OverlappedProgram;
  const auto before = [](const char* name, const std::function<void(P&)>& write) {
    return ProgramCase{name, [write](P& program) {
                         {
                           const at::NoGradGuard no_grad;
                           write(program);
                         }
                         program.update();
                       }};
  };
  return {
      {"TheOptimizersStep", [](P& program) { program.update(); }},
      {"TwoBackwards",
       [](P& program) {
         program.optimizer->zero_grad();
         program.backward();
         program.backward();
         program.optimizer->step();
       }},
      {"AClosure",
       [](P& program) {
         program.optimizer->step([&] {
           program.optimizer->zero_grad();
           return program.backward();
         });
       }},
      {"NoGradients",
       [](P& program) {
         const at::NoGradGuard no_grad;
         program.weight.sub_(0.1);
       }},
      {"AManualGradient",
       [](P& program) {
         program.weight.mutable_grad() = torch::ones_like(program.weight);
         program.optimizer->step();
       }},
      {"ClippedAfterwards",
       [](P& program) {
         program.update();
         const at::NoGradGuard no_grad;
         program.weight.clamp_(-0.01, 0.01);
       }},
      before("ClippedBefore", [](P& program) { program.weight.clamp_(-0.01, 0.01); }),
      before("TheData", [](P& program) { program.weight.data().mul_(0.9); }),
      before("AView", [](P& program) { program.weight.view({-1}).narrow(0, 70000, 10).fill_(3); }),
      before("Out", [](P& program) { at::mul_out(program.weight, program.weight, torch::full({}, 0.9)); }),
      before("Foreach", [](P& program) { at::_foreach_mul_(program.net->parameters(), 0.9); }),
      before("AnAlias", [](P& program) { at::from_blob(program.weight.data_ptr(), {program.weight.numel()}).add_(1); }),
      before("SetData", [](P& program) { program.weight.set_data(program.weight.detach() * 2); }),
      before("Set", [](P& program) { program.weight.set_(torch::ones_like(program.weight)); }),
      before("AnotherThread", [](P& program) { std::thread([&] { program.weight.data().mul_(0.9); }).join(); }),
      before("ACustomOperator", [](P& program) { call("longhaul_overlap_test::halve_", program.weight.detach()); }),
      before("TorchScript",
             [](P& program) {
               static const auto script = torch::jit::compile("def shrink(x):\n  return x.mul_(0.9)\n");
               script->run_method("shrink", program.weight.detach());
             }),
  };
}

// In what libtorch does not announce. Without the update the weight would not have to be written openly at all.
std::vector<ProgramCase> secret_programs() {
  using P = OverlappedProgram;
  return {
      {"ALyingOperator",
       [](P& program) {
         call("longhaul_overlap_test::halve_secretly", program.weight.detach());
         program.update();
       }},
      {"ALoopBeforeTheBackward",
       [](P& program) {
         halve(program.weight.detach());
         program.update();
       }},
      {"ALoopAfterTheBackward",
       [](P& program) {
         program.optimizer->zero_grad();
         program.backward();
         halve(program.weight.detach());
         program.optimizer->step();
       }},
      {"AReadFile",
       [](P& program) {
         fill_from_a_file(program.weight);
         program.update();
       }},
      {"ADisabledRecordFunction",
       [](P& program) {
         const at::DisableRecordFunctionGuard guard;
         program.update();
       }},
  };
}

std::string name_of(const ::testing::TestParamInfo<ProgramCase>& info) {
  return info.param.name;
}

// A snapshot, and a step before its copies are made.
OverlappedProgram::Values late_snapshot(OverlappedProgram& program) {
  auto snapshot = program.start_snapshot();
  program.copier.wait_until_asked(snapshot);
  program.train();
  program.copier.let_copy();
  return snapshot.get();
}

class EachOpenProgramTest : public ::testing::TestWithParam<ProgramCase> {};

TEST_P(EachOpenProgramTest, HasASnapshotOfTheMomentBeforeItsStep) {
  const Warnings warnings;
  OverlappedProgram program(GetParam().step, default_adam, {.updates_without_optimizer = true});
  program.prove();
  const auto before = program.state();
  expect_same(late_snapshot(program), before);
  EXPECT_THAT(warnings.seen(), IsEmpty());
}

INSTANTIATE_TEST_SUITE_P(, EachOpenProgramTest, ::testing::ValuesIn(open_programs()), name_of);

class EachSecretProgramTest : public ::testing::TestWithParam<ProgramCase> {};

TEST_P(EachSecretProgramTest, IsFoundByTheFirstStep) {
  const Warnings warnings;
  OverlappedProgram program(GetParam().step);
  program.prove();
  EXPECT_THAT(warnings.seen(), ElementsAre(HasSubstr("0.weight was changed in a way that libtorch does not announce")));
  program.train();
  expect_same(program.snapshot(), program.state());
  EXPECT_EQ(program.copier.asked(), 0) << "training waits now";
  EXPECT_EQ(warnings.seen().size(), 1u);
}

TEST_P(EachSecretProgramTest, IsFoundLaterByItsSnapshotWhichIsTakenAgain) {
  const Warnings warnings;
  OverlappedProgram program([](OverlappedProgram& usual) { usual.update(); });
  program.prove();
  program.step = GetParam().step;
  const auto values = late_snapshot(program);
  expect_same(values, program.state());
  EXPECT_THAT(warnings.seen(), ElementsAre(HasSubstr("0.weight was changed in a way that libtorch does not announce")));
  program.train();
  expect_same(program.snapshot(), program.state());
  EXPECT_EQ(program.copier.asked(), 1) << "training waits now";
  EXPECT_EQ(warnings.seen().size(), 1u);
}

INSTANTIATE_TEST_SUITE_P(, EachSecretProgramTest, ::testing::ValuesIn(secret_programs()), name_of);

TEST(OverlappedSnapshot, OneElementThatEachStepWritesSecretlyIsFoundByTheFirst) {
  const Warnings warnings;
  OverlappedProgram program([](OverlappedProgram& usual) {
    usual.weight.data_ptr<float>()[300001] += 1;
    usual.update();
  });
  program.prove();
  EXPECT_THAT(warnings.seen(), ElementsAre(HasSubstr("0.weight was changed in a way that libtorch does not announce")));
  EXPECT_EQ(program.copier.asked(), 0);
}

TEST(OverlappedSnapshot, AThreadThatHearsNothingCopiesBeforeItsStep) {
  const Warnings warnings;
  OverlappedProgram program([](OverlappedProgram& usual) { usual.update(); });
  program.prove();
  const auto before = program.state();
  const at::DisableRecordFunctionGuard guard;
  expect_same(late_snapshot(program), before);
  EXPECT_THAT(warnings.seen(), IsEmpty());
}

}  // namespace
}  // namespace longhaul
