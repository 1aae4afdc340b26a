#pragma once

#include <string>
#include <vector>

#include "longhaul/ops/input/row_ops.h"
#include "longhaul/train/input/batching.h"
#include "longhaul/train/input/input_producers.h"
#include "longhaul/train/input/queue_runner.h"
#include "longhaul/train/train_fixture.h"

namespace longhaul {

// A graph with an input pipeline, and a session with its queue runners under way.
class PipelineTest : public ::testing::Test {
 protected:
  void start() {
    const Operation init = ops::local_variables_initializer(root_);
    session_ = make_scripted_session(graph_);
    session_->run(init);
    start_queue_runners(session_, coord_);
  }
  void TearDown() override {
    if (!session_) return;
    coord_.request_stop();
    coord_.join({.stop_grace = Seconds(20)});
  }

  template <typename T>
  std::vector<T> take(const Output& output) {
    const Tensor value = session_->run(output, {}, {.timeout = Seconds(20)});
    return {value.flat<T>().begin(), value.flat<T>().end()};
  }
  // Scalars, one run after the other, until the input ends.
  template <typename T>
  std::vector<T> take_all(const Output& output) {
    std::vector<T> values;
    try {
      while (true) values.push_back(take<T>(output).at(0));
    } catch (const OutOfRangeError&) {
      return values;
    }
  }
  template <typename T>
  std::vector<std::vector<T>> take_all_batches(const Output& output) {
    std::vector<std::vector<T>> values;
    try {
      while (true) values.push_back(take<T>(output));
    } catch (const OutOfRangeError&) {
      return values;
    }
  }

  Output strings(std::vector<std::string> values) { return ops::constant(root_, Tensor::of(std::move(values))); }
  // 0 to n - 1, one after the other.
  Output numbers(int32_t n, std::optional<int64_t> num_epochs = 1) {
    return range_input_producer(root_, n, {.num_epochs = num_epochs, .shuffle = false}).dequeue(root_)[0];
  }

  Graph graph_;
  Scope root_{graph_};
  Coordinator coord_;
  std::shared_ptr<testing::ScriptedSession> session_;
};

}  // namespace longhaul
