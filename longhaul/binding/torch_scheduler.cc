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
struct Factor {
  using Member = float Plateau::*;
  friend Member plateau_member(Factor);
};
struct Patience {
  using Member = int Plateau::*;
  friend Member plateau_member(Patience);
};
struct Threshold {
  using Member = double Plateau::*;
  friend Member plateau_member(Threshold);
};
struct Cooldown {
  using Member = int Plateau::*;
  friend Member plateau_member(Cooldown);
};
struct Eps {
  using Member = double Plateau::*;
  friend Member plateau_member(Eps);
};
struct Mode {
  using Member = Plateau::SchedulerMode Plateau::*;
  friend Member plateau_member(Mode);
};
struct IsRelative {
  using Member = Plateau::ThresholdMode Plateau::*;
  friend Member plateau_member(IsRelative);
};
struct LeastRates {
  using Member = std::vector<float> Plateau::*;
  friend Member plateau_member(LeastRates);
};
template struct PlateauAccess<Factor, &Plateau::factor>;
template struct PlateauAccess<Patience, &Plateau::patience>;
template struct PlateauAccess<Threshold, &Plateau::threshold>;
template struct PlateauAccess<Cooldown, &Plateau::cooldown>;
template struct PlateauAccess<Eps, &Plateau::eps>;
template struct PlateauAccess<Mode, &Plateau::mode>;
template struct PlateauAccess<IsRelative, &Plateau::threshold_mode>;
template struct PlateauAccess<LeastRates, &Plateau::min_lrs>;
template struct PlateauAccess<Best, &Plateau::best>;
template struct PlateauAccess<BadEpochs, &Plateau::num_bad_epochs>;
template struct PlateauAccess<CooldownCounter, &Plateau::cooldown_counter>;
template struct PlateauAccess<LastEpoch, &Plateau::last_epoch>;

template <typename Which>
SchedulerSetting setting(const char* name, const Plateau* scheduler) {
  return {name, [scheduler] { return static_cast<double>(scheduler->*plateau_member(Which())); }};
}

std::vector<SchedulerSetting> settings_of(const Plateau* scheduler) {
  std::vector<SchedulerSetting> settings{setting<Factor>("factor", scheduler),
                                         setting<Patience>("patience", scheduler),
                                         setting<Threshold>("threshold", scheduler),
                                         setting<Cooldown>("cooldown", scheduler),
                                         setting<Eps>("eps", scheduler),
                                         setting<Mode>("mode (0: min, 1: max)", scheduler),
                                         setting<IsRelative>("threshold_mode (0: rel, 1: abs)", scheduler)};
  const size_t groups = (scheduler->*plateau_member(LeastRates())).size();
  for (size_t i = 0; i < groups; ++i) {
    settings.push_back({"min_lr " + std::to_string(i),
                        [scheduler, i] { return double{(scheduler->*plateau_member(LeastRates())).at(i)}; }});
  }
  return settings;
}

}  // namespace

TorchScheduler::TorchScheduler(Plateau* scheduler) : settings_(settings_of(scheduler)) {
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
