#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "longhaul/events/file_writer.h"
#include "longhaul/session/session.h"
#include "longhaul/train/hooks/session_run_hook.h"

// Parts shared by several hooks.

namespace longhaul {

// The graph's global step, for a hook. It is fetched with each run, which gives the step at which the run began, and
// read again if the hook needs the step after the run.
class HookStep {
 public:
  // For begin(). FailedPreconditionError: the graph has no global step; the message names the hook.
  void find(const Graph& graph, const char* hook);

  const Output& tensor() const { return tensor_; }
  const SessionRunArgs& args() const { return args_; }  // the result of before_run(), or its first fetch
  static int64_t before_the_run(const SessionRunValues& values) { return values.results[0].item<int64_t>(); }
  int64_t now(Session& session) const;

 private:
  Output tensor_;
  SessionRunArgs args_;
};

// Returns the writer that a hook was given, or else the shared writer for the directory; nullptr if it was given
// neither. Errors of the file system: the directory cannot be made.
std::shared_ptr<FileWriter> hook_writer(const std::shared_ptr<FileWriter>& given, const std::string& directory,
                                        FileSystem* files, Clock* clock);

}  // namespace longhaul
