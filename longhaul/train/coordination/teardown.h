#pragma once

#include <exception>
#include <functional>
#include <string>
#include <vector>

namespace longhaul {

// The end of a training run, in steps that each release something. Every step runs, even if earlier ones threw. The
// first error is kept; later ones are logged.
//
//   Teardown end;
//   end.step("the event file", [&] { writer.close(); });
//   end.step("the lock", [&] { lock.reset(); });
//   end.raise_error();
//
// One thread at a time.
class Teardown {
 public:
  explicit Teardown(std::exception_ptr error = nullptr) : error_(std::move(error)) {}

  void step(const std::string& what, const std::function<void()>& body);

  // Sets the underlying cause, once it is known: it replaces the error kept so far, which is logged. Null: no effect.
  void outrank(const std::exception_ptr& cause);

  const std::vector<std::string>& steps() const { return steps_; }  // done so far, in their order, failed ones too
  const std::exception_ptr& error() const { return error_; }        // the first; null: none so far
  void raise_error() const;                                         // throws it, if there is one

 private:
  std::exception_ptr error_;
  std::vector<std::string> steps_;
};

}  // namespace longhaul
