#pragma once

#include "examples/training_options.h"
#include "longhaul/launch.h"
#include "longhaul/server.h"

namespace longhaul::examples {

// Which task of which cluster this process is: by its flags if there is --job, else by TF_CONFIG, else, with
// --slurm_ps, by Slurm's variables. An empty cluster: it trains alone. InvalidArgumentError: what these say cannot be;
// or the task is an evaluator, which this program is not.
LaunchedTask launched_task(const ClusterOptions& options);

// Its server. On a machine that others reach it may use files below --file_roots, or else below logdir alone.
ServerOptions server_options(const LaunchedTask& task, const ClusterOptions& options);

// Which of the processes that train it is, and how many there are: each takes its part of the data. The chief is the
// first.
struct Share {
  int64_t number = 0, of = 1;
};
Share share_of(const LaunchedTask& task);

}  // namespace longhaul::examples
