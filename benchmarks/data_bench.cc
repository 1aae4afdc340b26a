// How fast are the examples there? Inflating the training set beside zlib; a batch beside copying its bytes as floats.
#include <zlib.h>

#include <cstring>
#include <stdexcept>

#include "benchmarks/benchmarks.h"
#include "examples/batches.h"

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

}  // namespace

void add_data_rows(std::vector<Row>& rows) {
  rows.push_back({.name = "data/fashion_mnist",
                  .what = "reading the training set, beside zlib's gzread",
                  .unit = "ms",
                  .goal = 1,
                  .bound = Bound::kAtMost,
                  .sample = [] {
                    return Pair{ours_seconds() * 1e3, zlib_seconds() * 1e3};
                  }});
  rows.push_back(
      {.name = "data/batch",
       .what = "a batch of 64 as floats, beside memcpy of one",
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
}

}  // namespace longhaul::bench
