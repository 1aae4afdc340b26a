// Sessions with GPUs, which are fake ones (testing/fake_device/): what is placed where, and what it costs.
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <gmock/gmock.h>

#include <optional>
#include <sstream>
#include <thread>

#include "longhaul/base/log.h"
#include "longhaul/ops/input/queue_ops.h"
#include "longhaul/ops/ops.h"
#include "longhaul/proto/config.pb.h"
#include "longhaul/runtime/devices/device_generator.h"
#include "longhaul/runtime/devices/fake_gpus_fixture.h"
#include "longhaul/runtime/devices/pinned_memory.h"
#include "longhaul/runtime/direct_session.h"
#include "longhaul/testing/error_fixture.h"
#include "longhaul/testing/fake_device/fake_device.h"
#include "longhaul/testing/temporary_directory.h"
#include "longhaul/train/saving/saver.h"
#include "longhaul/train/train_fixture.h"

namespace longhaul {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

const SessionOptions kWithoutGpus{.device_count = {{"GPU", 0}}};

std::string full_name(const std::string& device) {
  return "/job:localhost/replica:0/task:0/device:" + device;
}

class DeviceSessionTest : public ::testing::Test {
 protected:
  DeviceSessionTest() { fake_device::reset(); }
  ~DeviceSessionTest() override { fake_device::reset(); }

  Variable variable(const Scope& scope, const std::string& name, int64_t size = 3) {
    return ops::variable(scope, name, ops::ones(scope, {size}));
  }
  // The device of each operation that these runs need, as the log tells it: "w: (VariableV2): GPU:0".
  std::vector<std::string> placements(const std::vector<Fetch>& first, const std::vector<Fetch>& fetches,
                                      SessionOptions options = {}) {
    options.log_device_placement = true;
    DirectSession session(graph_, options);
    const LogRecorder log;
    session.run(first);
    session.run(fetches);
    session.run(fetches);  // nothing is told twice
    std::vector<std::string> lines;
    std::istringstream text(log.text(LogLevel::kInfo));
    for (std::string line; std::getline(text, line);) {
      if (const size_t at = line.find(full_name("")); at != line.npos) line.erase(at, full_name("").size());
      lines.push_back(line);
    }
    return lines;
  }

  const FakeGpus gpus_;
  Graph graph_;
  const Scope root_{graph_};
};

// A network of dense layers with batch normalization, dropout, an embedding, a falling rate and Adam.
struct Network {
  explicit Network(const std::string& device = "") {
    graph.set_seed(7);
    const Scope root = device.empty() ? Scope(graph) : Scope(graph).with_device(device);
    words = ops::placeholder(root, kInt64, {-1}, "words");
    labels = ops::placeholder(root, kInt64, {-1}, "labels");
    const Variable step = ops::global_step(root);
    const Variable table = ops::variable(root, "table", ops::glorot_uniform(root, {50, 96}));
    const Output looked_up = ops::embedding(root, table, words, {.sparse_gradient = true});
    const Output hidden = ops::dense(root, looked_up, 64, "hidden");
    const Output normal = ops::batch_norm(root, hidden, ops::batch_norm_variables(root, 64), true);
    const Output dropped = ops::dropout(root, ops::relu(root, normal), 0.3);
    logits = ops::dense(root, dropped, 10, "logits");
    loss = ops::cross_entropy_loss(root, logits, labels);
    const Output rate = ops::exponential_decay(root, 0.05, step, 3, 0.5);
    train = AdamOptimizer(rate).minimize(loss, step);
    initialize = ops::global_variables_initializer(root);
    saver.emplace(SaverOptions{.graph = &graph});
  }

  Feeds feeds(int64_t i) const {
    std::vector<int64_t> which, classes;
    for (int64_t k = 0; k < 16; ++k) {
      which.push_back((i * 7 + k * 3) % 50);
      classes.push_back((which.back() * 11) % 10);
    }
    return {{words, Tensor::of(which)}, {labels, Tensor::of(classes)}};
  }
  void train_steps(Session& session, int64_t first, int64_t count) const {
    for (int64_t i = first; i < first + count; ++i) session.run(train, feeds(i));
  }
  std::vector<std::string> values(Session& session) const {
    std::vector<std::string> bytes;
    for (const VariableInfo& info : ops::global_variables(graph)) {
      const Tensor value = session.run(info.ref);
      bytes.emplace_back(static_cast<const char*>(value.data()), value.size_bytes());
    }
    return bytes;
  }

  Graph graph;
  Output words, labels, logits, loss;
  Operation train, initialize;
  std::optional<Saver> saver;
};

// ---- Devices ----

TEST_F(DeviceSessionTest, ListsItsDevices) {
  const auto names = [&](const SessionOptions& options) {
    std::vector<std::string> names;
    for (const DeviceAttributes& device : DirectSession(graph_, options).list_devices())
      names.push_back(device.device_type + " " + device.name);
    return names;
  };
  const std::string cpu = "CPU " + full_name("CPU:0"), first = "GPU " + full_name("GPU:0");
  EXPECT_EQ(names({}), (std::vector{cpu, first, "GPU " + full_name("GPU:1")}));
  EXPECT_EQ(names({.device_count = {{"GPU", 1}}}), (std::vector{cpu, first}));
  EXPECT_EQ(names({.device_count = {{"GPU", 9}}}).size(), 3u);
  EXPECT_EQ(names(kWithoutGpus), std::vector{cpu});
}

TEST(DeviceSession, GpusThatAreNotThereAreNoneAndAskingForThemIsAnError) {
  Graph graph;
  EXPECT_EQ(DirectSession(graph, kWithoutGpus).list_devices().size(), 1u);
  EXPECT_EQ(DirectSession(graph, {}).list_devices().size(), 1u);
  EXPECT_THAT(error_of<InvalidArgumentError>([&] { DirectSession(graph, {.device_count = {{"GPU", 1}}}); }),
              AllOf(HasSubstr("device_count asks for GPUs"), HasSubstr("CUDA_VISIBLE_DEVICES")));
}

// ---- Placement ----

TEST_F(DeviceSessionTest, WhatComputesIsOnTheFirstGpuAndWhatEachStepLooksAtOnTheHost) {
  const Variable w = variable(root_, "w"), scalar = ops::variable(root_, "scalar", ops::ones(root_, {}));
  const Variable text = ops::variable(root_, "text", ops::constant(root_, Tensor::of<std::string>({"a", "b"})));
  const Output product = ops::mul(root_, w, w, "product");
  const Output small = ops::mul(root_, scalar, scalar, "small");
  const Output shape = ops::shape(root_, product);
  const auto lines = placements({w.initializer(), scalar.initializer(), text.initializer()}, {product, small, shape});
  for (const char* there :
       {"w: (VariableV2): GPU:0", "w/Assign: (Assign): GPU:0", "product: (aten::mul.Tensor): GPU:0"})
    EXPECT_THAT(lines, Contains(there));
  for (const char* here : {"scalar: (VariableV2): CPU:0", "scalar/Assign: (Assign): CPU:0",
                           "small: (aten::mul.Tensor): CPU:0", "text: (VariableV2): CPU:0", "Shape: (Shape): CPU:0"})
    EXPECT_THAT(lines, Contains(here));
}

TEST_F(DeviceSessionTest, AnOperationGoesWhereItIsAskedToOrWhereItsInputsAre) {
  const Variable w = variable(root_.with_device("/gpu:1"), "w");
  const Output with_it = ops::mul(root_, w, w, "with_it");
  const Output on_host = ops::mul(root_.with_device("/cpu:0"), w, w, "on_host");
  const Output back = ops::add(root_.with_device("/device:GPU:0"), on_host, with_it, "back");
  const auto lines = placements({w.initializer()}, {back});
  for (const char* line : {"w: (VariableV2): GPU:1", "with_it: (aten::mul.Tensor): GPU:1",
                           "on_host: (aten::mul.Tensor): CPU:0", "back: (aten::add.Tensor): GPU:0"})
    EXPECT_THAT(lines, Contains(line));
  DirectSession session(graph_, {});
  session.run(w.initializer());
  EXPECT_EQ(session.run(back).flat<float>()[0], 2.f);
}

TEST_F(DeviceSessionTest, AScopeOfAGpuTakesWhatBelongsToNoDevice) {
  const Scope gpu = root_.with_device("/gpu:0");
  const Variable step = ops::global_step(gpu), w = variable(gpu, "w");
  const Output fed = ops::placeholder(gpu, kFloat, {3}, "fed");
  const Output sum = ops::add(gpu, ops::identity(gpu, w), ops::mul(gpu, fed, ops::constant(gpu, 2.f)));
  const Output add = ops::assign_add(gpu, step, ops::constant(gpu, Tensor::scalar<int64_t>(1)));
  DirectSession session(graph_, {});
  session.run(ops::global_variables_initializer(gpu));
  session.run(add);
  EXPECT_EQ(session.run(step).item<int64_t>(), 1);
  EXPECT_EQ(session.run(sum, {{fed, Tensor::of<float>({1, 2, 3})}}).flat<float>()[2], 7.f);
}

TEST_F(DeviceSessionTest, ADeviceThatIsNotThereIsRefusedUnlessPlacementIsSoft) {
  const Variable far = variable(root_.with_device("/gpu:7"), "far");
  const Variable elsewhere = variable(root_.with_device("/job:ps/task:1"), "elsewhere");
  EXPECT_THAT(error_of<InvalidArgumentError>([&] { DirectSession(graph_, {}).run(far.initializer()); }),
              AllOf(HasSubstr("Cannot assign a device for operation"), HasSubstr("assigned to /device:GPU:7"),
                    HasSubstr("CPU:0, GPU:0, GPU:1"), HasSubstr("/job:localhost"), HasSubstr("allow_soft_placement")));
  const SessionOptions soft{.allow_soft_placement = true};
  EXPECT_THAT(placements({far.initializer()}, {far}, soft), Contains("far: (VariableV2): CPU:0"));
  EXPECT_THAT(error_of<InvalidArgumentError>([&] { DirectSession(graph_, soft).run(elsewhere.initializer()); }),
              AllOf(HasSubstr("assigned to /job:ps/task:1"), Not(HasSubstr("allow_soft_placement"))));
}

TEST_F(DeviceSessionTest, WhatNeedsNoLibtorchIsOnTheHostAlsoInTheScopeOfAGpu) {
  const Scope gpu = root_.with_device("/gpu:1");
  const FIFOQueue queue(gpu, 3, {kFloat});
  const Variable w = variable(gpu, "w");
  const Operation put = queue.enqueue(gpu, {ops::sum(gpu, w)});
  const Output size = queue.size(gpu);
  const auto lines = placements({w.initializer()}, {put, size});
  EXPECT_THAT(lines, Contains("sum: (aten::sum): GPU:1"));
  EXPECT_THAT(lines, Contains(put.name() + ": (QueueEnqueueV2): CPU:0"));
}

TEST_F(DeviceSessionTest, TracesAndPartitionGraphsNameTheDevices) {
  const Variable w = variable(root_, "w");
  const Output product = ops::mul(root_, w, w, "product");
  DirectSession session(graph_, {});
  session.run(w.initializer());
  proto::RunMetadata metadata;
  session.run(product, {}, {.trace_level = TraceLevel::kFullTrace, .output_partition_graphs = true}, &metadata);
  ASSERT_EQ(metadata.step_stats().dev_stats_size(), 1);
  EXPECT_EQ(metadata.step_stats().dev_stats(0).device(), full_name("GPU:0"));
  for (const auto& node : metadata.partition_graphs(0).node())
    EXPECT_EQ(node.device(), full_name("GPU:0")) << node.name();
}

// ---- Values ----

TEST_F(DeviceSessionTest, ATrainingHasTheSameBytesAsOnTheHost) {
  Network network;
  DirectSession there(network.graph, {}), here(network.graph, kWithoutGpus);
  for (DirectSession* session : {&there, &here}) {
    session->run(network.initialize);
    network.train_steps(*session, 0, 20);
  }
  EXPECT_EQ(network.values(there), network.values(here));
  const std::vector<Fetch> fetches{network.loss, network.logits};
  const auto of_gpu = there.run(fetches, network.feeds(3)), of_host = here.run(fetches, network.feeds(3));
  EXPECT_EQ(of_gpu[0].item<float>(), of_host[0].item<float>());
}

TEST_F(DeviceSessionTest, TheSameOnAnotherGpuAndOnSeveral) {
  Network first, second("/gpu:1");
  DirectSession there(first.graph, {}), elsewhere(second.graph, {});
  there.run(first.initialize);
  elsewhere.run(second.initialize);
  first.train_steps(there, 0, 5);
  second.train_steps(elsewhere, 0, 5);
  EXPECT_EQ(first.values(there), second.values(elsewhere));
}

// As on a GPU: other numbers than the CPU's, but the same each time.
TEST_F(DeviceSessionTest, DrawsOfADevicesOwnGeneratorAreThoseOfTheSeed) {
  register_default_generators(fake_device::device().type(), &fake_device::default_generator);
  Network network;
  const auto trained = [&](const SessionOptions& options) {
    DirectSession session(network.graph, options);
    session.run(network.initialize);
    network.train_steps(session, 0, 4);
    return network.values(session);
  };
  const auto first = trained({});
  EXPECT_EQ(trained({}), first);
  EXPECT_NE(trained(kWithoutGpus), first);
}

TEST_F(DeviceSessionTest, AStepWaitsForADeviceOnlyForWhatItFetches) {
  Graph graph;
  const Scope root(graph);
  const Output x = ops::placeholder(root, kFloat, {-1, 20}, "x"), y = ops::placeholder(root, kInt64, {-1}, "y");
  const Variable step = ops::global_step(root);
  const Output hidden = ops::relu(root, ops::dense(root, x, 32, "hidden"));
  const Output logits = ops::dense(root, hidden, 4, "logits");
  const Output loss = ops::cross_entropy_loss(root, logits, y);
  const Operation train = AdamOptimizer(ops::exponential_decay(root, 0.1, step, 10, 0.5)).minimize(loss, step);
  DirectSession session(graph, {});
  session.run(ops::global_variables_initializer(root));
  const Feeds feeds{{x, Tensor::of<float>({8, 20}, std::vector<float>(160, 0.5f))},
                    {y, Tensor::of<int64_t>({0, 1, 2, 3, 0, 1, 2, 3})}};
  const auto waits_of = [&](const std::vector<Fetch>& fetches) {
    session.run(fetches, feeds);  // is compiled
    fake_device::reset();
    session.run(fetches, feeds);
    EXPECT_GT(fake_device::counts().operators, 20);
    return fake_device::counts().host_waits;
  };
  EXPECT_EQ(waits_of({train}), 0);
  EXPECT_EQ(waits_of({train, step}), 0);
  EXPECT_EQ(waits_of({train, loss}), 1);
  EXPECT_EQ(waits_of({train, loss, logits, hidden}), 1);
}

TEST_F(DeviceSessionTest, AllIsCheckedBeforeTheFirstWrite) {
  const Variable a = variable(root_, "a"), b = variable(root_, "b");
  const Output to_a = ops::placeholder(root_, kFloat, {-1}, "to_a"),
               to_b = ops::placeholder(root_, kFloat, {-1}, "to_b");
  const Operation both = ops::group(root_, {ops::assign(root_, a, to_a).op(), ops::assign(root_, b, to_b).op()});
  DirectSession session(graph_, {});
  session.run({a.initializer(), b.initializer()});
  const Tensor fits = Tensor::of<float>({7, 8, 9});
  EXPECT_THROW(session.run(both, {{to_a, fits}, {to_b, Tensor::of<float>({1, 2})}}), InvalidArgumentError);
  EXPECT_EQ(session.run(a).flat<float>()[0], 1.f);
  session.run(both, {{to_a, fits}, {to_b, fits}});
  EXPECT_EQ(session.run(a).flat<float>()[2], 9.f);
}

TEST_F(DeviceSessionTest, ThreadsMayHaveChosenAnyStream) {
  const Variable w = variable(root_, "w", 5000);
  const Operation add = ops::assign_add(root_, w, ops::ones(root_, {5000})).op();
  DirectSession session(graph_, {});
  session.run(w.initializer());
  const c10::impl::VirtualGuardImpl guard(fake_device::device().type());
  std::thread trainer([&] {
    const c10::StreamGuard other(guard.getStreamFromGlobalPool(fake_device::device(), /*isHighPriority=*/false));
    session.run(add);
    EXPECT_EQ(guard.getStream(fake_device::device()), other.current_stream()) << "it is the thread's again";
  });
  trainer.join();
  EXPECT_EQ(session.run(w).flat<float>()[4999], 2.f);
}

TEST_F(DeviceSessionTest, AValueThatWasFetchedDoesNotChange) {
  const Variable w = variable(root_, "w", 5000);
  const Operation add = ops::assign_add(root_, w, ops::ones(root_, {5000})).op();
  DirectSession session(graph_, {});
  session.run(w.initializer());
  const Tensor before = session.run(w);
  session.run(add);
  EXPECT_EQ(before.flat<float>()[4999], 1.f);
  EXPECT_EQ(session.run(w).flat<float>()[4999], 2.f);
}

// ---- Checkpoints ----

TEST_F(DeviceSessionTest, ACheckpointOfOneKindOfDeviceIsContinuedOnAnother) {
  const testing::TemporaryDirectory directory;
  Network on_host, on_gpu, on_second("/gpu:1");
  DirectSession undisturbed(on_host.graph, kWithoutGpus);
  undisturbed.run(on_host.initialize);
  on_host.train_steps(undisturbed, 0, 12);
  std::string saved;
  {
    DirectSession first(on_gpu.graph, {});
    first.run(on_gpu.initialize);
    on_gpu.train_steps(first, 0, 4);
    saved = on_gpu.saver->save(first, directory.file("of_gpu"));
  }
  {
    DirectSession second(on_host.graph, kWithoutGpus);
    on_host.saver->restore(second, saved);
    on_host.train_steps(second, 4, 4);
    saved = on_host.saver->save(second, directory.file("of_host"));
  }
  DirectSession third(on_second.graph, {});
  on_second.saver->restore(third, saved);
  on_second.train_steps(third, 8, 4);
  EXPECT_EQ(on_second.values(third), on_host.values(undisturbed));
}

TEST_F(DeviceSessionTest, StepsDoNotWaitForTheCopiesOfASnapshot) {
  std::vector<c10::Stream> streams;  // at each copy that the host does not wait for
  const c10::Device device = fake_device::device();
  const c10::impl::VirtualGuardImpl guard(device.type());
  register_pinned_memory(device.type(), [&](at::IntArrayRef sizes, at::ScalarType dtype) {
    streams.push_back(guard.getStream(device));
    return fake_device::pinned_memory(sizes, dtype);
  });
  const Variable a = variable(root_, "a", 5000), b = variable(root_, "b", 6000);
  const std::vector<Fetch> both{a, b}, add{ops::assign_add(root_, a, ops::ones(root_, {5000})).op(),
                                           ops::assign_add(root_, b, ops::ones(root_, {6000})).op()};
  DirectSession session(graph_, {});
  session.run({a.initializer(), b.initializer()});
  session.run(add);
  const auto values = session.run(both, {}, {.snapshot = true});
  session.run(add);
  EXPECT_EQ(values[0].flat<float>()[4999] + values[1].flat<float>()[5999], 4.f);
  session.run(both);
  ASSERT_EQ(streams.size(), 2u);
  EXPECT_NE(streams[0], guard.getDefaultStream(device));
  EXPECT_EQ(streams[1], guard.getDefaultStream(device));
  register_pinned_memory(device.type(), &fake_device::pinned_memory);
}

// ---- Memory and failures ----

TEST_F(DeviceSessionTest, WhereADeviceIsFullTheOperationIsNamedAndTheSessionCanBeUsed) {
  Network network;
  DirectSession session(network.graph, {});
  session.run(network.initialize);
  network.train_steps(session, 0, 2);
  const auto before = network.values(session);
  fake_device::fail_allocation(3);
  EXPECT_THAT(error_of<ResourceExhaustedError>([&] { network.train_steps(session, 2, 1); }), HasSubstr("(aten::"));
  EXPECT_EQ(network.values(session), before);
  network.train_steps(session, 2, 3);
  DirectSession undisturbed(network.graph, {});
  undisturbed.run(network.initialize);
  network.train_steps(undisturbed, 0, 5);
  EXPECT_EQ(network.values(session), network.values(undisturbed));
}

// Either no variable has changed, or nothing is saved of a step that was made by half.
TEST_F(DeviceSessionTest, AnAllocationThatFailsAtAnyMomentOfAStepIsTold) {
  const testing::TemporaryDirectory directory;
  Network network;
  int unchanged = 0, by_half = 0;
  for (int64_t n = 1;; ++n) {
    DirectSession session(network.graph, {});
    session.run(network.initialize);
    network.train_steps(session, 0, 1);
    const auto before = network.values(session);
    fake_device::fail_allocation(n);
    const std::string error = error_of([&] { network.train_steps(session, 1, 1); });
    fake_device::reset();
    if (error.empty()) break;
    EXPECT_THAT(error, HasSubstr("out of memory")) << n;
    const auto save = [&] { network.saver->save(session, directory.file("model")); };
    if (network.values(session) == before) {
      ++unchanged;
      EXPECT_EQ(error_of(save), "") << n << ": " << error;
    } else {
      ++by_half;
      EXPECT_THAT(error_of<FailedPreconditionError>(save), HasSubstr("a step failed after it had written")) << n;
    }
  }
  EXPECT_GT(unchanged, 3);
  EXPECT_GT(by_half, 5);
}

// There it would end the use of the device for the process.
TEST_F(DeviceSessionTest, AnIndexOutOfRangeIsNamedBeforeItGetsToTheDevice) {
  Network network;
  DirectSession session(network.graph, {});
  session.run(network.initialize);
  const auto error = [&](int64_t word, int64_t label) {
    return error_of<InvalidArgumentError>([&] {
      session.run(network.train,
                  {{network.words, Tensor::of<int64_t>({1, word})}, {network.labels, Tensor::of<int64_t>({label, 2})}});
    });
  };
  EXPECT_THAT(error(50, 0),
              HasSubstr("(aten::embedding): index 50 at position 1 is out of range: the table has 50 rows"));
  EXPECT_THAT(error(0, 10), HasSubstr("label 10 at position 0 is out of range: there are 10 classes"));
  session.run(network.loss, {{network.words, Tensor::of<int64_t>({1, 2})},
                             {network.labels, Tensor::of<int64_t>({-100, 2})}});  // left out, as libtorch does
}

TEST_F(DeviceSessionTest, NothingIsSavedFromADeviceThatHasFailed) {
  const testing::TemporaryDirectory directory;
  Network network;
  DirectSession session(network.graph, {});
  session.run(network.initialize);
  fake_device::lose("an illegal memory access was encountered");
  const auto error = [&](const std::function<void()>& body) { return error_of<InternalError>(body); };
  EXPECT_THAT(error([&] { session.run(network.loss, network.feeds(0)); }),
              AllOf(HasSubstr("illegal memory access"), HasSubstr("start the program again")));
  EXPECT_THAT(error([&] { network.saver->save(session, directory.file("model")); }),
              HasSubstr("illegal memory access"));
  EXPECT_THAT(FileSystem::real().list(directory.path()), IsEmpty());
}

TEST_F(DeviceSessionTest, WhatItsVariablesTakeIsFreedWithIt) {
  const Variable w = variable(root_, "w", 100'000);
  const Operation add = ops::assign_add(root_, w, ops::ones(root_, {100'000})).op();
  fake_device::reset();
  const int64_t before = fake_device::allocated_bytes();
  {
    DirectSession session(graph_, {});
    session.run(w.initializer());
    for (int i = 0; i < 5; ++i) {
      session.run(add);
      session.run(w);  // waits: so what was done before is over
    }
    EXPECT_EQ(session.resources().variables().memory().bytes_of_variables(), 400'000u);
    EXPECT_GE(fake_device::allocated_bytes(), before + 400'000);
    EXPECT_LE(fake_device::allocated_bytes(), before + 3 * 400'000);
  }
  fake_device::reset();
  EXPECT_EQ(fake_device::allocated_bytes(), before);
}

}  // namespace
}  // namespace longhaul
