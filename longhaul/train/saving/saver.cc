#include "longhaul/train/saving/saver.h"

#include <fmt/format.h>

#include "longhaul/base/log.h"
#include "longhaul/base/program_in_step.h"
#include "longhaul/checkpoint/bundle/bundle_reader.h"
#include "longhaul/checkpoint/files/checkpoint_files.h"
#include "longhaul/checkpoint/files/v1_checkpoint.h"
#include "longhaul/checkpoint/retention/disk_room.h"
#include "longhaul/checkpoint/retention/early_deletions.h"
#include "longhaul/io/lock/directory_lock.h"
#include "longhaul/ops/random_state.h"
#include "longhaul/session/snapshots.h"
#include "longhaul/train/saved_state/environment_record.h"
#include "longhaul/train/saved_state/object_checkpoint.h"
#include "longhaul/train/saved_state/optional_tensors.h"
#include "longhaul/train/saved_state/restore_check.h"
#include "longhaul/train/saved_state/saved_size.h"
#include "longhaul/train/saving/replaced_checkpoint.h"
#include "longhaul/train/saving/restore_on_tasks.h"
#include "longhaul/train/saving/saved_values.h"

namespace longhaul {
namespace {

Graph& graph_of(const SaverOptions& options) {
  if (options.graph != nullptr) return *options.graph;
  if (options.var_list && !options.var_list->empty()) return options.var_list->front().graph();
  return options.defer_build ? Graph::default_graph() : Graph::or_default(nullptr, "SaverOptions::graph");
}

// What a definition says about the saver that it is of.
SaverOptions with_definition(SaverOptions options) {
  if (!options.saver_def) return options;
  const proto::SaverDef& def = *options.saver_def;
  if (options.var_list || options.reshape || options.restore_sequentially) {
    throw InvalidArgumentError(
        "a saver with a saver_def saves what the definition says: omit var_list, reshape and restore_sequentially");
  }
  options.max_to_keep = def.max_to_keep();
  options.keep_checkpoint_every_n_hours = static_cast<double>(def.keep_checkpoint_every_n_hours());
  options.sharded = def.sharded();
  return options;
}

SaverOptions with_definition(SaverOptions options, Graph& graph, const proto::SaverDef& saver_def) {
  options.graph = &graph;
  options.saver_def = saver_def;
  return options;
}

Retention retention_of(const SaverOptions& options) {
  return {.max_to_keep = options.max_to_keep,
          .keep_checkpoint_every_n_hours = options.keep_checkpoint_every_n_hours,
          .best = options.best};
}

void check_options(const SaverOptions& options) {
  if (options.write_version != proto::SaverDef::V2) {
    throw UnimplementedError("V1 checkpoints cannot be written: leave write_version at V2");
  }
  if (options.defer_build && options.var_list) {
    throw InvalidArgumentError("a saver with defer_build saves what the graph has when it is built: omit var_list");
  }
  if (!(options.max_bytes_per_second >= 0)) {
    throw InvalidArgumentError(
        fmt::format("SaverOptions::max_bytes_per_second is {}: it must be positive, or 0 for no limit",
                    options.max_bytes_per_second));
  }
}

// What is to be saved; where the caller does not say, all that a training needs to go on.
std::vector<SaveEntry> entries_of(const SaverOptions& options, Graph& graph) {
  if (options.var_list) return *options.var_list;
  std::vector<SaveEntry> entries = everything_to_save(graph);
  if (entries.empty()) return entries;
  for (Saveable& random : ops::random_saveables(graph)) entries.emplace_back(std::move(random));
  return entries;
}

std::string prefix_for(const std::string& path, std::optional<int64_t> step, bool pads) {
  if (!step) return path;
  return pads ? fmt::format("{}-{:08}", path, *step) : fmt::format("{}-{}", path, *step);
}

void make_parent(FileSystem& files, const std::string& path) {
  check_directory_owner(files, path);
  try {
    files.make_directories(directory_name(path));
  } catch (const Error& error) {
    throw InvalidArgumentError(fmt::format("Parent directory of {} doesn't exist, can't save. {}", path, error.what()));
  }
}

// What a save replaces beside the checkpoint must be files: one that cannot be listed is not written.
void check_small_files(FileSystem& files, const std::string& path, const SaveOptions& options) {
  if (!options.write_state) return;
  check_state_file(files, directory_name(path), options.latest_filename);
  check_retention_file(files, directory_name(path), options.latest_filename);
}

// "": there is none.
std::string newest_listed_but(const std::string& prefix, const ManagedCheckpoints& managed) {
  std::vector<std::string> listed = managed.prefixes();
  std::erase(listed, prefix);
  return listed.empty() ? "" : listed.back();
}

bool is_on_disk(FileSystem& files, const std::string& prefix, SavedValues& values, const SaveOptions& options) {
  const std::string meta_graph = meta_graph_filename(prefix, options.meta_graph_suffix);
  if (options.write_meta_graph && !files.exists(meta_graph)) return false;
  return values.are_saved(files, prefix);
}

// Whether there is something to tell of a checkpoint that is on the disk.
bool is_news(const std::string& prefix, const SaveOptions& options, const SaveHistory& saves) {
  return options.metric || prefix != saves.last() || (options.write_state && !saves.last_is_listed());
}

}  // namespace

Saver::Saver(SaverOptions options)
    : options_(with_definition(std::move(options))),
      graph_(&graph_of(options_)),
      saves_(*options_.clock),
      managed_(retention_of(options_), *options_.files, *options_.clock),
      early_deletions_(*options_.files, managed_) {
  check_options(options_);
  if (!options_.defer_build) build();
}

Saver::Saver(Graph& graph, const proto::SaverDef& saver_def, SaverOptions options)
    : Saver(with_definition(std::move(options), graph, saver_def)) {}

void Saver::build() {
  if (built_) throw FailedPreconditionError("this saver has already been built");
  graph_fingerprint_ = graph_fingerprint(*graph_);
  if (options_.saver_def) {
    nodes_ = find_saver_nodes(*graph_, *options_.saver_def);
  } else {
    const auto saveables = saveables_of(entries_of(options_, *graph_), options_.reshape);
    if (saveables.empty() && !options_.allow_empty) {
      throw InvalidArgumentError("No variables to save: the graph has no global variables, or var_list is empty");
    }
    if (!saveables.empty()) {
      nodes_ = add_saver_nodes(Scope(*graph_).sub(options_.name), saveables,
                               {.filename = options_.filename,
                                .sharded = options_.sharded || name_tasks(saveables),
                                .restore_sequentially = options_.restore_sequentially});
    }
  }
  built_ = true;
}

void Saver::check_built() const {
  if (!built_)
    throw FailedPreconditionError("this saver was made with defer_build: call build() before it saves or restores");
}

void Saver::check_arguments(const std::string& path, const StepSource& step, const SaveOptions& options) const {
  check_built();
  if (base_name(path).empty()) {
    throw InvalidArgumentError(
        fmt::format("'{}' names no checkpoint, for instance \"runs/demo/model.ckpt\" (a Supervisor without logdir has "
                    "no save_path)",
                    path));
  }
  if (options.latest_filename.find('/') != std::string::npos) {
    throw InvalidArgumentError("'latest_filename' must not contain path components: " + options.latest_filename);
  }
  if (options.metric && !options.write_state) {
    throw InvalidArgumentError("only a managed checkpoint can have a metric: leave write_state on");
  }
  if (step.is_none() && !nodes_.sharded && base_name(path) == options.latest_filename) {
    throw InvalidArgumentError(fmt::format("{}: the checkpoint's name collides with the state file's", path));
  }
}

std::string Saver::save(Session& session, const std::string& save_path, const StepSource& global_step,
                        const SaveOptions& options) {
  const std::string path = strip_file_scheme(save_path);
  check_arguments(path, global_step, options);
  // Before the wait for another save, which may wait for the end of this step.
  refuse_within_step("saves, or reads all variables at one moment");
  const SaveHistory::UnderWay under_way(saves_);
  MutexLock one_at_a_time(saving_);
  while (true) {
    if (const auto prefix = try_to_save(session, path, global_step, options)) return *prefix;
  }
}

// nullopt: the disk was full, and has more room now.
std::optional<std::string> Saver::try_to_save(Session& session, const std::string& path, const StepSource& global_step,
                                              const SaveOptions& options) {
  const Seconds asked = options_.clock->now();
  const std::unique_ptr<SavedValues> values = read_values(session, nodes_, global_step, snapshots_);
  const Seconds taken = options_.clock->now();
  const Seconds start = std::min(asked + values->waited, taken);  // the step that it waited for was training
  if (options.after_snapshot) options.after_snapshot(values->step);
  const std::string prefix = prefix_for(path, values->step, options_.pad_step_number);
  const bool may_skip = options.skip_if_saved && global_step.tensor() != nullptr;
  const bool is_there = may_skip && is_on_disk(*options_.files, prefix, *values, options);
  nan_.look(nodes_.tensors, values->samples());
  nan_.will_replace(prefix, newest_listed_but(prefix, managed_));
  if (values->step) inputs_.look(*graph_, nodes_.tensors, values->samples(), *values->step);
  if (is_there && !is_news(prefix, options, saves_)) {
    if (options.write_state) saves_.tell(prefix);
    return prefix;
  }
  make_parent(*options_.files, path);
  check_small_files(*options_.files, path, options);
  if (nodes_.tensors.empty()) {
    write_meta_graph(prefix, options);
    return std::string();
  }
  if (!is_there) {
    announce(prefix, global_step.tensor() != nullptr ? values->step : std::nullopt, *values, options);
  }
  SaveReport report{.prefix = prefix, .step = values->step, .snapshot = taken - start};
  const auto bytes =
      is_there ? data_bytes_on_disk(*options_.files, prefix) : write_or_make_room(prefix, *values, options);
  if (!bytes) return std::nullopt;
  report.bytes = *bytes;
  conclude(report, start, options);
  return prefix;
}

// What comes after the commit; `start` is when the save began.
void Saver::conclude(SaveReport report, Seconds start, const SaveOptions& options) {
  const std::string prefix = report.prefix;
  if (options_.verify == Verification::kAlways) read_back(*options_.files, prefix, options.meta_graph_suffix);
  if (options.write_state) {
    list(report, options);
    nan_.saved(prefix);
  }
  report.total = options_.clock->now() - start;
  saves_.note_saved(report, options.write_state, commit_time(*options_.files, prefix));
  if (options.write_state) saves_.tell(prefix);
  if (options.after_save) options.after_save(report);
}

// `step`: as the session has it; none if the caller gave the number.
void Saver::announce(const std::string& prefix, std::optional<int64_t> step, SavedValues& values,
                     const SaveOptions& options) {
  if (options.before_write) options.before_write(step);
  const bool is_replaced = prefix == saves_.last() && checkpoint_exists(*options_.files, prefix);
  if (!step || !is_replaced || !saves_.is_first_step(*step)) return;
  const bool is_the_same = !options.skip_if_saved && values.are_saved(*options_.files, prefix);
  if (is_the_same) return;  // written again since that is asked for
  warn_of_replacement(*options_.files, prefix, *step, saves_, *graph_,
                      [&] { return values.all_but_random_states_are_saved(*options_.files, prefix); });
}

// nullopt: the disk was full though it had said otherwise, as with a quota, or filled up meanwhile; and an old
// checkpoint was deleted.
std::optional<uint64_t> Saver::write_or_make_room(const std::string& prefix, SavedValues& values,
                                                  const SaveOptions& options) {
  const uint64_t needed = values.bytes();
  const ManagedCheckpoints::RecordOptions how = record_options(prefix, options);
  early_deletions_.make_room(prefix, needed, how);
  try {
    const uint64_t bytes = write(prefix, values, options);
    early_deletions_.was_enough(EarlyDeletions::For::kCheckpoint);
    return bytes;
  } catch (const ResourceExhaustedError& error) {
    if (!early_deletions_.make_room_after(error, EarlyDeletions::For::kCheckpoint, prefix, needed, how)) throw;
    return std::nullopt;
  }
}

// The list may lack room when the checkpoint had it: each of its files takes an inode.
void Saver::list(const SaveReport& report, const SaveOptions& options) {
  const ManagedCheckpoints::RecordOptions how = record_options(report.prefix, options);
  try {
    managed_.record(report.prefix, how);
  } catch (const ResourceExhaustedError& error) {
    const auto need = EarlyDeletions::For::kList;
    if (!early_deletions_.make_room_after(error, need, report.prefix, report.bytes, how)) throw;
    managed_.record(report.prefix, how);
  }
  early_deletions_.was_enough(EarlyDeletions::For::kList);
}

uint64_t Saver::write(const std::string& prefix, SavedValues& values, const SaveOptions& options) {
  std::optional<ExtraFile> meta_graph;
  if (options.write_meta_graph) {
    meta_graph =
        ExtraFile{meta_graph_filename(prefix, options.meta_graph_suffix), [this] { return serialized_meta_graph(); }};
  }
  return values.write(*options_.files, prefix, meta_graph,
                      {.max_bytes_per_second = options_.max_bytes_per_second,
                       .pause = options.pause_for_limit,
                       .clock = options_.clock});
}

ManagedCheckpoints::RecordOptions Saver::record_options(const std::string& prefix, const SaveOptions& options) const {
  const bool collides = base_name(prefix) == options.latest_filename;  // only the text of the paths: see save()
  ManagedCheckpoints::RecordOptions result{
      .latest_filename = options.latest_filename,
      .meta_graph_suffix = options.meta_graph_suffix,
      .relative_paths = options_.save_relative_paths || options.relative_paths || collides,
      .metric = options.metric,
      .held = nan_.last_without()};
  if (options_.verify == Verification::kBeforeDeletion) {
    result.before_deletion = [this, prefix, suffix = options.meta_graph_suffix] {
      read_back(*options_.files, prefix, suffix);
    };
  }
  return result;
}

void Saver::pin(const std::string& prefix, const std::string& latest_filename) {
  managed_.pin(strip_file_scheme(prefix), latest_filename);
}

void Saver::unpin(const std::string& prefix, const std::string& latest_filename) {
  managed_.unpin(strip_file_scheme(prefix), latest_filename);
}

void Saver::restore(Session& session, const std::string& prefix_or_url) {
  check_built();
  if (prefix_or_url.empty()) throw InvalidArgumentError("Can't load save_path when it is None.");
  if (nodes_.tensors.empty()) return;
  const std::string prefix = strip_file_scheme(prefix_or_url);
  if (!committed_prefix(*options_.files, prefix)) {
    throw_no_checkpoint(*options_.files, prefix, "The passed save_path is not a valid checkpoint: " + prefix);
  }
  log_debug("Restoring parameters from {}", prefix);
  const BundleReader reader(*options_.files, prefix);
  Feeds feeds{{nodes_.filename, Tensor::scalar(prefix)}};
  const std::vector<SaverNodes::SavedTensor> tensors = tensors_to_read(reader, nodes_.tensors, &feeds);
  const bool goes_on = goes_on_training(*graph_, nodes_.tensors);
  if (std::optional<ObjectKeys> keys = object_keys_for(reader, tensors)) {
    const Feeds read = object_feeds(reader, tensors, *keys);
    feeds.insert(feeds.end(), read.begin(), read.end());
  } else {
    check_restorable(reader, tensors);
    if (goes_on && !options_.var_list) warn_of_left_out(reader, tensors);
  }
  if (goes_on) warn_of_differences(*options_.files, prefix, environment(), *graph_);
  forget_last_saved();
  restore_values(session, *options_.files, nodes_, reader, tensors, std::move(feeds));
  saves_.note_restored(prefix, commit_time(*options_.files, prefix));
  nan_.restored(*options_.files, prefix, recorded_environment(*options_.files, prefix).value_or(Environment()));
}

void Saver::recover_last_checkpoints(const std::vector<std::string>& prefixes) {
  recover_last_checkpoints(CheckpointState{.all_model_checkpoint_paths = prefixes});
}

std::optional<std::string> Saver::last_checkpoint() const {
  const std::vector<std::string> prefixes = managed_.prefixes();
  return prefixes.empty() ? std::nullopt : std::optional(prefixes.back());
}

uint64_t Saver::bytes() const {
  return saved_size(nodes_.tensors).bytes;
}

}  // namespace longhaul
