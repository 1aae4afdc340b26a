#pragma once

#include <cstdint>
#include <exception>
#include <string>

#include "longhaul/base/error.h"
#include "longhaul/base/mutex.h"
#include "longhaul/proto/cluster_service.pb.h"

// The errors of calls between tasks, in words that name the task.
namespace longhaul {

// A task as messages name it: "task /job:ps/replica:0/task:1 (10.0.0.3:2222)".
std::string task_text(const std::string& task, const std::string& address);

// "task /job:ps/replica:0/task:1 (10.0.0.3:2222) has not answered Deliver for 12 s".
std::string unanswered_text(const std::string& task, const std::string& address, const std::string& method,
                            Seconds waited);

// A process has been replaced: AbortedError, in the words that TensorFlow uses.
std::exception_ptr wrong_incarnation(const std::string& method, const std::string& task, uint64_t wanted,
                                     uint64_t found);

// What follows from another error of the same step: the code and the text are those of its cause, which whoever reports
// the step's error prefers. Not of the cause's class: use code().
class ConsequenceError : public Error {
 public:
  explicit ConsequenceError(std::exception_ptr cause);
  ConsequenceError(Code code, const std::string& message) : Error(code, message) {}
};
bool is_consequence(const std::exception_ptr& error);

// An error in a message, and out of it: the class of its code, or a ConsequenceError. Null: kOk.
proto::ErrorBody to_error_body(const std::exception_ptr& error);
std::exception_ptr from_error_body(const proto::ErrorBody& body);

// The same error as seen by the caller of that task: "From /job:ps/replica:0/task:1:\n...", once.
std::exception_ptr from_task(const std::string& task, const std::exception_ptr& error);

// An identity of this process that no other one has had: 64 random bits, never 0.
uint64_t new_incarnation();

}  // namespace longhaul
