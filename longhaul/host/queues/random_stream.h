#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "longhaul/graph/operation.h"
#include "longhaul/host/resource.h"
#include "longhaul/tensor/tensor.h"

namespace longhaul {

// The random numbers of one operation in a session. Each run of it takes a draw, and the numbers of a draw follow from
// the stream's key and the draw's own number alone; so the whole state is a key and two counters.
//
//   training step:  take a draw --> compute --> [enter the gate, write variables, commit the draw, leave]
//                                      failed: give the draw back
//   other runs:     take a draw, which counts at once
//
// Runs that change no variable (an evaluation, a look at a tensor) count by themselves, so that they leave the numbers
// of the training as they are. At a gate that nobody is inside of, state() is that of the variables: draws of steps
// that have not written yet do not count, and are taken again by a training that starts from there.
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
    uint64_t seed = 0;  // for a generator of 64 bits: another one for each draw, stream and kind of run
    int64_t number = 0;
  };

  explicit RandomStream(uint64_t key) : own_key_(key), key_(key) {}

  Draw take_for_step();
  void commit(const Draw& draw);     // of a step: inside the gate, after the writes
  void give_back(const Draw& draw);  // of a step that failed: the next step takes it, unless another one came later
  Draw take_for_other_run();

  State state() const;
  void restore(const State& state);
  void start_over() { restore({.key = own_key_}); }

 private:
  const uint64_t own_key_;
  std::atomic<uint64_t> key_;
  std::atomic<int64_t> taken_{0}, committed_{0}, others_{0};
};

// As checkpoints have it, three int64: the key's bits, steps, others. InvalidArgumentError: it is no such tensor.
Tensor as_tensor(const RandomStream::State& state);
RandomStream::State random_state_of(const Tensor& tensor);

// The stream of an operation that has one (graph/builtin/random_state.h). Its key follows from the graph's seed, the
// operation's own (attrs seed, seed2 of RandomShuffle) and its name; where no seed is set, each session has another
// one.
std::shared_ptr<RandomStream> random_stream(const Operation& op, ResourceMap& resources);

}  // namespace longhaul
