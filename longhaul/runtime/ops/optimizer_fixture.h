#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "longhaul/ops/ops.h"
#include "longhaul/runtime/install.h"
#include "longhaul/session/session.h"

namespace longhaul {

// A graph with variables to optimise.
class OptimizerTest : public ::testing::Test {
 public:
  static inline const Tensor kStart = Tensor::of<double>({2, 3}, {1, -2, 3, 0.5, 0, -1});  // of most variables

 protected:
  std::unique_ptr<Session> initialized_session() {
    auto session = new_session("", graph_);
    session->run(ops::global_variables_initializer(root_));
    return session;
  }
  Variable variable(std::string_view name, const Tensor& value, DType dtype = kFloat) {
    return ops::variable(root_, name, ops::cast(root_, ops::constant(root_, value), dtype));
  }
  std::vector<std::string> variable_names() const {
    std::vector<std::string> names;
    for (const VariableInfo& info : ops::global_variables(graph_)) names.push_back(info.name());
    return names;
  }

  Graph graph_;
  Scope root_{graph_};
};

}  // namespace longhaul
