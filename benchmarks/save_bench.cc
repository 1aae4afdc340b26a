// How long until a checkpoint is durable, from the call of save() to the synced directory? Beside the disk's own speed
// for the same bytes in as many files, and torch::save with an fsync.
#include <fmt/format.h>

#include <cmath>
#include <filesystem>

#include "benchmarks/benchmarks.h"
#include "benchmarks/disk_limit.h"
#include "benchmarks/files.h"
#include "benchmarks/torch_files.h"
#include "longhaul/longhaul.h"
#include "longhaul/testing/temporary_directory.h"

namespace longhaul::bench {
namespace {

constexpr int64_t kMiB = 1 << 20;

// Of about `bytes` in all, the largest 400 times the smallest.
std::vector<int64_t> mixed_sizes(int64_t bytes, int count) {
  std::vector<double> weights;
  double sum = 0;
  for (int i = 0; i < count; ++i) {
    weights.push_back(count == 1 ? 1 : std::exp(6.0 * (i * 73 % count) / (count - 1)));
    sum += weights.back();
  }
  std::vector<int64_t> sizes;
  for (const double weight : weights) {
    sizes.push_back(1 + static_cast<int64_t>(weight / sum * static_cast<double>(bytes) / sizeof(float)));
  }
  return sizes;
}

// Variables in a session, and what else there is to write of them.
class Model {
 public:
  Model(int64_t bytes, int variables) : sizes_(mixed_sizes(bytes, variables)) {
    const Scope root(graph_);
    for (size_t i = 0; i < sizes_.size(); ++i) {
      ops::variable(root, fmt::format("v{:03}", i), ops::uniform(root, {sizes_[i]}, -1, 1));
    }
    saver_ = std::make_unique<Saver>(SaverOptions{.graph = &graph_, .max_to_keep = 0});
    session_ = new_session("", graph_);
    session_->run(ops::global_variables_initializer(root));
  }
  Model(const Model&) = delete;
  Model& operator=(const Model&) = delete;

  double gigabytes() const { return static_cast<double>(saver_->bytes()) / 1e9; }

  double save_seconds() {
    clear();
    return time_seconds([&] { saver_->save(*session_, directory_.path() + "/model.ckpt", ++step_); });
  }

  // The same files, each written, synced and renamed, by a program that knows their bytes.
  double bare_seconds() {
    if (files_.empty()) {
      save_seconds();
      for (const auto& entry : std::filesystem::directory_iterator(directory_.path()))
        files_.emplace_back(entry.path());
    }
    clear();
    return bare_write_seconds(files_, directory_.path());
  }

  double torch_seconds() {
    if (!tensors_) tensors_ = std::make_unique<TorchTensors>(sizes_);
    clear();
    return time_seconds([&] {
      tensors_->save(directory_.path() + "/model.pt");
      sync_file(directory_.path() + "/model.pt");
    });
  }

 private:
  void clear() { clear_directory(directory_.path()); }

  const std::vector<int64_t> sizes_;
  testing::TemporaryDirectory directory_;
  Graph graph_;
  std::unique_ptr<Saver> saver_;
  std::unique_ptr<Session> session_;
  std::vector<FileContents> files_;
  std::unique_ptr<TorchTensors> tensors_;
  int64_t step_ = 0;
};

// The model of the row that is measured; that of the row before goes.
Model& model_of(int64_t bytes, int variables) {
  static std::unique_ptr<Model> model;
  static int64_t bytes_of_model = 0;
  if (bytes_of_model != bytes) {
    model.reset();
    model = std::make_unique<Model>(bytes, variables);
    bytes_of_model = bytes;
  }
  return *model;
}

using Measurement = double (Model::*)();  // in seconds

// GB/s of what takes so many seconds.
std::function<double()> speed(int64_t bytes, Measurement seconds) {
  return [=] {
    Model& model = model_of(bytes, 200);
    return model.gigabytes() / (model.*seconds)();
  };
}

std::function<double()> milliseconds_of_64KiB(Measurement seconds) {
  return [=] { return 1e3 * (model_of(64 * 1024, 2).*seconds)(); };
}

}  // namespace

void add_save_rows(std::vector<Row>& rows) {
  const auto add = [&](const std::string& size, int64_t bytes, int samples) {
    rows.push_back({.name = fmt::format("save/{}_durable", size),
                    .what = "a save of 200 variables until durable, compared with O_DIRECT writes of the same files",
                    .unit = "GB/s",
                    .goal = 0.9,
                    .sample = in_turns(speed(bytes, &Model::save_seconds), speed(bytes, &Model::bare_seconds)),
                    .samples = samples});
    rows.push_back({.name = fmt::format("save/{}_durable_vs_torch", size),
                    .what = "the same, compared with torch::save and fsync of the same tensors",
                    .unit = "GB/s",
                    .goal = 2.5,
                    .sample = in_turns(speed(bytes, &Model::save_seconds), speed(bytes, &Model::torch_seconds)),
                    .samples = samples});
  };
  add("64MiB", 64 * kMiB, 30);
  add("1GiB", 1024 * kMiB, 20);
  rows.push_back(
      {.name = "save/64KiB_durable",
       .what = "a save of 2 variables until durable, compared with write, fsync and rename of the same files",
       .unit = "ms",
       .goal = 4,
       .bound = Bound::kAtMost,
       .sample = in_turns(milliseconds_of_64KiB(&Model::save_seconds), milliseconds_of_64KiB(&Model::bare_seconds)),
       .samples = 30});
}

}  // namespace longhaul::bench
