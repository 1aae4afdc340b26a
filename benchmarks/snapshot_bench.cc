// What does a checkpoint cost the training beside which it is written? How long a step is stalled while the variables
// are read, and how many steps are not made in all until the checkpoint is durable; on models of 200 variables.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <optional>
#include <stdexcept>
#include <thread>
#include <utility>

#include "benchmarks/benchmarks.h"
#include "benchmarks/files.h"
#include "longhaul/longhaul.h"
#include "longhaul/testing/temporary_directory.h"

namespace longhaul::bench {
namespace {

constexpr int kLayers = 100;
constexpr int64_t kBatch = 8;

// Dense layers of very different sizes beside each other, each with weights and a bias; a step trains all of them.
class Model {
 public:
  explicit Model(int64_t bytes, Verification verify = Verification::kBeforeDeletion) {
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
    saver_ = std::make_unique<Saver>(SaverOptions{.graph = &graph_, .max_to_keep = 1, .verify = verify});
    session_ = new_session("", graph_);
    session_->run(ops::global_variables_initializer(root));
  }

  uint64_t bytes() const { return saver_->bytes(); }
  Callable training_step() { return session_->make_callable(train_); }
  // Enters the gate as every step does, and writes eight bytes.
  Callable counting_step() { return session_->make_callable(count_); }

  // From now on, and touched.
  void keep_buffers() {
    snapshots_ = snapshots_of(*session_);
    snapshots_->prepare([] { return false; });
  }

  SaveReport save() {
    saver_->save(*session_, directory_.path() + "/model.ckpt", saves_++, {.write_meta_graph = false});
    return *saver_->last_report();
  }

 private:
  static constexpr int64_t kMeanRows = 64;

  testing::TemporaryDirectory directory_;
  Graph graph_;
  Operation train_, count_;
  std::unique_ptr<Saver> saver_;
  std::unique_ptr<Session> session_;
  std::shared_ptr<Snapshots> snapshots_;
  int64_t saves_ = 0;
};

// The model of the row that is measured; that of the row before goes. It was saved once, so that its buffers are there.
Model& model_of(int64_t bytes, Verification verify = Verification::kBeforeDeletion) {
  static std::unique_ptr<Model> model;
  static auto of_which = std::pair(int64_t{0}, verify);
  if (of_which != std::pair(bytes, verify)) {
    model.reset();
    model = std::make_unique<Model>(bytes, verify);
    of_which = {bytes, verify};
    model->keep_buffers();
    model->save();
  }
  return *model;
}

double milliseconds_to_copy(uint64_t bytes) {
  const std::vector<char> from(bytes, 1);
  std::vector<char> to(bytes, 2);
  std::vector<double> times;
  for (int i = 0; i < 3; ++i) times.push_back(1e3 * time_seconds([&] { std::memcpy(to.data(), from.data(), bytes); }));
  return median(times);
}

struct Interval {
  Seconds begin, end;
  double waited = 0;  // of these milliseconds, for a processor that others had
  double milliseconds() const { return 1e3 * (end - begin).count(); }
};

// For how long the calling thread has been ready to run while others had the processors, as the kernel counts it.
class ProcessorWaits {
 public:
  ProcessorWaits() : fd_(::open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC)) {}
  ~ProcessorWaits() {
    if (fd_ >= 0) ::close(fd_);
  }
  ProcessorWaits(const ProcessorWaits&) = delete;
  ProcessorWaits& operator=(const ProcessorWaits&) = delete;

  double milliseconds() const {
    char text[128] = {};
    unsigned long long ran = 0, waited = 0;
    if (fd_ < 0 || ::pread(fd_, text, sizeof text - 1, 0) <= 0) return 0;
    if (std::sscanf(text, "%llu %llu", &ran, &waited) != 2) return 0;
    return static_cast<double>(waited) / 1e6;
  }

 private:
  const int fd_;
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
    constexpr Seconds kLong{1e-4};  // the kernel's count is read where a step, or what lies between two, took so long
    const ProcessorWaits waits;
    double waited = waits.milliseconds();
    const auto since_last = [&] {
      const double before = std::exchange(waited, waits.milliseconds());
      return waited - before;
    };
    steps_.reserve(1 << 22);
    for (Seconds end = Clock::real().now(); !stop_.load() && steps_.size() < steps_.capacity(); ++made_) {
      const Seconds begin = Clock::real().now();
      if (begin - end > kLong) since_last();
      step_();
      end = Clock::real().now();
      steps_.push_back({begin, end, end - begin > kLong ? since_last() : 0});
    }
  }

  const Callable step_;
  std::atomic<bool> stop_{false};
  std::atomic<int> made_{0};
  std::vector<Interval> steps_;
  std::thread thread_;
};

// By how much the longest of the steps that met the snapshot was longer than a step is, in milliseconds.
struct Stall {
  double of_clock = 0;
  double by_save = 0;  // less what each step waited for a processor that others had
};

// nullopt: none met it, because the thread that trains had no processor just then.
std::optional<Stall> stall_of(const std::vector<Interval>& steps, const Interval& snapshot) {
  std::vector<double> all;
  Stall longest;
  bool any = false;
  for (const Interval& step : steps) {
    all.push_back(step.milliseconds());
    if (step.end < snapshot.begin || step.begin > snapshot.end) continue;
    any = true;
    longest.of_clock = std::max(longest.of_clock, all.back());
    longest.by_save = std::max(longest.by_save, all.back() - step.waited);
  }
  if (!any) return std::nullopt;
  const double normal = median(all);
  return Stall{std::max(0.0, longest.of_clock - normal), std::max(0.0, longest.by_save - normal)};
}

// For how many milliseconds saves stall the training: the median, or the most of several.
Pair sample_stall(int64_t bytes, bool most) {
  constexpr size_t kSaves = 7, kMostTries = 3 * kSaves;
  set_intra_op_threads(1);
  Model& model = model_of(bytes);
  std::vector<double> of_clock, by_save;
  for (size_t i = 0; i < kMostTries && by_save.size() < kSaves; ++i) {
    Steps steps(model.counting_step());
    const Seconds begin = Clock::real().now();
    const Interval snapshot{begin, begin + model.save().snapshot};
    const std::optional<Stall> result = stall_of(steps.stop(), snapshot);
    if (!result) continue;
    of_clock.push_back(result->of_clock);
    by_save.push_back(result->by_save);
  }
  if (by_save.empty()) throw std::runtime_error("no snapshot coincided with a step; is a processor free for training?");
  fmt::print(stderr,
             "  including waits for a processor: median {:.3f} ms, maximum {:.3f}, of {} snapshots that coincided with "
             "a step\n",
             median(of_clock), *std::ranges::max_element(of_clock), by_save.size());
  return {most ? *std::ranges::max_element(by_save) : median(by_save), milliseconds_to_copy(model.bytes())};
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
Pair training_lost(Model& model) {
  constexpr int kSteps = 4;
  set_intra_op_threads(2);
  const Callable step = model.training_step();
  const auto some = [](int steps) { return steps < kSteps; };
  train_while(step, some);
  const Stretch before = train_while(step, some);
  const Stretch during = train_during_save(step, model);
  const Stretch after = train_while(step, some);
  const double normal = (before.seconds + after.seconds) / (2 * kSteps);
  const double lost = during.seconds - during.steps * normal;
  fmt::print(stderr,
             "  {:.3f} s lost of {:.3f} s, with {} steps that normally take {:.3f} s each; page faults: {}, {} of them "
             "in steps ({} without a save); peak memory {:.2f} GB\n",
             lost, during.seconds, during.steps, normal, during.faults, during.own_faults, before.own_faults,
             peak_gigabytes());
  return {lost, time_seconds([&] { model.save(); })};
}

// The first save of a model, whose buffers were touched in the background.
Pair sample_first_save(int64_t bytes) {
  Model model(bytes);
  model.keep_buffers();
  return training_lost(model);
}

}  // namespace

void add_snapshot_rows(std::vector<Row>& rows) {
  constexpr int64_t kMiB = 1 << 20;
  const auto add = [&](const std::string& size, int64_t bytes, bool most, double goal) {
    rows.push_back(
        {.name = fmt::format("snapshot/stall_{}{}", most ? "most_" : "", size),
         .what = fmt::format(
             "how long a save delays a step, {}, without waits for a processor, compared with a copy of the variables",
             most ? "the longest of 7" : "the median of 7"),
         .unit = "ms",
         .goal = goal,
         .bound = Bound::kAtMost,
         .sample = [=] { return sample_stall(bytes, most); },
         .goal_ours = most ? 5.0 : 1.0});
  };
  const auto add_lost = [&](const std::string& which, const std::string& of_what, std::function<Pair()> sample) {
    rows.push_back(
        {.name = "snapshot/training_lost_" + which,
         .what = fmt::format(
             "training time lost to {} in the background, on both cores, compared with one that training waits for",
             of_what),
         .unit = "s",
         .goal = 0.5,
         .bound = Bound::kAtMost,
         .sample = std::move(sample),
         .samples = 11,  // a step of the large model takes longer than what is lost
         .goal_ours = 0.2});
  };
  add("64MiB", 64 * kMiB, false, 0.2);
  add("64MiB", 64 * kMiB, true, 1);
  add_lost("64MiB", "a save", [] { return training_lost(model_of(64 * kMiB)); });
  add("1GiB", 1024 * kMiB, false, 0.02);
  add("1GiB", 1024 * kMiB, true, 0.1);
  add_lost("1GiB", "a save", [] { return training_lost(model_of(1024 * kMiB)); });
  add_lost("written_1GiB", "a save that is not read back",
           [] { return training_lost(model_of(1024 * kMiB, Verification::kNever)); });
  add_lost("first_1GiB", "a process's first save", [] { return sample_first_save(1024 * kMiB); });
}

}  // namespace longhaul::bench
