#pragma once

#include <cstdint>
#include <string>

namespace longhaul::examples {

// What the command line of the Fashion-MNIST training says.
struct TrainingOptions {
  std::string data_dir;
  std::string logdir = "runs/fashion";
  std::string model = "mlp";       // or cnn
  std::string optimizer = "adam";  // or sgd, momentum
  double learning_rate = 0;        // 0: what suits the optimizer
  int64_t batch_size = 64;
  int64_t steps = 8000;  // the global step at which to stop
  double save_model_secs = 30;
  double save_summaries_secs = 10;
  int64_t digest_steps = 0;  // between digests of the weights; 0: none
  uint64_t seed = 1;
  int threads = 0;  // 0: what the library chooses
};

// What that of the training in plain libtorch says.
struct PlainOptions {
  std::string data_dir;
  std::string logdir = "runs/plain_libtorch";
  int64_t steps = 4000;  // the global step at which to stop
  double save_model_secs = 30;
};

// The options, or the status to exit with at once: 0 after --help, 2 after wrong usage, which is told on stderr.
template <typename Options>
struct Parsed {
  Options options;
  int exit_status = -1;  // -1: go on
};
Parsed<TrainingOptions> parse_options(int argc, char** argv);
Parsed<PlainOptions> parse_plain_options(int argc, char** argv);

}  // namespace longhaul::examples
