#include "longhaul/binding/watches/generator_watch.h"

#include <ATen/ops/equal.h>

#include <map>

#include "longhaul/base/log.h"

namespace longhaul {
namespace {

bool same_engine(const at::mt19937& a, const at::mt19937& b) {
  const at::mt19937_data_pod x = a.data(), y = b.data();
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

bool GeneratorWatch::Moment::operator==(const Moment& other) const {
  if (engine.has_value() != other.engine.has_value()) return false;
  if (!engine) return seed == other.seed && at::equal(state, other.state);
  return next_float == other.next_float && next_double == other.next_double && same_engine(*engine, *other.engine);
}

// An engine makes its numbers as soon as the first one is drawn, and is never at their beginning again.
bool GeneratorWatch::Moment::is_just_seeded() const {
  if (!engine) return false;
  const at::mt19937_data_pod data = engine->data();
  return data.left_ == 1 && data.next_ == 0;
}

at::CPUGeneratorImpl* GeneratorWatch::on_cpu() const {
  return dynamic_cast<at::CPUGeneratorImpl*>(generator_.unsafeGetGeneratorImpl());
}

GeneratorWatch::Moment GeneratorWatch::moment() {
  const std::lock_guard<std::mutex> lock(generator_.mutex());
  Moment moment{.seed = generator_.current_seed()};
  if (at::CPUGeneratorImpl* cpu = on_cpu()) {
    moment.engine = cpu->engine();
    moment.next_float = cpu->next_float_normal_sample();
    moment.next_double = cpu->next_double_normal_sample();
  } else {
    moment.state = generator_.get_state();
  }
  return moment;
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

bool GeneratorWatch::judge(const Moment& found, int64_t number) {
  const bool restored = phase_ == Phase::kRestored;
  if (restored && number == 0) return false;  // no step had been made: the program begins as it always does
  const bool seeded_again = restored && found.is_just_seeded() && found.seed == left_.seed && !(found == left_);
  if (seeded_again || found == left_) {
    ++same_;
  } else if (found.is_just_seeded() || found.seed != left_.seed) {
    ++seeded_;
  } else {
    ++drawn_;
  }
  return seeded_again;
}

void GeneratorWatch::begin_step(int64_t number) {
  std::unique_lock<std::mutex> lock(mutex_);
  found_ = moment();
  if (inside_++ > 0) phase_ = Phase::kFresh;
  if (phase_ == Phase::kFresh || !judge(found_, number)) return;
  put_back(left_);
  found_ = left_;
  lock.unlock();
  log_info("a generator was seeded after a restore with the seed that it already had; the restored state is used");
}

void GeneratorWatch::end_step() {
  const std::lock_guard<std::mutex> lock(mutex_);
  left_ = moment();
  steps_draw_ |= !(left_ == found_);
  phase_ = --inside_ == 0 ? Phase::kLeft : Phase::kFresh;
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
