#pragma once

#include <string>

#include "longhaul/base/mutex.h"
#include "longhaul/io/files/file.h"

namespace longhaul {

// Whether a directory has a chief, for processes that do not lock it. A chief that this process cannot see, because it
// is on another machine, is there as long as its heartbeat changes, by this machine's clock alone. One thread at a
// time.
class ChiefWatch {
 public:
  // `now`: on one monotonic clock. An owner record that cannot be read is none.
  bool is_there(FileSystem& files, const std::string& directory, Seconds now);
  const std::string& last() const { return last_; }  // who it was; empty: none was seen

 private:
  std::string token_, last_;
  double heartbeat_ = 0;
  Seconds changed_at_{0};
};

}  // namespace longhaul
