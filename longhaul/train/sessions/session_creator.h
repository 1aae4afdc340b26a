#pragma once

#include <memory>
#include <optional>
#include <string>

#include "longhaul/train/sessions/scaffold.h"

namespace longhaul {

class ChiefTenure;

// Creates sessions whose model is ready, one after the other.
class SessionCreator {
 public:
  virtual ~SessionCreator() = default;

  virtual Graph& graph() const = 0;
  // Finalizes the graph. After an error for which may_be_made_later() is true, the call may be repeated.
  virtual std::shared_ptr<Session> create_session() = 0;
};

struct ChiefSessionCreatorOptions {
  Graph* graph = nullptr;                // nullptr: the default graph
  std::shared_ptr<Scaffold> scaffold{};  // nullptr: one with the defaults
  std::string master{};                  // "": this process
  SessionOptions config{};
  // Restores the newest intact checkpoint of a directory, or this one. At most one of the two.
  std::string checkpoint_dir{};
  std::string checkpoint_filename_with_path{};
  MirrorSearchOptions mirror{};  // of checkpoint_dir, searched too
  RecoveryOptions recovery{};
  std::optional<Seconds> max_wait_secs = Seconds{7200};  // for the tasks of a server; nullopt: forever
  // The chief's tenure, which learns which checkpoint was restored and may skip checkpoints of the directory. Its
  // preemption ends the search of the mirror. nullptr: none.
  std::shared_ptr<ChiefTenure> tenure{};
  FileSystem* files = &FileSystem::real();
  Coordinator coordinator{};  // stopping it ends waits; its clock measures them
};

// For the chief: restores the model, or initialises it. Errors: those of SessionManager::prepare_session() and of
// Scaffold::finalize().
class ChiefSessionCreator : public SessionCreator {
 public:
  explicit ChiefSessionCreator(ChiefSessionCreatorOptions options = {});
  Graph& graph() const override { return graph_; }
  std::shared_ptr<Session> create_session() override;

 private:
  const ChiefSessionCreatorOptions options_;
  Graph& graph_;
  const std::shared_ptr<Scaffold> scaffold_;
};

struct WorkerSessionCreatorOptions {
  Graph* graph = nullptr;                // nullptr: the default graph
  std::shared_ptr<Scaffold> scaffold{};  // nullptr: one with the defaults
  std::string master{};
  SessionOptions config{};
  Seconds max_wait_secs{1800};
  Seconds recovery_wait_secs{30};  // between two looks at most
  Coordinator coordinator{};       // stopping it ends the wait; its clock measures it
};

// For the others: waits until the chief has made the model ready. Errors: those of SessionManager::wait_for_session()
// and of Scaffold::finalize().
class WorkerSessionCreator : public SessionCreator {
 public:
  explicit WorkerSessionCreator(WorkerSessionCreatorOptions options = {});
  Graph& graph() const override { return graph_; }
  std::shared_ptr<Session> create_session() override;

 private:
  const WorkerSessionCreatorOptions options_;
  Graph& graph_;
  const std::shared_ptr<Scaffold> scaffold_;
};

}  // namespace longhaul
