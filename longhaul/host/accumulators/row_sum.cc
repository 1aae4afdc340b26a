#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <unordered_set>

#include "longhaul/host/accumulators/gradient_sum.h"
#include "longhaul/host/accumulators/widened.h"

namespace longhaul {
namespace {

[[noreturn]] void refuse_rows(const std::string& why) {
  throw InvalidArgumentError(why);
}

int64_t width_of(const Tensor& values) {
  int64_t width = 1;
  for (int i = 1; i < values.shape().rank(); ++i) width *= values.shape().dim(i);
  return width;
}

// One gradient of some rows, by its parts.
struct Rows {
  explicit Rows(std::span<const Tensor> gradient) : indices(gradient[0]), values(gradient[1]), shape(gradient[2]) {}
  const Tensor &indices, &values, &shape;
};

// The first sizes[1...] must be those of `wanted`, where these are known.
void check_row_sizes(const Shape& wanted, const Shape& values) {
  for (int i = 1; i < wanted.rank(); ++i) {
    if (wanted.dim(i) == -1 || wanted.dim(i) == values.dim(i)) continue;
    refuse_rows(
        fmt::format("Shape mismatch: expected values dim {} to be {}, got {}", i, wanted.dim(i), values.dim(i)));
  }
}

void check_form(const Rows& rows, DType dtype) {
  const Shape &indices = rows.indices.shape(), &values = rows.values.shape();
  if (indices.rank() != 1)
    refuse_rows(fmt::format("Input indices should be vector but received shape: {}", indices.to_string()));
  if (values.rank() == 0) refuse_rows("Values cannot be 0-dimensional.");
  if (rows.values.dtype() != dtype) {
    refuse_rows(fmt::format("the gradient is {}, but the accumulator is for {}", dtype_name(rows.values.dtype()),
                            dtype_name(dtype)));
  }
  if (values.dim(0) != indices.dim(0)) {
    refuse_rows(
        fmt::format("Expected {} non-empty input values, got {}: one for each index", indices.dim(0), values.dim(0)));
  }
}

// Against the accumulator's shape, as far as it is known.
void check_table(const Rows& rows, const Shape& table) {
  const auto sizes = rows.shape.flat<int64_t>();
  const auto given = static_cast<int64_t>(sizes.size());
  if (given != 0 && table.rank() > given)
    refuse_rows(fmt::format("Shape mismatch: expected shape rank at least {}, got {}", table.rank(), given));
  for (int i = 0; given != 0 && i < table.rank(); ++i) {
    const int64_t size = sizes[static_cast<size_t>(i)];
    if (table.dim(i) == -1 || table.dim(i) == size) continue;
    refuse_rows(fmt::format("Shape mismatch: expected shape dim {} to be {}, got {}", i, table.dim(i), size));
  }
}

void check_indices(const Tensor& indices, int64_t num_rows) {
  const auto all = indices.flat<int64_t>();
  for (size_t i = 0; i < all.size(); ++i) {
    if (all[i] < 0) refuse_rows(fmt::format("index of slice {} is negative: {}", i, all[i]));
    if (num_rows < 0 || all[i] < num_rows) continue;
    refuse_rows(fmt::format("Shape mismatch: index of slice {} exceeded limits of shape; index is {} exceeded {}", i,
                            all[i], num_rows));
  }
}

// Sums by row, in place of a table that has all rows.
class RowSum final : public GradientSum {
 public:
  explicit RowSum(GradientSpec spec) : spec_(std::move(spec)) {}

  void add(std::span<const Tensor> gradient) override {
    const Rows rows(gradient);
    check(rows);
    const auto all = rows.indices.flat<int64_t>();
    const std::unordered_set<int64_t> distinct(all.begin(), all.end());
    with_type_of(spec_.dtype, [&](auto* type) {
      make_places(type, rows);
      add_rows(type, rows);
    });
    for (const int64_t row : distinct) ++places_.at(row).gradients;  // once, also if the gradient has it twice
    row_shape_ = rows.values.shape();
    ++count_;
  }

  std::vector<Tensor> take() override {
    const auto rows = static_cast<int64_t>(places_.size());
    std::vector<int64_t> sizes = row_shape_.dims();
    sizes[0] = rows;
    Tensor indices(kInt64, Shape{rows}), values(spec_.dtype, Shape(sizes));
    with_type_of(spec_.dtype, [&](auto* type) { reduce(type, indices, values); });
    sizes[0] = -1;
    clear();
    return {std::move(indices), std::move(values), Tensor::of(std::move(sizes))};
  }

  void clear() override {
    places_.clear();
    floats_.clear();
    doubles_.clear();
    count_ = 0;
  }

 private:
  struct Place {
    int64_t number = 0;  // of the row, in the order of arrival
    int64_t gradients = 0;
  };

  void check(const Rows& rows) const {
    check_form(rows, spec_.dtype);
    const Shape &values = rows.values.shape(), &table = spec_.shape;
    const bool known = table.has_rank() && table.rank() > 0;
    if (known) check_table(rows, table);
    check_indices(rows.indices, known ? table.dim(0) : -1);
    if (count_ > 0) {
      if (row_shape_.rank() != values.rank()) {
        refuse_rows(fmt::format("Shape mismatch: expected values rank {}, got {}", row_shape_.rank(), values.rank()));
      }
      return check_row_sizes(row_shape_, values);
    }
    if (!known) return;
    if (table.rank() > values.rank()) {
      refuse_rows(fmt::format("Shape mismatch: expected values rank at least {}, got {}", table.rank(), values.rank()));
    }
    check_row_sizes(table, values);
  }

  // A place for each row. If memory runs out, the new ones are removed.
  template <typename T>
  void make_places(const T*, const Rows& rows) {
    const int64_t before = next_place();
    try {
      for (const int64_t row : rows.indices.flat<int64_t>()) places_.try_emplace(row, Place{next_place(), 0});
      sums<T>().resize(static_cast<size_t>(next_place() * width_of(rows.values)));
    } catch (...) {
      std::erase_if(places_, [&](const auto& place) { return place.second.number >= before; });
      throw;
    }
  }
  int64_t next_place() const { return static_cast<int64_t>(places_.size()); }

  template <typename T>
  std::vector<Wide<T>>& sums() {
    if constexpr (std::is_same_v<T, double>) {
      return doubles_;
    } else {
      return floats_;
    }
  }

  template <typename T>
  void add_rows(const T*, const Rows& rows) {
    const int64_t width = width_of(rows.values);
    Wide<T>* const all = sums<T>().data();
    const T* row = rows.values.flat<T>().data();
    for (const int64_t index : rows.indices.flat<int64_t>()) {
      add_into(row, width, all + places_.at(index).number * width);
      row += width;
    }
  }

  template <typename T>
  void reduce(const T*, Tensor& indices, Tensor& values) {
    const int64_t width = width_of(values);
    int64_t* index = indices.mutable_flat<int64_t>().data();
    T* value = values.mutable_flat<T>().data();
    for (const auto& [row, place] : places_) {
      *index++ = row;
      const int64_t divisor = spec_.reduction == GradientReduction::kMean ? place.gradients : 1;
      divide_into(sums<T>().data() + place.number * width, width, divisor, value);
      value += width;
    }
  }

  const GradientSpec spec_;
  int64_t count_ = 0;
  Shape row_shape_;                  // of the values of the last gradient
  std::map<int64_t, Place> places_;  // by row
  std::vector<float> floats_;        // the sums, place by place
  std::vector<double> doubles_;
};

}  // namespace

std::unique_ptr<GradientSum> make_row_sum(GradientSpec spec) {
  return std::make_unique<RowSum>(std::move(spec));
}

}  // namespace longhaul
