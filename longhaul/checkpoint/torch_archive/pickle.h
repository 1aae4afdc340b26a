#pragma once

#include <bit>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace longhaul {

inline constexpr uint64_t kMaxPickle = uint64_t{32} << 20;  // bytes of a pickle

// What a pickle and what is made of it may take in memory: 64 MiB, and 48 bytes for each byte of the pickle. What
// PyTorch writes takes up to 20.
class PickleBudget {
 public:
  explicit PickleBudget(uint64_t pickle_bytes) : left_((uint64_t{64} << 20) + 48 * pickle_bytes) {}

  // False: that is more than what is left.
  bool take(uint64_t bytes);

 private:
  uint64_t left_;
};

enum class PickleKind : uint8_t {
  kNone,
  kBool,       // number
  kInt,        // number
  kFloat,      // real()
  kText,       // text
  kTuple,      // items
  kList,       // items
  kDict,       // items: a key, its value, the next key, ...
  kGlobal,     // text: the module and the name, with a '\n' between them
  kCall,       // items: a global, and its arguments (kTuple); after BUILD, the object's state too. It is never called.
  kReference,  // items: one, which says what lies outside of the pickle: a storage
};

using PickleId = uint32_t;  // the index of a node

struct PickleNode {
  PickleKind kind = PickleKind::kNone;
  int64_t number = 0;             // kFloat: the bits
  std::string_view text{};        // in the pickle's bytes
  std::vector<PickleId> items{};  // may lead to the node itself

  double real() const { return std::bit_cast<double>(number); }
};

// A pickle of Python as data: nothing in it is called. The opcodes are those of protocol 2 in which PyTorch writes
// state dicts (docs/formats/torch_archive.md), and the globals those that it needs for them.
class Pickle {
 public:
  // Keeps the bytes; `where` begins the messages. DataLossError: it is malformed, or needs more memory than the budget.
  // UnimplementedError: an opcode, a protocol or a global that state dicts do not have; the message has its name.
  Pickle(std::string bytes, std::string where);
  Pickle(const Pickle&) = delete;
  Pickle& operator=(const Pickle&) = delete;

  const PickleNode& root() const { return nodes_[root_]; }
  const PickleNode& node(PickleId id) const { return nodes_[id]; }
  const std::string& where() const { return where_; }
  PickleBudget& budget() { return budget_; }  // what is left of it

 private:
  const std::string bytes_;
  const std::string where_;
  PickleBudget budget_;
  std::vector<PickleNode> nodes_;
  PickleId root_ = 0;
};

// "torch.FloatStorage", for messages.
std::string global_name(std::string_view global);

}  // namespace longhaul
