#pragma once

#include <functional>
#include <utility>
#include <vector>

#include "longhaul/tensor/tensor.h"

namespace longhaul {

// What code of a program sets before its first step although it was restored: the options of optimizers, schedulers,
// state tensors, kept values. keep() after the restore, put_back() before the step. Not synchronised.
class RestoredSettings {
 public:
  void add(std::function<Tensor()> read, std::function<void(const Tensor&)> assign) {
    settings_.push_back({std::move(read), std::move(assign)});
  }
  void keep();
  void put_back();  // those that have changed; once

 private:
  struct Setting {
    std::function<Tensor()> read;
    std::function<void(const Tensor&)> assign;
    Tensor kept = {};
  };
  std::vector<Setting> settings_;
};

}  // namespace longhaul
