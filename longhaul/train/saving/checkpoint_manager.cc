#include "longhaul/train/saving/checkpoint_manager.h"

#include <fmt/format.h>

#include <limits>

#include "longhaul/base/log.h"
#include "longhaul/checkpoint/files/checkpoint_files.h"
#include "longhaul/checkpoint/files/latest_checkpoint.h"
#include "longhaul/io/files/canonical_directory.h"

namespace longhaul {
namespace {

constexpr char kCounter[] = "save_counter";

CheckpointManagerOptions checked(CheckpointManagerOptions options) {
  if (options.directory.empty()) throw InvalidArgumentError("a CheckpointManager needs a directory");
  if (options.max_to_keep && *options.max_to_keep <= 0) {
    throw InvalidArgumentError(fmt::format("max_to_keep must be positive or absent, not {}", *options.max_to_keep));
  }
  options.directory = absolute_directory(options.directory);
  options.saver.graph = &Graph::or_default(options.saver.graph, "CheckpointManagerOptions::saver.graph");
  return options;
}

Variable get_or_create_counter(Graph& graph) {
  for (const VariableInfo& variable : ops::global_variables(graph)) {
    if (variable.name() == kCounter) return Variable(variable);
  }
  return ops::variable(Scope(graph), kCounter, Tensor::scalar<int64_t>(0), {.trainable = false});
}

SaverOptions saver_options(const CheckpointManagerOptions& options, const Variable& counter) {
  SaverOptions saver = options.saver;
  saver.max_to_keep = options.max_to_keep.value_or(std::numeric_limits<int>::max());
  saver.keep_checkpoint_every_n_hours = options.keep_checkpoint_every_n_hours.value_or(0);
  saver.save_relative_paths = true;
  if (saver.var_list) saver.var_list->push_back(counter);
  return saver;
}

}  // namespace

CheckpointManager::CheckpointManager(CheckpointManagerOptions options)
    : options_(checked(std::move(options))),
      counter_(get_or_create_counter(*options_.saver.graph)),
      count_(ops::assign_add(Scope(*options_.saver.graph).within(kCounter), counter_,
                             ops::constant(Scope(*options_.saver.graph).within(kCounter), int64_t{1}, "one"))),
      saver_(saver_options(options_, counter_)) {
  recover();
}

bool CheckpointManager::is_own(const std::string& prefix) const {
  const BaseAndStep parts = split_step(base_name(prefix));
  return lies_in(prefix, options_.directory) && parts.step && parts.base == options_.checkpoint_name;
}

// Times of a clock that ran ahead are those of now: then what there is counts as preserved, and stays.
void CheckpointManager::recover() {
  const double now = options_.saver.clock->wall_time();
  const auto read = read_checkpoint_state(*options_.saver.files, options_.directory);
  if (read.status != ReadCheckpointState::Status::kRead) {
    if (!read.why.empty()) log_warning("{}; the checkpoints there are not managed", read.why);
    saver_.recover_last_checkpoints(CheckpointState{.last_preserved_timestamp = now - 1});
    return;
  }
  const CheckpointState& state = read.state;
  CheckpointState managed{.last_preserved_timestamp = state.last_preserved_timestamp};
  const double preserved = std::min(state.last_preserved_timestamp, now);
  for (size_t i = 0; i < state.all_model_checkpoint_timestamps.size(); ++i) {
    const double time = std::min(state.all_model_checkpoint_timestamps[i], now);
    const std::string prefix =
        prefix_in(*options_.saver.files, options_.directory, state.all_model_checkpoint_paths[i]);
    if (time <= preserved || !is_own(prefix)) continue;
    managed.all_model_checkpoint_paths.push_back(prefix);
    managed.all_model_checkpoint_timestamps.push_back(time);
  }
  saver_.recover_last_checkpoints(managed);
}

std::string CheckpointManager::save(Session& session, const StepSource& checkpoint_number) {
  const int64_t count = session.run(count_).item<int64_t>();
  const std::string path = join_path(options_.directory, options_.checkpoint_name);
  const SaveOptions options{.write_meta_graph = false};
  return saver_.save(session, path, checkpoint_number.is_none() ? StepSource(count) : checkpoint_number, options);
}

std::optional<std::string> CheckpointManager::latest_checkpoint() const {
  return longhaul::latest_checkpoint(*options_.saver.files, options_.directory);
}

}  // namespace longhaul
