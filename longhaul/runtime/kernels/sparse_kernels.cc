#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>
#include <vector>

#include "longhaul/runtime/kernels/kernel.h"
#include "longhaul/runtime/kernels/optimizer_rules.h"
#include "longhaul/runtime/kernels/optimizer_update.h"

// Gradients of some rows: their sum as a tensor, and the updates of these rows alone.
namespace longhaul {
namespace {

using namespace optimizer_rules;

std::vector<int64_t> integers(const at::Tensor& tensor) {
  const at::Tensor wide = tensor.to(at::kLong).contiguous();
  return {wide.data_ptr<int64_t>(), wide.data_ptr<int64_t>() + wide.numel()};
}

// In the order in which the rows come, so that the sums have the same bytes each time.
template <typename T>
void add_rows(const at::Tensor& rows, const std::vector<int64_t>& places, at::Tensor& sums) {
  const int64_t width = rows.size(0) == 0 ? 0 : rows.numel() / rows.size(0);
  const T* row = rows.data_ptr<T>();
  for (const int64_t place : places) {
    T* const sum = sums.data_ptr<T>() + std::max<int64_t>(place, 0) * width;
    for (int64_t i = 0; place >= 0 && i < width; ++i) sum[i] += row[i];
    row += width;
  }
}

// `count` rows: each is the sum of those whose place it is; a negative place is none. Of 16-bit numbers the sums are
// float.
at::Tensor sum_rows(const at::Tensor& values, const std::vector<int64_t>& places, int64_t count) {
  const bool is_double = values.scalar_type() == at::kDouble;
  const at::Tensor rows = values.to(is_double ? at::kDouble : at::kFloat).contiguous();
  std::vector<int64_t> sizes = values.sizes().vec();
  sizes[0] = count;
  at::Tensor sums = at::zeros(sizes, rows.options());
  if (is_double) {
    add_rows<double>(rows, places, sums);
  } else {
    add_rows<float>(rows, places, sums);
  }
  return sums;
}

void unsorted_segment_sum(KernelContext& context) {
  const at::Tensor &values = context.tensor(0), &numbers = context.tensor(1);
  if (values.dim() == 0 || numbers.dim() != 1 || values.size(0) != numbers.size(0) || context.tensor(2).numel() != 1) {
    context.refuse(fmt::format("the shapes do not match: data is {}, segment_ids is {}, num_segments is {}",
                               shape_of(values).to_string(), shape_of(numbers).to_string(),
                               shape_of(context.tensor(2)).to_string()));
  }
  const std::vector<int64_t> places = integers(numbers);
  const auto count = context.tensor(2).item<int64_t>();
  const bool* strict = context.op().find_attr<bool>("_refuse_negative");
  const bool refuses_negative = strict != nullptr && *strict;
  for (const int64_t place : places) {
    if (place >= count || (place < 0 && refuses_negative))
      context.refuse(fmt::format("segment {} is out of range: num_segments is {}", place, count));
  }
  if (count < 0) context.refuse(fmt::format("num_segments must not be negative, but is {}", count));
  context.set_output(0, Value(sum_rows(values, places, count).to(values.scalar_type())));
}

// Each row that a gradient is for, once. They are added on the host: in the order in which they come.
struct RowSums {
  at::Tensor rows;    // int64
  at::Tensor values;  // of each, what the gradient has for it, added
};

RowSums add_equal_rows(const at::Tensor& indices, const at::Tensor& values, c10::Device to) {
  std::unordered_map<int64_t, int64_t> place_of;
  std::vector<int64_t> rows, places;
  for (const int64_t row : integers(indices)) {
    const auto [it, fresh] = place_of.try_emplace(row, static_cast<int64_t>(rows.size()));
    if (fresh) rows.push_back(row);
    places.push_back(it->second);
  }
  const auto count = static_cast<int64_t>(rows.size());
  const at::Tensor unique = at::empty({count}, at::TensorOptions(at::kLong));
  std::copy(rows.begin(), rows.end(), unique.data_ptr<int64_t>());
  return {unique.to(to), sum_rows(values, places, count).to(to)};
}

// Everything that could be wrong: kValues and kIndices are the numbers of the inputs that have the gradient's rows.
template <typename Rule, int kValues, int kIndices>
void check_rows(const KernelContext& context) {
  optimizer_update::check_slots(context);
  const std::string& name = context.variable(0).name();
  const at::Tensor variable = context.variable(0).read().tensor;
  const at::Tensor &values = context.tensor(kValues), &indices = context.tensor(kIndices);
  std::vector<int64_t> wanted = variable.sizes().vec();
  if (!wanted.empty()) wanted[0] = indices.numel();
  if (wanted.empty() || indices.dim() != 1 || values.sizes() != at::IntArrayRef(wanted) ||
      values.scalar_type() != variable.scalar_type()) {
    context.refuse(fmt::format("{} is {}, but its gradient has rows {} and indices {}", name,
                               shape_of(variable).to_string(), shape_of(values).to_string(),
                               shape_of(indices).to_string()));
  }
  optimizer_update::check_numbers<Rule>(context, Numbers(context, std::min(kValues, kIndices), 2));
  for (const int64_t row : integers(indices)) {
    if (row < 0 || row >= variable.size(0))
      context.refuse(fmt::format("{} has {} rows, but its gradient is for row {}", name, variable.size(0), row));
  }
}

// Takes the rows out of the variables, updates them, and puts them back.
template <typename Rule, int kValues, int kIndices>
void apply_rows(KernelContext& context) {
  const Rule rule(Numbers(context, std::min(kValues, kIndices), 2));
  const c10::Device device = context.variable(0).read().tensor.device();
  const RowSums sums = add_equal_rows(context.tensor(kIndices), context.tensor(kValues), device);
  optimizer_update::update_together<Rule::kVariables>(context, [&](const auto& pairs) {
    std::array<at::Tensor, Rule::kVariables> taken;
    optimizer_update::Pairs<Rule> taken_pairs;
    for (size_t i = 0; i < pairs.size(); ++i) {
      taken[i] = pairs[i].in->index_select(0, sums.rows);
      taken_pairs[i] = {&taken[i], &taken[i]};
      if (!pairs[i].out->is_same(*pairs[i].in)) pairs[i].out->copy_(*pairs[i].in);
    }
    if (sums.rows.numel() == 0) return;
    optimizer_update::update(rule, taken_pairs, sums.values);
    for (size_t i = 0; i < pairs.size(); ++i) pairs[i].out->index_copy_(0, sums.rows, taken[i]);
  });
}

template <typename Rule, int kValues, int kIndices = kValues + 1>
constexpr Kernel kernel_of() {
  return {apply_rows<Rule, kValues, kIndices>, check_rows<Rule, kValues, kIndices>, KernelPlace::kOfVariable};
}

}  // namespace

KernelTable sparse_kernels() {
  return {
      {"UnsortedSegmentSum", {unsorted_segment_sum}},
      {"ScatterSub", kernel_of<Subtraction, 2, 1>()},
      {"SparseApplyMomentum", kernel_of<Momentum, 3>()},
      {"SparseApplyAdagrad", kernel_of<Adagrad, 3>()},
      {"SparseApplyRMSProp", kernel_of<RMSProp, 7>()},
      {"SparseApplyCenteredRMSProp", kernel_of<CenteredRMSProp, 8>()},
      {"SparseApplyAdadelta", kernel_of<Adadelta, 6>()},
      {"SparseApplyFtrl", kernel_of<Ftrl, 3>()},
      {"SparseApplyFtrlV2", kernel_of<Ftrl, 3>()},
  };
}

}  // namespace longhaul
