#pragma once

#include <functional>
#include <utility>
#include <vector>

#include "longhaul/tensor/tensor.h"

namespace longhaul {

// What code of a program may set before its first step although it was restored: weights, what optimizers have,
// schedulers, state tensors, kept values. keep() after the restore, put_back() before the step, forget() at the step.
// Not synchronised.
class RestoredValues {
 public:
  void add(std::function<Tensor()> read, std::function<void(const Tensor&)> assign, bool is_weight = false) {
    values_.push_back({std::move(read), std::move(assign), is_weight});
  }
  void keep();                       // takes as much memory as the values
  void put_back(bool with_weights);  // those that have changed since keep()
  void forget() { values_.clear(); }

 private:
  struct Value {
    std::function<Tensor()> read;
    std::function<void(const Tensor&)> assign;
    bool is_weight;
    Tensor kept = {};
  };
  std::vector<Value> values_;
};

}  // namespace longhaul
