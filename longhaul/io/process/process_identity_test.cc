#include "longhaul/io/process/process_identity.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <string>

namespace longhaul {
namespace {

// A child that has ended, as it was while it lived; reaped or not.
class EndedChild {
 public:
  EndedChild() {
    int pipe_ends[2];
    EXPECT_EQ(::pipe(pipe_ends), 0);
    pid_ = ::fork();
    if (pid_ == 0) {
      char byte;
      ::close(pipe_ends[1]);
      ::_exit(::read(pipe_ends[0], &byte, 1) == 0 ? 0 : 1);
    }
    identity_ = this_process();
    identity_.pid = pid_;
    identity_.start_time = start_time();
    ran_ = state_of(identity_) == ProcessState::kRunning;
    ::close(pipe_ends[1]);
    ::close(pipe_ends[0]);
    siginfo_t info;
    EXPECT_EQ(::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOWAIT), 0);
  }
  ~EndedChild() { ::waitpid(pid_, nullptr, 0); }
  void reap() { ::waitpid(pid_, nullptr, 0); }
  bool ran() const { return ran_; }
  const ProcessIdentity& identity() const { return identity_; }

 private:
  uint64_t start_time() const {
    std::ifstream file("/proc/" + std::to_string(pid_) + "/stat");
    std::string word;
    for (int i = 0; i < 22; ++i) file >> word;
    return std::stoull(word);
  }

  pid_t pid_;
  ProcessIdentity identity_;
  bool ran_;
};

TEST(ProcessIdentity, OfThisProcessIsKnownAndStaysTheSame) {
  const ProcessIdentity here = this_process();
  EXPECT_EQ(here.pid, ::getpid());
  EXPECT_FALSE(here.host.empty());
  EXPECT_FALSE(here.boot_id.empty());
  EXPECT_FALSE(here.pid_namespace.empty());
  EXPECT_GT(here.start_time, 0u);
  EXPECT_EQ(this_process(), here);
  EXPECT_EQ(state_of(here), ProcessState::kRunning);
}

TEST(ProcessIdentity, AnEndedProcessIsGoneAlsoBeforeItsParentAsks) {
  EndedChild child;
  EXPECT_TRUE(child.ran());
  EXPECT_EQ(state_of(child.identity()), ProcessState::kGone);
  child.reap();
  EXPECT_EQ(state_of(child.identity()), ProcessState::kGone);
}

TEST(ProcessIdentity, AnotherProcessWithTheSameNumberIsNotTheSame) {
  ProcessIdentity earlier = this_process();
  earlier.start_time -= 1;
  EXPECT_EQ(state_of(earlier), ProcessState::kGone);
}

TEST(ProcessIdentity, OfAnotherMachineAnotherContainerOrNothingAtAllIsUnknown) {
  ProcessIdentity elsewhere = this_process();
  elsewhere.boot_id = "another";
  EXPECT_EQ(state_of(elsewhere), ProcessState::kUnknown);
  ProcessIdentity in_container = this_process();
  in_container.pid_namespace = "pid:[1]";
  EXPECT_EQ(state_of(in_container), ProcessState::kUnknown);
  EXPECT_EQ(state_of({}), ProcessState::kUnknown);
  ProcessIdentity absurd = this_process();
  absurd.pid = int64_t{1} << 40;
  EXPECT_EQ(state_of(absurd), ProcessState::kUnknown);
}

}  // namespace
}  // namespace longhaul
