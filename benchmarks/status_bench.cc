// What does the status page cost a training? The processor time of the page's threads beside that of the thread that
// trains, while a scraper asks for the metrics each second and ten browsers show the page. So much of the steps per
// second it could take at most, where all threads share one core. The steps themselves are no measure here: their pace
// differs by more than a hundredth from one second to the next.
#include <fmt/format.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "benchmarks/benchmarks.h"
#include "examples/classifier.h"
#include "longhaul/longhaul.h"
#include "longhaul/status/http_client_fixture.h"
#include "longhaul/testing/temporary_directory.h"

namespace longhaul::bench {
namespace {

using namespace std::chrono_literals;

constexpr int kBrowsers = 10;
constexpr double kSecondsOfArrival = 5.5;  // until all browsers have the page
constexpr double kSecondsOfSample = 10;

// Of this process, by the kernel's count of nanoseconds.
double processor_seconds(const std::filesystem::path& task) {
  double nanoseconds = 0;
  std::ifstream(task / "schedstat") >> nanoseconds;
  return nanoseconds / 1e9;
}

bool is_of_page(const std::string& thread) {
  for (const char* name : {"lh-status", "lh-answer-", "lh-step-looks", "lh-asked-saves", "lh-disk-"}) {
    if (thread.starts_with(name)) return true;
  }
  return false;
}

// By thread; those of the page alone.
std::map<std::string, double> times_of_page() {
  std::map<std::string, double> times;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    std::string name;
    std::getline(std::ifstream(task.path() / "comm") >> std::ws, name);
    if (is_of_page(name)) times[task.path().filename()] = processor_seconds(task.path());
  }
  return times;
}

// Who reads the page, each on a thread of its own, as a browser and as Prometheus do.
class Readers {
 public:
  explicit Readers(int port) {
    readers_.emplace_back([this, port] { every(1s, 0ms, [port](int) { fetch(port, "GET", "/metrics"); }); });
    for (int i = 0; i < kBrowsers; ++i) {
      readers_.emplace_back([this, port, i] { every(5s, i * 500ms, [port](int visit) { show(port, visit); }); });
    }
  }
  ~Readers() {
    is_over_ = true;
    for (std::thread& reader : readers_) reader.join();
  }
  Readers(const Readers&) = delete;
  Readers& operator=(const Readers&) = delete;

 private:
  using Clock = std::chrono::steady_clock;

  void every(Clock::duration pause, Clock::duration first, const std::function<void(int)>& visit) const {
    Clock::time_point next = Clock::now() + first;
    for (int i = 0; !is_over_;) {
      std::this_thread::sleep_for(10ms);
      if (Clock::now() < next) continue;
      next += pause;
      visit(i++);
    }
  }
  // The page, and then the numbers each time; curves each sixth time.
  static void show(int port, int visit) {
    if (visit == 0) {
      for (const char* path : {"/", "/page.js", "/page.css"}) fetch(port, "GET", path);
    }
    fetch(port, "GET", "/status.json");
    if (visit % 6 == 0) fetch(port, "GET", "/curves.json");
  }

  std::atomic<bool> is_over_{false};
  std::vector<std::thread> readers_;
};

// A Supervisor with a page trains the 784-256-128-10 network on one thread. What its threads take is beside what this
// thread takes.
class ServedTraining {
 public:
  ServedTraining() : net_(examples::build_classifier(graph_, {})) {
    for (float& value : images_.mutable_flat<float>()) {
      value = static_cast<float>(std::rand()) / static_cast<float>(RAND_MAX);
    }
    for (int64_t& value : labels_.mutable_flat<int64_t>()) value = std::rand() % 10;
  }

  Pair sample() {
    Pair pair;
    std::atomic<int> port{0};
    const LogSink before = set_log_sink([&](LogLevel, const std::string& message) {
      const std::string url = "http://127.0.0.1:";
      const size_t at = message.find(url);
      if (message.starts_with("status page") && at != message.npos) port = std::atoi(message.c_str() + at + url.size());
    });
    Supervisor sv({.graph = &graph_,
                   .logdir = directory_.path(),
                   .chief = {.status = {.address = "127.0.0.1:0", .last_step = 1'000'000}}});
    sv.managed_session([&](Session& session) {
      const Callable step = session.make_callable(net_.train_op, {net_.images, net_.labels});
      const Readers readers(port);
      train(step, kSecondsOfArrival);
      pair = times_of(step);
    });
    set_log_sink(before);
    return pair;
  }

 private:
  void train(const Callable& step, double seconds) const {
    const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
    while (std::chrono::steady_clock::now() < end) step(images_, labels_);
  }
  Pair times_of(const Callable& step) const {
    const std::filesystem::path self = fmt::format("/proc/self/task/{}", ::syscall(SYS_gettid));
    const auto page = times_of_page();
    const double own = processor_seconds(self);
    train(step, kSecondsOfSample);
    Pair pair{.beside = processor_seconds(self) - own};  // a thousandth of it, in milliseconds
    for (const auto& [thread, time] : times_of_page()) {
      const auto before = page.find(thread);
      pair.ours += 1e3 * (time - (before != page.end() ? before->second : 0));
    }
    return pair;
  }

  const testing::TemporaryDirectory directory_;
  Graph graph_;
  examples::Classifier net_;
  Tensor images_{kFloat, {64, 784}}, labels_{kInt64, {64}};
};

}  // namespace

void add_status_rows(std::vector<Row>& rows) {
  rows.push_back({.name = "status/scraped",
                  .what = "processor time of the status page, scraped each second and read by ten browsers, compared "
                          "with a thousandth of the training thread's",
                  .unit = "ms",
                  .goal = 1,
                  .bound = Bound::kAtMost,
                  .sample =
                      [] {
                        set_intra_op_threads(1);
                        return ServedTraining().sample();
                      },
                  .samples = 3});
}

}  // namespace longhaul::bench
