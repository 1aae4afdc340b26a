#include "longhaul/testing/faulty_file_system.h"

#include <fmt/format.h>

#include <algorithm>

namespace longhaul::testing {

class FaultyFileSystem::File : public WritableFile {
 public:
  File(FaultyFileSystem& files, const std::string& path, std::unique_ptr<WritableFile> inner)
      : files_(files), name_(base_name(path)), inner_(std::move(inner)) {}

  void append(std::string_view data) override {
    std::string operation = fmt::format("append {} {}", name_, data.size());
    if (files_.must_fail(operation)) {
      inner_->append(data.substr(0, data.size() / 2));
      throw UnavailableError(operation + ": made to fail");
    }
    uint64_t room = files_.room_for(data.size());
    inner_->append(data.substr(0, room));
    if (room < data.size()) throw ResourceExhaustedError(operation + ": No space left on device");
  }

  void flush() override {
    files_.check("flush " + name_);
    inner_->flush();
  }

  void sync() override {
    files_.check("sync " + name_);
    inner_->sync();
  }

  void close() override {
    files_.check("close " + name_);
    inner_->close();
  }

 private:
  FaultyFileSystem& files_;
  const std::string name_;
  std::unique_ptr<WritableFile> inner_;
};

void FaultyFileSystem::fail_operation(int n, Fault fault) {
  MutexLock lock(mutex_);
  until_fault_ = n;
  fault_ = fault;
}

void FaultyFileSystem::fail_writes_after(uint64_t bytes) {
  MutexLock lock(mutex_);
  room_ = bytes;
}

void FaultyFileSystem::heal() {
  MutexLock lock(mutex_);
  until_fault_ = -1;
  room_ = UINT64_MAX;
}

std::vector<std::string> FaultyFileSystem::operations() const {
  MutexLock lock(mutex_);
  return operations_;
}

bool FaultyFileSystem::must_fail(const std::string& operation) {
  MutexLock lock(mutex_);
  operations_.push_back(operation);
  if (until_fault_ < 0) return false;
  if (until_fault_ > 0) {
    --until_fault_;
    return false;
  }
  if (fault_ == Fault::kOnce) until_fault_ = -1;
  return true;
}

void FaultyFileSystem::check(const std::string& operation) {
  if (must_fail(operation)) throw UnavailableError(operation + ": made to fail");
}

// How many of the bytes still fit on the disk; they count as written.
uint64_t FaultyFileSystem::room_for(uint64_t bytes) {
  MutexLock lock(mutex_);
  uint64_t fit = std::min(bytes, room_);
  if (room_ != UINT64_MAX) room_ -= fit;
  return fit;
}

std::unique_ptr<WritableFile> FaultyFileSystem::create(const std::string& path, IfExists if_exists) {
  check("create " + base_name(path));
  return std::make_unique<File>(*this, path, inner_.create(path, if_exists));
}

std::unique_ptr<WritableFile> FaultyFileSystem::create_large(const std::string& path, const LargeFileOptions& options) {
  check("create " + base_name(path));
  return std::make_unique<File>(*this, path, inner_.create_large(path, options));
}

void FaultyFileSystem::make_directories(const std::string& path) {
  check("make_directories " + path);
  inner_.make_directories(path);
}

void FaultyFileSystem::rename(const std::string& from, const std::string& to) {
  check(fmt::format("rename {} {}", base_name(from), base_name(to)));
  inner_.rename(from, to);
}

void FaultyFileSystem::link(const std::string& from, const std::string& to) {
  check(fmt::format("link {} {}", base_name(from), base_name(to)));
  inner_.link(from, to);
}

void FaultyFileSystem::remove(const std::string& path) {
  check("remove " + base_name(path));
  inner_.remove(path);
}

void FaultyFileSystem::sync_directory(const std::string& path) {
  check("sync_directory " + path);
  inner_.sync_directory(path);
}

FileLock::Attempt FaultyFileSystem::try_lock(const std::string& path) {
  check("try_lock " + base_name(path));
  return inner_.try_lock(path);
}

}  // namespace longhaul::testing
