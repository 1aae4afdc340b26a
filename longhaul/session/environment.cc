#include "longhaul/session/environment.h"

#include "longhaul/base/mutex.h"

namespace longhaul {
namespace {

struct Known {
  Mutex mutex;
  std::function<Environment()> facts GUARDED_BY(mutex);
  Environment options GUARDED_BY(mutex);
};

Known& known() {
  static auto* known = new Known;
  return *known;
}

}  // namespace

Environment environment() {
  std::function<Environment()> facts;
  Environment result;
  {
    MutexLock lock(known().mutex);
    facts = known().facts;
    result = known().options;
  }
  if (facts) result.merge(facts());
  return result;
}

void record_option(const std::string& name, const std::string& value) {
  MutexLock lock(known().mutex);
  known().options["option " + name] = value;
}

void install_environment(std::function<Environment()> facts) {
  MutexLock lock(known().mutex);
  known().facts = std::move(facts);
}

}  // namespace longhaul
