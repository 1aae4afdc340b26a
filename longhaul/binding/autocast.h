#pragma once

namespace longhaul {

// While it exists, this thread runs operations of the CPU in bfloat16 where PyTorch's autocast does: matrix products
// and convolutions, while losses and normalisations stay in float. Put the forward pass under it, and the loss;
// backward() follows by itself. The parameters stay float, and so do checkpoints.
//
//   torch::Tensor loss;
//   {
//     const lh::Autocast autocast;
//     loss = loss_of(net, batch(step.number));
//   }
//   loss.backward();
//
// The end of the outermost one clears libtorch's cache of casted weights, which would otherwise stay as they are while
// the weights change. A bound program's step begins without such a cache, whoever enabled autocast.
class [[nodiscard]] Autocast {
 public:
  Autocast();
  ~Autocast();
  Autocast(const Autocast&) = delete;
  Autocast& operator=(const Autocast&) = delete;

 private:
  const bool was_on_;
};

// Forgets the casted weights of this thread.
void clear_autocast_cache();

}  // namespace longhaul
