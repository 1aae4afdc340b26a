#include "longhaul/io/process/process_room.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>

#include "longhaul/base/error.h"
#include "longhaul/testing/error_fixture.h"

namespace longhaul {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// What a child says that has first taken limits upon itself.
std::string said_by_child(const std::function<void()>& limit, const ProcessRoom& needed) {
  int pipe[2];
  EXPECT_EQ(::pipe(pipe), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    limit();
    const std::string said = coded_error_of([&] { check_room(needed, "a server"); });
    _exit(::write(pipe[1], said.data(), said.size()) == static_cast<ssize_t>(said.size()) ? 0 : 1);
  }
  ::close(pipe[1]);
  std::string said(4096, '\0');
  const ssize_t size = ::read(pipe[0], said.data(), said.size());
  said.resize(size > 0 ? static_cast<size_t>(size) : 0);
  ::close(pipe[0]);
  int status = -1;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  return said;
}

void set_limit(__rlimit_resource resource, rlim_t most) {
  const rlimit limit{most, most};
  if (::setrlimit(resource, &limit) != 0) _exit(2);
}

int open_descriptors() {
  int count = 0;
  for (int descriptor = 0; descriptor < 1024; ++descriptor) count += ::fcntl(descriptor, F_GETFD) >= 0 ? 1 : 0;
  return count;
}

TEST(ProcessRoom, WhatIsThereIsGivenBack) {
  const int before = open_descriptors();
  EXPECT_NO_THROW(check_room({.descriptors = 16, .threads = 16}, "a server"));
  EXPECT_EQ(open_descriptors(), before);
}

TEST(ProcessRoom, TooFewDescriptorsAreRefusedWithTheLimit) {
  EXPECT_THAT(said_by_child([] { set_limit(RLIMIT_NOFILE, 24); }, {.descriptors = 32}),
              AllOf(HasSubstr("RESOURCE_EXHAUSTED: a server needs 32 open files (descriptors) at least"),
                    HasSubstr("can have only "), HasSubstr("the limit of 24 (RLIMIT_NOFILE, `ulimit -n`)")));
}

TEST(ProcessRoom, TooFewThreadsAreRefusedWithTheLimit) {
  constexpr uid_t kNobody = 65534;
  if (::geteuid() != 0) GTEST_SKIP() << "another user's count of threads is not known";
  const auto limit = [] {
    set_limit(RLIMIT_NPROC, 4);
    if (::setgid(kNobody) != 0 || ::setuid(kNobody) != 0) _exit(3);
  };
  EXPECT_THAT(said_by_child(limit, {.threads = 12}),
              AllOf(HasSubstr("RESOURCE_EXHAUSTED: a server needs 12 threads at least"), HasSubstr("can have only "),
                    HasSubstr("the limit of 4 for all threads of the user (RLIMIT_NPROC, `ulimit -u`)")));
}

}  // namespace
}  // namespace longhaul
