// How long until a checkpoint is durable, from the call of save() to the synced directory? Beside the disk's own speed
// for the same bytes in as many files, and torch::save with an fsync.
#include <fcntl.h>
#include <fmt/format.h>
#include <liburing.h>
#include <unistd.h>

#include <cmath>
#include <cstring>
#include <filesystem>

#include "benchmarks/benchmarks.h"
#include "benchmarks/files.h"
#include "benchmarks/torch_files.h"
#include "longhaul/longhaul.h"
#include "longhaul/testing/temporary_directory.h"

namespace longhaul::bench {
namespace {

constexpr size_t kPage = 4096;
constexpr int64_t kMiB = 1 << 20;

// A file's name and its bytes, in whole pages.
struct Contents {
  explicit Contents(const std::filesystem::path& path)
      : name(path.filename()), size(std::filesystem::file_size(path)), pages(std::make_unique<FreshMemory>(padded())) {
    const std::string bytes = read_file(FileSystem::real(), path);
    std::memset(pages->data(), 0, padded());
    std::memcpy(pages->data(), bytes.data(), bytes.size());
  }
  size_t padded() const { return (size + kPage) / kPage * kPage; }

  std::string name;
  size_t size;
  std::unique_ptr<FreshMemory> pages;
};

void write_plainly(const Contents& contents, const std::string& path) {
  const Descriptor file(path, O_WRONLY | O_CREAT | O_TRUNC);
  check(::write(file.fd(), contents.pages->data(), contents.size) == static_cast<ssize_t>(contents.size),
        "write " + path);
  check(::fsync(file.fd()) == 0, "sync " + path);
}

// What the disk and the kernel can do: 4 writes of 16 MiB at a time, past the kernel's cache, into room that was asked
// for before.
void write_directly(const Contents& contents, const std::string& path) {
  constexpr size_t kBlock = 16 * kMiB;
  constexpr unsigned kInFlight = 4;
  const Descriptor file(path, O_WRONLY | O_CREAT | O_TRUNC | O_DIRECT);
  check(::fallocate(file.fd(), 0, 0, static_cast<off_t>(contents.padded())) == 0, "make room for " + path);
  io_uring ring;
  check(io_uring_queue_init(kInFlight, &ring, 0) == 0, "measure the disk without io_uring");
  size_t next = 0, done = 0;
  for (size_t under_way = 0; next < contents.size || under_way > 0; --under_way) {
    for (; next < contents.size && under_way < kInFlight; ++under_way, next += kBlock) {
      const size_t count = std::min(kBlock, contents.padded() - next);
      io_uring_prep_write(io_uring_get_sqe(&ring), file.fd(), contents.pages->data() + next,
                          static_cast<unsigned>(count), next);
      io_uring_submit(&ring);
    }
    io_uring_cqe* cqe = nullptr;
    check(io_uring_wait_cqe(&ring, &cqe) == 0 && cqe->res > 0, "write " + path);
    done += static_cast<size_t>(cqe->res);
    io_uring_cqe_seen(&ring, cqe);
  }
  io_uring_queue_exit(&ring);
  check(done == contents.padded() && ::ftruncate(file.fd(), static_cast<off_t>(contents.size)) == 0, "write " + path);
  check(::fsync(file.fd()) == 0, "sync " + path);
}

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
    return time_seconds([&] {
      for (const Contents& file : files_) {
        const std::string path = directory_.path() + "/" + file.name, temporary = path + ".new";
        (file.size >= kMiB ? write_directly : write_plainly)(file, temporary);
        std::filesystem::rename(temporary, path);
      }
      sync_file(directory_.path());
    });
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
  void clear() {
    for (const auto& entry : std::filesystem::directory_iterator(directory_.path()))
      std::filesystem::remove(entry.path());
    ::sync();
  }

  const std::vector<int64_t> sizes_;
  testing::TemporaryDirectory directory_;
  Graph graph_;
  std::unique_ptr<Saver> saver_;
  std::unique_ptr<Session> session_;
  std::vector<Contents> files_;
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
