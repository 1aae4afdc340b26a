#pragma once

#include <gmock/gmock.h>

#include <chrono>
#include <filesystem>
#include <memory>
#include <string>

#include "longhaul/base/log.h"
#include "longhaul/io/lock/directory_lock.h"
#include "longhaul/testing/fake_clock.h"
#include "longhaul/testing/faulty_file_system.h"
#include "longhaul/testing/temporary_directory.h"

namespace longhaul {

// A directory that is locked by this process, or has the record of another's lock. Time passes while somebody waits.
class DirectoryLockTest : public ::testing::Test {
 protected:
  DirectoryLockTest() {
    log_before_ = set_log_sink([this](LogLevel, const std::string& line) { log_ += line + "\n"; });
  }
  ~DirectoryLockTest() override { set_log_sink(log_before_); }

  std::unique_ptr<DirectoryLock> take(bool use_flock = true) {
    return std::make_unique<DirectoryLock>(
        directory_.path(), DirectoryLockOptions{.files = &files_, .clock = &clock_, .use_flock = use_flock});
  }
  std::string refusal(bool use_flock = true) {
    try {
      take(use_flock);
    } catch (const DirectoryLockedError& error) {
      return error.what();
    }
    ADD_FAILURE() << "the directory was taken";
    return "";
  }
  // The record of an owner that is not known here.
  void leave_record(const ProcessIdentity& process, Seconds age = Seconds{0}, bool has_flock = true) {
    OwnerRecord owner = stranger();
    owner.process = process;
    owner.has_flock = has_flock;
    leave(owner, age);
  }
  void leave(const OwnerRecord& owner, Seconds age) {
    write_owner(files_, directory_.path(), owner);
    make_older(record(), age);
  }
  static void make_older(const std::string& path, Seconds age) {
    const auto now = std::filesystem::last_write_time(path);
    std::filesystem::last_write_time(path,
                                     now - std::chrono::duration_cast<std::filesystem::file_time_type::duration>(age));
  }
  static OwnerRecord stranger() {
    return {
        .token = std::string(32, 'e'),
        .process = {.host = "far-away", .boot_id = "another", .pid_namespace = "pid:[1]", .pid = 42, .start_time = 7},
        .since = 1763721934,
        .heartbeat = 1763722264};
  }
  static ProcessIdentity of_a_dead_process() {
    ProcessIdentity dead = this_process();
    dead.start_time -= 1;
    return dead;
  }
  static ProcessIdentity of_another_container() {
    ProcessIdentity other = this_process();
    other.pid_namespace = "pid:[1]";
    return other;
  }
  std::string record() const { return directory_.file("chief.owner"); }
  std::string lock_file() const { return directory_.file("chief.lock"); }

  testing::FaultyFileSystem files_;
  testing::TemporaryDirectory directory_;
  testing::FakeClock clock_{testing::FakeClock::Waits::kPassTime};
  std::string log_;
  LogSink log_before_;
};

}  // namespace longhaul
