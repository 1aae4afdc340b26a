#include "longhaul/io/process/process_limits.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "longhaul/testing/temporary_directory.h"

namespace longhaul {
namespace {

class ProcessLimits : public ::testing::Test {
 protected:
  void write(const std::string& name, const std::string& text) {
    const std::filesystem::path path = root() + "/" + name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text << "\n";
  }
  std::string root() const { return directory_.path(); }

 private:
  const testing::TemporaryDirectory directory_;
};

TEST_F(ProcessLimits, AreNoneWhereNothingSaysSo) {
  EXPECT_EQ(usable_processors(root()), usable_processors("/nowhere"));
  EXPECT_GE(usable_processors(root()), 1);
  EXPECT_FALSE(memory_limit(root()));
  EXPECT_GE(usable_processors(), 1);
}

// Binds a thread to one of the processors that it may use.
void bind_to_one(pid_t thread) {
  cpu_set_t mask;
  ASSERT_EQ(sched_getaffinity(thread, sizeof mask, &mask), 0);
  int first = 0;
  while (!CPU_ISSET(first, &mask)) ++first;
  CPU_ZERO(&mask);
  CPU_SET(first, &mask);
  ASSERT_EQ(sched_setaffinity(thread, sizeof mask, &mask), 0);
}

TEST_F(ProcessLimits, AreThoseOfTheMainThreadsAffinityMask) {
  cpu_set_t before;
  ASSERT_EQ(sched_getaffinity(getpid(), sizeof before, &before), 0);
  bind_to_one(getpid());
  const int bound = usable_processors(root());
  ASSERT_EQ(sched_setaffinity(getpid(), sizeof before, &before), 0);
  EXPECT_EQ(bound, 1);
  EXPECT_EQ(usable_processors(root()), CPU_COUNT(&before));
}

TEST_F(ProcessLimits, AreTheSameInAThreadThatIsBoundToAPart) {
  const int all = usable_processors(root());
  std::thread([&] {
    bind_to_one(0);
    EXPECT_EQ(usable_processors(root()), all);
  }).join();
}

TEST_F(ProcessLimits, AreTheLeastOfTheGroupsAround) {
  write("proc/self/cgroup", "0::/slice/pod/job");
  write("sys/fs/cgroup/slice/pod/job/cpu.max", "max 100000");
  write("sys/fs/cgroup/slice/pod/cpu.max", "60000 100000");
  write("sys/fs/cgroup/slice/cpu.max", "6400000 100000");
  write("sys/fs/cgroup/slice/pod/job/memory.max", "max");
  write("sys/fs/cgroup/slice/pod/memory.max", "8000000000");
  write("sys/fs/cgroup/slice/memory.max", "2000000000");
  EXPECT_EQ(usable_processors(root()), 1) << "0.6 of one, rounded up";
  EXPECT_EQ(memory_limit(root()), 2'000'000'000u);
}

TEST_F(ProcessLimits, OfAContainerAreAtTheTop) {
  write("proc/self/cgroup", "0::/../../somewhere/on/the/host");
  write("sys/fs/cgroup/cpu.max", "100000 100000");
  write("sys/fs/cgroup/memory.max", "1000000000");
  EXPECT_EQ(usable_processors(root()), 1);
  EXPECT_EQ(memory_limit(root()), 1'000'000'000u);
}

TEST_F(ProcessLimits, OfTheFirstVersionAreRead) {
  write("proc/self/cgroup", "5:memory:/job\n4:cpu,cpuacct:/job\n1:name=systemd:/job");
  write("sys/fs/cgroup/cpu/job/cpu.cfs_quota_us", "50000");
  write("sys/fs/cgroup/cpu/job/cpu.cfs_period_us", "100000");
  write("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1");
  write("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000");
  write("sys/fs/cgroup/memory/job/memory.limit_in_bytes", "3000000000");
  write("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712");
  EXPECT_EQ(usable_processors(root()), 1);
  EXPECT_EQ(memory_limit(root()), 3'000'000'000u);
}

TEST_F(ProcessLimits, OfTheFirstVersionAreReadWhereControllersShareADirectory) {
  write("proc/self/cgroup", "4:cpu,cpuacct:/job");
  write("sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_quota_us", "50000");
  write("sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_period_us", "100000");
  EXPECT_EQ(usable_processors(root()), 1);
}

TEST_F(ProcessLimits, OfAGroupWithoutASlashAreThoseAtTheTop) {
  write("sys/fs/cgroup/cpu.max", "100000 100000");
  write("sys/fs/cgroup/memory.max", "1000000000");
  for (const char* line : {"0::no slash", "0::", "0::a/b", "0:://"}) {
    write("proc/self/cgroup", line);
    EXPECT_EQ(usable_processors(root()), 1) << line;
    EXPECT_EQ(memory_limit(root()), 1'000'000'000u) << line;
  }
}

TEST_F(ProcessLimits, ThatAreNoNumbersAreNone) {
  write("proc/self/cgroup", "nonsense\n0::/job");
  write("sys/fs/cgroup/job/cpu.max", "0 0");
  write("sys/fs/cgroup/cpu.max", "much");
  write("sys/fs/cgroup/job/memory.max", "12kB");
  EXPECT_EQ(usable_processors(root()), usable_processors("/nowhere"));
  EXPECT_FALSE(memory_limit(root()));
}

}  // namespace
}  // namespace longhaul
