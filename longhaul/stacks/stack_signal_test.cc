#include "longhaul/stacks/stack_signal.h"

#include <gmock/gmock.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <functional>
#include <optional>
#include <thread>

#include "longhaul/base/clock.h"
#include "longhaul/stacks/function_names.h"

namespace longhaul {
namespace {

using Answer = RawStack::Answer;
using ::testing::Contains;
using ::testing::HasSubstr;

constexpr Seconds kLimit{20};

// A thread that does something until the test ends.
class Waiter {
 public:
  explicit Waiter(std::function<void(Waiter&)> body)
      : thread_([this, body = std::move(body)] {
          number_ = syscall(SYS_gettid);
          body(*this);
        }) {
    while (number_ == 0) std::this_thread::yield();
  }
  ~Waiter() {
    end();
    thread_.join();
  }
  int64_t number() const { return number_; }
  bool is_over() const { return is_over_; }
  __attribute__((noinline)) void sleep_in_a_function_with_this_name() {
    is_there_ = true;
    MutexLock lock(mutex_);
    while (!is_over_) changed_.wait(mutex_);
    is_there_ = false;  // so that the call above is no tail call
  }
  void await() const {
    while (!is_there_) std::this_thread::yield();
  }
  void is_there() { is_there_ = true; }
  void end() {
    MutexLock lock(mutex_);
    is_over_ = true;
    changed_.notify_all();
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  std::atomic<int64_t> number_{0};
  std::atomic<bool> is_over_{false}, is_there_{false};
  std::thread thread_;
};

std::vector<std::string> names_of(const RawStack& stack) {
  FunctionNames names;
  std::vector<std::string> all;
  for (const uintptr_t address : stack.addresses) all.push_back(names.name_of(address));
  return all;
}

// A checker of races blocks signals while it runs a handler.
Answer answer_of(int64_t thread) {
  const Seconds end = Clock::real().now() + kLimit;
  Answer answer = stack_of_thread(thread, kLimit).answer;
  while (answer == Answer::kBlocked && Clock::real().now() < end) answer = stack_of_thread(thread, kLimit).answer;
  return answer;
}

TEST(StackOfThread, HasTheFunctionsThatAThreadSleepsIn) {
  Waiter waiter([](Waiter& self) { self.sleep_in_a_function_with_this_name(); });
  waiter.await();
  const RawStack stack = stack_of_thread(waiter.number(), kLimit);
  EXPECT_EQ(stack.answer, Answer::kHere);
  EXPECT_THAT(names_of(stack), Contains(HasSubstr("sleep_in_a_function_with_this_name")));
  EXPECT_THAT(names_of(stack)[0], Not(HasSubstr("longhaul"))) << "the handler's own frames are left out";
}

TEST(StackOfThread, AThreadThatComputesGoesOnComputing) {
  std::atomic<uint64_t> count{0};
  Waiter waiter([&](Waiter& self) {
    self.is_there();
    while (!self.is_over()) ++count;
  });
  waiter.await();
  for (int i = 0; i < 100; ++i) EXPECT_EQ(answer_of(waiter.number()), Answer::kHere);
  const uint64_t before = count;
  while (count == before) std::this_thread::yield();
}

TEST(StackOfThread, AThreadThatBlocksSignalsIsNotSentOne) {
  Waiter waiter([&](Waiter& self) {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, nullptr);
    self.sleep_in_a_function_with_this_name();
    sigset_t pending;
    sigpending(&pending);
    EXPECT_EQ(sigismember(&pending, stack_signal()), 0);
  });
  waiter.await();
  EXPECT_EQ(stack_of_thread(waiter.number(), kLimit).answer, Answer::kBlocked);
}

TEST(StackOfThread, AThreadThatHasEndedIsGone) {
  std::optional<Waiter> waiter(std::in_place, [](Waiter&) {});
  const int64_t number = waiter->number();
  waiter.reset();
  // The kernel may need a moment to take it away.
  RawStack stack = stack_of_thread(number, Seconds{0.01});
  for (int i = 0; i < 1000 && stack.answer != Answer::kGone; ++i) stack = stack_of_thread(number, Seconds{0.01});
  EXPECT_EQ(stack.answer, Answer::kGone);
}

TEST(StackOfThread, AThreadThatIsLateIsNotWaitedForAndDoesNoHarm) {
  std::atomic<int> late{0};
  Waiter waiter([&](Waiter& self) {
    sigset_t ours;
    sigemptyset(&ours);
    sigaddset(&ours, stack_signal());
    self.is_there();
    while (!self.is_over()) {
      pthread_sigmask(SIG_BLOCK, &ours, nullptr);
      pthread_sigmask(SIG_UNBLOCK, &ours, nullptr);
      ++late;
    }
  });
  waiter.await();
  for (int i = 0; i < 200; ++i) stack_of_thread(waiter.number(), Seconds{0});
  const int before = late;
  while (late < before + 10) std::this_thread::yield();
  waiter.end();
  Waiter other([](Waiter& self) { self.sleep_in_a_function_with_this_name(); });
  other.await();
  EXPECT_EQ(stack_of_thread(other.number(), kLimit).answer, Answer::kHere);
}

TEST(StackOfThread, ASignalThatTheProgramHandlesIsLeftToIt) {
  const int taken = stack_signal();
  struct sigaction before{};
  struct sigaction ignored{};
  ignored.sa_handler = SIG_IGN;
  sigaction(taken, &ignored, &before);
  const int other = stack_signal();
  EXPECT_NE(other, taken);
  struct sigaction now{};
  sigaction(taken, &before, &now);
  EXPECT_EQ(now.sa_handler, SIG_IGN);
}

}  // namespace
}  // namespace longhaul
