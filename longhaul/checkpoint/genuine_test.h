#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "longhaul/io/files/file.h"
#include "longhaul/testing/temporary_directory.h"

// Small checkpoints that TensorFlow wrote, and other files, for the tests of this layer.
namespace longhaul::testing {

std::string from_hex(std::string_view hex);

struct GenuineBundle {
  std::string index;
  std::string data;
};

// saved_model_counter of tensorflow/serving @ 9d981c5c2708 (Apache-2.0): counter = 0.0f.
GenuineBundle counter_bundle();

// saved_model_half_plus_two_cpu of the same: a, a2, b, c and c2 in an index block compressed by Snappy.
GenuineBundle snappy_bundle();

// Written by TensorFlow's BundleWriter: no tensors at all.
GenuineBundle empty_bundle();

// The files of a bundle, in memory: what is opened as "x.index" and "x.data-00000-of-00001". It cannot be written to.
std::unique_ptr<FileSystem> files_in_memory(const GenuineBundle& bundle);
std::unique_ptr<ReadableFile> file_in_memory(std::string_view contents);

// A table with one data block, whose contents need not make sense. Its checksums are right.
std::string table_with_block(const std::string& contents, char type);

// On the disk.
void write_bundle(const GenuineBundle& bundle, const std::string& prefix);

}  // namespace longhaul::testing
