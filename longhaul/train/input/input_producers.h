#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "longhaul/ops/input/queue_ops.h"

namespace longhaul {

struct InputProducerOptions {
  std::optional<int64_t> num_epochs{};   // absent: forever
  bool shuffle = true;                   // within each epoch
  int64_t seed = 0;                      // combined with the graph's; if both are 0, each session has its own order
  int32_t capacity = 32;                 // of the queue
  std::optional<Shape> element_shape{};  // of a row, if the input's is not known
  std::string shared_name{};             // of the queue
  std::string name{};                    // of the scope; empty: the function's name
  std::string summary_name{};            // of the fill summary; empty: "fraction_of_32_full"
};

// Returns a queue of the rows of `input`, epoch after epoch. A QueueRunner, which is added to the graph's collection,
// fills it. With num_epochs the queue is closed after the last epoch. The epochs are counted in a local variable, so a
// restart counts them from 0 again (use ops::data_position to continue instead). InvalidArgumentError: num_epochs is
// not positive; the rows' shape is not known ("fully defined shape").
FIFOQueue input_producer(const Scope& scope, const Output& input, const InputProducerOptions& options = {});

// The same for strings, mostly file names. InvalidArgumentError: there are no strings. An empty tensor is detected only
// when the runner runs.
FIFOQueue string_input_producer(const Scope& scope, const std::vector<std::string>& strings,
                                const InputProducerOptions& options = {});
FIFOQueue string_input_producer(const Scope& scope, const Output& strings, const InputProducerOptions& options = {});

// 0 to limit - 1, int32.
FIFOQueue range_input_producer(const Scope& scope, int32_t limit, const InputProducerOptions& options = {});

// Returns one row of each tensor, with the same number in all. The tensors must have equally many rows, and the number
// must be known.
std::vector<Output> slice_input_producer(const Scope& scope, const std::vector<Output>& tensors,
                                         const InputProducerOptions& options = {});

// Returns `tensor` num_epochs times, then fails with OutOfRangeError; absent: forever. The count is a local variable,
// which local_init_op initialises.
Output limit_epochs(const Scope& scope, const Output& tensor, std::optional<int64_t> num_epochs,
                    std::string_view name = "limit_epochs");

// Returns the names of the files that match a pattern, as a 1-D string tensor. They are kept in a local variable, so
// files are matched when local variables are initialised.
Output match_filenames_once(const Scope& scope, const std::vector<std::string>& patterns,
                            std::string_view name = "matching_filenames");

}  // namespace longhaul
