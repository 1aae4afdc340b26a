#include "longhaul/binding/overlap/write_watch.h"

// This source is compiled with NDEBUG, as Debian's libtorch and PyTorch's are: without it RecordFunction::inputs()
// expects a mark that only a libtorch without NDEBUG makes.
#include <ATen/core/function_schema.h>
#include <ATen/ops/zeros.h>
#include <ATen/record_function.h>

#include <algorithm>
#include <unordered_map>
#include <utility>

namespace longhaul {
namespace {

// The places of the arguments that an operator writes to.
using Places = std::vector<size_t>;

std::optional<Places> places_of(const at::RecordFunction& operation) {
  const auto schema = operation.operator_schema();
  if (!schema) return std::nullopt;  // no operator, but a range that profilers show
  Places places;
  for (size_t i = 0; i < schema->arguments().size(); ++i) {
    const c10::AliasInfo* alias = schema->arguments()[i].alias_info();
    if (alias != nullptr && alias->isWrite()) places.push_back(i);
  }
  return places;
}

// libtorch makes a copy of the schema for whoever asks, so each thread asks once. The name is the schema's own text, in
// another place for each overload.
const Places& written_by(const at::RecordFunction& operation) {
  struct Known {
    std::string name;
    size_t arguments = 0;
    Places places;
  };
  static const Places none;
  thread_local std::unordered_map<const char*, Known> known;
  const char* const name = operation.name();
  const auto found = known.find(name);
  const size_t arguments = operation.inputs().size();
  if (found != known.end() && found->second.arguments == arguments && found->second.name == name) {
    return found->second.places;
  }
  std::optional<Places> places = places_of(operation);
  return places ? (known[name] = {name, arguments, std::move(*places)}).places : none;
}

// Where this thread writes to see whether that is announced.
struct Probe {
  const void* place = nullptr;
  bool seen = false;
};
thread_local Probe probe_of_this_thread;

}  // namespace

WriteWatch& WriteWatch::of_process() {
  static auto* watch = new WriteWatch;  // threads may still run operators at the end of the process
  return *watch;
}

bool WriteWatch::hears_this_thread() {
  return at::isRecordFunctionEnabled();
}

void WriteWatch::switch_on() {
  if (callback_) return at::reenableCallback(*callback_);
  const auto start = [](const at::RecordFunction& operation) -> std::unique_ptr<at::ObserverContext> {
    of_process().before_operator(operation);
    return nullptr;
  };
  callback_ =
      at::addGlobalCallback(at::RecordFunctionCallback(start).needsInputs(true).scopes({at::RecordScope::FUNCTION}));
}

void WriteWatch::add(std::shared_ptr<PendingCopy> copy) {
  const std::unique_lock<std::shared_mutex> lock(mutex_);
  copies_.push_back(std::move(copy));
  if (copies_.size() == 1) switch_on();
}

void WriteWatch::remove(const std::shared_ptr<PendingCopy>& copy) {
  const std::unique_lock<std::shared_mutex> lock(mutex_);
  if (std::erase(copies_, copy) > 0 && copies_.empty() && callback_) at::disableCallback(*callback_);
}

// libtorch would log what it throws, and run the operator all the same.
void WriteWatch::before_operator(const at::RecordFunction& operation) noexcept {
  try {
    for (const size_t place : written_by(operation)) {
      const c10::IValue& argument = operation.inputs()[place];
      if (argument.isTensor()) {
        before_write(argument.toTensor());
      } else if (argument.isList()) {
        for (const c10::IValue& one : argument.toListRef()) {
          if (one.isTensor()) before_write(one.toTensor());
        }
      }
    }
  } catch (const std::exception& error) {
    spoil_all(error.what());
  } catch (...) {
    spoil_all("an unknown error");
  }
}

// All of its storage, of which it may be a part.
void WriteWatch::before_write(const at::Tensor& tensor) {
  if (!tensor.defined() || !tensor.has_storage() || tensor.storage().nbytes() == 0) return;
  const c10::Storage& storage = tensor.storage();
  const auto* const begin = static_cast<const std::byte*>(static_cast<const void*>(storage.data()));
  const std::byte* const end = begin + storage.nbytes();
  if (begin == probe_of_this_thread.place) probe_of_this_thread.seen = true;
  std::vector<std::shared_ptr<PendingCopy>> concerned;
  {
    const std::shared_lock<std::shared_mutex> lock(mutex_);
    for (const auto& copy : copies_) {
      if (copy->covers(begin, end)) concerned.push_back(copy);
    }
  }
  for (const auto& copy : concerned) copy->before_write(begin, end);
}

void WriteWatch::spoil_all(const char* why) noexcept try {
  const std::shared_lock<std::shared_mutex> lock(mutex_);
  for (const auto& copy : copies_) copy->spoil(std::string("an operator's writes could not be followed: ") + why);
} catch (...) {
  std::terminate();  // not even these few bytes are left
}

bool WriteWatch::works() {
  const at::RecordFunctionGuard heard(/*is_enabled=*/true);
  const at::Tensor probe = at::zeros({1});
  probe_of_this_thread = {.place = probe.data_ptr()};
  probe.add_(1);
  if (std::exchange(probe_of_this_thread, {}).seen) return true;
  const std::unique_lock<std::shared_mutex> lock(mutex_);
  callback_.reset();
  return false;
}

}  // namespace longhaul
