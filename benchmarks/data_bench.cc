// How fast are the examples there? Inflating the training set beside zlib; a batch beside copying its bytes as floats;
// a loader beside a loop over the same memory.
#include <zlib.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <stdexcept>

#include "benchmarks/benchmarks.h"
#include "examples/batches.h"
#include "longhaul/data/data_loader.h"

namespace longhaul::bench {
namespace {

constexpr char kImages[] = "/train-images-idx3-ubyte.gz";
constexpr int64_t kBatch = 64;

double zlib_seconds() {
  const std::string path = std::string(examples::kFashionMnistDirectory) + kImages;
  std::vector<char> out(47'040'016);
  return time_seconds([&] {
    gzFile file = gzopen(path.c_str(), "rb");
    if (file == nullptr) throw std::runtime_error("cannot open " + path);
    gzbuffer(file, 256 << 10);
    const int got = gzread(file, out.data(), static_cast<unsigned>(out.size()));
    gzclose(file);
    if (got != static_cast<int>(out.size())) throw std::runtime_error("cannot inflate " + path);
  });
}

double ours_seconds() {
  return time_seconds([] { examples::load_images(examples::kFashionMnistDirectory, "train"); });
}

Pair sample_batches(const examples::ImageDataset& data, std::vector<float>& images, std::vector<float>& copy) {
  constexpr int kSteps = 500;
  const examples::Batches batches(data, 1, kBatch);
  int64_t labels[kBatch];
  const double ours = time_seconds([&] {
    for (int64_t step = 0; step < kSteps; ++step) batches.fill(step, images.data(), labels);
  });
  const double beside = time_seconds([&] {
    for (int64_t step = 0; step < kSteps; ++step) {
      images[0] = static_cast<float>(step);
      std::memcpy(copy.data(), images.data(), images.size() * sizeof(float));
      asm volatile("" : : "r"(copy.data()) : "memory");
    }
  });
  return {ours / kSteps * 1e6, beside / kSteps * 1e6};
}

// Rows of 784 floats in memory, in an order that the caches do not know.
struct Rows {
  static constexpr int64_t kCount = 20'000, kWidth = 784;
  Tensor images{kFloat, {kCount, kWidth}}, labels{kInt64, {kCount}};

  Rows() {
    std::ranges::fill(images.mutable_flat<float>(), 0.5f);
    std::ranges::fill(labels.mutable_flat<int64_t>(), 1);
  }
};

double loader_seconds(const Rows& rows, int64_t steps) {
  DataLoader loader(tensor_dataset({rows.images, rows.labels}), {.batch_size = kBatch, .seed = 1, .num_threads = 0});
  return time_seconds([&] {
    for (int64_t step = 0; step < steps; ++step) loader.next();
  });
}

double loop_seconds(const Rows& rows, int64_t steps) {
  const ExampleOrder order(Rows::kCount, 1);
  Tensor images(kFloat, {kBatch, Rows::kWidth}), labels(kInt64, {kBatch});
  return time_seconds([&] {
    for (int64_t i = 0; i < steps * kBatch; ++i) {
      const int64_t example = order.at(i), place = i % kBatch;
      std::memcpy(images.mutable_flat<float>().data() + place * Rows::kWidth,
                  rows.images.flat<float>().data() + example * Rows::kWidth, Rows::kWidth * sizeof(float));
      labels.mutable_flat<int64_t>()[static_cast<size_t>(place)] =
          rows.labels.flat<int64_t>()[static_cast<size_t>(example)];
      asm volatile("" : : "r"(images.data()) : "memory");
    }
  });
}

}  // namespace

void add_data_rows(std::vector<Row>& rows) {
  rows.push_back({.name = "data/fashion_mnist",
                  .what = "reading the training set, compared with zlib's gzread",
                  .unit = "ms",
                  .goal = 1,
                  .bound = Bound::kAtMost,
                  .sample = [] { return Pair{ours_seconds() * 1e3, zlib_seconds() * 1e3}; }});
  rows.push_back(
      {.name = "data/batch",
       .what = "a batch of 64 as floats, compared with memcpy of one",
       .unit = "us",
       .goal = 20,
       .bound = Bound::kAtMostMore,
       .sample = [data = std::shared_ptr<examples::ImageDataset>(), images = std::vector<float>(kBatch * 784),
                  copy = std::vector<float>(kBatch * 784)]() mutable {
         if (!data) {
           data = std::make_shared<examples::ImageDataset>(
               examples::load_images(examples::kFashionMnistDirectory, "train"));
         }
         return sample_batches(*data, images, copy);
       }});
  rows.push_back({.name = "data/loader",
                  .what = "examples through a DataLoader, compared with a loop that copies the same rows",
                  .unit = "examples/s",
                  .goal = 0.9,
                  .sample = [data = std::shared_ptr<Rows>()]() mutable {
                    constexpr int64_t kSteps = 1000;
                    if (!data) data = std::make_shared<Rows>();
                    return Pair{kSteps * kBatch / loader_seconds(*data, kSteps),
                                kSteps * kBatch / loop_seconds(*data, kSteps)};
                  }});
}

}  // namespace longhaul::bench
