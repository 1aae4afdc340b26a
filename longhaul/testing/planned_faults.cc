#include "longhaul/testing/planned_faults.h"

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <thread>
#include <utility>

#include "longhaul/base/log.h"

namespace longhaul::testing {
namespace {

using Kind = PlannedFault::Kind;
using FaultedCall = PlannedFault::Operation;

std::string_view half(std::string_view data) {
  return data.substr(0, data.size() / 2);
}

void flip_a_bit(char* data, size_t size) {
  if (size > 0) data[size / 2] = static_cast<char>(data[size / 2] ^ 0x10);
}

FaultActions with_defaults(FaultActions actions) {
  if (!actions.kill) {
    actions.kill = [] {
      ::kill(::getpid(), SIGKILL);
      while (true) ::pause();
    };
  }
  if (!actions.sleep) actions.sleep = [](Seconds time) { std::this_thread::sleep_for(time); };
  if (!actions.tell) actions.tell = [](const std::string& text) { log_warning("{}", text); };
  return actions;
}

}  // namespace

// Counts the operations, and decides what happens to each.
class PlannedFaults::Injector {
 public:
  Injector(std::vector<PlannedFault> faults, FaultActions actions) : actions_(with_defaults(std::move(actions))) {
    for (PlannedFault& fault : faults) planned_.push_back({std::move(fault), 0});
  }

  // Waits, throws or kills, as it is planned for this operation. For a write: `write_half` makes half of it. Returns
  // whether a bit is to be flipped.
  bool meet(FaultedCall operation, const std::string& path, const std::function<void()>& write_half = {}) {
    bool is_flipped = false;
    for (const PlannedFault& fault : due(operation, path)) {
      actions_.tell(fmt::format("injected fault {}: {}", to_string(fault), path));
      switch (fault.kind) {
        case Kind::kSlow: actions_.sleep(fault.delay); break;
        case Kind::kFlip: is_flipped = true; break;
        case Kind::kIoError: throw_errno(EIO, path);
        case Kind::kKill: actions_.kill(); break;
        case Kind::kNoSpace:
          if (write_half) write_half();
          throw_errno(ENOSPC, path);
        case Kind::kTorn: write_half(); actions_.kill();
      }
    }
    return is_flipped;
  }

 private:
  struct Planned {
    PlannedFault fault;
    uint64_t seen;
  };

  std::vector<PlannedFault> due(FaultedCall operation, const std::string& path) {
    std::vector<PlannedFault> faults;
    MutexLock lock(mutex_);
    for (Planned& planned : planned_) {
      const PlannedFault& fault = planned.fault;
      if (fault.operation != FaultedCall::kAny && fault.operation != operation) continue;
      if (base_name(path).find(fault.name_part) == std::string::npos) continue;
      ++planned.seen;
      if (planned.seen >= fault.first && planned.seen <= fault.last) faults.push_back(fault);
    }
    return faults;
  }

  const FaultActions actions_;
  Mutex mutex_;
  std::vector<Planned> planned_ GUARDED_BY(mutex_);
};

class PlannedFaults::Writer : public WritableFile {
 public:
  Writer(Injector& injector, std::string path, std::unique_ptr<WritableFile> inner)
      : injector_(injector), path_(std::move(path)), inner_(std::move(inner)) {}

  void append(std::string_view data) override {
    if (is_flipped(data)) return append_flipped(data);
    inner_->append(data);
  }
  void append_borrowed(std::string_view data, std::shared_ptr<const void> owner) override {
    if (is_flipped(data)) return append_flipped(data);
    inner_->append_borrowed(data, std::move(owner));
  }
  void flush() override { inner_->flush(); }
  void sync() override {
    injector_.meet(FaultedCall::kSync, path_);
    inner_->sync();
  }
  void close() override { inner_->close(); }

 private:
  bool is_flipped(std::string_view data) {
    return injector_.meet(FaultedCall::kWrite, path_, [&] {
      inner_->append(half(data));
      inner_->flush();
    });
  }
  void append_flipped(std::string_view data) {
    std::string flipped(data);
    flip_a_bit(flipped.data(), flipped.size());
    inner_->append(flipped);
  }

  Injector& injector_;
  const std::string path_;
  const std::unique_ptr<WritableFile> inner_;
};

class PlannedFaults::Reader : public ReadableFile {
 public:
  Reader(Injector& injector, std::string path, std::unique_ptr<ReadableFile> inner)
      : injector_(injector), path_(std::move(path)), inner_(std::move(inner)) {}

  uint64_t size() const override { return inner_->size(); }
  size_t read(uint64_t offset, char* out, size_t count) const override {
    const bool is_flipped = injector_.meet(FaultedCall::kRead, path_);
    const size_t got = inner_->read(offset, out, count);
    if (is_flipped) flip_a_bit(out, got);
    return got;
  }

  // Each part counts as a read.
  void read_batch(std::span<const ReadRequest> requests, const UsePart& use) const override {
    inner_->read_batch(requests, [&](const ReadPart& part) {
      if (!injector_.meet(FaultedCall::kRead, path_)) return use(part);
      std::string flipped(part.bytes);
      flip_a_bit(flipped.data(), flipped.size());
      ReadPart changed = part;
      changed.bytes = flipped;
      char* const out = requests[part.request].out;
      if (out != nullptr) {
        flipped.copy(out + part.begin, flipped.size());
        changed.bytes = part.bytes;
      }
      use(changed);
    });
  }

 private:
  Injector& injector_;
  const std::string path_;
  const std::unique_ptr<ReadableFile> inner_;
};

PlannedFaults::PlannedFaults(std::vector<PlannedFault> faults, FileSystem& inner, FaultActions actions)
    : inner_(inner), injector_(std::make_unique<Injector>(std::move(faults), std::move(actions))) {}

PlannedFaults::~PlannedFaults() = default;

std::unique_ptr<WritableFile> PlannedFaults::create(const std::string& path, IfExists if_exists) {
  injector_->meet(FaultedCall::kCreate, path);
  return std::make_unique<Writer>(*injector_, path, inner_.create(path, if_exists));
}

std::unique_ptr<WritableFile> PlannedFaults::create_large(const std::string& path, const LargeFileOptions& options) {
  injector_->meet(FaultedCall::kCreate, path);
  return std::make_unique<Writer>(*injector_, path, inner_.create_large(path, options));
}

std::unique_ptr<ReadableFile> PlannedFaults::open(const std::string& path) {
  injector_->meet(FaultedCall::kOpen, path);
  return std::make_unique<Reader>(*injector_, path, inner_.open(path));
}

void PlannedFaults::rename(const std::string& from, const std::string& to) {
  injector_->meet(FaultedCall::kRename, to);
  inner_.rename(from, to);
}

void PlannedFaults::link(const std::string& from, const std::string& to) {
  injector_->meet(FaultedCall::kLink, to);
  inner_.link(from, to);
}

void PlannedFaults::remove(const std::string& path) {
  injector_->meet(FaultedCall::kRemove, path);
  inner_.remove(path);
}

void PlannedFaults::sync_directory(const std::string& path) {
  injector_->meet(FaultedCall::kSyncDirectory, path);
  inner_.sync_directory(path);
}

FileSystem& file_system_from_environment() {
  static FileSystem* const files = []() -> FileSystem* {
    const char* const plan = std::getenv("LONGHAUL_FAULTS");
    return plan == nullptr ? &FileSystem::real() : new PlannedFaults(parse_fault_plan(plan));
  }();
  return *files;
}

}  // namespace longhaul::testing
