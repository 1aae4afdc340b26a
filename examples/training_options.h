#pragma once

#include <cstdint>
#include <string>
#include <vector>

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

// What that of the training in one process says besides.
struct LocalOptions : TrainingOptions {
  std::string device;  // of the network, such as "/gpu:1"; empty: the first GPU, if there is one
};

// What that of a task of a cluster says besides. Which task it is: flags, else TF_CONFIG, else Slurm's variables.
struct ClusterOptions : TrainingOptions {
  std::string job;  // "chief", "worker" or "ps"; empty: TF_CONFIG or Slurm says it, or the process trains alone
  int task = 0;     // of the job
  std::vector<std::string> chief_hosts, worker_hosts, ps_hosts;  // "host:port" of each task
  int slurm_ps = 0;             // how many tasks of a Slurm step are ps; rank 0 is the chief, the others are workers
  double max_wait_secs = 7200;  // for tasks that are not there yet
  std::string certificates;     // directory that `longhaul certificates` has made; empty: no TLS
  std::string token_file;
  bool insecure = false;  // neither, on any address
  std::vector<std::string> file_roots;
};

// What that of the training in plain libtorch says.
struct PlainOptions {
  std::string data_dir;
  std::string logdir = "runs/plain_libtorch";
  int64_t steps = 4000;  // the global step at which to stop
  double save_model_secs = 30;
};

// What that of the self-play training says.
struct SelfPlayOptions {
  std::string logdir = "runs/self_play";
  int64_t steps = 3000;  // the global step at which to stop
  double save_model_secs = 30;
  int actors = 2;  // threads that play; 0: the trainer plays itself
};

// The options, or the status to exit with at once: 0 after --help, 2 after wrong usage, which is told on stderr.
template <typename Options>
struct Parsed {
  Options options;
  int exit_status = -1;  // -1: go on
};
Parsed<LocalOptions> parse_options(int argc, char** argv);
Parsed<ClusterOptions> parse_cluster_options(int argc, char** argv);
Parsed<PlainOptions> parse_plain_options(int argc, char** argv);
Parsed<SelfPlayOptions> parse_self_play_options(int argc, char** argv);

}  // namespace longhaul::examples
