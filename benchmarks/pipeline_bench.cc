// How many batches per second come out of an input pipeline (files, reader, parser, batch queue), beside a plain loop
// on one thread that reads the same file with the C library, parses it with std::from_chars or protobuf and fills the
// same batches?
#include <fmt/format.h>

#include <charconv>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <random>
#include <stdexcept>

#include "benchmarks/benchmarks.h"
#include "longhaul/io/records/crc32c.h"
#include "longhaul/io/records/record.h"
#include "longhaul/longhaul.h"
#include "longhaul/proto/example.pb.h"

namespace longhaul::bench {
namespace {

constexpr int64_t kBatch = 128;
constexpr int64_t kRecords = 32 * 1024;
constexpr int64_t kColumns = 16;  // of floats in a line, before its label
constexpr int64_t kPixels = 784;  // bytes of an image
constexpr int kBatches = 16 * kRecords / kBatch;

struct Batch {
  Tensor values, labels;
};

// A file in the working directory (/tmp may be memory), removed at the end.
class BenchFile {
 public:
  explicit BenchFile(std::string path) : path_(std::move(path)) {}
  ~BenchFile() { std::filesystem::remove(path_); }
  BenchFile(const BenchFile&) = delete;
  const std::string& path() const { return path_; }

 private:
  const std::string path_;
};

void write_csv(const std::string& path) {
  std::mt19937 random(1);
  std::normal_distribution<float> values;
  std::ofstream file(path);
  for (int64_t i = 0; i < kRecords; ++i) {
    for (int64_t column = 0; column < kColumns; ++column) file << fmt::format("{:.6f},", values(random));
    file << i % 10 << '\n';
  }
}

void write_records(const std::string& path) {
  std::mt19937 random(1);
  const auto file = FileSystem::real().create(path);
  RecordWriter records(*file);
  std::string image(kPixels, '\0');
  for (int64_t i = 0; i < kRecords; ++i) {
    for (char& pixel : image) pixel = static_cast<char>(random());
    proto::Example example;
    auto& features = *example.mutable_features()->mutable_feature();
    features["image"].mutable_bytes_list()->add_value(image);
    features["label"].mutable_int64_list()->add_value(i % 10);
    records.write(example.SerializeAsString());
  }
  file->flush();
  file->close();
}

// The plain loops' files, read again from the start when they end.
class PlainFile {
 public:
  explicit PlainFile(const std::string& path) : file_(std::fopen(path.c_str(), "rb"), &std::fclose) {
    if (!file_) throw std::runtime_error("cannot open " + path);
    std::setvbuf(file_.get(), nullptr, _IOFBF, 256 << 10);
  }
  ~PlainFile() { std::free(line_); }
  PlainFile(const PlainFile&) = delete;

  std::string_view line() {
    while (true) {
      const ssize_t size = ::getline(&line_, &capacity_, file_.get());
      if (size > 0) return {line_, static_cast<size_t>(size) - 1};
      std::rewind(file_.get());
    }
  }

  // A TFRecord's payload, its checksums verified.
  const std::string& record() {
    char head[12], foot[4];
    if (std::fread(head, sizeof head, 1, file_.get()) != 1) {
      std::rewind(file_.get());
      return record();
    }
    uint64_t size = 0;
    std::memcpy(&size, head, sizeof size);
    check_sum({head, 8}, head + 8);
    record_.resize(size);
    if (std::fread(record_.data(), size, 1, file_.get()) != 1 || std::fread(foot, sizeof foot, 1, file_.get()) != 1) {
      throw std::runtime_error("the benchmark's records are truncated");
    }
    check_sum(record_, foot);
    return record_;
  }

 private:
  static void check_sum(std::string_view bytes, const char* expected) {
    uint32_t sum = 0;
    std::memcpy(&sum, expected, sizeof sum);
    if (mask_crc32c(crc32c(bytes)) != sum) throw std::runtime_error("the benchmark's records are damaged");
  }

  std::unique_ptr<std::FILE, int (*)(std::FILE*)> file_;
  char* line_ = nullptr;
  size_t capacity_ = 0;
  std::string record_;
};

template <typename T>
const char* parse_field(const char* at, const char* end, T* value) {
  const auto [next, error] = std::from_chars(at, end, *value);
  if (error != std::errc() || (next != end && *next != ','))
    throw std::runtime_error("the benchmark's file has a field that is not a number");
  return next == end ? end : next + 1;
}

Batch plain_csv_batch(PlainFile& file) {
  Batch batch{Tensor(kFloat, {kBatch, kColumns}), Tensor(kInt64, {kBatch})};
  float* value = batch.values.mutable_flat<float>().data();
  for (int64_t& label : batch.labels.mutable_flat<int64_t>()) {
    const std::string_view line = file.line();
    const char *at = line.data(), *end = line.data() + line.size();
    for (int64_t column = 0; column < kColumns; ++column) at = parse_field(at, end, value++);
    parse_field(at, end, &label);
  }
  return batch;
}

Batch plain_records_batch(PlainFile& file) {
  Batch batch{Tensor(kUInt8, {kBatch, kPixels}), Tensor(kInt64, {kBatch})};
  uint8_t* image = batch.values.mutable_flat<uint8_t>().data();
  proto::Example example;
  for (int64_t& label : batch.labels.mutable_flat<int64_t>()) {
    if (!example.ParseFromString(file.record()))
      throw std::runtime_error("the benchmark's file has a record that is not an Example");
    const auto& features = example.features().feature();
    const std::string& bytes = features.at("image").bytes_list().value(0);
    if (bytes.size() != kPixels) throw std::runtime_error("an image has the wrong size");
    std::memcpy(image, bytes.data(), kPixels);
    image += kPixels;
    label = features.at("label").int64_list().value(0);
  }
  return batch;
}

std::vector<Output> csv_columns(const Scope& root, const FIFOQueue& files) {
  const Output lines = ops::read_values_up_to(root, ops::text_line_reader(root), files, 4 * kBatch);
  std::vector<Tensor> columns(kColumns, ops::required_column(kFloat));
  columns.push_back(ops::required_column(kInt64));
  std::vector<Output> decoded = ops::decode_csv(root, lines, columns);
  const Output label = decoded.back();
  decoded.pop_back();
  return {ops::pack(root, decoded, 1), label};
}

std::vector<Output> record_columns(const Scope& root, const FIFOQueue& files) {
  const Output records = ops::read_values_up_to(root, ops::tf_record_reader(root), files, kBatch);
  const ParsedFeatures parsed = ops::parse_example(
      root, records, {{"image", FixedLenFeature{kString, {}}}, {"label", FixedLenFeature{kInt64, {}}}});
  return {ops::decode_raw(root, parsed.dense.at("image"), kUInt8), parsed.dense.at("label")};
}

// The pipeline, running from the constructor to the destructor.
class Pipeline {
 public:
  using Columns = std::vector<Output> (*)(const Scope&, const FIFOQueue& files);
  Pipeline(const std::string& path, Columns columns, int64_t width) {
    const Scope root(graph_);
    const std::vector<Output> parsed = columns(root, string_input_producer(root, std::vector{path}));
    const InputTensors batch = longhaul::batch(root, {parsed[0], parsed[1]},
                                               {.batch_size = kBatch,
                                                .num_threads = 2,
                                                .capacity = 16 * kBatch,
                                                .enqueue_many = true,
                                                .shapes = {Shape{width}, Shape{}}});
    const Operation init = ops::local_variables_initializer(root);
    session_ = new_session("", graph_);
    session_->run(init);
    start_queue_runners(session_, coord_);
    next_ = session_->make_callable({Output(batch[0]), Output(batch[1])});
  }
  ~Pipeline() {
    coord_.request_stop();
    coord_.join();
  }
  Batch next() {
    std::vector<Tensor> values = next_();
    return {std::move(values[0]), std::move(values[1])};
  }

 private:
  Graph graph_;
  std::shared_ptr<Session> session_;
  Coordinator coord_;
  Callable next_;
};

template <typename Next>
double batches_per_second(const Next& next) {
  int64_t labels = 0;
  const double seconds = time_seconds([&] {
    for (int i = 0; i < kBatches; ++i) labels += next().labels.template flat<int64_t>()[0];
  });
  if (labels == 0) throw std::runtime_error("all labels are 0");
  return kBatches / seconds;
}

struct Subject {
  void (*write)(const std::string& path);
  Batch (*plain)(PlainFile& file);
  Pipeline::Columns columns;
  int64_t width;
};

Row row(const std::string& name, const std::string& what, const Subject& subject) {
  return {.name = "pipeline/" + name,
          .what = what,
          .unit = "batches/s",
          .goal = 0.8,
          .sample =
              [subject, name] {
                const BenchFile file("longhaul_bench_" + name);
                subject.write(file.path());
                PlainFile plain(file.path());
                Pair pair;
                pair.beside = batches_per_second([&] { return subject.plain(plain); });
                Pipeline pipeline(file.path(), subject.columns, subject.width);
                pipeline.next();  // it runs
                pair.ours = batches_per_second([&] { return pipeline.next(); });
                return pair;
              },
          .samples = 9};
}

}  // namespace

void add_pipeline_rows(std::vector<Row>& rows) {
  rows.push_back(row("csv", "128 lines of 17 numbers, two threads, compared with getline and from_chars in one",
                     {write_csv, plain_csv_batch, csv_columns, kColumns}));
  rows.push_back(row("tf_records", "128 images, two threads, compared with fread, checksums and protobuf in one",
                     {write_records, plain_records_batch, record_columns, kPixels}));
}

}  // namespace longhaul::bench
