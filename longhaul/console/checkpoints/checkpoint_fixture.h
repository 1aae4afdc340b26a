#pragma once

#include <gmock/gmock.h>

#include <map>
#include <string>

#include "longhaul/checkpoint/bundle/bundle_writer.h"
#include "longhaul/checkpoint/files/checkpoint_files.h"
#include "longhaul/testing/temporary_directory.h"

namespace longhaul::console {

// A directory with checkpoints.
class CheckpointsTest : public ::testing::Test {
 protected:
  using Tensors = std::map<std::string, Tensor>;

  std::string path(const std::string& name) const { return directory_.file(name); }
  void write(const std::string& name, const Tensors& tensors) {
    BundleWriter writer(files_, path(name));
    for (const auto& [key, value] : tensors) writer.add(key, value);
    writer.finish();
  }
  void write_step(int64_t step, size_t floats = 100) {
    write("model.ckpt-" + std::to_string(step),
          {{"global_step", Tensor::scalar(step)}, {"w", Tensor::of<float>(std::vector<float>(floats, 0.5f))}});
  }
  // Flips a bit in the middle of a file.
  void damage(const std::string& name) {
    std::string bytes = read_file(files_, path(name));
    bytes[bytes.size() / 2] ^= 1;
    write_file_atomically(files_, path(name), bytes);
  }

  FileSystem& files_ = FileSystem::real();
  testing::TemporaryDirectory directory_;
};

}  // namespace longhaul::console
