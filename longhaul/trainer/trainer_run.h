#pragma once

#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "longhaul/train/onlookers/newest_weights.h"
#include "longhaul/train/reporting/progress.h"
#include "longhaul/trainer/best_metric.h"
#include "longhaul/trainer/evaluation.h"
#include "longhaul/trainer/loop_position.h"
#include "longhaul/trainer/loss_guard.h"
#include "longhaul/trainer/run_supervisor.h"
#include "longhaul/trainer/step_log.h"
#include "longhaul/trainer/trainer.h"
#include "longhaul/trainer/training_loops.h"

namespace longhaul {

// What a Trainer does in run(): the Supervisor, the loops, and what happens between two steps.
class TrainerRun {
 public:
  // All are borrowed.
  TrainerRun(const std::string& directory, const TrainerOptions& options, Graph& graph, torch::nn::Module& module,
             TorchLoop& loop, Preemption& preemption);

  // Throws the first error.
  void supervise(const std::function<void()>& body);

  TrainingLoops& loops() { return loops_; }
  LoopPosition& position() { return position_; }
  StepLog& log() { return log_; }
  Evaluation& evaluation() { return evaluation_; }
  Supervisor* supervisor() { return supervisor_.get(); }  // null: there was no run yet
  Session* session() const { return session_; }           // null: not in a run

  double validate(const std::function<double()>& evaluate, std::string_view name);
  void request_stop() { supervisor_.request_stop(); }  // any thread
  void after_every(int64_t n, std::function<void()> action);
  void preempt_after(int64_t step) { stop_step_ = step; }  // as a signal at the end of that step does
  void publish_weights(NewestWeights& newest, int64_t every_n_steps);

 private:
  SupervisorOptions supervisor_options();
  using Publishers = std::vector<std::unique_ptr<WeightsPublisher>>;
  void in_session(Session& session, const Publishers& publishers, const std::function<void()>& body);
  Publishers make_publishers() const;
  void tell_if_finished() const;
  void after_step(int64_t step);
  double evaluate_between_steps(const std::function<double()>& evaluate);
  void save_with(double metric);

  const std::string& directory_;
  const TrainerOptions& options_;
  Graph& graph_;
  TorchLoop& loop_;
  Preemption& preemption_;
  LoopPosition position_;
  LossGuard guard_;
  StepLog log_;
  TrainingLoops loops_;
  Evaluation evaluation_;
  BestMetric best_;
  std::deque<std::pair<int64_t, std::function<void()>>> actions_;  // and how often
  int64_t stop_step_ = -1;                                         // preempt_after()
  std::optional<double> metric_;                                   // of the step under way, for its checkpoint
  std::optional<Progress> progress_;
  std::vector<std::pair<NewestWeights*, int64_t>> published_;  // and how often
  RunSupervisor supervisor_;
  Session* session_ = nullptr;
};

}  // namespace longhaul
