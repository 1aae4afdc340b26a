// How fast do scalars reach the disk, and what do the other summaries cost? FileWriter with one producer and four,
// beside a loop that serialises the same events with protobuf and writes them through a buffer; a histogram of a
// million floats, beside one pass that computes minimum, maximum, sum and sum of squares; images beside libpng alone; a
// second of sound beside its conversion by hand; a text beside protobuf alone. Files are synced to the disk within the
// time.
#include <google/protobuf/arena.h>
#include <png.h>

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <random>
#include <span>
#include <thread>

#include "benchmarks/benchmarks.h"
#include "longhaul/events/file_writer.h"
#include "longhaul/events/summary.h"
#include "longhaul/io/records/record.h"
#include "longhaul/media/wav.h"

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

// How often a second `body` can be done.
template <typename Body>
double rate(int count, Body body) {
  const double seconds = time_seconds([&] {
    for (int i = 0; i < count; ++i) {
      const std::string bytes = body();
      asm volatile("" : : "r"(bytes.data()) : "memory");
    }
  });
  return count / seconds;
}

// Smooth with some noise, as photographs are; floats from 0 to 1, the brightest 1.
Tensor a_photograph(int64_t size) {
  std::mt19937 random(1);
  std::uniform_real_distribution<float> noise(-0.02f, 0.02f);
  Tensor image(kFloat, {1, size, size, 3});
  for (size_t i = 0; float& value : image.mutable_flat<float>()) {
    const auto at = static_cast<float>(i++ / 3);
    value = std::clamp(0.5f + 0.45f * std::sin(at / 9000) * std::cos(at / 37) + noise(random), 0.0f, 1.0f);
  }
  image.mutable_flat<float>()[0] = 1;
  return image;
}

std::string libpng_alone(std::vector<uint8_t>& pixels, uint32_t size) {
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  image.width = image.height = size;
  image.format = PNG_FORMAT_RGB;
  std::string bytes(2 * pixels.size() + 1024, '\0');
  png_alloc_size_t count = bytes.size();
  if (png_image_write_to_memory(&image, bytes.data(), &count, 0, pixels.data(), 0, nullptr) == 0) bytes.clear();
  bytes.resize(count);
  return bytes;
}

Pair sample_images() {
  constexpr int64_t kSize = 224;
  constexpr int kCount = 20;
  const Tensor image = a_photograph(kSize);
  std::vector<uint8_t> pixels;
  for (const float value : image.flat<float>()) pixels.push_back(static_cast<uint8_t>(value * 255));
  return {rate(kCount, [&] { return image_summary("image", image).SerializeAsString(); }),
          rate(kCount, [&] { return libpng_alone(pixels, kSize); })};
}

// As one would write it by hand: sample for sample, behind the header.
std::string wav_by_hand(std::span<const float> samples, const std::string& header) {
  std::string out(header.size() + samples.size() * sizeof(int16_t), '\0');
  std::copy(header.begin(), header.end(), out.begin());
  char* to = out.data() + header.size();
  for (const float sample : samples) {
    const auto pcm = static_cast<int16_t>(std::clamp(std::lround(sample * 32768.0f), -32768L, 32767L));
    std::memcpy(to, &pcm, sizeof pcm);
    to += sizeof pcm;
  }
  return out;
}

Pair sample_sounds() {
  constexpr int kFrames = 44'100, kCount = 500;
  Tensor sound(kFloat, {1, kFrames});
  for (size_t i = 0; float& value : sound.mutable_flat<float>()) value = std::sin(static_cast<float>(i++) * 0.06f);
  const std::string header = encode_wav(sound.flat<float>(), kFrames, 1).substr(0, kWavHeaderBytes);
  return {rate(kCount, [&] { return audio_summary("sound", sound, kFrames).SerializeAsString(); }),
          rate(kCount, [&] { return wav_by_hand(sound.flat<float>(), header); })};
}

std::string text_by_protobuf(const std::string& text) {
  proto::Summary summary;
  auto* value = summary.add_value();
  value->set_tag("text");
  value->mutable_metadata()->mutable_plugin_data()->set_plugin_name("text");
  value->mutable_tensor()->set_dtype(proto::DT_STRING);
  value->mutable_tensor()->add_string_val(text);
  return summary.SerializeAsString();
}

Pair sample_texts() {
  constexpr int kCount = 100'000;
  const std::string text(4096, 'x');
  return {rate(kCount, [&] { return text_summary("text", text).SerializeAsString(); }),
          rate(kCount, [&] { return text_by_protobuf(text); })};
}

Row scalar_row(int producers) {
  return {.name = producers == 1 ? "events/scalars_1_producer" : "events/scalars_4_producers",
          .what = "scalar events until on disk, compared with a loop of protobuf and buffered writes",
          .unit = "events/s",
          .goal = 0.4,
          .sample = [=] { return Pair{writer_events_per_second(producers), protobuf_events_per_second()}; },
          .goal_ours = 4e6};
}

}  // namespace

void add_events_rows(std::vector<Row>& rows) {
  rows.push_back(scalar_row(1));
  rows.push_back(scalar_row(4));
  rows.push_back({.name = "events/histogram_1M_floats",
                  .what = "a histogram summary, compared with one pass for minimum, maximum, sum and sum of squares",
                  .unit = "ms",
                  .goal = 1.5,
                  .bound = Bound::kAtMost,
                  .sample = [values = million_floats()] { return sample_histogram(values); },
                  .goal_ours = 2});
  rows.push_back({.name = "events/images",
                  .what = "a summary with 224 x 224 RGB floats as PNG, compared with libpng with their bytes",
                  .unit = "images/s",
                  .goal = 0.9,
                  .sample = sample_images});
  rows.push_back({.name = "events/sounds",
                  .what = "a summary with 44100 floats as WAV, compared with rounding them one by one after the header",
                  .unit = "sounds/s",
                  .goal = 0.9,
                  .sample = sample_sounds});
  rows.push_back({.name = "events/texts",
                  .what = "a summary with 4 KiB of text, compared with the same message written with protobuf",
                  .unit = "texts/s",
                  .goal = 0.7,
                  .sample = sample_texts});
}

}  // namespace longhaul::bench
