// Random numbers that a bound program draws on another device than the CPU, from that device's default generator.
#include "longhaul/binding/devices/default_generators.h"
#include "longhaul/binding/keep_random_state.h"
#include "longhaul/binding/torch_device_fixture.h"
#include "longhaul/binding/values/torch_values.h"
#include "longhaul/binding/watches/generator_watch.h"
#include "longhaul/checkpoint/bundle/bundle_reader.h"
#include "longhaul/runtime/devices/device_generator.h"
#include "longhaul/testing/fake_device/fake_device.h"

namespace longhaul {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr const char* kDrawn = "random numbers are drawn between some steps";

using Program = DeviceProgram;

class TorchDeviceGenerators : public ::testing::Test {
 protected:
  TorchDeviceGenerators() {
    fake_device::reset();
    fake_device::draw_from_own_generators();
    register_default_generators(device().type(), &fake_device::default_generator);
    before_ = set_log_sink([this](LogLevel level, const std::string& text) {
      (level >= LogLevel::kWarning ? warnings_ : said_).push_back(text);
    });
  }
  ~TorchDeviceGenerators() override {
    set_log_sink(before_);
    register_default_generators(device().type(), nullptr);
    fake_device::reset();
  }

  static c10::Device device(int index = 0) { return fake_device::device(index); }

  std::string saved_after(int steps, c10::Device where) {
    Program program(where);
    program.initialize().train(steps);
    return program.saver->save(*program.session, path_, program.training.global_step);
  }

  const testing::TemporaryDirectory directory_;
  const std::string path_ = directory_.file("model");
  std::vector<std::string> warnings_, said_;
  LogSink before_;
};

TEST_F(TorchDeviceGenerators, ARestartContinuesWithTheSameNumbers) {
  Program undisturbed(device());
  undisturbed.initialize().train(10);
  const std::string saved = saved_after(4, device());
  EXPECT_TRUE(BundleReader(FileSystem::real(), saved).has("generators/privateuseone_0"));
  for (const c10::Device where : {device(), device(1)}) {  // a restart may be given another device
    Program program(where);
    expect_equal(program.restore(saved).train(6).weights(), undisturbed.weights());
  }
  EXPECT_THAT(warnings_, IsEmpty());
}

TEST_F(TorchDeviceGenerators, SeedingAfterTheRestoreWithTheSameSeedChangesNothing) {
  Program undisturbed(device());
  undisturbed.initialize().train(10);
  Program program(device());
  program.restore(saved_after(4, device()));
  fake_device::default_generator(device()).set_current_seed(7);
  expect_equal(program.train(6).weights(), undisturbed.weights());
}

TEST_F(TorchDeviceGenerators, NumbersDrawnBetweenSomeStepsAreSaid) {
  Program program(device());
  program.initialize().train(3);
  torch::rand({3}, device());
  program.train(1);
  EXPECT_THAT(warnings_, ElementsAre(AllOf(HasSubstr("generators/privateuseone_0"), HasSubstr(kDrawn))));
}

TEST_F(TorchDeviceGenerators, KeepRandomStateKeepsThemToo) {
  Program undisturbed(device());
  undisturbed.initialize().train(6);
  Program program(device());
  program.initialize().train(3);
  {
    const KeepRandomState keep;
    torch::rand({3}, device());
  }
  expect_equal(program.train(3).weights(), undisturbed.weights());
  EXPECT_THAT(warnings_, IsEmpty());
}

TEST_F(TorchDeviceGenerators, ACheckpointOfTheCpuLacksThemWhichIsSaid) {
  const std::string saved = saved_after(4, c10::kCPU);
  EXPECT_THAT(warnings_, IsEmpty());
  Program program(device());
  program.restore(saved).train(1);
  EXPECT_THAT(warnings_, ElementsAre(HasSubstr("lacks generators/privateuseone_0")));
}

TEST_F(TorchDeviceGenerators, TheCpuDoesWithoutThemWhichIsSaid) {
  const std::string saved = saved_after(4, device());
  Program program(c10::kCPU);
  program.restore(saved).train(1);
  EXPECT_THAT(warnings_, Contains(HasSubstr("lack them: generators/privateuseone_0")));
}

TEST_F(TorchDeviceGenerators, AStateOfAnotherSizeIsLeftOut) {
  const at::Generator generator = fake_device::default_generator(device());
  const at::Tensor before = generator.get_state();
  const TorchValue value = device_generator_value("cuda_0", GeneratorWatch::of(generator));
  value.assign(at::zeros({3}, at::kByte));
  EXPECT_TRUE(at::equal(generator.get_state(), before));
  EXPECT_THAT(warnings_, ElementsAre(HasSubstr("generators/cuda_0 has 3 bytes in the checkpoint, but 5056")));
}

TEST_F(TorchDeviceGenerators, OneThatTheProgramBindsIsSavedUnderItsNameAlone) {
  TorchTrainingOptions options;
  options.generators = {{"gpu", fake_device::default_generator(device())}};
  Program undisturbed(device(), options);
  undisturbed.initialize().train(6);
  std::string saved;
  {
    Program program(device(), options);
    program.initialize().train(4);
    saved = program.saver->save(*program.session, path_);
  }
  const BundleReader reader(FileSystem::real(), saved);
  EXPECT_TRUE(reader.has("generators/gpu"));
  EXPECT_FALSE(reader.has("generators/privateuseone_0"));
  Program program(device(), options);
  expect_equal(program.restore(saved).train(2).weights(), undisturbed.weights());
}

TEST_F(TorchDeviceGenerators, OneThatNobodyKnowsIsSaid) {
  register_default_generators(device().type(), nullptr);
  const Program program(device());
  EXPECT_THAT(said_, Contains(HasSubstr("do not have the default generator of privateuseone:0")));
}

}  // namespace
}  // namespace longhaul
