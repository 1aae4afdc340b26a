#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "longhaul/base/mutex.h"
#include "longhaul/graph/graph.h"
#include "longhaul/ops/input/data_position.h"
#include "longhaul/tensor/tensor.h"
#include "longhaul/train/saved_state/saver_graph.h"

namespace longhaul {

// Checks the saved values for inputs (ops::load_batch) whose steps take batches but never advance. Such a training run
// sees the same batch all the time, and so does each restart. Any thread may call.
class InputWatch {
 public:
  // Checks the values to be saved at this step. Warns once for each input.
  void look(const Graph& graph, const std::vector<SaverNodes::SavedTensor>& tensors, const std::vector<Tensor>& values,
            int64_t step);

 private:
  struct Seen {
    int64_t position, step;  // when the input was first seen at this position
    bool has_warned = false;
  };

  std::optional<int64_t> stuck_since(const ops::LoadedInput& input, int64_t position, int64_t step);

  Mutex mutex_;
  std::map<std::string, Seen> seen_ GUARDED_BY(mutex_);  // by the position's name
};

}  // namespace longhaul
