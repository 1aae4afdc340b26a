#pragma once

#include <cstdint>
#include <future>
#include <memory>
#include <string>
#include <vector>

#include "longhaul/io.h"

namespace longhaul::examples {

// Where Debian's package dataset-fashion-mnist puts its files.
inline constexpr char kFashionMnistDirectory[] = "/usr/share/datasets/fashion-mnist";

// Labelled pictures in grey, as the files hold them: a byte for each pixel, row by row, picture after picture.
struct ImageDataset {
  int64_t count = 0;
  int64_t rows = 0, columns = 0;      // of one picture
  std::unique_ptr<uint8_t[]> pixels;  // count * rows * columns
  std::vector<uint8_t> labels;        // count

  int64_t pixels_per_image() const { return rows * columns; }
};

// What a program expects of the files; anything else is an error.
struct ImageFormat {
  int64_t rows = 28, columns = 28;
  int classes = 10;  // labels are 0 .. classes - 1
};

// Reads <part>-images-idx3-ubyte.gz and <part>-labels-idx1-ubyte.gz of a directory; `part` is "train" or "t10k". The
// format is that of http://yann.lecun.com/exdb/mnist: big-endian, a magic number with the number of dimensions, the
// sizes, the bytes. NotFoundError: a file is missing. DataLossError: it is truncated, damaged, not IDX or not of that
// format. Both name the file and what to do. No memory is taken for what a header claims beyond what a file of its size
// can hold.
ImageDataset load_images(const std::string& directory, const std::string& part, const ImageFormat& format = {},
                         FileSystem& files = FileSystem::real());

// The same in a thread of its own, so that a program builds its graph meanwhile. get() throws what load_images() would.
std::future<ImageDataset> load_images_in_background(const std::string& directory, const std::string& part,
                                                    ImageFormat format = {});

}  // namespace longhaul::examples
