// Uses the formats alone, without libtorch: writes a tensor's text and a message as records and reads them back.
#include <iostream>

#include "longhaul/base.h"
#include "longhaul/io.h"
#include "longhaul/proto/tensor_shape.pb.h"
#include "longhaul/tensor.h"

namespace lh = longhaul;

int main() {
  const std::string text = lh::Tensor::of<float>({1, 2, 3}).to_string();
  lh::proto::TensorShapeProto shape;
  shape.add_dim()->set_size(3);
  std::string records;
  lh::append_record(records, text);
  lh::append_record(records, shape.SerializeAsString());

  const std::string path = "consumer.records";
  lh::write_file_atomically(lh::FileSystem::real(), path, records);
  const auto file = lh::FileSystem::real().open(path);
  lh::FileSystem::real().remove(path);

  lh::RecordReader reader(*file, path);
  std::string_view payload;
  const bool same = reader.next(payload) == lh::RecordReader::Result::kRecord && payload == text;
  lh::log_info("read {} bytes", records.size());
  std::cout << text << (same ? " came back\n" : " is lost\n");
  return same ? 0 : 1;
}
