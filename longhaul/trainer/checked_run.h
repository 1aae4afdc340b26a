#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace longhaul {

// What `longhaul resume-check` passes to the program that it runs, in environment variables: LONGHAUL_RESUME_CHECK_DIR
// and LONGHAUL_RESUME_CHECK_STOP_STEP. So a program whose source names its directory is checked as it is, in another
// one.
class CheckedRun {
 public:
  static std::optional<CheckedRun> of_environment();  // nullopt: this process is in no check
  // `stop_step` as text, or nullptr for none. InvalidArgumentError: it is not a number.
  CheckedRun(std::string directory, const char* stop_step);

  // Where the run of the program's directory is: there, if it is in the check's, else in a folder of that.
  std::string place_of(const std::string& directory) const;
  // After this step the program is to stop as by SIGTERM; -1: after none.
  int64_t stop_step() const { return stop_step_; }

 private:
  std::string directory_;
  int64_t stop_step_ = -1;
};

}  // namespace longhaul
