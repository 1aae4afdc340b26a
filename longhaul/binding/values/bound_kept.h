#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>

#include "longhaul/binding/kept_values.h"

namespace longhaul {

[[noreturn]] void throw_inconsistent(const std::string& name, const std::string& failed_step);

// The values of TorchTrainingOptions::kept, and whether steps change them, and nothing else does. Not synchronised.
class BoundKept {
 public:
  struct Bound {
    KeptValue value;
    uint64_t before = 0, after = 0;  // looks at it, at the beginning and the end of a step
    bool is_known = false;           // `after` is of the last step
    std::string failed_step = {};    // the last one, if it failed halfway, and its error
  };

  // The result stays where it is.
  Bound& add(KeptValue value) { return values_.emplace_back(Bound{std::move(value)}); }

  std::deque<Bound>& values() { return values_; }

  void begin();                                  // of a step
  void end();                                    // of a step that did not throw
  void abandon(const std::string& failed_step);  // that threw; empty: it had changed nothing

  // FailedPreconditionError by read: a step failed halfway since the last assignment.
  static Tensor read(const Bound& bound);
  static void assign(Bound& bound, const Tensor& saved);
  // Those that are short, as bytes by their names, and back: others are left alone. InvalidArgumentError: bytes that
  // are no such value.
  void add_short_to(std::map<std::string, std::string>& bytes) const;
  void assign_short(const std::map<std::string, std::string>& bytes);

  bool changed() const;  // by the step under way
  // The name of the first that was changed between the last step and this one.
  const std::optional<std::string>& written_between() const { return written_between_; }

 private:
  std::deque<Bound> values_;
  std::optional<std::string> written_between_;
};

}  // namespace longhaul
