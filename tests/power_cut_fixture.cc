#include "tests/power_cut_fixture.h"

#include <utility>

namespace longhaul {

DoomedTraining::DoomedTraining(FileSystem& files, bool is_sharded) : files_(files), saver_(saver_options(is_sharded)) {
  files_.make_directories(kRun);
  lock_ = std::make_unique<DirectoryLock>(kRun,
                                          DirectoryLockOptions{.files = &files_, .clock = &clock_, .use_flock = false});
  journal_.begin();
  start();
}

bool DoomedTraining::has_values_of(int64_t step) {
  const auto same = [&](const Variable& v) { return identical(session_->run(v), values_of(step, v)); };
  return same(small_) && same(large_) && same(step_);
}

void DoomedTraining::go_to(int64_t step) {
  for (const Variable& v : {small_, large_, step_}) {
    session_->run(v.initializer(), {{v.initial_value(), values_of(step, v)}});
  }
  journal_.mark(step);
}

void DoomedTraining::save(const SaveOptions& options) {
  const std::string prefix = saver_.save(*session_, kRun + "/model", step_, options);
  if (const auto report = saver_.last_report()) {
    journal_.saved(prefix, report->step, {report->snapshot, report->total, report->snapshot});
  }
}

void DoomedTraining::save_at(int64_t step) {
  go_to(step);
  save();
}

SaverOptions DoomedTraining::saver_options(bool is_sharded) {
  return {.graph = &graph_, .sharded = is_sharded, .max_to_keep = 2, .files = &files_, .clock = &clock_};
}

Tensor DoomedTraining::values_of(int64_t step, const Variable& variable) {
  if (variable.dtype() == kInt64) return Tensor::scalar<int64_t>(step);
  Tensor values(kFloat, variable.shape());
  int64_t i = 0;
  for (float& value : values.mutable_flat<float>()) value = static_cast<float>((step * 37 + ++i) % 1009) / 7.0f;
  return values;
}

void DoomedTraining::start() {
  auto owned = std::make_unique<testing::ScriptedSession>(graph_);
  owned->on("RestoreV2", [this](const Operation&, const std::vector<Tensor>& inputs) {
    const BundleReader reader(files_, inputs[0].item<std::string>());
    std::vector<Tensor> values;
    for (const std::string& name : inputs[1].flat<std::string>()) values.push_back(reader.read(name));
    return values;
  });
  SessionManager manager({.graph = &graph_,
                          .files = &files_,
                          .session_factory = [&](const auto&...) { return std::move(owned); },
                          .skip_reason = [&](const std::string& prefix) { return journal_.skip_reason(prefix); }});
  session_ = manager.prepare_session({.init_op = ops::global_variables_initializer(root_),
                                      .saver = &saver_,
                                      .checkpoint_dir = kRun,
                                      .checkpoint_basename = "model"});
  if (manager.restored_from().empty()) return journal_.initialised(0);
  restored_ = session_->run(step_).item<int64_t>();
  journal_.restored(manager.restored_from(), restored_);
}

}  // namespace longhaul
