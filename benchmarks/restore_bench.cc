// How fast does a training that was killed have its variables back, every checksum verified, when nothing of the
// checkpoint is in the kernel's cache, and no memory was used before? Beside the disk's own speed and torch::load,
// which verifies nothing.
#include <fcntl.h>
#include <fmt/format.h>
#include <liburing.h>
#include <malloc.h>

#include <cmath>
#include <filesystem>
#include <stdexcept>

#include "benchmarks/benchmarks.h"
#include "benchmarks/files.h"
#include "benchmarks/torch_files.h"
#include "longhaul/checkpoint/bundle/bundle_writer.h"
#include "longhaul/checkpoint/files/checkpoint_files.h"
#include "longhaul/longhaul.h"
#include "longhaul/testing/temporary_directory.h"

namespace longhaul::bench {
namespace {

constexpr int kVariables = 200;
constexpr double kGiga = 1e9;

constexpr size_t kBlock = size_t{16} << 20;

std::unique_ptr<FreshMemory> memory_for(const std::string& path) {
  return std::make_unique<FreshMemory>((std::filesystem::file_size(path) + kBlock - 1) / kBlock * kBlock);
}

// Seconds to read the file past the kernel's cache, 16 reads of 16 MiB at a time: what the disk and the kernel can do,
// without a look at the bytes.
double direct_read_seconds(const std::string& path, const FreshMemory& memory) {
  constexpr size_t kPage = 4096;
  constexpr unsigned kInFlight = 16;
  const size_t size = std::filesystem::file_size(path);
  return time_seconds([&] {
    const Descriptor file(path, O_RDONLY | O_DIRECT);
    io_uring ring;
    if (io_uring_queue_init(kInFlight, &ring, 0) != 0)
      throw std::runtime_error("cannot measure the disk without io_uring");
    size_t next = 0, done = 0;
    for (size_t under_way = 0; next < size || under_way > 0; --under_way) {
      for (; next < size && under_way < kInFlight; ++under_way, next += kBlock) {
        const size_t count = std::min(kBlock, (size - next + kPage - 1) / kPage * kPage);
        io_uring_sqe* sqe = io_uring_get_sqe(&ring);
        io_uring_prep_read(sqe, file.fd(), memory.data() + next, static_cast<unsigned>(count), next);
        sqe->flags |= IOSQE_ASYNC;
        io_uring_submit(&ring);
      }
      io_uring_cqe* cqe = nullptr;
      if (io_uring_wait_cqe(&ring, &cqe) != 0) throw std::runtime_error("cannot wait for a read");
      done += cqe->res > 0 ? static_cast<size_t>(cqe->res) : 0;
      io_uring_cqe_seen(&ring, cqe);
    }
    io_uring_queue_exit(&ring);
    if (done != size) throw std::runtime_error(fmt::format("only {} of {} bytes were read", done, size));
  });
}

// About `bytes` in floats, from one variable to the next a twentieth more.
std::vector<int64_t> mixed_sizes(double bytes) {
  constexpr double kGrowth = 1.05;
  const double first = bytes / static_cast<double>(sizeof(float)) * (kGrowth - 1) / (std::pow(kGrowth, kVariables) - 1);
  std::vector<int64_t> sizes;
  for (int i = 0; i < kVariables; ++i) sizes.push_back(std::llround(first * std::pow(kGrowth, i)) + 1);
  return sizes;
}

// A model's checkpoint on the disk, the same tensors in a file of libtorch's, and the graph to restore into.
class Saved {
 public:
  explicit Saved(double bytes) : sizes_(mixed_sizes(bytes)) {
    const Scope root(graph_);
    BundleWriter writer(FileSystem::real(), prefix());
    for (size_t i = 0; i < sizes_.size(); ++i) {
      const std::string name = fmt::format("v{:03}", i);
      const Tensor tensor = numbers(sizes_[i]);
      variables_.push_back(ops::variable(root, name, ops::zeros(root, {sizes_[i]})));
      writer.add(name, tensor);
      bytes_ += static_cast<double>(tensor.size_bytes());
    }
    writer.finish();
    saver_ = std::make_unique<Saver>(SaverOptions{.graph = &graph_});
    const TorchTensors tensors(sizes_);
    tensors.save(torch_path());
    write_again(torch_path());
    sum_ = tensors.sum();
  }
  Saved(const Saved&) = delete;
  Saved& operator=(const Saved&) = delete;

  double restore() {
    const auto session = new_session("", graph_);
    make_cold(data_path(prefix(), 0, 1));
    make_cold(index_path(prefix()));
    const double seconds = time_seconds([&] { saver_->restore(*session, prefix()); });
    if (session->run(variables_.back()).shape() != Shape{sizes_.back()}) {
      throw std::runtime_error("the restored values are wrong");
    }
    return bytes_ / kGiga / seconds;
  }
  double verify() {
    const BundleReader reader(FileSystem::real(), prefix());
    make_cold(data_path(prefix(), 0, 1));
    std::vector<std::string> damages;
    const double seconds = time_seconds([&] { damages = reader.verify(); });
    if (!damages.empty()) throw std::runtime_error(damages[0]);
    return bytes_ / kGiga / seconds;
  }
  // Into new memory, as variables have that are restored.
  double read_directly() {
    const std::string path = data_path(prefix(), 0, 1);
    const auto memory = memory_for(path);  // given back after the measurement, as ours is
    make_cold(path);
    return bytes_ / kGiga / direct_read_seconds(path, *memory);
  }
  // Into memory that was used before, as what is only verified is read.
  double read_directly_again() {
    const std::string path = data_path(prefix(), 0, 1);
    if (!kept_) kept_ = memory_for(path);
    make_cold(path);
    return bytes_ / kGiga / direct_read_seconds(path, *kept_);
  }
  double load_with_torch() {
    make_cold(torch_path());
    ::malloc_trim(0);  // new memory, as a process has that was just started, and as restore() gets it
    TorchTensors tensors({});
    const double seconds = time_seconds([&] { tensors.load(torch_path()); });
    if (tensors.sum() != sum_) throw std::runtime_error("torch::load returned wrong values");
    return bytes_ / kGiga / seconds;
  }

 private:
  // As checkpoints are written: a disk may bring back sooner what came to it in another way.
  static void write_again(const std::string& path) {
    FileSystem& files = FileSystem::real();
    const std::string bytes = read_file(files, path, UINT64_MAX);
    const auto file = files.create_large(path + ".new", {.expected_bytes = bytes.size()});
    file->append(bytes);
    file->sync();
    file->close();
    files.rename(path + ".new", path);
  }
  static Tensor numbers(int64_t count) {
    Tensor tensor(kFloat, {count});
    uint32_t state = 12345;
    for (float& number : tensor.mutable_flat<float>()) {
      state = state * 1664525 + 1013904223;
      number = static_cast<float>(state) * 1e-9f;
    }
    return tensor;
  }
  std::string prefix() const { return directory_.path() + "/model.ckpt-1"; }
  std::string torch_path() const { return directory_.path() + "/model.pt"; }

  const std::vector<int64_t> sizes_;
  testing::TemporaryDirectory directory_;
  Graph graph_;
  std::vector<Variable> variables_;
  std::unique_ptr<Saver> saver_;
  std::unique_ptr<FreshMemory> kept_;
  double bytes_ = 0, sum_ = 0;
};

// Made by the first row that is measured; stays until the end of the program.
Saved& saved() {
  static Saved of_one_gibibyte(1024.0 * 1024 * 1024);
  return of_one_gibibyte;
}

}  // namespace

void add_restore_rows(std::vector<Row>& rows) {
  rows.push_back(
      {.name = "restore/1GiB_cold",
       .what = "restore of 200 variables, verified, nothing cached, compared with O_DIRECT reads of the file",
       .unit = "GB/s",
       .goal = 0.95,
       .sample = in_turns([] { return saved().restore(); }, [] { return saved().read_directly(); }),
       .samples = 30});
  rows.push_back(
      {.name = "restore/1GiB_cold_vs_torch",
       .what = "the same, compared with torch::load of the same tensors to new memory, which verifies nothing",
       .unit = "GB/s",
       .goal = 1.1,
       .sample = in_turns([] { return saved().restore(); }, [] { return saved().load_with_torch(); }),
       .samples = 30});
  rows.push_back(
      {.name = "restore/1GiB_verify",
       .what = "every checksum of a checkpoint, nothing cached, compared with O_DIRECT reads into used memory",
       .unit = "GB/s",
       .goal = 0.95,
       .sample = in_turns([] { return saved().verify(); }, [] { return saved().read_directly_again(); }),
       .samples = 30});
}

}  // namespace longhaul::bench
