#include "examples/training_options.h"

#include <CLI/CLI.hpp>
#include <vector>

#include "examples/idx_dataset.h"

namespace longhaul::examples {
namespace {

// Whether an option is given in this argument, with its value in the next.
bool takes_the_next(const std::string& argument) {
  return argument.starts_with("--") && argument.find('=') == std::string::npos && argument != "--help" &&
         argument != "--insecure";
}

// CLI11 takes the "--steps=50" of `--logdir=$UNSET --steps=50`, or of `--logdir $UNSET --steps=50`, for the directory.
void refuse_empty_values(const std::vector<std::string>& arguments) {
  std::string before;
  for (const std::string& argument : arguments) {
    if (takes_the_next(before) && (argument.empty() || argument.starts_with("--"))) {
      throw CLI::ValidationError(before, "the value is empty");
    }
    if (argument.starts_with("--") && argument.ends_with("=")) {
      throw CLI::ValidationError(argument.substr(0, argument.size() - 1), "the value is empty");
    }
    before = argument;
  }
}

// Those that all trainings have.
template <typename Options>
void add_run_flags(CLI::App& app, Options& options) {
  app.add_option("--logdir", options.logdir, "Directory for checkpoints and TensorBoard files");
  app.add_option("--steps", options.steps, "The global step at which to stop")->check(CLI::NonNegativeNumber);
  app.add_option("--save_model_secs", options.save_model_secs, "Seconds between checkpoints; 0: only the last")
      ->check(CLI::NonNegativeNumber);
}

// Those of all trainings on the dataset.
template <typename Options>
void add_common_flags(CLI::App& app, Options& options) {
  options.data_dir = kFashionMnistDirectory;
  app.add_option("--data_dir", options.data_dir, "Directory of the dataset");
  add_run_flags(app, options);
}

void add_flags(CLI::App& app, SelfPlayOptions& options) {
  add_run_flags(app, options);
  app.add_option("--actors", options.actors, "Threads that play; 0: the trainer plays itself, and resumes exactly")
      ->check(CLI::Range(0, 64));
}

void add_flags(CLI::App& app, PlainOptions& options) {
  add_common_flags(app, options);
}

void add_flags(CLI::App& app, TrainingOptions& options) {
  add_common_flags(app, options);
  app.add_option("--model", options.model, "The network")->check(CLI::IsMember({"mlp", "cnn"}));
  app.add_option("--optimizer", options.optimizer, "The update rule")
      ->check(CLI::IsMember({"sgd", "momentum", "adam"}));
  app.add_option("--learning_rate", options.learning_rate, "0: 0.1 for sgd, 0.02 for momentum, 0.001 for adam")
      ->check(CLI::NonNegativeNumber);
  app.add_option("--batch_size", options.batch_size, "Examples per step")->check(CLI::Range(1, 60000));
  app.add_option("--save_summaries_secs", options.save_summaries_secs, "Seconds between summaries; 0: none")
      ->check(CLI::NonNegativeNumber);
  app.add_option("--digest_steps", options.digest_steps, "Steps between digests of the weights in the events; 0: none")
      ->check(CLI::NonNegativeNumber);
  app.add_option("--seed", options.seed, "Seed of the initial weights and the order of the examples")
      ->check(CLI::PositiveNumber);
  app.add_option("--threads", options.threads, "Threads per operation; 0: chosen by the library")
      ->check(CLI::Range(0, 1024));
}

void add_addresses(CLI::App& app, const std::string& name, std::vector<std::string>& hosts, const char* what) {
  app.add_option(name, hosts, what)->delimiter(',');
}

void add_task_flags(CLI::App& app, ClusterOptions& options) {
  app.add_option("--job", options.job, "The job of this task; without it TF_CONFIG or Slurm says what this process is")
      ->check(CLI::IsMember({"chief", "worker", "ps"}));
  app.add_option("--task", options.task, "Its number in the job")->check(CLI::NonNegativeNumber);
  add_addresses(app, "--chief_hosts", options.chief_hosts, "host:port of the chief");
  add_addresses(app, "--worker_hosts", options.worker_hosts, "Those of the workers, with commas");
  add_addresses(app, "--ps_hosts", options.ps_hosts, "Those of the parameter servers");
  app.add_option("--slurm_ps", options.slurm_ps, "Of a Slurm step, so many tasks are ps; rank 0 is the chief")
      ->check(CLI::NonNegativeNumber);
  app.add_option("--max_wait_secs", options.max_wait_secs, "Seconds to wait for tasks that are not there")
      ->check(CLI::PositiveNumber);
}

void add_flags(CLI::App& app, LocalOptions& options) {
  add_flags(app, static_cast<TrainingOptions&>(options));
  app.add_option("--device", options.device, "Such as /gpu:1 or /cpu:0; default: the first GPU, if there is one");
}

void add_flags(CLI::App& app, ClusterOptions& options) {
  add_flags(app, static_cast<TrainingOptions&>(options));
  add_task_flags(app, options);
  app.add_option("--certificates", options.certificates, "Directory that `longhaul certificates` has made");
  app.add_option("--token_file", options.token_file, "File with the token that all tasks have");
  app.add_flag("--insecure", options.insecure, "Serve strangers too: no TLS on addresses that others reach");
  app.add_option("--file_roots", options.file_roots, "Directories that a server may use for others; default: logdir")
      ->delimiter(',');
}

template <typename Options>
Parsed<Options> parse(int argc, char** argv, const char* what) {
  Parsed<Options> parsed;
  CLI::App app(std::string(what) +
               " Stop it at any moment and start it again: it continues.\nExit status: 0 done, also "
               "after Ctrl-C; 1 an error; 2 wrong usage; 75 stopped by SIGTERM, SIGHUP or SIGUSR1, start it again.");
  app.option_defaults()->always_capture_default();
  add_flags(app, parsed.options);
  try {
    refuse_empty_values({argv + 1, argv + argc});
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    parsed.exit_status = app.exit(error) == 0 ? 0 : 2;
  }
  return parsed;
}

}  // namespace

Parsed<LocalOptions> parse_options(int argc, char** argv) {
  return parse<LocalOptions>(argc, argv, "Trains a small network on Fashion-MNIST.");
}

Parsed<ClusterOptions> parse_cluster_options(int argc, char** argv) {
  return parse<ClusterOptions>(argc, argv, "Trains a small network on Fashion-MNIST: one task of a cluster, or alone.");
}

Parsed<PlainOptions> parse_plain_options(int argc, char** argv) {
  return parse<PlainOptions>(argc, argv, "Trains a small network of plain libtorch on Fashion-MNIST.");
}

Parsed<SelfPlayOptions> parse_self_play_options(int argc, char** argv) {
  return parse<SelfPlayOptions>(argc, argv, "Learns tic-tac-toe by playing against itself.");
}

}  // namespace longhaul::examples
