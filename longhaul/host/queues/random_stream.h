#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "longhaul/graph/operation.h"
#include "longhaul/host/resource.h"
#include "longhaul/tensor/tensor.h"

namespace longhaul {

// The random numbers of one operation in a session. Each run of it takes a draw, whose numbers depend only on the
// stream's key and the draw's own number; so the whole state is a key and two counters.
//
//   training step:  take a draw --> compute --> [enter the gate, write variables, commit the draw, leave]
//                                      failed: give the draw back
//   other runs:     take a draw, which counts at once
//
// Runs that do not change a variable (an evaluation, a look at a tensor) are counted separately, so that they do not
// affect the random numbers of training. While no step is inside the gate, state() matches the variables: draws of
// steps that have not written yet do not count, and are taken again by a run that starts from there.
//
// Any thread may call any method at any time.
class RandomStream : public Resource {
 public:
  struct State {
    uint64_t key = 0;
    int64_t steps = 0;   // draws of runs that have written variables
    int64_t others = 0;  // draws of other runs
  };
  struct Draw {
    uint64_t seed = 0;  // for a 64-bit generator: different for each draw, stream and kind of run
    int64_t number = 0;
  };

  explicit RandomStream(uint64_t key) : own_key_(key), key_(key) {}

  Draw take_for_step();
  void commit(const Draw& draw);     // for a step: inside the gate, after the writes
  void give_back(const Draw& draw);  // for a failed step: the next step takes it, unless a later one was taken
  Draw take_for_other_run();

  State state() const;
  void restore(const State& state);
  void start_over() { restore({.key = own_key_}); }

 private:
  const uint64_t own_key_;
  std::atomic<uint64_t> key_;
  std::atomic<int64_t> taken_{0}, committed_{0}, others_{0};
};

// As in checkpoints, three int64: the key's bits, steps, others. InvalidArgumentError: it is not such a tensor.
Tensor as_tensor(const RandomStream::State& state);
RandomStream::State random_state_of(const Tensor& tensor);

// The stream of an operation that has one (graph/builtin/random_state.h). Its key is derived from the graph's seed, the
// operation's own (attrs seed, seed2 of RandomShuffle) and its name; if no seed is set, it differs in each session.
std::shared_ptr<RandomStream> random_stream(const Operation& op, ResourceMap& resources);

}  // namespace longhaul
