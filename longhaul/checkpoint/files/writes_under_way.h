#pragma once

#include <string>

namespace longhaul {

// Marks a checkpoint as being written by this process while this object exists: its files are not leftovers
// (crash_leftovers.h), whatever they look like. Any thread; there may be several for one prefix.
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
