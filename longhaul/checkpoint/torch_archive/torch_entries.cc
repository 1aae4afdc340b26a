#include "longhaul/checkpoint/torch_archive/torch_entries.h"

#include <fmt/format.h>

#include <set>
#include <utility>

#include "longhaul/base/error.h"
#include "longhaul/base/excerpt.h"
#include "longhaul/checkpoint/torch_archive/torch_globals.h"

namespace longhaul {
namespace {

using Kind = PickleKind;

constexpr int kDeepest = 64;        // containers in containers
constexpr size_t kMaxRank = 254;    // the library's limit, that of TensorFlow's tensors
constexpr uint64_t kPerVisit = 64;  // bytes of memory, besides the name
constexpr uint64_t kPerEntry = 384;

std::string after_newline(std::string_view global) {
  return std::string(global.substr(global.find('\n') + 1));
}

// What the pickle of one tensor says.
class TensorReader {
 public:
  TensorReader(const Pickle& pickle, const std::string& name) : pickle_(pickle), name_(name) {}

  // `arguments` are those of _rebuild_tensor_v2, or of _v3 (`has_dtype`).
  TorchEntry read(const PickleNode& arguments, bool has_dtype) const {
    const size_t required = has_dtype ? 7 : 6;
    if (arguments.items.size() < required || arguments.items.size() > required + 1) fail("has other arguments");
    if (arguments.items.size() > required) check_no_metadata(pickle_.node(arguments.items.back()));
    TorchEntry entry{.name = name_};
    TorchPlace place;
    const TorchDType* dtype = read_storage(pickle_.node(arguments.items[0]), place);
    if (has_dtype) dtype = dtype_of(pickle_.node(arguments.items[6]));
    if (dtype == nullptr) fail("has no dtype");
    entry.dtype = dtype->dtype;
    entry.dtype_name = after_newline(dtype->global);
    place.offset = integer(arguments.items[1]);
    entry.shape = Shape(integers(arguments.items[2]));
    place.strides = integers(arguments.items[3]);
    if (place.strides.size() != entry.shape.dims().size()) fail("has other numbers of strides and of dimensions");
    if (place.strides.size() > kMaxRank) fail("has more than 254 dimensions");
    if (entry.dtype != kInvalid) check_place(place, entry);
    entry.place = std::move(place);
    return entry;
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw DataLossError(fmt::format("{}: tensor {} {}", pickle_.where(), excerpt(name_), what));
  }

  // A conjugated view, and what Python code attached to the tensor.
  void check_no_metadata(const PickleNode& metadata) const {
    if (metadata.kind == Kind::kNone || (metadata.kind == Kind::kDict && metadata.items.empty())) return;
    throw UnimplementedError(fmt::format(
        "{}: tensor {} has metadata, such as those of a conjugated view; save its clone() or resolve_conj()",
        pickle_.where(), excerpt(name_)));
  }

  // Its dtype; nullptr: it has none. A storage is ("storage", class, key, device, number of elements); whatever device
  // it was on, its bytes are in the file.
  const TorchDType* read_storage(const PickleNode& reference, TorchPlace& place) const {
    if (reference.kind != Kind::kReference) fail("has no storage");
    const PickleNode& tuple = pickle_.node(reference.items[0]);
    if (tuple.kind != Kind::kTuple || tuple.items.size() != 5) fail("has a storage of another form");
    const PickleNode &word = pickle_.node(tuple.items[0]), &type = pickle_.node(tuple.items[1]);
    const PickleNode& key = pickle_.node(tuple.items[2]);
    if (word.kind != Kind::kText || word.text != "storage" || type.kind != Kind::kGlobal || key.kind != Kind::kText) {
      fail("has a storage of another form");
    }
    const TorchDType* dtype = torch_dtype_of_storage(type.text);
    if (dtype == nullptr && type.text != kUntypedStorage) fail("has a storage of class " + global_name(type.text));
    place.storage = key.text;
    const int64_t elements = integer(tuple.items[4]);
    const uint64_t size = dtype == nullptr ? 1 : dtype_size(dtype->dtype);
    if (elements < 0 || __builtin_mul_overflow(static_cast<uint64_t>(elements), size, &place.storage_bytes)) {
      fail(fmt::format("has a storage of {} elements", elements));
    }
    return dtype;
  }

  const TorchDType* dtype_of(const PickleNode& node) const {
    return node.kind == Kind::kGlobal ? torch_dtype_of_global(node.text) : nullptr;
  }
  int64_t integer(PickleId id) const {
    const PickleNode& node = pickle_.node(id);
    if (node.kind != Kind::kInt) fail("has something else where a number belongs");
    return node.number;
  }
  std::vector<int64_t> integers(PickleId id) const {
    const PickleNode& node = pickle_.node(id);
    if (node.kind == Kind::kCall && node.items.size() == 2 && is_wrapper(pickle_.node(node.items[0]).text)) {
      const PickleNode& arguments = pickle_.node(node.items[1]);  // torch.Size
      if (!arguments.items.empty() && pickle_.node(arguments.items[0]).kind == Kind::kTuple) {
        return integers(arguments.items[0]);
      }
    }
    if (node.kind != Kind::kTuple && node.kind != Kind::kList) fail("has something else where numbers belong");
    std::vector<int64_t> numbers;
    for (const PickleId item : node.items) numbers.push_back(integer(item));
    for (const int64_t number : numbers) {
      if (number < 0) fail(fmt::format("has {} as a size or a stride", number));
    }
    return numbers;
  }

  void check_place(const TorchPlace& place, const TorchEntry& entry) const {
    const int64_t elements = entry.shape.num_elements();
    if (elements < 0 || place.offset < 0) fail("has an impossible shape or offset");
    if (elements == 0) return;
    int64_t last = place.offset;
    bool fits = true;
    for (size_t i = 0; i < place.strides.size(); ++i) {
      int64_t way = 0;
      fits = fits && !__builtin_mul_overflow(entry.shape.dims()[i] - 1, place.strides[i], &way);
      fits = fits && !__builtin_add_overflow(last, way, &last);
    }
    if (fits && static_cast<uint64_t>(last) < place.storage_bytes / dtype_size(entry.dtype)) return;
    fail(fmt::format("reaches beyond its storage of {} bytes", place.storage_bytes));
  }

  const Pickle& pickle_;
  const std::string& name_;
};

// Goes through a pickle, and collects its entries.
class EntryFinder {
 public:
  explicit EntryFinder(Pickle& pickle) : pickle_(pickle) {}

  std::vector<TorchEntry> find() {
    visit(pickle_.root(), "", 0);
    return std::move(entries_);
  }

 private:
  // `in_module`: it is an attribute of a module's object, where only tensors and other modules count.
  void visit(const PickleNode& node, const std::string& name, int depth, bool in_module = false) {
    if (depth > kDeepest) fail(name, fmt::format("is nested deeper than {}", kDeepest));
    take_memory(kPerVisit + name.size(), name);
    switch (node.kind) {
      case Kind::kNone:
      case Kind::kGlobal: return;  // a dtype, as a value
      case Kind::kBool: return in_module ? void() : add_value(name, "bool", Tensor::scalar(node.number != 0));
      case Kind::kInt: return in_module ? void() : add_value(name, "int", Tensor::scalar<int64_t>(node.number));
      case Kind::kFloat: return in_module ? void() : add_value(name, "float", Tensor::scalar<double>(node.real()));
      case Kind::kText: return in_module ? void() : add_text(name, node.text);
      case Kind::kTuple:
      case Kind::kList:
        for (size_t i = 0; i < node.items.size(); ++i) {
          visit(pickle_.node(node.items[i]), joined(name, '/', std::to_string(i)), depth + 1, in_module);
        }
        return;
      case Kind::kDict: return visit_dict(node, name, '/', depth, in_module);
      case Kind::kCall: return visit_call(node, name, depth, in_module);
      case Kind::kReference:
        throw UnimplementedError(
            fmt::format("{}: {} is a storage without a tensor; save a tensor of it", pickle_.where(), excerpt(name)));
    }
  }

  void visit_dict(const PickleNode& dict, const std::string& name, char separator, int depth, bool in_module) {
    for (size_t i = 0; i + 1 < dict.items.size(); i += 2) {
      const std::string key = key_of(pickle_.node(dict.items[i]), name);
      visit(pickle_.node(dict.items[i + 1]), joined(name, separator, key), depth + 1, in_module);
    }
  }

  std::string key_of(const PickleNode& key, const std::string& name) const {
    if (key.kind == Kind::kText) return std::string(key.text);
    if (key.kind == Kind::kInt) return std::to_string(key.number);
    throw UnimplementedError(
        fmt::format("{}: the dict {} has a key that is neither a text nor an integer", pickle_.where(), excerpt(name)));
  }

  void visit_call(const PickleNode& call, const std::string& name, int depth, bool in_module) {
    const std::string_view function = pickle_.node(call.items[0]).text;
    const PickleNode& arguments = pickle_.node(call.items[1]);
    if (function == kRebuildTensor || function == kRebuildTensorOfDType) {
      add(TensorReader(pickle_, name).read(arguments, function == kRebuildTensorOfDType));
    } else if (is_script_class(function)) {
      if (call.items.size() < 3) return;  // a module without state
      const PickleNode& state = pickle_.node(call.items[2]);
      if (state.kind == Kind::kDict) return visit_dict(state, name, '.', depth, true);
      fail(name, "is a module whose state is no dict");
    } else if (function == kRebuildParameter || function == kRebuildParameterWithState || is_wrapper(function)) {
      if (arguments.items.empty()) fail(name, "has no arguments");
      visit(pickle_.node(arguments.items[0]), name, depth + 1, in_module);
    } else {
      fail(name, "calls " + global_name(function));
    }
  }

  void add_text(const std::string& name, std::string_view text) {
    take_memory(text.size(), name);
    add_value(name, "str", Tensor::scalar(std::string(text)));
  }
  void add_value(const std::string& name, const char* dtype_name, const Tensor& value) {
    add({.name = name, .dtype_name = dtype_name, .dtype = value.dtype(), .shape = {}, .place = {}, .value = value});
  }
  void add(TorchEntry entry) {
    take_memory(kPerEntry + 2 * entry.name.size() + 16 * entry.shape.dims().size(), entry.name);
    if (!names_.insert(entry.name).second) {
      throw InvalidArgumentError(fmt::format("{}: two values are called {}", pickle_.where(), excerpt(entry.name)));
    }
    entries_.push_back(std::move(entry));
  }

  static std::string joined(const std::string& name, char separator, const std::string& key) {
    return name.empty() ? key : name + separator + key;
  }
  void take_memory(uint64_t bytes, const std::string& name) {
    if (!pickle_.budget().take(bytes)) fail(name, "needs more memory than the values of an honest pickle of its size");
  }
  [[noreturn]] void fail(const std::string& name, const std::string& what) const {
    throw DataLossError(fmt::format("{}: {} {}", pickle_.where(), name.empty() ? "its value" : excerpt(name), what));
  }

  Pickle& pickle_;
  std::vector<TorchEntry> entries_;
  std::set<std::string> names_;
};

}  // namespace

uint64_t TorchEntry::bytes() const {
  if (!place) return value.size_bytes();
  return static_cast<uint64_t>(shape.num_elements()) * dtype_size(dtype);
}

std::vector<TorchEntry> torch_entries(Pickle& pickle) {
  return EntryFinder(pickle).find();
}

}  // namespace longhaul
