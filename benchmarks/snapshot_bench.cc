// What does a checkpoint cost the training beside which it is written? How long a step is held up while the variables
// are read, and how many steps are not made in all until the checkpoint is durable; on models of 200 variables.
#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <stdexcept>
#include <thread>

#include "benchmarks/benchmarks.h"
#include "longhaul/longhaul.h"

namespace longhaul::bench {
namespace {

constexpr int kLayers = 100;
constexpr int64_t kBatch = 8;

class Directory {
 public:
  Directory() {
    if (mkdtemp(path_.data()) == nullptr) throw std::runtime_error("cannot make " + path_);
  }
  ~Directory() { std::filesystem::remove_all(path_); }
  Directory(const Directory&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_ = (std::filesystem::temp_directory_path() / "longhaul_bench.XXXXXX").string();
};

// Dense layers of very different sizes beside each other, each with weights and a bias; a step trains all of them.
class Model {
 public:
  explicit Model(int64_t bytes) {
    const Scope root(graph_);
    const int64_t columns = bytes / (kLayers * kMeanRows * static_cast<int64_t>(sizeof(float)));
    Output loss;
    for (int i = 0; i < kLayers; ++i) {
      const int64_t rows = 1 + 2 * (kMeanRows - 1) * i / (kLayers - 1);
      const Variable weights = ops::variable(root, fmt::format("w{}", i), ops::full(root, {rows, columns}, 0.01));
      const Variable bias = ops::variable(root, fmt::format("b{}", i), ops::zeros(root, {columns}));
      const Output input = ops::full(root, {kBatch, rows}, 0.1);
      const Output error = ops::mean(root, ops::square(root, ops::matmul(root, input, weights) + bias));
      loss = loss.valid() ? loss + error : error;
    }
    train_ = GradientDescentOptimizer(1e-3).minimize(root, loss);
    const Variable count = ops::variable(root, "count", Tensor::scalar<int64_t>(0));
    count_ = ops::assign_add(root, count, ops::constant(root, Tensor::scalar<int64_t>(1))).op();
    saver_ = std::make_unique<Saver>(SaverOptions{.graph = &graph_, .max_to_keep = 1});
    session_ = new_session("", graph_);
    session_->run(ops::global_variables_initializer(root));
  }

  uint64_t bytes() const { return saver_->bytes(); }
  Session& session() { return *session_; }
  Callable training_step() { return session_->make_callable(train_); }
  // Enters the gate as every step does, and writes eight bytes.
  Callable counting_step() { return session_->make_callable(count_); }

  SaveReport save() {
    saver_->save(*session_, directory_.path() + "/model.ckpt", saves_++, {.write_meta_graph = false});
    return *saver_->last_report();
  }

 private:
  static constexpr int64_t kMeanRows = 64;

  Directory directory_;
  Graph graph_;
  Operation train_, count_;
  std::unique_ptr<Saver> saver_;
  std::unique_ptr<Session> session_;
  int64_t saves_ = 0;
};

double milliseconds_to_copy(uint64_t bytes) {
  const std::vector<char> from(bytes, 1);
  std::vector<char> to(bytes, 2);
  std::vector<double> times;
  for (int i = 0; i < 3; ++i) times.push_back(1e3 * time_seconds([&] { std::memcpy(to.data(), from.data(), bytes); }));
  return median(times);
}

struct Interval {
  Seconds begin, end;
  double milliseconds() const { return 1e3 * (end - begin).count(); }
};

// Runs `step` on a thread of its own, and notes when each began and ended. It is made when some were.
class Steps {
 public:
  explicit Steps(Callable step) : step_(std::move(step)), thread_([this] { run(); }) {
    while (made_.load() < 1000) std::this_thread::yield();
  }
  ~Steps() { thread_.join(); }

  std::vector<Interval> stop() {
    stop_ = true;
    thread_.join();
    thread_ = std::thread([] {});
    return std::move(steps_);
  }

 private:
  void run() {
    steps_.reserve(1 << 22);
    while (!stop_.load() && steps_.size() < steps_.capacity()) {
      const Seconds begin = Clock::real().now();
      step_();
      steps_.push_back({begin, Clock::real().now()});
      ++made_;
    }
  }

  const Callable step_;
  std::atomic<bool> stop_{false};
  std::atomic<int> made_{0};
  std::vector<Interval> steps_;
  std::thread thread_;
};

// By how much the longest of the steps that met the snapshot was longer than a step is; nothing if none did, because
// the training's thread had no processor just then.
double held_up(const std::vector<Interval>& steps, const Interval& snapshot) {
  std::vector<double> all;
  double longest = 0;
  for (const Interval& step : steps) {
    all.push_back(step.milliseconds());
    if (step.end >= snapshot.begin && step.begin <= snapshot.end) longest = std::max(longest, all.back());
  }
  return std::max(0.0, longest - median(all));
}

// For how many milliseconds saves hold up the training: the median, or the most of several.
Pair sample_held_up(int64_t bytes, bool most) {
  constexpr int kSaves = 7;
  set_intra_op_threads(1);
  Model model(bytes);
  model.save();
  std::vector<double> times;
  for (int i = 0; i < kSaves; ++i) {
    Steps steps(model.counting_step());
    const Seconds begin = Clock::real().now();
    const Interval snapshot{begin, begin + model.save().snapshot};
    times.push_back(held_up(steps.stop(), snapshot));
  }
  fmt::print(stderr, "  {} of {} snapshots met a step\n", std::ranges::count_if(times, [](double t) { return t > 0; }),
             kSaves);
  return {most ? *std::max_element(times.begin(), times.end()) : median(times), milliseconds_to_copy(model.bytes())};
}

int64_t page_faults(int of_whom) {
  rusage usage;
  getrusage(of_whom, &usage);
  return usage.ru_minflt + usage.ru_majflt;
}

double peak_gigabytes() {
  rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) * 1024 / 1e9;
}

struct Stretch {  // of training
  int steps = 0;
  double seconds = 0;
  int64_t faults = 0;      // of the process
  int64_t own_faults = 0;  // of the thread that trains
};

Stretch train_while(const Callable& step, const std::function<bool(int)>& more) {
  Stretch stretch;
  const int64_t faults = page_faults(RUSAGE_SELF), own_faults = page_faults(RUSAGE_THREAD);
  stretch.seconds = time_seconds([&] {
    while (more(stretch.steps)) {
      step();
      ++stretch.steps;
    }
  });
  stretch.faults = page_faults(RUSAGE_SELF) - faults;
  stretch.own_faults = page_faults(RUSAGE_THREAD) - own_faults;
  return stretch;
}

Stretch train_during_save(const Callable& step, Model& model) {
  std::atomic<bool> saved{false};
  std::thread saving([&] {
    model.save();
    saved = true;
  });
  const Stretch stretch = train_while(step, [&](int) { return !saved.load(); });
  saving.join();
  return stretch;
}

// Seconds of training that a save costs: how much longer its steps took than as many before and after. Beside it, the
// save alone, for which a training that waits for it would stand still.
Pair sample_training_lost(int64_t bytes, bool first) {
  constexpr int kSteps = 4;
  set_intra_op_threads(2);
  Model model(bytes);
  const Callable step = model.training_step();
  const auto some = [](int steps) { return steps < kSteps; };
  const std::shared_ptr<Snapshots> snapshots = model.session().snapshots();
  snapshots->prepare([] { return false; });
  train_while(step, some);
  if (!first) train_during_save(step, model);
  const Stretch before = train_while(step, some);
  const Stretch during = train_during_save(step, model);
  const Stretch after = train_while(step, some);
  const double normal = (before.seconds + after.seconds) / (2 * kSteps);
  const double lost = during.seconds - during.steps * normal;
  fmt::print(stderr,
             "  {:.3f} s lost of {:.3f} in which {} steps were made of {:.3f} s; page faults {}, {} of them in steps "
             "(without a save {}); peak memory {:.2f} GB\n",
             lost, during.seconds, during.steps, normal, during.faults, during.own_faults, before.own_faults,
             peak_gigabytes());
  return {lost, time_seconds([&] { model.save(); })};
}

}  // namespace

void add_snapshot_rows(std::vector<Row>& rows) {
  constexpr int64_t kMiB = 1 << 20;
  const auto add = [&](const std::string& size, int64_t bytes, bool most, double goal) {
    rows.push_back({.name = fmt::format("snapshot/held_up_{}{}", most ? "most_" : "", size),
                    .what = fmt::format("for how long a save holds a step up, {}, beside a copy of the variables",
                                        most ? "the longest of 7" : "the median of 7"),
                    .unit = "ms",
                    .goal = goal,
                    .bound = Bound::kAtMost,
                    .sample = [=] { return sample_held_up(bytes, most); },
                    .goal_ours = most ? 5.0 : 1.0});
  };
  add("64MiB", 64 * kMiB, false, 0.2);
  add("64MiB", 64 * kMiB, true, 1);
  add("1GiB", 1024 * kMiB, false, 0.02);
  add("1GiB", 1024 * kMiB, true, 0.1);
  const auto add_lost = [&](const std::string& which, int64_t bytes, bool first) {
    rows.push_back({.name = "snapshot/training_lost_" + which,
                    .what = "training lost by a save beside it, both cores training, beside one that it waits for",
                    .unit = "s",
                    .goal = 0.5,
                    .bound = Bound::kAtMost,
                    .sample = [=] { return sample_training_lost(bytes, first); },
                    .goal_ours = 0.2});
  };
  add_lost("64MiB", 64 * kMiB, false);
  add_lost("1GiB", 1024 * kMiB, false);
  add_lost("first_1GiB", 1024 * kMiB, true);
}

}  // namespace longhaul::bench
