#include "longhaul/train/stop_signals.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>

#include "longhaul/base/log.h"

namespace longhaul {
namespace {

// What the handler may touch: nothing but lock-free atomics and write().
std::atomic<int> write_end{-1};
std::atomic<int> first_signal{0};
std::atomic<bool> in_use{false};
static_assert(std::atomic<int>::is_always_lock_free);

constexpr unsigned char kEnd = 0;  // no signal has this number

void handle(int signal) {
  const int saved_errno = errno;
  int none = 0;
  first_signal.compare_exchange_strong(none, signal);
  const auto byte = static_cast<unsigned char>(signal);
  [[maybe_unused]] const ssize_t written = write(write_end.load(), &byte, 1);
  errno = saved_errno;
}

}  // namespace

StopSignals::StopSignals(const Coordinator& coord, std::vector<int> signals)
    : StopSignals([coord](int) { coord.request_stop(); }, [coord] { coord.request_stop(); }, std::move(signals)) {}

StopSignals::StopSignals(std::function<void(int signal)> on_signal, std::vector<int> signals)
    : StopSignals(std::move(on_signal), nullptr, std::move(signals)) {}

StopSignals::StopSignals(std::function<void(int signal)> on_signal, std::function<void()> after_signal,
                         std::vector<int> signals)
    : on_signal_(std::move(on_signal)), after_signal_(std::move(after_signal)), signals_(std::move(signals)) {
  if (in_use.exchange(true)) throw FailedPreconditionError("there is a StopSignals in this process already");
  try {
    open_pipe();
  } catch (...) {
    in_use = false;
    throw;
  }
  first_signal = 0;
  write_end = pipe_[1];
  watcher_ = NamedThread("lh-signals", [this] { watch(); });
  install();
}

StopSignals::~StopSignals() {
  restore();
  [[maybe_unused]] const ssize_t written = write(pipe_[1], &kEnd, 1);
  watcher_.join();
  close(pipe_[0]);
  close(pipe_[1]);
  in_use = false;
}

// The end that the handler writes to does not block: a full pipe has signals enough.
void StopSignals::open_pipe() {
  if (pipe2(pipe_.data(), O_CLOEXEC) != 0) throw_errno(errno, "make a pipe for signals");
  fcntl(pipe_[1], F_SETFL, O_NONBLOCK);
}

void StopSignals::install() {
  for (int signal : signals_) {
    struct sigaction action {};
    action.sa_handler = handle;
    action.sa_flags = static_cast<int>(SA_RESETHAND | SA_RESTART);
    sigemptyset(&action.sa_mask);
    struct sigaction before {};
    if (sigaction(signal, &action, &before) != 0) log_error("signal {} cannot be caught", signal);
    before_.push_back(before);
  }
}

void StopSignals::restore() {
  for (size_t i = 0; i < signals_.size(); ++i) sigaction(signals_[i], &before_[i], nullptr);
}

bool StopSignals::wait_for_byte() const {
  constexpr int kMilliseconds = 100;
  struct pollfd reading {
    pipe_[0], POLLIN, 0
  };
  return poll(&reading, 1, kMilliseconds) > 0;
}

void StopSignals::watch() const {
  while (true) {
    if (!wait_for_byte()) {
      if (signal_received() != 0 && after_signal_) after_signal_();
      continue;
    }
    unsigned char byte = kEnd;
    const ssize_t count = read(pipe_[0], &byte, 1);
    if (count < 0 && errno == EINTR) continue;
    if (count != 1 || byte == kEnd) return;
    log_info("signal {} asks for a stop", static_cast<int>(byte));
    on_signal_(byte);
  }
}

int StopSignals::signal_received() const {
  return first_signal.load();
}

}  // namespace longhaul
