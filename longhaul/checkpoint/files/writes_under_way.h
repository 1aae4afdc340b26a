#pragma once

#include <string>

namespace longhaul {

// A checkpoint that this process is writing, for as long as this lives: its files are nobody's leftovers
// (crash_leftovers.h), whatever they look like. Any thread; there may be several of one prefix.
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
