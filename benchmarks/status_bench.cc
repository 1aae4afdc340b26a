// What does the status page cost a training? The processor time of the page's threads beside that of the thread that
// trains, while a scraper asks for the metrics each second and ten browsers show the page. So much of the steps per
// second it could take at most, where all threads share one core. The steps themselves are no measure here: their pace
// differs by more than a hundredth from one second to the next.
//
// How long does a probe wait while slow clients hold connections? And a reader of the board for a curve of a million
// points?
#include <fmt/format.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "benchmarks/benchmarks.h"
#include "examples/classifier.h"
#include "longhaul/console/board/board_server.h"
#include "longhaul/events/file_writer.h"
#include "longhaul/longhaul.h"
#include "longhaul/status/http_client_fixture.h"
#include "longhaul/testing/temporary_directory.h"

namespace longhaul::bench {
namespace {

using namespace std::chrono_literals;

constexpr int kBrowsers = 10;
constexpr double kSecondsOfArrival = 5.5;  // until all browsers have the page
constexpr double kSecondsOfSample = 10;
constexpr double kSecondsOfWarmUp = 1;
constexpr int kSlowClients = 64;
constexpr int kProbes = 100;
constexpr int64_t kLongCurve = 1'000'000, kShortCurve = 1000;

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
    readers_.emplace_back([this, port] { every(1s, 0ms, [this, port](int) { get(port, "/metrics"); }); });
    for (int i = 0; i < kBrowsers; ++i) {
      readers_.emplace_back([this, port, i] { every(5s, i * 500ms, [this, port](int visit) { show(port, visit); }); });
    }
  }
  ~Readers() {
    is_over_ = true;
    for (std::thread& reader : readers_) reader.join();
  }
  Readers(const Readers&) = delete;
  Readers& operator=(const Readers&) = delete;

  // A page that refuses its readers would cost less.
  void check_replies() const {
    if (refused_ > 0 || answered_ == 0)
      throw std::runtime_error(
          fmt::format("the page answered {} requests and refused {}", answered_.load(), refused_.load()));
  }

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
  void show(int port, int visit) {
    if (visit == 0) {
      for (const char* path : {"/", "/page.js", "/shared.js", "/page.css"}) get(port, path);
    }
    get(port, "/status.json");
    if (visit % 6 == 0) get(port, "/curves.json");
  }
  void get(int port, const char* path) { ++(status_of(fetch(port, "GET", path)) == 200 ? answered_ : refused_); }

  std::atomic<bool> is_over_{false};
  std::atomic<int> answered_{0}, refused_{0};
  std::vector<std::thread> readers_;
};

// Half of them send half of a request, the others nothing.
std::vector<RawClient> slow_clients(int port) {
  std::vector<RawClient> clients;
  for (int i = 0; i < kSlowClients; ++i) {
    clients.emplace_back(port);
    clients.back().send(i % 2 == 0 ? "GET / HT" : "");
  }
  return clients;
}

// In less time than it takes until a client that sends nothing is given up.
double longest_probe(int port) {
  double longest = 0;
  for (int i = 0; i < kProbes; ++i) {
    longest = std::max(longest, 1e3 * time_seconds([&] {
                                  if (status_of(fetch(port, "GET", "/healthz")) != 200)
                                    throw std::runtime_error("/healthz does not answer 200");
                                }));
    std::this_thread::sleep_for(10ms);
  }
  return longest;
}

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

  // What the page costs.
  Pair sample_cost() {
    Pair pair;
    serve([&](int port, const Callable& step) {
      Readers readers(port);
      train(step, kSecondsOfArrival);
      pair = times_of(step);
      readers.check_replies();
    });
    return pair;
  }

  // How long a probe waits, in milliseconds: the longest of many, with slow clients and without.
  Pair sample_probes() {
    Pair pair;
    serve([&](int port, const Callable& step) {
      train(step, kSecondsOfWarmUp);
      std::atomic<bool> is_over{false};
      std::thread prober([&] {
        pair.beside = longest_probe(port);
        const std::vector<RawClient> slow = slow_clients(port);
        pair.ours = longest_probe(port);
        is_over = true;
      });
      while (!is_over) step(images_, labels_);
      prober.join();
    });
    return pair;
  }

 private:
  void serve(const std::function<void(int port, const Callable& step)>& body) {
    std::atomic<int> port{0};
    const LogSink before = set_log_sink([&](LogLevel, const std::string& message) {
      const std::string url = "http://127.0.0.1:";
      const size_t at = message.find(url);
      if (message.starts_with("status page") && at != message.npos) port = std::atoi(message.c_str() + at + url.size());
    });
    Supervisor sv({.graph = &graph_,
                   .logdir = directory_.path(),
                   .chief = {.status = {.address = "127.0.0.1:0", .last_step = 1'000'000}}});
    sv.managed_session(
        [&](Session& session) { body(port, session.make_callable(net_.train_op, {net_.images, net_.labels})); });
    set_log_sink(before);
  }
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

// A board of two runs: a long one and a short one.
class ServedCurves {
 public:
  ServedCurves() : board_(FileSystem::real(), {.directories = {directory_.path()}, .port = 0}) {
    write("long", kLongCurve);
    write("short", kShortCurve);
    board_.start();
    const auto is_read = [this] {
      const auto runs = board_.runs().all();
      return runs.size() == 2 && std::all_of(runs.begin(), runs.end(),
                                             [](const auto& run) { return run->events() && run->events()->is_read(); });
    };
    while (!is_read()) std::this_thread::sleep_for(10ms);
  }

  // From the request to the last byte of the reply, in milliseconds. As much is drawn of both.
  Pair sample() const { return {milliseconds_of(0, kLongCurve), milliseconds_of(1, kShortCurve)}; }

 private:
  void write(const std::string& name, int64_t points) const {
    FileWriter writer(directory_.file(name));
    for (int64_t step = 0; step < points; ++step) {
      writer.add_scalar("loss", static_cast<float>(std::sin(static_cast<double>(step))), step);
    }
    writer.flush();
  }
  double milliseconds_of(int run, int64_t points) const {
    const std::string path = fmt::format("/scalars.json?tag=0&runs={}&points=1000&smoothing=0.6", run);
    return 1e3 * time_seconds([&] {
             const std::string reply = body_of(fetch(board_.port(), "GET", path));
             if (reply.find(fmt::format("{}]", points - 1)) == reply.npos)
               throw std::runtime_error(path + " has not the last step: " + reply.substr(0, 100));
           });
  }

  const testing::TemporaryDirectory directory_;
  console::BoardServer board_;
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
                        return ServedTraining().sample_cost();
                      },
                  .samples = 3});
  rows.push_back({.name = "status/probe_slow_clients",
                  .what = "longest of 100 probes of /healthz beside a training while 64 slow clients hold connections, "
                          "compared with none of them",
                  .unit = "ms",
                  .goal = 100,
                  .bound = Bound::kAtMostMore,
                  .sample =
                      [] {
                        set_intra_op_threads(1);
                        return ServedTraining().sample_probes();
                      },
                  .goal_ours = 100});
  rows.push_back({.name = "status/board_million_points",
                  .what =
                      "a reply of the board, 1000 points of a curve of a million, smoothed, compared with a curve of "
                      "1000",
                  .unit = "ms",
                  .goal = 100,
                  .bound = Bound::kAtMostMore,
                  .sample =
                      [curves = std::shared_ptr<ServedCurves>()]() mutable {
                        if (curves == nullptr) curves = std::make_shared<ServedCurves>();
                        return curves->sample();
                      },
                  .samples = 21,
                  .goal_ours = 100});
}

}  // namespace longhaul::bench
