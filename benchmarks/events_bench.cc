// How fast do scalars reach the disk, and what does a histogram cost? FileWriter with one producer and four, beside a
// loop that serialises the same events with protobuf and writes them through a buffer; a histogram of a million floats,
// beside one pass that computes minimum, maximum, sum and sum of squares. Files are synced to the disk within the time.
#include <google/protobuf/arena.h>

#include <algorithm>
#include <cfloat>
#include <filesystem>
#include <random>
#include <thread>

#include "benchmarks/benchmarks.h"
#include "longhaul/events/file_writer.h"
#include "longhaul/events/summary.h"
#include "longhaul/io/record.h"

namespace longhaul::bench {
namespace {

constexpr int64_t kEvents = 2'000'000;
constexpr size_t kFloats = 1'000'000;
const std::string kTag = "train/loss";

// In the working directory: /tmp may be memory.
class BenchDirectory {
 public:
  BenchDirectory() { std::filesystem::create_directories(path_); }
  ~BenchDirectory() { std::filesystem::remove_all(path_); }
  const std::string& path() const { return path_; }

 private:
  const std::string path_ = "longhaul_bench_events";
};

void add_scalars(FileWriter& writer, int64_t from, int64_t to) {
  for (int64_t step = from; step < to; ++step) writer.add_scalar(kTag, static_cast<float>(step), step);
}

double writer_events_per_second(int producers) {
  BenchDirectory directory;
  const double seconds = time_seconds([&] {
    FileWriter writer(directory.path());
    std::vector<std::thread> threads;
    const int64_t each = kEvents / producers;
    for (int p = 1; p < producers; ++p) threads.emplace_back([&, p] { add_scalars(writer, p * each, (p + 1) * each); });
    add_scalars(writer, 0, each);
    for (auto& thread : threads) thread.join();
    writer.close();
  });
  return kEvents / seconds;
}

// The peer. The message lives in an arena and is used again, which is the fastest that protobuf offers.
void write_with_protobuf(WritableFile& file) {
  google::protobuf::Arena arena;
  auto* event = google::protobuf::Arena::CreateMessage<proto::Event>(&arena);
  auto* value = event->mutable_summary()->add_value();
  value->set_tag(kTag);
  RecordWriter records(file);
  std::string bytes;
  for (int64_t step = 0; step < kEvents; ++step) {
    event->set_wall_time(Clock::real().wall_time());
    event->set_step(step);
    value->set_simple_value(static_cast<float>(step));
    event->SerializeToString(&bytes);
    records.write(bytes);
  }
  file.sync();
  file.close();
}

double protobuf_events_per_second() {
  BenchDirectory directory;
  const double seconds = time_seconds([&] {
    auto file = FileSystem::real().create(join_path(directory.path(), "events"));
    write_with_protobuf(*file);
  });
  return kEvents / seconds;
}

Tensor million_floats() {
  std::mt19937 random(1);
  std::normal_distribution<float> normal(0, 0.05f);
  Tensor tensor(kFloat, Shape{static_cast<int64_t>(kFloats)});
  for (float& value : tensor.mutable_flat<float>()) value = normal(random);
  return tensor;
}

struct Moments {
  float min = FLT_MAX, max = -FLT_MAX;
  double sum = 0, sum_squares = 0;
};

Moments one_pass(std::span<const float> values) {
  Moments moments;
  for (float value : values) {
    moments.min = std::min(moments.min, value);
    moments.max = std::max(moments.max, value);
    moments.sum += value;
    moments.sum_squares += static_cast<double>(value) * value;
  }
  return moments;
}

// The best of a few, in milliseconds: what disturbs a millisecond's work is not what is measured.
template <typename Body>
double best_milliseconds(Body body) {
  double best = 1e9;
  for (int i = 0; i < 5; ++i) best = std::min(best, time_seconds(body) * 1e3);
  return best;
}

Pair sample_histogram(const Tensor& values) {
  size_t bytes = 0;
  double sum = 0;
  const double ours =
      best_milliseconds([&] { bytes += histogram_summary("weights", values).SerializeAsString().size(); });
  const double beside = best_milliseconds([&] {
    const Moments moments = one_pass(values.flat<float>());
    sum += moments.sum + moments.sum_squares + moments.min + moments.max;
  });
  asm volatile("" : : "r"(bytes), "x"(sum));
  return {ours, beside};
}

Row scalar_row(int producers) {
  return {.name = producers == 1 ? "events/scalars_1_producer" : "events/scalars_4_producers",
          .what = "scalar events until on disk, beside a loop of protobuf and buffered writes",
          .unit = "events/s",
          .goal = 0.4,
          .sample =
              [=] {
                return Pair{writer_events_per_second(producers), protobuf_events_per_second()};
              },
          .goal_ours = 4e6};
}

}  // namespace

void add_events_rows(std::vector<Row>& rows) {
  rows.push_back(scalar_row(1));
  rows.push_back(scalar_row(4));
  rows.push_back({.name = "events/histogram_1M_floats",
                  .what = "a histogram summary, beside one pass for minimum, maximum, sum and sum of squares",
                  .unit = "ms",
                  .goal = 1.5,
                  .bound = Bound::kAtMost,
                  .sample = [values = million_floats()] { return sample_histogram(values); },
                  .goal_ours = 2});
}

}  // namespace longhaul::bench
