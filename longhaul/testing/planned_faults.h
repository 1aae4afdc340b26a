#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "longhaul/base/mutex.h"
#include "longhaul/io/files/file.h"
#include "longhaul/testing/fault_plan.h"

namespace longhaul::testing {

// The actions by which a PlannedFaults carries out its faults. Tests may substitute other actions.
struct FaultActions {
  std::function<void()> kill;                    // empty: SIGKILL, which does not return
  std::function<void(Seconds)> sleep;            // empty: the calling thread sleeps
  std::function<void(const std::string&)> tell;  // called for each injected fault; empty: a warning in the log
};

// Another file system with planned faults, for whole programs: pass it as `files`.
//
//   PlannedFaults files(parse_fault_plan("eio@sync(.data-):2,slow@write:1+=5"));
//   lh::Supervisor sv({.graph = &graph, .logdir = "runs/demo", .files = &files});
//
// Applies to ordinary and large files alike. Large files still bypass the kernel's cache, several blocks at a time, so
// that a kill can hit them in flight. A write is one append(). Errors are those of the real file system, by errno. Slow
// operations hold no lock. Any thread may call.
class PlannedFaults : public FileSystem {
 public:
  explicit PlannedFaults(std::vector<PlannedFault> faults, FileSystem& inner = FileSystem::real(),
                         FaultActions actions = {});
  ~PlannedFaults() override;

  std::unique_ptr<WritableFile> create(const std::string& path, IfExists if_exists = IfExists::kTruncate) override;
  std::unique_ptr<WritableFile> create_large(const std::string& path, const LargeFileOptions& options) override;
  std::unique_ptr<ReadableFile> open(const std::string& path) override;
  bool exists(const std::string& path) override { return inner_.exists(path); }
  bool is_directory(const std::string& path) override { return inner_.is_directory(path); }
  double modified_at(const std::string& path) override { return inner_.modified_at(path); }
  std::vector<std::string> list(const std::string& directory) override { return inner_.list(directory); }
  void make_directories(const std::string& path) override { inner_.make_directories(path); }
  void rename(const std::string& from, const std::string& to) override;
  void link(const std::string& from, const std::string& to) override;
  void remove(const std::string& path) override;
  void sync_directory(const std::string& path) override;
  uint64_t free_bytes(const std::string& path) override { return inner_.free_bytes(path); }
  FileLock::Attempt try_lock(const std::string& path) override { return inner_.try_lock(path); }

 private:
  class Injector;
  class Writer;
  class Reader;

  FileSystem& inner_;
  const std::unique_ptr<Injector> injector_;
};

// The machine's files with the faults in the environment variable LONGHAUL_FAULTS, if it is set. With it, a program can
// be run under faults without changing it. One instance per process. InvalidArgumentError: the variable is not a valid
// plan.
FileSystem& file_system_from_environment();

}  // namespace longhaul::testing
