#include "longhaul/data/batch_order.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "longhaul/base/error.h"

namespace longhaul {
namespace {

const BatchOrderOptions& checked(const BatchOrderOptions& options) {
  const auto refuse = [](const std::string& why) { throw InvalidArgumentError("batch order: " + why); };
  if (options.num_examples <= 0) {
    refuse(fmt::format("the dataset has {} examples; it must have at least one", options.num_examples));
  }
  if (options.batch_size <= 0) refuse(fmt::format("batch_size is {}; it must be at least 1", options.batch_size));
  if (options.num_epochs < 0)
    refuse(fmt::format("num_epochs is {}; it must be at least 0 (0: no end)", options.num_epochs));
  if (options.num_replicas <= 0) refuse(fmt::format("num_replicas is {}; it must be at least 1", options.num_replicas));
  if (options.replica < 0 || options.replica >= options.num_replicas) {
    refuse(fmt::format("replica is {}; with {} replicas it must be 0 to {}", options.replica, options.num_replicas,
                       options.num_replicas - 1));
  }
  return options;
}

int64_t product(int64_t a, int64_t b, const char* what) {
  int64_t result;
  if (__builtin_mul_overflow(a, b, &result)) {
    throw InvalidArgumentError(fmt::format("batch order: {} ({} * {}) is too large", what, a, b));
  }
  return result;
}

}  // namespace

BatchOrder::BatchOrder(const BatchOrderOptions& options)
    : options_(checked(options)),
      stride_(product(options.batch_size, options.num_replicas, "batch_size * num_replicas")),
      end_(options.num_epochs == 0 ? std::numeric_limits<int64_t>::max()
                                   : product(options.num_epochs, options.num_examples, "num_epochs * num_examples")),
      order_(options.num_examples, static_cast<uint64_t>(options.seed)) {}

int64_t BatchOrder::size_at(int64_t position) const {
  const int64_t left = end_ - position;
  if (options_.drop_remainder) return left < stride_ ? 0 : options_.batch_size;
  return std::clamp<int64_t>(left - options_.replica * options_.batch_size, 0, options_.batch_size);
}

void BatchOrder::check(int64_t position, std::string_view who) const {
  if (position < 0) throw InvalidArgumentError(fmt::format("{}: position {}; it must not be negative", who, position));
  if (size_at(position) == 0) {
    throw OutOfRangeError(
        fmt::format("{}: the {} epochs of {} examples have ended", who, options_.num_epochs, options_.num_examples));
  }
}

void BatchOrder::fill(int64_t position, std::span<int64_t> examples) const {
  int64_t at = first_of(position);
  for (int64_t& example : examples) {
    example = options_.shuffle ? order_.at(at) : at % options_.num_examples;
    ++at;
  }
}

}  // namespace longhaul
