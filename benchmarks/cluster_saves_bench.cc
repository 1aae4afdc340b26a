// What does a checkpoint of a model on two parameter servers cost? For how long it holds up the commits of steps, and
// how long it takes until it is durable. The servers are in this process.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <future>
#include <memory>
#include <stdexcept>

#include "benchmarks/benchmarks.h"
#include "benchmarks/cluster_servers.h"
#include "benchmarks/disk_limit.h"
#include "benchmarks/loopback.h"
#include "longhaul/longhaul.h"
#include "longhaul/testing/temporary_directory.h"

namespace longhaul::bench {
namespace {

constexpr int64_t kMiBOfModel = 1 << 20;

struct Span {
  Seconds begin, end;
  double milliseconds() const { return 1e3 * (end - begin).count(); }
  bool meets(const Span& other) const { return begin <= other.end && other.begin <= end; }
};

// Variables of so many bytes in all, half of them on each ps, and a count on each, which a step adds to.
class TwoPsModel {
 public:
  TwoPsModel(int64_t bytes, int max_to_keep) : bytes_(bytes) {
    constexpr int kVariables = 32;
    const Scope root(graph_);
    std::vector<Operation> counts;
    for (int i = 0; i < kVariables; ++i) {
      const Scope there = root.with_device(fmt::format("/job:ps/task:{}", i % 2));
      ops::variable(there, fmt::format("v{:02}", i),
                    ops::uniform(there, {bytes / kVariables / static_cast<int64_t>(sizeof(float))}, -1, 1));
      if (i >= 2) continue;
      const Variable count = ops::variable(there, fmt::format("count{}", i), Tensor::scalar<int64_t>(0));
      counts.push_back(ops::assign_add(there, count, ops::constant(there, int64_t{1})).op());
    }
    const Operation train = ops::group(root, counts, "train");
    saver_ = std::make_unique<Saver>(
        SaverOptions{.graph = &graph_, .max_to_keep = max_to_keep, .verify = Verification::kNever});
    const Operation init = ops::global_variables_initializer(root);
    session_ = new_session(servers_.master(), graph_);
    session_->run(init);
    step_ = session_->make_callable(train);
  }
  TwoPsModel(const TwoPsModel&) = delete;
  TwoPsModel& operator=(const TwoPsModel&) = delete;

  int64_t bytes() const { return bytes_; }
  void step() { step_(); }

  // Takes a checkpoint. Returns when its snapshot was taken: from the call of save() until the values were held.
  Span save() {
    Span snapshot{Clock::real().now(), {}};
    saver_->save(*session_, directory_.path() + "/model.ckpt", saves_++,
                 {.write_meta_graph = false, .after_snapshot = [&](auto) { snapshot.end = Clock::real().now(); }});
    return snapshot;
  }

  double save_seconds() {
    clear_directory(directory_.path());
    return time_seconds([&] { save(); });
  }

  // The same files, by a program that knows their bytes.
  double bare_seconds() {
    if (files_.empty()) {
      save_seconds();
      for (const auto& entry : std::filesystem::directory_iterator(directory_.path()))
        files_.emplace_back(entry.path());
    }
    clear_directory(directory_.path());
    return bare_write_seconds(files_, directory_.path());
  }

 private:
  const int64_t bytes_;
  const TrainingServers servers_{2};
  testing::TemporaryDirectory directory_;
  Graph graph_;
  std::unique_ptr<Saver> saver_;
  std::unique_ptr<Session> session_;
  Callable step_;
  std::vector<FileContents> files_;
  int64_t saves_ = 0;
};

// The model of the row that is measured; that of the row before goes.
TwoPsModel& two_ps_model_of(int64_t bytes, int max_to_keep) {
  static std::unique_ptr<TwoPsModel> model;
  if (!model || model->bytes() != bytes) {
    model.reset();
    model = std::make_unique<TwoPsModel>(bytes, max_to_keep);
    model->save();  // so that its buffers are there
  }
  return *model;
}

// By how much the longest step that met the snapshot was longer than a step is; negative: none met it.
double held_milliseconds(const std::vector<Span>& steps, const Span& snapshot, double normal) {
  double longest = -1;
  for (const Span& step : steps) {
    if (step.meets(snapshot)) longest = std::max(longest, std::max(0.0, step.milliseconds() - normal));
  }
  return longest;
}

std::vector<Span> steps_while(TwoPsModel& model, std::future<std::vector<Span>>& saving) {
  std::vector<Span> steps;
  while (saving.wait_for(std::chrono::seconds(0)) != std::future_status::ready) {
    const Seconds begin = Clock::real().now();
    model.step();
    steps.push_back({begin, Clock::real().now()});
  }
  return steps;
}

// Milliseconds for which a snapshot holds up commits: the median over many snapshots of what each held up the longest
// step that met it. A median, since a step may also wait for a processor that the writer has.
double commits_held_milliseconds(int64_t bytes) {
  constexpr int kSnapshots = 21;
  TwoPsModel& model = two_ps_model_of(bytes, 1);
  std::future<std::vector<Span>> saving = std::async(std::launch::async, [&] {
    std::vector<Span> snapshots;
    for (int i = 0; i < kSnapshots; ++i) snapshots.push_back(model.save());
    return snapshots;
  });
  const std::vector<Span> steps = steps_while(model, saving);
  std::vector<double> lengths, held;
  for (const Span& step : steps) lengths.push_back(step.milliseconds());
  for (const Span& snapshot : saving.get()) {
    const double of_snapshot = lengths.empty() ? -1 : held_milliseconds(steps, snapshot, median(lengths));
    if (of_snapshot >= 0) held.push_back(of_snapshot);
  }
  if (held.size() < kSnapshots / 2) throw std::runtime_error("too few snapshots met a step; is a processor free?");
  return median(held);
}

double three_round_trips_milliseconds() {
  constexpr size_t kBytesOfACall = 128;
  return 3e3 * tcp_round_trip_seconds(kBytesOfACall, 1000);
}

std::function<double()> two_ps_speed(double (TwoPsModel::*seconds)()) {
  return [=] {
    TwoPsModel& model = two_ps_model_of(1024 * kMiBOfModel, 0);  // the directory is cleared before each save
    return static_cast<double>(model.bytes()) / 1e9 / (model.*seconds)();
  };
}

}  // namespace

void add_cluster_saves_rows(std::vector<Row>& rows) {
  rows.push_back(
      {.name = "cluster/commits_held_1_MiB",
       .what = "for how long a snapshot over 2 ps holds up commits, compared with 3 round trips over TCP",
       .unit = "ms",
       .goal = 0.5,
       .bound = Bound::kAtMostMore,
       .sample = [] { return Pair{commits_held_milliseconds(kMiBOfModel), three_round_trips_milliseconds()}; },
       .goal_ours = 0.5});
  rows.push_back({.name = "cluster/commits_held_256_MiB",
                  .what = "the same for 256 MiB, compared with 1 MiB",
                  .unit = "ms",
                  .goal = 0.2,
                  .bound = Bound::kAtMostMore,
                  .sample = in_turns([] { return commits_held_milliseconds(256 * kMiBOfModel); },
                                     [] { return commits_held_milliseconds(kMiBOfModel); }),
                  .goal_ours = 0.5});
  rows.push_back(
      {.name = "cluster/checkpoint_2_ps",
       .what = "a checkpoint of 1 GiB on 2 ps until durable, compared with O_DIRECT writes of the same files",
       .unit = "GB/s",
       .goal = 0.85,
       .sample = in_turns(two_ps_speed(&TwoPsModel::save_seconds), two_ps_speed(&TwoPsModel::bare_seconds)),
       .samples = 10});
}

}  // namespace longhaul::bench
