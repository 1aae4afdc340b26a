#include <fcntl.h>
#include <gmock/gmock.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <functional>
#include <thread>
#include <vector>

#include "longhaul/io/direct/direct_writer.h"
#include "longhaul/io/files/file.h"
#include "longhaul/testing/needs_fixture.h"
#include "longhaul/testing/temporary_directory.h"

namespace longhaul {
namespace {

struct RefusedCall {
  unsigned number;
  unsigned error;
};

// The filter of system calls that a container may have, for this thread from now on. Whether the kernel takes it.
bool refuse(const std::vector<RefusedCall>& calls) {
  std::vector<sock_filter> program{BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr))};
  for (const RefusedCall& call : calls) {
    program.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call.number, 0, 1));
    program.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | call.error));
  }
  program.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
  const sock_fprog filter{static_cast<unsigned short>(program.size()), program.data()};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

// On a thread of its own: a filter ends with its thread.
void where_they_are_refused(const std::vector<RefusedCall>& calls, const std::function<void()>& body) {
  std::thread([&] {
    if (refuse(calls)) {
      body();
    } else {
      ADD_FAILURE() << "the filter was refused";
    }
  }).join();
}

bool can_refuse() {
  bool is_filtered = false;
  std::thread([&] { is_filtered = refuse({}); }).join();
  return is_filtered;
}

class RefusedCalls : public ::testing::Test {
 protected:
  void SetUp() override { LONGHAUL_NEEDS("system_calls", can_refuse(), "the kernel has no filters of system calls"); }
};

TEST_F(RefusedCalls, ARingThatMayBeMadeAndNotUsedIsNone) {
  for (const unsigned error : {EPERM, ENOSYS, EACCES}) {
    where_they_are_refused({{__NR_io_uring_enter, error}}, [&] { EXPECT_EQ(make_uring_queue(4), nullptr) << error; });
  }
}

TEST_F(RefusedCalls, ALargeFileIsWrittenWithoutTheRing) {
  const testing::TemporaryDirectory directory;
  const std::string bytes(size_t{5} << 20, 'x');
  where_they_are_refused({{__NR_io_uring_enter, EPERM}}, [&] {
    const auto file = FileSystem::real().create_large(directory.file("large"), {.expected_bytes = bytes.size()});
    file->append(bytes);
    file->sync();
    file->close();
  });
  EXPECT_EQ(read_file(FileSystem::real(), directory.file("large")), bytes);
}

TEST_F(RefusedCalls, ARingThatIsRefusedLaterLeavesTheWritesToOrdinaryCalls) {
  const testing::TemporaryDirectory directory;
  const std::string path = directory.file("large"), bytes(size_t{5} << 20, 'x');
  std::unique_ptr<IoQueue> early = make_uring_queue(8);
  LONGHAUL_NEEDS("system_calls", early != nullptr, "io_uring is refused here");
  where_they_are_refused({{__NR_io_uring_enter, EPERM}}, [&] {
    const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
    DirectWriter file(fd, path, {.queue = [&](size_t) { return std::move(early); }});
    file.append(bytes);
    file.sync();
    file.close();
  });
  EXPECT_EQ(read_file(FileSystem::real(), path), bytes);
}

// A read from a pipe, which ends when there is something in it.
class RefusedUringWaits : public RefusedCalls {
 protected:
  void SetUp() override {
    RefusedCalls::SetUp();
    queue_ = make_uring_queue(1);
    LONGHAUL_NEEDS("system_calls", queue_ != nullptr, "io_uring is refused here");
    ASSERT_EQ(::pipe2(ends_, O_CLOEXEC), 0);
    queue_->submit({.kind = Transfer::Kind::kRead, .fd = ends_[0], .pieces = {&piece_, 1}}, 7);
  }
  void TearDown() override {
    for (const int end : ends_) ::close(end);
  }

  // While `body` runs or before.
  void write_during(const std::function<void()>& body) {
    std::thread writer([this] { EXPECT_EQ(::write(ends_[1], "x", 1), 1); });
    body();
    writer.join();
    EXPECT_EQ(byte_, 'x');
  }

  int ends_[2] = {-1, -1};
  char byte_ = 0;
  const iovec piece_{&byte_, 1};
  std::unique_ptr<IoQueue> queue_;
};

TEST_F(RefusedUringWaits, AreWaitsForItsDescriptor) {
  where_they_are_refused({{__NR_io_uring_enter, EAGAIN}}, [&] {
    write_during([&] {
      const IoQueue::Finished finished = queue_->wait();
      EXPECT_EQ(finished.tag, 7u);
      EXPECT_EQ(finished.result, 1);
    });
  });
}

TEST_F(RefusedUringWaits, AreWaitsForItsDescriptorWhenTheQueueEnds) {
  where_they_are_refused({{__NR_io_uring_enter, EPERM}}, [&] { write_during([&] { queue_.reset(); }); });
}

TEST_F(RefusedCalls, WhatCannotBeLookedAtIsNotTakenForGone) {
  const testing::TemporaryDirectory directory;
  for (const unsigned error : {EIO, ESTALE, ENOTCONN, ETIMEDOUT, EACCES}) {
    where_they_are_refused({{__NR_stat, error}, {__NR_newfstatat, error}, {__NR_statx, error}}, [&] {
      EXPECT_THROW(FileSystem::real().exists(directory.path()), Error) << error;
      EXPECT_THROW(FileSystem::real().is_directory(directory.path()), Error) << error;
    });
  }
  EXPECT_FALSE(FileSystem::real().exists(directory.file(std::string(5000, 'x')))) << "nothing can have such a name";
}

TEST_F(RefusedCalls, AFileSystemWithoutFdatasyncIsSyncedByFsync) {
  const testing::TemporaryDirectory directory;
  for (const unsigned error : {EINVAL, EOPNOTSUPP, ENOSYS}) {
    where_they_are_refused({{__NR_fdatasync, error}}, [&] {
      EXPECT_NO_THROW(write_file_atomically(FileSystem::real(), directory.file("small"), "x")) << error;
      const auto large = FileSystem::real().create_large(directory.file("large"), {});
      large->append("x");
      EXPECT_NO_THROW(large->sync()) << error;
    });
  }
}

TEST_F(RefusedCalls, AFileSystemWithoutAnySyncIsWrittenToAllTheSame) {
  const testing::TemporaryDirectory directory;
  where_they_are_refused({{__NR_fdatasync, EINVAL}, {__NR_fsync, EINVAL}}, [&] {
    EXPECT_NO_THROW(write_file_atomically(FileSystem::real(), directory.file("small"), "x"));
  });
  EXPECT_EQ(read_file(FileSystem::real(), directory.file("small")), "x");
}

TEST_F(RefusedCalls, ASyncThatFailsIsAnError) {
  const testing::TemporaryDirectory directory;
  where_they_are_refused({{__NR_fdatasync, EINVAL}, {__NR_fsync, EIO}}, [&] {
    EXPECT_THROW(write_file_atomically(FileSystem::real(), directory.file("small"), "x"), DataLossError);
  });
}

}  // namespace
}  // namespace longhaul
