#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "longhaul/base/mutex.h"
#include "longhaul/base/thread.h"
#include "longhaul/ops/state_ops.h"
#include "longhaul/session/session.h"
#include "longhaul/session/snapshots.h"

namespace longhaul {

// The values of a model after one step, as they were published: a copy that nobody changes.
struct Weights {
  int64_t step = 0;     // the global step
  int64_t version = 0;  // 1, 2, ...: of this publication; 0: none
  // By the names of the variables: those of a bound module are libtorch's ("0.weight"), so that
  // load_state_dict(*net, weights->tensors) takes them over (longhaul/torch.h). Each has its own bytes.
  std::vector<std::pair<std::string, Tensor>> tensors{};

  // NotFoundError: there is no variable of that name.
  const Tensor& at(const std::string& name) const;
  // Those whose names begin with `prefix` ("net/", or "generator." of a Trainer with several modules), by the rest of
  // their names. NotFoundError: there are none.
  std::vector<std::pair<std::string, Tensor>> part(const std::string& prefix) const;
};

// The newest weights of a training, for other threads of its process: those that play, search, or evaluate with them.
// Readers hold a version for as long as they like; training neither waits for them nor changes it.
//
//   NewestWeights newest;
//   std::thread actor([&] {
//     torch::nn::Sequential net = make_net();  // its own copy
//     std::shared_ptr<const Weights> weights;
//     while ((weights = newest.wait_for_newer(weights, Seconds{60}))) {
//       load_state_dict(*net, weights->tensors);
//       play(net);
//     }
//   });
//
// A Trainer publishes to it (Trainer::publish_weights()), as does a WeightsPublisher for any other session. Other
// processes follow the checkpoints (checkpoints_iterator()). Any thread may call.
//
//   open --publish--> open --close--> closed --reopen--> open
class NewestWeights {
 public:
  NewestWeights() = default;
  NewestWeights(const NewestWeights&) = delete;
  NewestWeights& operator=(const NewestWeights&) = delete;

  // The newest; null: nothing was published yet. Does not wait.
  std::shared_ptr<const Weights> get() const EXCLUDES(mutex_);

  // Waits until there is a newer version than `than` (null: until there is any), and returns the newest. Null: there is
  // none within `timeout`, at most an hour, or the publication has ended: is_closed() tells which.
  std::shared_ptr<const Weights> wait_for_newer(const std::shared_ptr<const Weights>& than, Seconds timeout) const
      EXCLUDES(mutex_);

  // Publishes these as the next version, whose number it sets. Returns them.
  std::shared_ptr<const Weights> publish(Weights weights) EXCLUDES(mutex_);

  // No more are coming: ends all waits, once their readers have the newest version.
  void close() EXCLUDES(mutex_);
  void reopen() EXCLUDES(mutex_);  // some are coming after all
  bool is_closed() const EXCLUDES(mutex_);

 private:
  mutable Mutex mutex_;
  mutable CondVar changed_;
  std::shared_ptr<const Weights> newest_ GUARDED_BY(mutex_);
  bool is_closed_ GUARDED_BY(mutex_) = false;
};

struct WeightsPublisherOptions {
  std::vector<Variable> variables{};  // empty: the graph's trainable variables
  Output global_step{};               // absent: the graph's
  int64_t every_n_steps = 1;          // 0: only when publish() is called
};

// Publishes the weights of a session while it trains: those that are there when it begins, and new ones after every
// n-th step. Its thread takes a snapshot (session/snapshots.h) as a checkpoint does, whole and of one step, and copies
// it, so that training waits no longer than for a checkpoint: of a graph, for the addresses; of a bound module, which
// is copied during the next step, for under a millisecond. If steps are faster than that, versions are skipped, and a
// version may be of a later step than the n-th. It takes the memory of the weights once, for the copy that is being
// made, in addition to the versions that readers hold.
//
//   sv.managed_session([&](Session& session) {
//     WeightsPublisher publisher(newest, {.variables = training.model, .every_n_steps = 100});
//     publisher.begin(session);
//     while (!sv.should_stop()) train();
//   });   // here readers learn that no more are coming
//
// An error of a snapshot (an earlier step has failed halfway) is logged, and the next n-th step tries again. One thread
// at a time may call, and publish() any.
class WeightsPublisher {
 public:
  explicit WeightsPublisher(NewestWeights& newest, WeightsPublisherOptions options = {});
  // Ends the publication, and closes `newest`.
  ~WeightsPublisher();
  WeightsPublisher(const WeightsPublisher&) = delete;
  WeightsPublisher& operator=(const WeightsPublisher&) = delete;

  // Publishes from this session, whose model is ready, until end(), the destructor, or the next begin().
  // InvalidArgumentError: every_n_steps is negative; there are no variables; the graph has no global step.
  // UnimplementedError: the session does not report its steps (StepWatching), which every_n_steps = 0 does not need.
  void begin(Session& session);

  // Takes no more snapshots, after the one that is due. To be called while the session is open, and not within a step
  // of a bound program, for which a snapshot waits: after ten seconds its thread is left behind with an error in the
  // log, and ends when the step does.
  void end();

  // Publishes now, on this thread, and returns what it has published. Not within a step of a bound program
  // (FailedPreconditionError); between two, training waits for it. Throws what a run throws. FailedPreconditionError:
  // begin() was not called.
  std::shared_ptr<const Weights> publish();

 private:
  class Work;  // shared with the thread
  NewestWeights& newest_;
  const WeightsPublisherOptions options_;
  std::shared_ptr<Work> work_;         // null: not begun
  std::shared_ptr<const void> watch_;  // of the session's steps
  NamedThread thread_;
};

}  // namespace longhaul
