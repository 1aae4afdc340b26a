// The fake device itself: what it computes, and that it shows what a GPU would only show sometimes.
#include "longhaul/testing/fake_device/fake_device.h"

#include <ATen/ATen.h>
#include <c10/core/Event.h>
#include <c10/core/StreamGuard.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/nn/functional/loss.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/dropout.h>
#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/rnn.h>
#include <torch/optim/adam.h>
#include <torch/optim/sgd.h>
#include <torch/utils.h>

#include <cmath>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <vector>

namespace longhaul {
namespace {

using ::testing::HasSubstr;

class FakeDevice : public ::testing::Test {
 protected:
  FakeDevice() {
    fake_device::install();
    fake_device::reset();
  }
  ~FakeDevice() override { fake_device::reset(); }

  static at::Tensor there(const at::Tensor& tensor) { return tensor.to(device()); }
  static at::Tensor here(const at::Tensor& tensor) { return tensor.to(at::kCPU); }
  static c10::Device device() { return fake_device::device(); }
  static const c10::impl::VirtualGuardImpl& guard() {
    static const c10::impl::VirtualGuardImpl guard(device().type());
    return guard;
  }
};

TEST_F(FakeDevice, ComputesWhatTheCpuComputes) {
  torch::manual_seed(1);
  const at::Tensor a = at::randn({5, 7}), b = at::randn({7, 3}), rows = at::tensor({4, 0, 4}, at::kLong);
  const std::vector<std::function<at::Tensor(const at::Tensor&, const at::Tensor&, const at::Tensor&)>> programs = {
      [](auto& a, auto& b, auto&) { return a.mm(b).relu().softmax(1); },
      [](auto& a, auto&, auto&) { return a.t().narrow(0, 1, 3).square().sum(1) / 3 + 1e-3; },
      [](auto& a, auto&, auto& rows) { return a.index_select(0, rows) + a.index({rows}); },
      [](auto& a, auto&, auto&) { return at::cat({a, a.flip(0)}, 1).view({2, -1}).mean(0); },
      [](auto& a, auto&, auto&) { return std::get<0>(a.max(1)) - a.argmax(1).to(at::kFloat); },
      [](auto& a, auto&, auto&) { return a.masked_select(a > 0); },
      [](auto& a, auto&, auto&) { return at::norm(a) * a.clone().clamp_(-1, 1).add_(a, 2).mul_(a.numel()); },
      [](auto& a, auto&, auto&) { return at::where(a > 0, a, at::scalar_tensor(0.5)).cumsum(0); },
  };
  for (size_t i = 0; i < programs.size(); ++i) {
    const at::Tensor result = programs[i](there(a), there(b), there(rows));
    EXPECT_EQ(result.device(), device()) << i;
    EXPECT_TRUE(at::equal(here(result), programs[i](a, b, rows))) << i;
  }
}

TEST_F(FakeDevice, TrainsToTheSameBytesAsTheCpu) {
  const auto train = [](c10::Device on, torch::nn::Sequential net, const at::Tensor& x, const at::Tensor& y,
                        bool adam) {
    fake_device::move(*net, on);
    const std::vector<at::Tensor> parameters = net->parameters();
    std::unique_ptr<torch::optim::Optimizer> optimizer = std::make_unique<torch::optim::SGD>(parameters, 0.1);
    if (adam) optimizer = std::make_unique<torch::optim::Adam>(parameters, 0.01);
    for (int i = 0; i < 4; ++i) {
      optimizer->zero_grad();
      torch::nn::functional::cross_entropy(net->forward(x.to(on)), y.to(on)).backward();
      optimizer->step();
    }
    std::vector<at::Tensor> state;
    for (const at::Tensor& parameter : parameters) state.push_back(parameter.detach().to(at::kCPU));
    return state;
  };
  const auto dense = [] {
    using namespace torch::nn;
    return Sequential(Linear(6, 8), BatchNorm1d(8), Dropout(0.5), Linear(8, 3));
  };
  const auto convolution = [] {
    using namespace torch::nn;
    return Sequential(Conv2d(Conv2dOptions(1, 4, 3)), BatchNorm2d(4), Conv2d(Conv2dOptions(4, 3, 4)));
  };
  for (const bool adam : {false, true}) {
    std::vector<std::vector<at::Tensor>> states;
    for (const c10::Device on : {c10::Device(at::kCPU), device()}) {
      torch::manual_seed(2);
      const at::Tensor x = at::randn({9, 6}), y = at::randint(0, 3, {9});
      states.push_back(train(on, dense(), x, y, adam));
      const at::Tensor image = at::randn({9, 1, 6, 6});
      for (at::Tensor& tensor : train(on, convolution(), image, at::randint(0, 3, {9, 1, 1}), adam)) {
        states.back().push_back(tensor);
      }
    }
    for (size_t i = 0; i < states[0].size(); ++i) EXPECT_TRUE(at::equal(states[0][i], states[1][i])) << adam << i;
  }
}

TEST_F(FakeDevice, TheHostCannotReadItsMemory) {
  const at::Tensor tensor = at::zeros({4}, device());
  EXPECT_DEATH(std::exit(static_cast<int>(*tensor.data_ptr<float>())), "");
}

TEST_F(FakeDevice, AStreamRunsNothingBeforeSomebodyWaits) {
  const at::Tensor ones = at::ones({3}, device());
  const c10::Stream other = guard().getStreamFromGlobalPool(device());
  at::Tensor early, right;
  {
    const c10::StreamGuard on_other(other);
    early = here(ones);  // without an event
    c10::Event event(device().type());
    event.record(guard().getDefaultStream(device()));
    event.block(other);
    right = here(ones);
  }
  EXPECT_TRUE(early.isnan().all().item<bool>());
  EXPECT_TRUE(right.eq(1).all().item<bool>());
}

TEST_F(FakeDevice, AnEventIsReachedByWhoAsksAgain) {
  const at::Tensor threes = at::ones({3}, device()).mul(3);
  c10::Event event(device().type());
  event.record(guard().getDefaultStream(device()));
  int asked = 1;
  while (!event.query()) ++asked;
  EXPECT_GT(asked, 1);
  EXPECT_EQ(fake_device::counts().host_waits, 0);
}

TEST_F(FakeDevice, FreedMemoryIsNaNToAnotherStream) {
  at::Tensor ones = at::ones({3}, device());
  here(ones);
  const c10::Stream other = guard().getStreamFromGlobalPool(device());
  at::Tensor copy;
  {
    const c10::StreamGuard on_other(other);
    copy = ones.clone();
  }
  ones = at::Tensor();
  guard().synchronizeStream(guard().getDefaultStream(device()));
  const c10::StreamGuard on_other(other);
  EXPECT_TRUE(here(copy).isnan().all().item<bool>());
}

TEST_F(FakeDevice, CountsWhatTheHostWaitsForAndCopies) {
  const at::Tensor a = there(at::ones({3}));
  const at::Tensor b = a.mul(2).sum();
  EXPECT_EQ(fake_device::counts().host_waits, 0);
  EXPECT_EQ(b.item<float>(), 6);
  here(a);
  const fake_device::Counts counts = fake_device::counts();
  EXPECT_EQ(counts.host_waits, 2);
  EXPECT_EQ(counts.copies_to_device, 1);
  EXPECT_EQ(counts.copies_to_host, 1);
  EXPECT_EQ(counts.operators, 2);
}

TEST_F(FakeDevice, DevicesDoNotMix) {
  const at::Tensor a = at::ones({3}, device());
  const auto error = [](const std::function<void()>& call) -> std::string {
    try {
      call();
    } catch (const c10::Error& error) {
      return error.what_without_backtrace();
    }
    return "none";
  };
  const char* expected = "Expected all tensors to be on the same device, but found at least two devices, ";
  EXPECT_THAT(error([&] { a.add(at::ones({3})); }), HasSubstr(expected + std::string("privateuseone:0 and cpu!")));
  const at::Tensor other = at::ones({3}, fake_device::device(1));
  EXPECT_THAT(error([&] { a.add(other); }), HasSubstr(expected));
  EXPECT_TRUE(here(a.add(other.to(device())).add(at::scalar_tensor(1))).eq(3).all().item<bool>());
  EXPECT_THAT(error([&] { a.add(at::ones({4}, device())); }), HasSubstr("The size of tensor a (3) must match"));
}

TEST_F(FakeDevice, RunsOutOfMemoryWhenToldTo) {
  fake_device::fail_allocation(2);
  const at::Tensor first = at::empty({3}, device());
  EXPECT_THROW(at::empty({3}, device()), c10::OutOfMemoryError);
  EXPECT_NO_THROW(at::empty({3}, device()));
}

TEST_F(FakeDevice, ALostDeviceIsToldByTheNextWait) {
  const at::Tensor ones = at::ones({3}, device());
  fake_device::lose("an illegal memory access was encountered");
  const at::Tensor twos = ones.add(1);
  EXPECT_THROW(here(twos), c10::Error);
  EXPECT_THROW(here(ones), c10::Error);
  fake_device::reset();
  EXPECT_TRUE(here(twos).eq(2).all().item<bool>());
}

TEST_F(FakeDevice, KnowsHowMuchMemoryTensorsHave) {
  fake_device::reset();
  const int64_t before = fake_device::allocated_bytes();
  at::Tensor tensor = at::empty({1024}, device());
  EXPECT_EQ(fake_device::allocated_bytes() - before, 4096);
  tensor.resize_({2048});
  tensor = at::Tensor();
  fake_device::reset();
  EXPECT_EQ(fake_device::allocated_bytes(), before);
}

}  // namespace
}  // namespace longhaul
