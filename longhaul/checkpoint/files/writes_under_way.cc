#include "longhaul/checkpoint/files/writes_under_way.h"

#include <set>

#include "longhaul/base/mutex.h"
#include "longhaul/checkpoint/files/checkpoint_files.h"

namespace longhaul {
namespace {

struct Register {
  Mutex mutex;
  std::multiset<std::string> prefixes GUARDED_BY(mutex);
};

// A service that outlives main() may still be writing.
Register& all() {
  static auto* const writes = new Register;
  return *writes;
}

}  // namespace

WriteUnderWay::WriteUnderWay(const std::string& prefix) : prefix_(canonical_prefix(prefix)) {
  Register& writes = all();
  MutexLock lock(writes.mutex);
  writes.prefixes.insert(prefix_);
}

WriteUnderWay::~WriteUnderWay() {
  Register& writes = all();
  MutexLock lock(writes.mutex);
  writes.prefixes.erase(writes.prefixes.find(prefix_));
}

bool is_being_written(const std::string& prefix) {
  const std::string canonical = canonical_prefix(prefix);
  Register& writes = all();
  MutexLock lock(writes.mutex);
  return writes.prefixes.contains(canonical);
}

}  // namespace longhaul
