// A training until a scheduler ends it, for preemption_processes_test.cc and signal_processes_test.cc:
//
//   preemption_program supervisor|monitored DIRECTORY [BYTES_PER_SECOND_OF_SAVES]
//
// From the environment: WAITS_BEFORE_STEPS, milliseconds; STEP_TAKES_MS; DIES_BY=fault|terminate, after its first step;
// PRINTS_STEPS. The status is 3 if descriptors 0 to 2 were closed and are no more.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>

#include "longhaul/longhaul.h"

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
  Training(std::string directory, double bytes_per_second)
      : directory_(std::move(directory)),
        saver_(
            std::make_shared<lh::Saver>(lh::SaverOptions{.graph = &graph_, .max_bytes_per_second = bytes_per_second})) {
  }

  void run_supervised() {
    lh::Supervisor sv({.graph = &graph_, .logdir = directory_, .saver = saver_, .preemption = &preemption_});
    sv.managed_session([&](lh::Session& session) {
      begin(session.run(step_counter_).item<int64_t>());
      while (!sv.should_stop()) after_step(session.run(train_)[1]);
    });
  }
  void run_monitored() {
    const auto scaffold = std::make_shared<lh::Scaffold>(lh::ScaffoldOptions{.saver = saver_});
    lh::monitored_training_session(
        {.graph = &graph_, .checkpoint_dir = directory_, .scaffold = scaffold, .preemption = &preemption_},
        [&](lh::MonitoredSession& session) {
          begin(session.run_step_fn([&](lh::StepContext& context) { return context.session().run(step_counter_); })
                    .item<int64_t>());
          while (!session.should_stop()) after_step(session.run(train_)[1]);
        });
  }
  int end() const {
    say(fmt::format("ends at step {}", at_));
    return preemption_.exit_status();
  }

 private:
  void begin(int64_t step) {
    at_ = step;
    say(fmt::format("begins at step {}", step));
    sleep_for(number_of("WAITS_BEFORE_STEPS", 0));
  }
  void after_step(const lh::Tensor& step) {
    at_ = step.item<int64_t>();
    if (prints_) say(fmt::format("step now is {}", at_));
    if (const char* way = std::getenv("DIES_BY")) die_by(way);
    sleep_for(step_takes_);
  }

  const std::string directory_;
  const bool prints_ = std::getenv("PRINTS_STEPS") != nullptr;
  const int step_takes_ = number_of("STEP_TAKES_MS", 2);
  lh::Preemption preemption_;
  lh::Graph graph_;
  lh::Scope root_{graph_};
  lh::Variable weights_ = ops::variable(root_, "weights", ops::zeros(root_, {1 << 19}));  // 2 MiB
  lh::Variable step_counter_ = ops::create_global_step(root_);
  const std::vector<lh::Fetch> train_{ops::assign_add(root_, weights_, ops::ones(root_, {1 << 19})).op(),
                                      ops::assign_add(root_, step_counter_, ops::constant(root_, int64_t{1}))};
  const std::shared_ptr<lh::Saver> saver_;
  int64_t at_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  const int open_before = open_descriptors();
  try {
    Training training(argv[2], argc > 3 ? std::atof(argv[3]) : 0);
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
