#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "longhaul/base/clock.h"
#include "longhaul/base/job_threads.h"
#include "longhaul/base/log_tail.h"
#include "longhaul/base/mutex.h"
#include "longhaul/status/http_reply.h"
#include "longhaul/train/status/run_status.h"

namespace longhaul {

// A reply that many may ask for: it is made anew only when the last one is older than `max_age`, however many ask. Any
// thread may call.
class SharedReply {
 public:
  explicit SharedReply(Seconds max_age) : max_age_(max_age) {}
  std::shared_ptr<const std::string> get(const std::function<std::string()>& make) EXCLUDES(mutex_);

 private:
  const Seconds max_age_;
  Mutex mutex_;  // held while a reply is made: others want that one
  Seconds made_ GUARDED_BY(mutex_){0};
  std::shared_ptr<const std::string> reply_ GUARDED_BY(mutex_);
};

// The room on a disk, which is measured on a thread of its own ("lh-disk-0"): a file system that hangs keeps that and
// nobody else. Any thread may call.
class DiskRoom {
 public:
  DiskRoom(FileSystem& files, std::string directory);

  // As last measured; begins to measure again if that is long ago. nullopt: it is not known yet, or there is no
  // directory.
  std::optional<uint64_t> free_bytes();
  void stop();

 private:
  struct Measured {
    Mutex mutex;
    bool is_under_way GUARDED_BY(mutex) = false;
    std::optional<Seconds> at GUARDED_BY(mutex);
    std::optional<uint64_t> bytes GUARDED_BY(mutex);
  };

  FileSystem& files_;
  const std::string directory_;
  const std::shared_ptr<Measured> measured_ = std::make_shared<Measured>();
  JobThreads threads_;
};

// What the page answers. Any thread may call.
class PageAnswers {
 public:
  explicit PageAnswers(std::shared_ptr<RunStatus> status);

  HttpReply healthz() const;
  HttpReply readyz() const;
  HttpReply metrics();
  HttpReply json();
  HttpReply curves();
  HttpReply stacks();
  HttpReply checkpoint() const;
  HttpReply stop() const;
  void end() { disk_.stop(); }

  // Those of `answers`, which they share.
  static std::vector<HttpRoute> routes(const std::shared_ptr<PageAnswers>& answers);

 private:
  StatusReport report();

  const std::shared_ptr<RunStatus> status_;
  const LogTail log_;
  std::atomic<int64_t> requests_{0};
  DiskRoom disk_;
  SharedReply metrics_{Seconds{0.5}}, json_{Seconds{2}}, curves_{Seconds{15}}, stacks_{Seconds{2}};
};

}  // namespace longhaul
