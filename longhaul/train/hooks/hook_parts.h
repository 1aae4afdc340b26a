#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "longhaul/events/file_writer.h"
#include "longhaul/session/session.h"
#include "longhaul/train/hooks/session_run_hook.h"

// What several hooks need.

namespace longhaul {

// The graph's global step as a hook uses it: asked for along with each run, which gives the step that the run began
// with, and read again where it matters how far the run has come.
class HookStep {
 public:
  // For begin(). FailedPreconditionError: the graph has no global step; the message names the hook.
  void find(const Graph& graph, const char* hook);

  const Output& tensor() const { return tensor_; }
  const SessionRunArgs& args() const { return args_; }  // for before_run(), alone or with more after it
  static int64_t before_the_run(const SessionRunValues& values) { return values.results[0].item<int64_t>(); }
  int64_t now(Session& session) const;

 private:
  Output tensor_;
  SessionRunArgs args_;
};

// The tensor that a hook was told to look at. NotFoundError: the graph has none of that name. InvalidArgumentError: it
// is of another graph, or an operation, which has no value; the message names the hook.
Output hook_tensor(const Graph& graph, const Fetch& fetch, const char* hook);

// The writer that a hook was given, or the one that all who write to the directory share; nullptr: it was given
// neither. What the file system throws: the directory cannot be made.
std::shared_ptr<FileWriter> hook_writer(const std::shared_ptr<FileWriter>& given, const std::string& directory,
                                        FileSystem* files, Clock* clock);

}  // namespace longhaul
