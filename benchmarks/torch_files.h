#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace longhaul::bench {

// Tensors of floats as a user of plain libtorch saves and loads them: torch::save and torch::load of a
// std::vector<torch::Tensor>. No torch header here: it takes a minute to compile.
class TorchTensors {
 public:
  explicit TorchTensors(const std::vector<int64_t>& sizes);
  ~TorchTensors();

  void save(const std::string& path) const;  // into the kernel's cache
  void load(const std::string& path);        // drops those before, in memory that is new
  double sum() const;                        // so that a load that does nothing is noticed

 private:
  struct Tensors;
  std::unique_ptr<Tensors> tensors_;
};

}  // namespace longhaul::bench
