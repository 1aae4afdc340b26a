// Bound programs on another device than the CPU: what they cost there, and what their checkpoints have.
#include <c10/core/DeviceType.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <thread>

#include "longhaul/binding/torch_device_fixture.h"
#include "longhaul/checkpoint/bundle/bundle_reader.h"
#include "longhaul/checkpoint/directory/checkpoint_reader.h"
#include "longhaul/testing/fake_device/fake_device.h"

namespace longhaul {
namespace {

using ::testing::HasSubstr;

class TorchDeviceTest : public ::testing::Test {
 protected:
  using Program = DeviceProgram;

  TorchDeviceTest() { fake_device::reset(); }
  ~TorchDeviceTest() override { fake_device::reset(); }

  const testing::TemporaryDirectory directory_;
  const std::string path_ = directory_.file("model");
};

TEST_F(TorchDeviceTest, AStepDoesNotWaitForTheDevice) {
  Program program(fake_device::device());
  program.initialize().train(33);
  fake_device::reset();
  program.train(30);  // up to step 63
  EXPECT_EQ(fake_device::counts().host_waits, 0);
  EXPECT_GT(fake_device::counts().operators, 30 * 10);
  program.train(1);  // what changes there is looked at: before and after the step
  EXPECT_EQ(fake_device::counts().host_waits, 2);
}

// But for the first snapshot, whose step shows whether all writes are announced.
TEST_F(TorchDeviceTest, ASnapshotWaitsForTheDeviceWhereItsBytesAreNeeded) {
  Program program(fake_device::device());
  program.initialize().train(3);
  program.saver->save(*program.session, path_, program.training.global_step);
  program.train(30);  // up to step 33, past those in which devices are looked at
  std::string saved;
  std::thread saver([&] {
    fake_device::reset();
    saved = program.saver->save(*program.session, path_, program.training.global_step);
  });
  saver.join();
  // The end of the copies; the sums of some tensors, of then and of now.
  EXPECT_LE(fake_device::counts().host_waits, 3);
  EXPECT_GT(fake_device::counts().copies_to_host, 10);
  Program undisturbed(fake_device::device());
  undisturbed.initialize().train(33);
  Program restored(fake_device::device());
  restored.saver->restore(*restored.session, saved);
  expect_equal(restored.weights(), undisturbed.weights());
}

// A weight that each step adds 1 to, on a stream of the training's own.
TEST_F(TorchDeviceTest, StepsOnAStreamOfTheirOwnAreSavedWhole) {
  const c10::impl::VirtualGuardImpl guard(fake_device::device().type());
  const c10::Stream stream = guard.getStreamFromGlobalPool(fake_device::device());
  torch::nn::Linear net(4, 2);
  fake_device::move(*net, fake_device::device());
  Graph graph;
  const TorchTraining training = torch_training(Scope(graph), *net, std::vector<torch::optim::Optimizer*>(),
                                                [&] {
                                                  const torch::NoGradGuard no_grad;
                                                  net->weight.fill_(1).add_(1).mul_(3);
                                                  return torch::zeros({});
                                                },
                                                {.updates_without_optimizer = true});
  const Operation init = ops::global_variables_initializer(Scope(graph));
  Saver saver({.graph = &graph});
  DirectSession session(graph, SessionOptions{});
  session.run(init);
  for (int i = 0; i < 3; ++i) {
    {
      const c10::StreamGuard own(stream);
      session.run(training.train_op);
    }
    std::string saved;
    std::thread saves([&] { saved = saver.save(session, path_, training.global_step); });
    saves.join();
    EXPECT_EQ(BundleReader(FileSystem::real(), saved).read("weight").flat<float>()[0], 6) << i;
    const torch::NoGradGuard no_grad;
    const c10::StreamGuard own(stream);
    net->weight.zero_();  // as if something else came between
  }
}

TEST_F(TorchDeviceTest, ACheckpointOfOneDeviceContinuesOnAnother) {
  const c10::Device cpu(c10::kCPU), device = fake_device::device(), other = fake_device::device(1);
  Program undisturbed(cpu);
  undisturbed.initialize().train(10);
  for (const auto& [from, to] : {std::pair(device, cpu), std::pair(cpu, device), std::pair(device, other)}) {
    std::string saved;
    {
      Program program(from);
      program.initialize().train(4);
      saved = program.saver->save(*program.session, path_, program.training.global_step);
    }
    Program program(to);
    program.saver->restore(*program.session, saved);
    program.train(6);
    EXPECT_EQ(program.net->parameters()[0].device(), to);
    expect_equal(program.weights(), undisturbed.weights());
  }
}

TEST_F(TorchDeviceTest, MemoryThatADeviceDoesNotHaveIsAnErrorOfTheStep) {
  Program program(fake_device::device());
  program.initialize().train(3);
  fake_device::fail_allocation(20);
  EXPECT_THAT(message_of<ResourceExhaustedError>([&] { program.train(1); }),
              AllOf(HasSubstr("torch_training/step"), HasSubstr("out of memory")));
}

TEST_F(TorchDeviceTest, ALostDeviceIsAnErrorOfTheSave) {
  Program program(fake_device::device());
  program.initialize().train(3);
  fake_device::lose("an illegal memory access was encountered");
  EXPECT_THAT(message_of<Error>([&] { program.saver->save(*program.session, path_); }),
              HasSubstr("an illegal memory access"));
  EXPECT_FALSE(checkpoint_exists(path_));
}

}  // namespace
}  // namespace longhaul
