#include "longhaul/train/saving/saved_values.h"

#include "longhaul/checkpoint/retention/disk_room.h"
#include "longhaul/session/snapshots.h"
#include "longhaul/train/saving/saver.h"
#include "longhaul/train/saving/values_on_tasks.h"

namespace longhaul {
namespace {

class ValuesHere : public SavedValues {
 public:
  ValuesHere(const SaverNodes& nodes, std::vector<Tensor> values) : nodes_(nodes), values_(std::move(values)) {}

  const std::vector<Tensor>& samples() const override { return values_; }
  uint64_t bytes() const override { return stored_bytes(values_); }
  bool are_saved(FileSystem& files, const std::string& prefix) override {
    return has_saved_values(files, prefix, nodes_, values_);
  }
  bool all_but_random_states_are_saved(FileSystem& files, const std::string& prefix) override {
    return has_all_but_random_states(files, prefix, nodes_, values_);
  }
  uint64_t write(FileSystem& files, const std::string& prefix, const std::optional<ExtraFile>& extra_file,
                 const BundleWriterOptions& options) override {
    return write_saved_bundle(files, prefix, nodes_, std::move(values_), extra_file, options);
  }

 private:
  const SaverNodes& nodes_;
  std::vector<Tensor> values_;
};

std::unique_ptr<SavedValues> read_here(Session& session, const SaverNodes& nodes, const std::vector<Fetch>& fetches,
                                       bool with_step, std::shared_ptr<Snapshots>& keeping) {
  keeping = snapshots_of(session);
  std::vector<Tensor> values = keeping->take(session, fetches);
  const Seconds waited = keeping->last_wait();
  std::optional<int64_t> step;
  if (with_step) {
    step = values.back().item<int64_t>();
    values.pop_back();
  }
  auto here = std::make_unique<ValuesHere>(nodes, std::move(values));
  here->step = step;
  here->waited = waited;
  return here;
}

}  // namespace

std::unique_ptr<SavedValues> read_values(Session& session, const SaverNodes& nodes, const StepSource& step,
                                         std::shared_ptr<Snapshots>& keeping) {
  std::vector<Fetch> fetches;
  for (const auto& tensor : nodes.tensors) fetches.emplace_back(tensor.read);
  const bool with_step = step.tensor() != nullptr;
  if (with_step) fetches.push_back(*step.tensor());
  std::unique_ptr<SavedValues> values;
  if (fetches.empty()) {
    values = std::make_unique<ValuesHere>(nodes, std::vector<Tensor>());
  } else {
    values = read_on_tasks(session, nodes, fetches, with_step);
    if (values == nullptr) values = read_here(session, nodes, fetches, with_step, keeping);
  }
  if (step.number() != nullptr) values->step = *step.number();
  return values;
}

}  // namespace longhaul
