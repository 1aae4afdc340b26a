#include "longhaul/binding/watches/generator_watch.h"

#include <ATen/ops/equal.h>

#include <algorithm>
#include <map>

#include "longhaul/base/log.h"
#include "longhaul/binding/watches/private_member.h"

namespace longhaul {

// The functions for these return copies, of 2.5 KB each: too much for each step.
struct EngineOfGenerator {
  using Member = at::mt19937 at::CPUGeneratorImpl::*;
  friend Member member_of(EngineOfGenerator);
};
struct DataOfEngine {
  using Member = at::mt19937_data_pod at::mt19937::*;
  friend Member member_of(DataOfEngine);
};
template struct PrivateMember<EngineOfGenerator, &at::CPUGeneratorImpl::engine_>;
template struct PrivateMember<DataOfEngine, &at::mt19937::data_>;

namespace {

const at::mt19937_data_pod& data_of(const at::mt19937& engine) {
  return engine.*member_of(DataOfEngine());
}
const at::mt19937& engine_of(const at::CPUGeneratorImpl& generator) {
  return generator.*member_of(EngineOfGenerator());
}

bool same_engine(const at::mt19937& a, const at::mt19937& b) {
  const at::mt19937_data_pod &x = data_of(a), &y = data_of(b);
  return x.left_ == y.left_ && x.next_ == y.next_ && x.seed_ == y.seed_ && x.state_ == y.state_;
}

// Of all bindings. Graphs may go at the very end of the program, so this stays.
struct AllWatches {
  std::mutex mutex;
  std::map<const c10::GeneratorImpl*, std::weak_ptr<GeneratorWatch>> watches;  // guarded by the mutex

  static AllWatches& get() {
    static auto* all = new AllWatches;
    return *all;
  }
};

}  // namespace

std::shared_ptr<GeneratorWatch> GeneratorWatch::of(const at::Generator& generator) {
  AllWatches& all = AllWatches::get();
  const std::lock_guard<std::mutex> lock(all.mutex);
  std::erase_if(all.watches, [](const auto& watch) { return watch.second.expired(); });
  std::weak_ptr<GeneratorWatch>& known = all.watches[generator.unsafeGetGeneratorImpl()];
  std::shared_ptr<GeneratorWatch> watch = known.lock();
  if (!watch) {
    watch = std::make_shared<GeneratorWatch>(generator);
    known = watch;
  }
  return watch;
}

at::CPUGeneratorImpl* GeneratorWatch::on_cpu() const {
  return dynamic_cast<at::CPUGeneratorImpl*>(generator_.unsafeGetGeneratorImpl());
}

GeneratorWatch::Moment GeneratorWatch::moment() {
  const std::lock_guard<std::mutex> lock(generator_.mutex());
  Moment moment{.seed = generator_.current_seed()};
  if (at::CPUGeneratorImpl* cpu = on_cpu()) {
    moment.engine = engine_of(*cpu);
    moment.next_float = cpu->next_float_normal_sample();
    moment.next_double = cpu->next_double_normal_sample();
  } else {
    moment.state = generator_.get_state();
  }
  return moment;
}

bool GeneratorWatch::is_at(const Moment& moment) {
  const std::lock_guard<std::mutex> lock(generator_.mutex());
  at::CPUGeneratorImpl* const cpu = on_cpu();
  if (moment.engine.has_value() != (cpu != nullptr)) return false;
  if (cpu == nullptr) {
    return moment.seed == generator_.current_seed() && moment.state.defined() &&
           at::equal(moment.state, generator_.get_state());
  }
  return moment.next_float == cpu->next_float_normal_sample() &&
         moment.next_double == cpu->next_double_normal_sample() && same_engine(*moment.engine, engine_of(*cpu));
}

// On the CPU an engine makes its numbers as soon as the first one is drawn, and is never at their beginning again.
bool GeneratorWatch::is_just_seeded(const Moment& moment) {
  if (moment.engine) {
    const at::mt19937_data_pod& data = data_of(*moment.engine);
    return data.left_ == 1 && data.next_ == 0;
  }
  const std::lock_guard<std::mutex> lock(generator_.mutex());
  at::Generator seeded = generator_.clone();
  seeded.set_current_seed(moment.seed);
  return at::equal(moment.state, seeded.get_state());
}

void GeneratorWatch::put_back(const Moment& moment) {
  const std::lock_guard<std::mutex> lock(generator_.mutex());
  at::CPUGeneratorImpl* cpu = on_cpu();
  if (cpu == nullptr) return generator_.set_state(moment.state.clone());
  cpu->set_engine(*moment.engine);
  cpu->set_next_float_normal_sample(moment.next_float);
  cpu->set_next_double_normal_sample(moment.next_double);
}

at::Tensor GeneratorWatch::state() {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (phase_ != Phase::kFresh && inside_ == 0) {
    if (!left_.engine) return left_.state.clone();
    GeneratorWatch copy(at::make_generator<at::CPUGeneratorImpl>(left_.seed));
    copy.put_back(left_);
    return copy.generator_.get_state();
  }
  const std::lock_guard<std::mutex> generator_lock(generator_.mutex());
  return generator_.get_state();
}

void GeneratorWatch::restore(const at::Tensor& state) {
  const std::lock_guard<std::mutex> lock(mutex_);
  {
    const std::lock_guard<std::mutex> generator_lock(generator_.mutex());
    generator_.set_state(state.clone());
  }
  left_ = moment();
  phase_ = Phase::kRestored;
  same_ = seeded_ = drawn_ = 0;
}

void GeneratorWatch::forget() {
  const std::lock_guard<std::mutex> lock(mutex_);
  phase_ = Phase::kFresh;
  same_ = seeded_ = drawn_ = 0;
}

bool GeneratorWatch::judge(int64_t number) {
  const bool restored = phase_ == Phase::kRestored;
  if (restored && number == 0) return false;  // no step had been made: the program begins as it always does
  const bool seeded_again = restored && found_ && is_just_seeded(*found_) && found_->seed == left_.seed;
  if (seeded_again || !found_) {
    ++same_;
  } else if (is_just_seeded(*found_) || found_->seed != left_.seed) {
    ++seeded_;
  } else {
    ++drawn_;
  }
  return seeded_again;
}

void GeneratorWatch::begin_step(int64_t number) {
  std::unique_lock<std::mutex> lock(mutex_);
  if (inside_++ > 0) phase_ = Phase::kFresh;
  found_.reset();
  if (phase_ == Phase::kFresh || !is_at(left_)) found_ = moment();
  if (phase_ == Phase::kFresh || !judge(number)) return;
  put_back(left_);
  found_.reset();
  lock.unlock();
  log_info("a generator was seeded after a restore with the seed that it already had; the restored state is used");
}

void GeneratorWatch::end_step() {
  const std::lock_guard<std::mutex> lock(mutex_);
  const bool has_drawn = !is_at(found_ ? *found_ : left_);
  steps_draw_ |= has_drawn;
  if (has_drawn || found_) left_ = moment();
  phase_ = --inside_ == 0 ? Phase::kLeft : Phase::kFresh;
}

bool GeneratorWatch::has_drawn() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return !is_at(found_ ? *found_ : left_);
}

void GeneratorWatch::abandon_step() {
  const std::lock_guard<std::mutex> lock(mutex_);
  --inside_;
  phase_ = Phase::kFresh;
}

bool GeneratorWatch::drawn_between_some_steps() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return drawn_ > 0 && (same_ > 0 || seeded_ > 0);
}

bool GeneratorWatch::seeded_between_some_steps() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return seeded_ > 0 && same_ > 0 && steps_draw_;
}

}  // namespace longhaul
