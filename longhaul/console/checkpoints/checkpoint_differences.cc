#include "longhaul/console/checkpoints/checkpoint_differences.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "longhaul/base/size_text.h"
#include "longhaul/console/checkpoints/tensor_numbers.h"
#include "longhaul/console/checkpoints/tensor_source.h"
#include "longhaul/console/text/plot.h"
#include "longhaul/console/text/shown_text.h"
#include "longhaul/console/text/table.h"

namespace longhaul::console {
namespace {

// The distance of two numbers: of integers exactly, of others in doubles, and infinite if one is a NaN.
template <typename T>
auto distance_of(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    return a > b ? static_cast<uint64_t>(a) - static_cast<uint64_t>(b)
                 : static_cast<uint64_t>(b) - static_cast<uint64_t>(a);
  } else {
    const double apart = std::abs(as_double(a) - as_double(b));
    return std::isnan(apart) ? static_cast<double>(INFINITY) : apart;
  }
}

template <typename T>
bool is_tolerated(T a, T b, double tolerance) {
  if (!(tolerance > 0)) return false;
  if constexpr (std::is_integral_v<T>) {
    constexpr double kAllOfThem = 18446744073709551616.0;  // 2^64
    return tolerance >= kAllOfThem || distance_of(a, b) <= static_cast<uint64_t>(tolerance);
  } else {
    return distance_of(a, b) <= tolerance || (std::isnan(as_double(a)) && std::isnan(as_double(b)));
  }
}

// The elements that differ, and the pair that is farthest apart.
struct Differing {
  uint64_t count = 0;
  Number largest = 0.0;
  uint64_t at = 0;
  Number a = 0.0, b = 0.0;
};

template <typename T>
void add_differing(std::string_view left, std::string_view right, double tolerance, uint64_t begin, Differing& found) {
  const T* const a = reinterpret_cast<const T*>(left.data());
  const T* const b = reinterpret_cast<const T*>(right.data());
  for (size_t i = 0; i < left.size() / sizeof(T); ++i) {
    if (std::memcmp(a + i, b + i, sizeof(T)) == 0) continue;
    if (is_tolerated(a[i], b[i], tolerance)) continue;
    const Number distance = distance_of(a[i], b[i]);  // always of the same of Number's types
    if (found.count++ == 0 || distance > found.largest) {
      found.largest = distance;
      found.at = begin + i;
      found.a = as_number(a[i]);
      found.b = as_number(b[i]);
    }
  }
}

std::string index_text(uint64_t flat, const Shape& shape) {
  std::vector<uint64_t> at(shape.dims().size());
  for (size_t axis = at.size(); axis-- > 0;) {
    const auto size = static_cast<uint64_t>(shape.dims()[axis]);
    at[axis] = flat % size;
    flat /= size;
  }
  return fmt::format("[{}]", fmt::join(at, ","));
}

struct Result {
  std::string name{};
  const char* kind = "equal";  // or "only in a", "only in b", "dtype", "shape", "values", "not compared"
  std::string how{};
  Json json = Json::object();

  bool is_equal() const { return std::string_view(kind) == "equal"; }
};

class Comparison {
 public:
  Comparison(const TensorSource& a, const TensorSource& b, double tolerance, const Progress& progress)
      : a_(a), b_(b), tolerance_(tolerance), progress_(progress), total_(a.total_bytes() + b.total_bytes()) {}

  Result compare(const std::string& name) {
    const StoredTensor *a = a_.find(name), *b = b_.find(name);
    if (a == nullptr) return {.name = name, .kind = "only in b", .how = described(*b)};
    if (b == nullptr) return {.name = name, .kind = "only in a", .how = described(*a)};
    if (a->dtype != b->dtype) return {.name = name, .kind = "dtype", .how = both(*a, *b)};
    if (a->shape != b->shape) return {.name = name, .kind = "shape", .how = both(*a, *b)};
    if (!a->known) return {.name = name, .kind = "not compared", .how = "the library lacks " + a->dtype};
    if (!has_numbers(*a->known)) return compare_whole(*a, *b);
    return compare_numbers(*a, *b);
  }

 private:
  static std::string described(const StoredTensor& tensor) { return tensor.dtype + tensor.shape.to_string(); }
  static std::string both(const StoredTensor& a, const StoredTensor& b) {
    return fmt::format("{} and {}", described(a), described(b));
  }

  void count(uint64_t bytes) {
    done_ += bytes;
    if (progress_) progress_(done_, total_);
  }

  Result compare_whole(const StoredTensor& a, const StoredTensor& b) {
    const Tensor left = a_.read(a), right = b_.read(b);
    count(a.bytes + b.bytes);
    if (identical(left, right)) return {.name = a.name};
    return {.name = a.name,
            .kind = "values",
            .how = fmt::format("{} and {}", shown(left.to_string(), 60), shown(right.to_string(), 60))};
  }

  Result compare_numbers(const StoredTensor& a, const StoredTensor& b) {
    const auto left = a_.stream(a), right = b_.stream(b);
    Differing found;
    uint64_t begin = 0;
    while (true) {
      const std::string_view x = left->next(), y = right->next();
      if (x.empty() || y.empty()) break;
      with_type_of(*a.known, [&](auto kind) {
        using T = decltype(kind);
        add_differing<T>(x, y, tolerance_, begin, found);
        begin += x.size() / sizeof(T);
      });
      count(x.size() + y.size());
    }
    if (found.count == 0) return {.name = a.name};
    const std::string place = index_text(found.at, a.shape);
    Result result{.name = a.name, .kind = "values"};
    result.how = fmt::format("{} of {} differ, at most by {}: {} is {} and {}", found.count, a.shape.num_elements(),
                             number_text(found.largest), place, number_text(found.a, *a.known == kDouble ? 17 : 9),
                             number_text(found.b, *a.known == kDouble ? 17 : 9));
    result.json = {{"differing", found.count}, {"largest_difference", number_json(found.largest)}, {"at", place}};
    return result;
  }

  const TensorSource &a_, &b_;
  const double tolerance_;
  const Progress& progress_;
  const uint64_t total_;
  uint64_t done_ = 0;
};

}  // namespace

Report compare_contents(FileSystem& files, const DifferencesOptions& options, const Terminal& terminal,
                        const Progress& progress) {
  const auto a = open_tensors(files, options.a), b = open_tensors(files, options.b);
  std::set<std::string> names;
  for (const TensorSource* source : {a.get(), b.get()}) {
    for (const StoredTensor& tensor : source->tensors()) names.insert(tensor.name);
  }
  Report report{.json = json_of("diff")};
  report.json["a"] = a->path();
  report.json["b"] = b->path();
  Json& results = report.json["tensors"] = Json::array();
  Comparison comparison(*a, *b, options.tolerance, progress);
  Table table({{"name"}, {""}, {""}});
  size_t equal = 0;
  for (const std::string& name : names) {
    Result result = comparison.compare(name);
    equal += result.is_equal() ? 1 : 0;
    if (result.is_equal() && !options.with_equal) continue;
    Json json = {{"name", name}, {"result", result.kind}};
    if (!result.how.empty()) json["how"] = result.how;
    json.update(result.json);
    results.push_back(std::move(json));
    const bool is_plain = result.is_equal() || std::string_view(result.kind) == "not compared";
    table.add({Cell(name), Cell(result.kind, is_plain ? Paint::kPlain : Paint::kRed), Cell(result.how)});
  }
  const size_t different = names.size() - equal;
  report.is_fine = different == 0;
  report.json["equal"] = equal;
  report.json["different"] = different;
  report.text = fmt::format("a: {}\nb: {}\n", shown(a->path(), 1000), shown(b->path(), 1000));
  report.text += table.text(terminal);
  report.text += fmt::format("{} of {} tensors differ\n", different, names.size());
  return report;
}

}  // namespace longhaul::console
