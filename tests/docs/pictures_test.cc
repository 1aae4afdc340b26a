// The pictures of docs/images, drawn from event files as TensorBoard draws them, and compared with what is there. With
// LONGHAUL_WRITE_PICTURES set they are written instead.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <vector>

#include "longhaul/events/event_reader.h"
#include "longhaul/events/file_writer.h"
#include "longhaul/events/independent_reader_fixture.h"
#include "longhaul/events/summary.h"
#include "longhaul/media/image.h"
#include "longhaul/testing/temporary_directory.h"

namespace longhaul {
namespace {

using Color = std::array<uint8_t, 3>;
constexpr Color kGrid = {225, 225, 225}, kCurve = {245, 124, 0}, kFill = {250, 205, 150};

struct Box {
  double left, top, width, height;
};

// A point of a panel: x and y from 0 to 1, y upwards.
struct Position {
  double x, y;
};

class Canvas {
 public:
  Canvas(int64_t width, int64_t height) : image_(kUInt8, {height, width, 3}) {
    std::ranges::fill(image_.mutable_flat<uint8_t>(), uint8_t{255});
  }
  const Tensor& image() const { return image_; }

  void grid(const Box& box) {
    for (const double at : {0.0, 0.25, 0.5, 0.75, 1.0}) {
      line(box, {0, at}, {1, at}, kGrid, 1);
      line(box, {at, 0}, {at, 1}, kGrid, 1);
    }
  }
  void line(const Box& box, Position from, Position to, Color color, int thickness) {
    const double dx = (to.x - from.x) * box.width, dy = (to.y - from.y) * box.height;
    const int steps = 1 + static_cast<int>(2 * std::max(std::abs(dx), std::abs(dy)));
    for (int i = 0; i <= steps; ++i) {
      const double part = static_cast<double>(i) / steps;
      dot(box, {from.x + part * (to.x - from.x), from.y + part * (to.y - from.y)}, color, thickness);
    }
  }
  void curve(const Box& box, const std::vector<Position>& points, Color color = kCurve) {
    for (size_t i = 1; i < points.size(); ++i) line(box, points[i - 1], points[i], color, 2);
  }
  // What is below the curve.
  void fill(const Box& box, const std::vector<Position>& points, Color color) {
    for (size_t i = 1; i < points.size(); ++i) {
      const Position a = points[i - 1], b = points[i];
      for (double part = 0; part < 1; part += 0.02) {
        const double x = a.x + part * (b.x - a.x);
        line(box, {x, 0}, {x, a.y + part * (b.y - a.y)}, color, 1);
      }
    }
  }

 private:
  void dot(const Box& box, Position at, Color color, int size) {
    const auto x = static_cast<int64_t>(box.left + at.x * box.width);
    const auto y = static_cast<int64_t>(box.top + (1 - at.y) * box.height);
    for (int64_t row = y; row < y + size; ++row) {
      for (int64_t column = x; column < x + size; ++column) set(row, column, color);
    }
  }
  void set(int64_t row, int64_t column, Color color) {
    if (row < 0 || row >= image_.shape().dim(0) || column < 0 || column >= image_.shape().dim(1)) return;
    std::ranges::copy(color,
                      &image_.mutable_flat<uint8_t>()[static_cast<size_t>(3 * (row * image_.shape().dim(1) + column))]);
  }

  Tensor image_;
};

// Numbers from -1 to 1, the same ones always.
class Noise {
 public:
  double next() {
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    return static_cast<double>(state_ >> 33) / (1u << 30) - 1;
  }

 private:
  uint64_t state_ = 1;
};

// A run to step 900 that is killed, and one that goes on from the checkpoint of step 600 to 1400, and fares better.
void write_runs(const std::string& directory) {
  Noise noise;
  const auto write_run = [&](int64_t start, int64_t end, double drift) {
    FileWriter writer(directory);
    proto::SessionLog log;
    log.set_status(proto::SessionLog::START);
    writer.add_session_log(log, start);
    for (int64_t step = start + 10; step <= end; step += 10) {
      const double loss = 0.1 + 0.8 / (1 + static_cast<double>(step) / 250) + 0.03 * noise.next();
      const double beyond = static_cast<double>(std::max<int64_t>(step - 600, 0));
      writer.add_scalar("loss", static_cast<float>(loss + drift * beyond), step);
    }
  };
  write_run(0, 900, 0.001);
  write_run(600, 1400, 0);
}

Position scaled(int64_t step, float loss) {
  return {static_cast<double>(step) / 1400, loss};
}

std::vector<Position> curve_in_files(const std::string& directory) {
  std::vector<Position> points;
  for (const std::string& path : event_files(directory)) {
    EventReader reader(path);
    while (const auto event = reader.next()) {
      for (const auto& value : event->summary().value()) points.push_back(scaled(event->step(), value.simple_value()));
    }
  }
  return points;
}

std::vector<Position> curve_shown(const std::string& directory, independent::Rule rule) {
  std::vector<Position> points;
  const independent::Curves curves = independent::CurveReader::read(directory, rule);
  for (const auto& point : curves.at("loss").points) {
    points.push_back(scaled(point.step, point.number));
  }
  return points;
}

Tensor draw_restart() {
  testing::TemporaryDirectory directory;
  write_runs(directory.path());
  Canvas canvas(960, 260);
  double left = 20;
  for (const auto& points : {curve_in_files(directory.path()), curve_shown(directory.path(), independent::Rule::kStart),
                             curve_shown(directory.path(), independent::Rule::kPerTag)}) {
    const Box panel{left, 20, 280, 220};
    canvas.grid(panel);
    canvas.curve(panel, points);
    left += 320;
  }
  return canvas.image();
}

// Sums of noise, which become narrower and move to the right with the step.
Tensor weights_at(int step, Noise& noise) {
  std::vector<float> weights(20'000);
  const double width = 0.5 - 0.025 * step, center = 0.06 * step - 0.4;
  for (float& weight : weights) {
    weight = static_cast<float>(center + width * (noise.next() + noise.next() + noise.next() + noise.next()) / 2);
  }
  return Tensor::of(weights);
}

// The histogram in 30 bins from -1.5 to 1.5, each bucket's count spread evenly over what it covers.
std::vector<Position> ridge_of(const proto::HistogramProto& histogram) {
  constexpr int kBins = 30;
  std::vector<Position> points;
  for (int bin = 0; bin < kBins; ++bin) {
    const double low = -1.5 + 0.1 * bin, high = low + 0.1;
    double count = 0, left = histogram.min();
    for (int i = 0; i < histogram.bucket_size(); ++i) {
      const double begin = std::max(left, histogram.min());
      const double end = std::min(histogram.bucket_limit(i), histogram.max());
      const double overlap = std::min(end, high) - std::max(begin, low);
      if (overlap > 0) count += histogram.bucket(i) * overlap / (end - begin);
      left = histogram.bucket_limit(i);
    }
    points.push_back({(bin + 0.5) / kBins, count / 4000});
  }
  return points;
}

Tensor draw_histograms() {
  constexpr int kSteps = 14;
  Canvas canvas(480, 320);
  Noise noise;
  for (int step = 0; step < kSteps; ++step) {  // the newest in front
    const auto summary = histogram_summary("weights", weights_at(step, noise));
    const Box ridge{30.0 + 2 * step, 20.0 + 14 * step, 400, 90};
    const auto points = ridge_of(summary.value(0).histo());
    canvas.fill(ridge, points, kFill);
    canvas.curve(ridge, points);
  }
  return canvas.image();
}

class Pictures : public ::testing::Test {
 protected:
  void expect_as_shown(const std::string& name, const Tensor& drawn) {
    const std::string path = join_path(LONGHAUL_PICTURES, name);
    if (std::getenv("LONGHAUL_WRITE_PICTURES") != nullptr) {
      std::filesystem::create_directories(LONGHAUL_PICTURES);
      write_file_atomically(FileSystem::real(), path, encode_png(drawn, 9));
    }
    EXPECT_TRUE(identical(decode_png(read_file(FileSystem::real(), path)), drawn))
        << path << " is of other numbers; LONGHAUL_WRITE_PICTURES=1 draws it anew";
  }
};

TEST_F(Pictures, OfARestartAreWhatIsShown) {
  expect_as_shown("restart.png", draw_restart());
}

TEST_F(Pictures, OfHistogramsAreWhatIsShown) {
  expect_as_shown("histograms.png", draw_histograms());
}

}  // namespace
}  // namespace longhaul
