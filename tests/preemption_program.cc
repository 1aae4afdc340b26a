// A training until a scheduler ends it, for preemption_processes_test.cc and signal_processes_test.cc:
//
//   preemption_program supervisor|monitored DIRECTORY
//
// From the environment: WAITS_BEFORE_STEPS, milliseconds; STEP_TAKES_MS; DIES_BY=fault|terminate, after its first step;
// PRINTS_STEPS; LONGHAUL_FAULTS, of saves; LEAVES_OUT=warned|initialized: the saver leaves out a variable, which is 100
// at first and which each step adds 1 to, and which is initialised after a restore, or is not. The status is 3 if
// descriptors 0 to 2 were closed and are no more.
//
// Of a Supervisor alone: SAVES_AT, the only step at which it saves before its end; HANGS_AT, a step after which it
// makes no other until the watchdog ends it, after HANG_ENDS_AFTER seconds; DIVERGES_AT, a step whose loss is NaN when
// it is made for the first time.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "longhaul/longhaul.h"
#include "longhaul/testing.h"

namespace lh = longhaul;
namespace ops = longhaul::ops;

namespace {

void say(const std::string& line) {
  std::puts(line.c_str());
  std::fflush(stdout);
}

int number_of(const char* name, int otherwise) {
  const char* text = std::getenv(name);
  return text != nullptr ? std::atoi(text) : otherwise;
}

void sleep_for(int milliseconds) {
  std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
}

void die_by(const std::string& way) {
  if (way == "fault") {
    *static_cast<volatile char*>(mmap(nullptr, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) = 1;
  }
  std::thread([] { throw std::runtime_error("nobody catches it"); }).join();
}

// Of the first three descriptors, those that are open.
int open_descriptors() {
  int open = 0;
  for (int fd = 0; fd < 3; ++fd) open |= (fcntl(fd, F_GETFD) >= 0 ? 1 : 0) << fd;
  return open;
}

class Training {
 public:
  explicit Training(std::string directory)
      : directory_(std::move(directory)),
        saver_(std::make_shared<lh::Saver>(lh::SaverOptions{
            .graph = &graph_, .var_list = saved(), .files = &lh::testing::file_system_from_environment()})) {}

  void run_supervised() {
    lh::SupervisorOptions options{
        .graph = &graph_,
        .logdir = directory_,
        .saver = saver_,
        .chief = {.recovery = {.initialize_missing = initializes_}, .preemption = &preemption_}};
    if (saves_at_ > 0) options.save_model_secs = lh::Seconds{0};
    if (hangs_at_ > 0)
      options.services.hang = {.after = lh::Seconds{6}, .kill_after = lh::Seconds(number_of("HANG_ENDS_AFTER", 8))};
    if (diverges_at_ > 0) options.services.divergence = lh::DivergenceOptions{.margin_steps = 10};
    lh::Supervisor sv(options);
    while (true) {
      try {
        return sv.managed_session([&](lh::Session& session) {
          begin(session);
          while (!sv.should_stop()) {
            after_step(session.run(train_)[1]);
            disturb(sv, session);
          }
        });
      } catch (const lh::RollBackError& error) {
        fmt::print(stderr, "{}\n", error.what());
      }
    }
  }
  void run_monitored() {
    const auto scaffold = std::make_shared<lh::Scaffold>(lh::ScaffoldOptions{.saver = saver_});
    lh::monitored_training_session(
        {.graph = &graph_,
         .checkpoint_dir = directory_,
         .scaffold = scaffold,
         .chief = {.recovery = {.initialize_missing = initializes_}, .preemption = &preemption_}},
        [&](lh::MonitoredSession& session) {
          session.run_step_fn([&](lh::StepContext& context) { begin(context.session()); });
          while (!session.should_stop()) after_step(session.run(train_)[1]);
        });
  }
  int end() const {
    say(fmt::format("ends at step {}", at_));
    return preemption_.exit_status();
  }

 private:
  void begin(lh::Session& session) {
    at_ = session.run(step_counter_).item<int64_t>();
    if (left_out_) say(fmt::format("left out is {}", session.run(*left_out_).item<int64_t>()));
    say(fmt::format("begins at step {}", at_));
    sleep_for(number_of("WAITS_BEFORE_STEPS", 0));
  }
  void after_step(const lh::Tensor& step) {
    at_ = step.item<int64_t>();
    if (prints_) say(fmt::format("step now is {}", at_));
    if (const char* way = std::getenv("DIES_BY")) die_by(way);
    sleep_for(step_takes_);
  }
  // What else happens after a step.
  void disturb(lh::Supervisor& sv, lh::Session& session) {
    if (at_ == saves_at_) sv.saver()->save(session, sv.save_path(), step_counter_);
    while (at_ == hangs_at_) sleep_for(100);
    if (diverges_at_ > 0) sv.look_at_loss(session, at_ == diverges_at_ && !std::exchange(diverged_, true) ? NAN : 1);
  }

  std::optional<std::vector<lh::SaveEntry>> saved() {
    if (!left_out_) return std::nullopt;
    return std::vector<lh::SaveEntry>{weights_, step_counter_};
  }
  std::optional<lh::Variable> left_out() {
    if (leaves_out_ == nullptr) return std::nullopt;
    return ops::variable(root_, "left_out", lh::Tensor::scalar<int64_t>(100));
  }
  std::vector<lh::Fetch> train() {
    std::vector<lh::Fetch> fetches{ops::assign_add(root_, weights_, ops::ones(root_, {1 << 19})).op(),
                                   ops::assign_add(root_, step_counter_, ops::constant(root_, int64_t{1}))};
    if (left_out_) fetches.push_back(ops::assign_add(root_, *left_out_, ops::constant(root_, int64_t{1})).op());
    return fetches;
  }

  const std::string directory_;
  const char* const leaves_out_ = std::getenv("LEAVES_OUT");
  const bool initializes_ = leaves_out_ != nullptr && leaves_out_ == std::string("initialized");
  const bool prints_ = std::getenv("PRINTS_STEPS") != nullptr;
  const int step_takes_ = number_of("STEP_TAKES_MS", 2);
  const int saves_at_ = number_of("SAVES_AT", 0), hangs_at_ = number_of("HANGS_AT", 0);
  const int diverges_at_ = number_of("DIVERGES_AT", 0);
  bool diverged_ = false;
  lh::Preemption preemption_;
  lh::Graph graph_;
  lh::Scope root_{graph_};
  lh::Variable weights_ = ops::variable(root_, "weights", ops::zeros(root_, {1 << 19}));  // 2 MiB
  lh::Variable step_counter_ = ops::create_global_step(root_);
  const std::optional<lh::Variable> left_out_ = left_out();
  const std::vector<lh::Fetch> train_ = train();
  const std::shared_ptr<lh::Saver> saver_;
  int64_t at_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  const int open_before = open_descriptors();
  try {
    Training training(argv[2]);
    if (std::string(argv[1]) == "monitored") {
      training.run_monitored();
    } else {
      training.run_supervised();
    }
    const int status = training.end();
    return open_descriptors() == open_before ? status : 3;
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
}
