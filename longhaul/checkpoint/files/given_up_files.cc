#include "longhaul/checkpoint/files/given_up_files.h"

#include <set>

#include "longhaul/base/mutex.h"
#include "longhaul/io/files/file.h"

namespace longhaul {
namespace {

struct GivenUp {
  Mutex mutex;
  std::set<std::string> paths GUARDED_BY(mutex);
};

GivenUp& given_up_here() {
  static GivenUp* const given_up = new GivenUp;  // never destroyed
  return *given_up;
}

}  // namespace

void note_given_up_file(const std::string& path) {
  constexpr size_t kMost = 10000;
  GivenUp& given_up = given_up_here();
  const MutexLock lock(given_up.mutex);
  if (given_up.paths.size() < kMost) given_up.paths.insert(path);
}

std::vector<std::string> take_given_up_files(const std::string& directory) {
  GivenUp& given_up = given_up_here();
  std::vector<std::string> taken;
  const MutexLock lock(given_up.mutex);
  for (auto path = given_up.paths.begin(); path != given_up.paths.end();) {
    if (directory_name(*path) != directory) {
      ++path;
      continue;
    }
    taken.push_back(*path);
    path = given_up.paths.erase(path);
  }
  return taken;
}

}  // namespace longhaul
