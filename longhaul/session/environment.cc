#include "longhaul/session/environment.h"

#include <fmt/format.h>

#include "longhaul/base/error.h"
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

void check_fits_a_line(const std::string& name, const std::string& value) {
  if (name.find('\n') == std::string::npos && name.find(": ") == std::string::npos &&
      value.find('\n') == std::string::npos) {
    return;
  }
  throw InvalidArgumentError(fmt::format(
      "the option \"{}\" = \"{}\" cannot be recorded: remove line breaks, and \": \" from its name", name, value));
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
  check_fits_a_line(name, value);
  MutexLock lock(known().mutex);
  known().options["option " + name] = value;
}

void install_environment(std::function<Environment()> facts) {
  MutexLock lock(known().mutex);
  known().facts = std::move(facts);
}

}  // namespace longhaul
