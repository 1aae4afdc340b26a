#include "longhaul/binding/torch_scheduler.h"

#include "longhaul/base/error.h"

#if __has_include(<torch/optim/schedulers/reduce_on_plateau_scheduler.h>)
#include <torch/optim/schedulers/reduce_on_plateau_scheduler.h>

namespace longhaul {
namespace {

using Plateau = torch::optim::ReduceLROnPlateauScheduler;

// Gives access to a private member: an explicit instantiation may name it.
template <typename Tag, typename Tag::Member member>
struct PlateauAccess {
  friend typename Tag::Member plateau_member(Tag) { return member; }
};
struct Best {
  using Member = float Plateau::*;
  friend Member plateau_member(Best);
};
struct BadEpochs {
  using Member = int Plateau::*;
  friend Member plateau_member(BadEpochs);
};
struct CooldownCounter {
  using Member = int Plateau::*;
  friend Member plateau_member(CooldownCounter);
};
struct LastEpoch {
  using Member = int Plateau::*;
  friend Member plateau_member(LastEpoch);
};
template struct PlateauAccess<Best, &Plateau::best>;
template struct PlateauAccess<BadEpochs, &Plateau::num_bad_epochs>;
template struct PlateauAccess<CooldownCounter, &Plateau::cooldown_counter>;
template struct PlateauAccess<LastEpoch, &Plateau::last_epoch>;

}  // namespace

TorchScheduler::TorchScheduler(Plateau* scheduler) {
  keep_ = [scheduler](KeptValues& kept, const std::string& name) {
    kept.keep(name + "/best", scheduler->*plateau_member(Best()))
        .keep(name + "/num_bad_epochs", scheduler->*plateau_member(BadEpochs()))
        .keep(name + "/cooldown_counter", scheduler->*plateau_member(CooldownCounter()))
        .keep(name + "/last_epoch", scheduler->*plateau_member(LastEpoch()));
  };
}

}  // namespace longhaul
#else
namespace longhaul {

TorchScheduler::TorchScheduler(torch::optim::ReduceLROnPlateauScheduler* /*scheduler*/) {
  throw UnimplementedError("this libtorch has no ReduceLROnPlateauScheduler");
}

}  // namespace longhaul
#endif
