#pragma once

#include <ATen/core/Tensor.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "longhaul/binding/kept_values.h"
#include "longhaul/binding/loop/restored_values.h"
#include "longhaul/binding/torch_training.h"
#include "longhaul/session/session.h"

namespace longhaul {

class BoundTorch;
class ProgramSteps;

// The steps of a bound program that makes them in a loop of its own, not in a step function. From begin() on, snapshots
// wait; made() counts the step and lets them in. Whatever the program changes between made() and the next begin() is no
// part of a step, so begin the next one at once:
//
//   TorchLoop loop = torch_loop(Scope(graph), *net, {&optimizer});
//   ... a session in which the model is ready ...
//   loop.attach(session);
//   for (loop.begin(); loop.step() < last; loop.begin()) {
//     optimizer.zero_grad();
//     ...
//     optimizer.step();
//     loop.made(loss);
//   }
//   loop.cancel();
//
// One thread at a time, and the one that began a step also ends it. The Trainer is built on it.
class TorchLoop {
 public:
  explicit TorchLoop(TorchTraining training, std::shared_ptr<BoundTorch> bound);
  ~TorchLoop();
  TorchLoop(TorchLoop&&) noexcept;
  TorchLoop& operator=(TorchLoop&&) = delete;

  const TorchTraining& training() const { return training_; }

  // The session in which the steps count, until detach(). Reads its global step. UnimplementedError: its variables are
  // in another process.
  void attach(Session& session);
  void detach();

  int64_t step() const { return step_; }  // the number of steps made
  bool is_in_step() const { return is_in_step_; }

  void begin();
  // Whether the step under way has changed the module's tensors, or computed new gradients of them.
  bool changed() const;
  // The same, or its other values: rates, schedulers, generators, state tensors, kept values.
  bool changed_anything() const;
  // The loss may be undefined. Throws what a run of train_op throws; the step is then lost.
  void made(const at::Tensor& loss);
  // There is no step after all. If it has changed the module, nothing can be saved until a checkpoint is restored, and
  // errors give the reason. Does nothing if no step is under way.
  void abandon(const std::string& reason);
  // There is no step, and what the program has changed since begin() counts as changed between two steps.
  void cancel();

  // Keeps a value of the program, as TorchTrainingOptions::kept does. Before there is a session.
  void keep(const Scope& scope, const KeptValues& values);

  // What the program's code sets before its first step although a checkpoint was restored, the module and the
  // optimizers included: keep_restored() after the restore, which takes as much memory as a checkpoint,
  // put_back_restored() before the step, forget_restored() after that.
  void keep_restored();
  void put_back_restored(bool with_weights = true);
  void forget_restored();
  // The kept values that are short (numbers, strings, engines, generators) and the states of
  // TorchTrainingOptions::generators, by their names: for code that runs again after a restart as it ran before.
  std::map<std::string, std::string> short_values() const;
  void set_short_values(const std::map<std::string, std::string>& bytes);

 private:
  const TorchTraining training_;
  const std::shared_ptr<BoundTorch> bound_;
  RestoredValues restored_;
  ProgramSteps* steps_ = nullptr;  // of the session; null: none attached
  std::unique_ptr<Callable> count_;
  int64_t step_ = 0;
  bool is_in_step_ = false;
};

// torch_training() without a step function. Throws the same errors.
TorchLoop torch_loop(const Scope& scope, torch::nn::Module& module,
                     const std::vector<torch::optim::Optimizer*>& optimizers, const TorchTrainingOptions& options = {});

}  // namespace longhaul
