#pragma once

#include <memory>
#include <string>
#include <vector>

#include "longhaul/base/clock.h"
#include "longhaul/base/mutex.h"
#include "longhaul/testing/faulty_file_system.h"

namespace longhaul::testing {

// A disk on which operations of one kind hang, from hang() until let_go(): a network mount that does not answer. Let
// go, and wait for the threads (threads_end_fixture.h), before it is destroyed. Any thread.
class HangingFileSystem : public FaultyFileSystem {
 public:
  enum class At { kNothing, kList, kCreate, kExists, kAppend, kFlush, kSync, kClose, kSyncDirectory };

  // Those whose path contains `part`.
  void hang(At at, const std::string& part = "") {
    MutexLock lock(mutex_);
    at_ = at;
    part_ = part;
    changed_.notify_all();
  }
  void let_go() { hang(At::kNothing); }

  // Whether somebody hangs, for which it waits, though not for ever.
  bool comes_to_hang() {
    const Seconds end = Clock::real().now() + Seconds{20};
    MutexLock lock(mutex_);
    while (hanging_ == 0 && Clock::real().now() < end) changed_.wait_for(mutex_, Seconds{1});
    return hanging_ > 0;
  }

  std::unique_ptr<WritableFile> create(const std::string& path, IfExists if_exists) override {
    meet(At::kCreate, path);
    return std::make_unique<File>(*this, path, FaultyFileSystem::create(path, if_exists));
  }
  bool exists(const std::string& path) override {
    meet(At::kExists, path);
    return FaultyFileSystem::exists(path);
  }
  std::vector<std::string> list(const std::string& directory) override {
    meet(At::kList, directory);
    return FaultyFileSystem::list(directory);
  }
  void sync_directory(const std::string& path) override {
    meet(At::kSyncDirectory, path);
    FaultyFileSystem::sync_directory(path);
  }

 private:
  class File : public WritableFile {
   public:
    File(HangingFileSystem& files, std::string path, std::unique_ptr<WritableFile> inner)
        : files_(files), path_(std::move(path)), inner_(std::move(inner)) {}
    void append(std::string_view data) override {
      files_.meet(At::kAppend, path_);
      inner_->append(data);
    }
    void flush() override {
      files_.meet(At::kFlush, path_);
      inner_->flush();
    }
    void sync() override {
      files_.meet(At::kSync, path_);
      inner_->sync();
    }
    void close() override {
      files_.meet(At::kClose, path_);
      inner_->close();
    }

   private:
    HangingFileSystem& files_;
    const std::string path_;
    const std::unique_ptr<WritableFile> inner_;
  };

  void meet(At at, const std::string& path) {
    MutexLock lock(mutex_);
    if (!hangs(at, path)) return;
    ++hanging_;
    changed_.notify_all();
    while (hangs(at, path)) changed_.wait_for(mutex_, Seconds{1});
    --hanging_;
  }
  bool hangs(At at, const std::string& path) const REQUIRES(mutex_) {
    return at == at_ && path.find(part_) != path.npos;
  }

  Mutex mutex_;
  CondVar changed_;
  At at_ GUARDED_BY(mutex_) = At::kNothing;
  std::string part_ GUARDED_BY(mutex_);
  int hanging_ GUARDED_BY(mutex_) = 0;
};

}  // namespace longhaul::testing
