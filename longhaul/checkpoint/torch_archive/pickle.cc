#include "longhaul/checkpoint/torch_archive/pickle.h"

#include <fmt/format.h>

#include <cstddef>
#include <utility>

#include "longhaul/base/error.h"
#include "longhaul/base/excerpt.h"
#include "longhaul/checkpoint/torch_archive/pickle_opcodes.h"
#include "longhaul/checkpoint/torch_archive/torch_globals.h"

namespace longhaul {
namespace {

using Kind = PickleKind;

// The bytes of a pickle, from front to back.
class PickleInput {
 public:
  PickleInput(std::string_view bytes, const std::string& where) : bytes_(bytes), where_(where) {}

  PickleOpcode opcode() {
    begin_ = position_;
    return static_cast<PickleOpcode>(number(1));
  }
  std::string_view take(uint64_t count) {
    if (count > bytes_.size() - position_) fail("the pickle ends in the middle");
    const std::string_view taken = bytes_.substr(position_, static_cast<size_t>(count));
    position_ += taken.size();
    return taken;
  }
  uint64_t number(size_t count) {  // little endian
    uint64_t value = 0;
    const std::string_view taken = take(count);
    for (size_t i = 0; i < count; ++i) value |= uint64_t{static_cast<unsigned char>(taken[i])} << (8 * i);
    return value;
  }
  int64_t signed_number(size_t count) {
    if (count == 0) return 0;
    const int unused = static_cast<int>(64 - 8 * count);
    return static_cast<int64_t>(number(count) << unused) >> unused;
  }
  int64_t big_endian() {
    uint64_t bits = 0;
    for (const char byte : take(8)) bits = bits << 8 | static_cast<unsigned char>(byte);
    return static_cast<int64_t>(bits);
  }
  std::string_view lines(int count) {  // without the last '\n'
    const size_t begin = position_;
    for (; count > 0; --count) {
      const size_t end = bytes_.find('\n', position_);
      if (end == bytes_.npos) fail("the pickle ends in the middle");
      position_ = end + 1;
    }
    return bytes_.substr(begin, position_ - 1 - begin);
  }

  [[noreturn]] void fail(const std::string& what) const {
    throw DataLossError(fmt::format("{} at byte {}: {}", where_, begin_, what));
  }
  [[noreturn]] void refuse(const std::string& what) const {
    throw UnimplementedError(fmt::format("{} at byte {}: {}", where_, begin_, what));
  }

 private:
  const std::string_view bytes_;
  const std::string& where_;
  size_t position_ = 0;
  size_t begin_ = 0;  // of the last opcode
};

// The nodes, and the stack, its marks and the memo, which have indices of nodes. An opcode takes no value from below
// the last mark.
class PickleStack {
 public:
  PickleStack(const PickleInput& input, PickleBudget& budget, std::vector<PickleNode>& nodes)
      : input_(input), budget_(budget), nodes_(nodes) {}

  void push(PickleNode node) {
    take_memory(sizeof(PickleNode) + 32 + 8 * node.items.size());
    const auto id = static_cast<PickleId>(nodes_.size());
    nodes_.push_back(std::move(node));
    push(id);
  }
  PickleId pop() {
    const PickleId id = top();
    stack_.pop_back();
    return id;
  }
  PickleId top() const {
    if (stack_.size() <= (marks_.empty() ? 0 : marks_.back())) input_.fail("an opcode takes a value that is not there");
    return stack_.back();
  }
  std::vector<PickleId> pop_many(size_t count) {
    std::vector<PickleId> ids(count);
    for (size_t i = count; i-- > 0;) ids[i] = pop();
    return ids;
  }

  void mark() {
    take_memory(sizeof(size_t));
    marks_.push_back(stack_.size());
  }
  // Those above the last mark, which is removed.
  std::vector<PickleId> pop_marked() {
    if (marks_.empty()) input_.fail("an opcode takes the values of a mark that is not there");
    const size_t mark = marks_.back();
    marks_.pop_back();
    take_memory(8 * (stack_.size() - mark));
    std::vector<PickleId> ids(stack_.begin() + static_cast<std::ptrdiff_t>(mark), stack_.end());
    stack_.resize(mark);
    return ids;
  }

  void remember(uint64_t place) {
    if (place > memo_.size()) {
      input_.fail(fmt::format("place {} of the memo comes before place {}", place, memo_.size()));
    }
    const PickleId id = top();
    if (place < memo_.size()) {
      memo_[static_cast<size_t>(place)] = id;
    } else {
      take_memory(8);
      memo_.push_back(id);
    }
  }
  void recall(uint64_t place) {
    if (place >= memo_.size()) input_.fail(fmt::format("place {} of the memo is empty", place));
    push(memo_[static_cast<size_t>(place)]);
  }

  PickleNode& node(PickleId id) { return nodes_[id]; }
  void append(PickleNode& node, const std::vector<PickleId>& items) {
    take_memory(8 * items.size());
    node.items.insert(node.items.end(), items.begin(), items.end());
  }

  // The only value that is left at the end.
  PickleId result() const {
    if (stack_.size() != 1 || !marks_.empty()) input_.fail("the pickle ends with other than one value");
    return stack_.front();
  }

 private:
  void push(PickleId id) {
    take_memory(8);
    stack_.push_back(id);
  }
  void take_memory(uint64_t bytes) {
    if (!budget_.take(bytes)) input_.fail("the pickle needs more memory than an honest one of its size");
  }

  const PickleInput& input_;
  PickleBudget& budget_;
  std::vector<PickleNode>& nodes_;
  std::vector<PickleId> stack_;
  std::vector<size_t> marks_;  // heights of the stack
  std::vector<PickleId> memo_;
};

// Runs the opcodes of a pickle, each of which takes values from the stack and puts one there.
class PickleMachine {
 public:
  PickleMachine(std::string_view bytes, const std::string& where, PickleBudget& budget, std::vector<PickleNode>& nodes)
      : input_(bytes, where), stack_(input_, budget, nodes) {}

  PickleId run() {
    for (auto opcode = input_.opcode(); opcode != PickleOpcode::kStop; opcode = input_.opcode()) step(opcode);
    return stack_.result();
  }

 private:
  void push_int(int64_t value) { stack_.push({.kind = Kind::kInt, .number = value}); }
  void push_bool(bool value) { stack_.push({.kind = Kind::kBool, .number = value}); }
  void push_tuple(std::vector<PickleId> items) { stack_.push({.kind = Kind::kTuple, .items = std::move(items)}); }

  void check_protocol() {
    const uint64_t protocol = input_.number(1);
    if (protocol <= 2) return;
    input_.refuse(fmt::format("pickle protocol {}: save it without torch.save's pickle_protocol", protocol));
  }
  void push_long() {
    const size_t count = input_.number(1);
    if (count > 8) input_.refuse("a number of more than 64 bits");
    push_int(input_.signed_number(count));
  }
  void push_global() {
    const std::string_view global = input_.lines(2);
    if (is_known_global(global)) return stack_.push({.kind = Kind::kGlobal, .text = global});
    input_.refuse(
        fmt::format("it wants {}, which no state dict needs, and nothing is executed here; in Python, save "
                    "tensors, numbers and texts alone: torch.save(model.state_dict(), path)",
                    global_name(global)));
  }

  // A call is kept as what it is, but for an empty OrderedDict: that is a dict.
  void push_call() {
    const PickleId arguments = stack_.pop(), function = stack_.pop();
    const PickleNode &called = stack_.node(function), &tuple = stack_.node(arguments);
    if (called.kind != Kind::kGlobal || tuple.kind != Kind::kTuple) input_.fail("a call of what is no function");
    if (called.text == kOrderedDict && tuple.items.empty()) return stack_.push({.kind = Kind::kDict});
    stack_.push({.kind = Kind::kCall, .items = {function, arguments}});
  }
  // The state of an object. That of a dict, its _metadata, says nothing about tensors.
  void build() {
    const PickleId state = stack_.pop();
    PickleNode& object = stack_.node(stack_.top());
    if (object.kind == Kind::kDict) return;
    if (object.kind != Kind::kCall || object.items.size() != 2) input_.fail("a state for what is no object");
    stack_.append(object, {state});
  }
  void append(const std::vector<PickleId>& items) {
    PickleNode& list = stack_.node(stack_.top());
    if (list.kind != Kind::kList) input_.fail("values for what is no list");
    stack_.append(list, items);
  }
  void set_items(const std::vector<PickleId>& keys_and_values) {
    PickleNode& dict = stack_.node(stack_.top());
    if (dict.kind != Kind::kDict || keys_and_values.size() % 2 != 0) input_.fail("keys and values for what is no dict");
    stack_.append(dict, keys_and_values);
  }

  void step(PickleOpcode opcode) {
    using enum PickleOpcode;
    switch (opcode) {
      case kProto: return check_protocol();
      case kGlobal: return push_global();
      case kMark: return stack_.mark();
      case kEmptyDict: return stack_.push({.kind = Kind::kDict});
      case kEmptyList: return stack_.push({.kind = Kind::kList});
      case kEmptyTuple: return push_tuple({});
      case kTuple: return push_tuple(stack_.pop_marked());
      case kTuple1: return push_tuple(stack_.pop_many(1));
      case kTuple2: return push_tuple(stack_.pop_many(2));
      case kTuple3: return push_tuple(stack_.pop_many(3));
      case kNone: return stack_.push(PickleNode{});
      case kNewTrue: return push_bool(true);
      case kNewFalse: return push_bool(false);
      case kBinInt1: return push_int(static_cast<int64_t>(input_.number(1)));
      case kBinInt2: return push_int(static_cast<int64_t>(input_.number(2)));
      case kBinInt: return push_int(input_.signed_number(4));
      case kLong1: return push_long();
      case kBinFloat: return stack_.push({.kind = Kind::kFloat, .number = input_.big_endian()});
      case kBinUnicode: return stack_.push({.kind = Kind::kText, .text = input_.take(input_.number(4))});
      case kShortBinString: return stack_.push({.kind = Kind::kText, .text = input_.take(input_.number(1))});
      case kBinPersId: return stack_.push({.kind = Kind::kReference, .items = stack_.pop_many(1)});
      case kReduce:
      case kNewObject: return push_call();
      case kBuild: return build();
      case kAppend: return append(stack_.pop_many(1));
      case kAppends: return append(stack_.pop_marked());
      case kSetItem: return set_items(stack_.pop_many(2));
      case kSetItems: return set_items(stack_.pop_marked());
      case kBinPut: return stack_.remember(input_.number(1));
      case kLongBinPut: return stack_.remember(input_.number(4));
      case kBinGet: return stack_.recall(input_.number(1));
      case kLongBinGet: return stack_.recall(input_.number(4));
      case kStop: return;
    }
    input_.refuse(fmt::format("opcode 0x{:02x}, which no state dict has", static_cast<unsigned>(opcode)));
  }

  PickleInput input_;
  PickleStack stack_;
};

}  // namespace

bool PickleBudget::take(uint64_t bytes) {
  if (bytes > left_) return false;
  left_ -= bytes;
  return true;
}

std::string global_name(std::string_view global) {
  std::string name(global);
  if (const size_t end = name.find('\n'); end != name.npos) name[end] = '.';
  return excerpt(name);
}

Pickle::Pickle(std::string bytes, std::string where)
    : bytes_(std::move(bytes)), where_(std::move(where)), budget_(bytes_.size()) {
  root_ = PickleMachine(bytes_, where_, budget_, nodes_).run();
}

}  // namespace longhaul
