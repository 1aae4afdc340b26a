#pragma once

#include <string>

namespace longhaul {

// While this object exists, this process is writing a checkpoint, and its files are not leftovers (crash_leftovers.h),
// whatever they look like. There may be several objects for one prefix. Any thread may call.
class WriteUnderWay {
 public:
  explicit WriteUnderWay(const std::string& prefix);
  ~WriteUnderWay();
  WriteUnderWay(const WriteUnderWay&) = delete;
  WriteUnderWay& operator=(const WriteUnderWay&) = delete;

 private:
  const std::string prefix_;
};

bool is_being_written(const std::string& prefix);

}  // namespace longhaul
