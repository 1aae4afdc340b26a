#pragma once

#include <string>
#include <utility>

#include "longhaul/io/files/file.h"
#include "longhaul/tensor/tensor.h"

namespace longhaul {

// A text file with one entry of a table in each line.
struct VocabularyFormat {
  static constexpr int64_t kWholeLine = -2;   // a string
  static constexpr int64_t kLineNumber = -1;  // an int64, from 0 on
  int64_t key_index = kWholeLine;             // one of the above, or the number of a column, from 0 on
  int64_t value_index = kLineNumber;
  int64_t vocab_size = -1;  // how many lines to read; -1: all
  char delimiter = '\t';    // of columns
};

// 1-D keys and values, an element for each line. The file may end with or without a newline; a carriage return before a
// newline is ignored.
// NotFoundError: no such file. InvalidArgumentError "FILE:LINE: ...": an empty line, too few columns, text that is not
// a number of the dtype; "Invalid vocab_size in FILE: expected N but got M": fewer lines than vocab_size.
std::pair<Tensor, Tensor> read_vocabulary(FileSystem& files, const std::string& path, DType keys, DType values,
                                          const VocabularyFormat& format);

}  // namespace longhaul
