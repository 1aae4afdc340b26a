#include "longhaul/graph/graph_def/import_order.h"

#include <fmt/format.h>

#include <algorithm>

#include "longhaul/base/error.h"
#include "longhaul/base/excerpt.h"

namespace longhaul {
namespace {

constexpr int kMostScopes = 100;

// A walk in depth without recursion: graphs are as deep as whoever wrote the file likes.
class Walk {
 public:
  Walk(const proto::GraphDef& graph_def, const std::vector<std::vector<int>>& needs)
      : graph_def_(graph_def), needs_(needs), state_(needs.size(), kNew) {}

  std::vector<int> order() {
    for (int node = 0; node < static_cast<int>(needs_.size()); ++node) {
      if (state_of(node) == kNew) walk_from(node);
    }
    return std::move(order_);
  }

 private:
  enum State : char { kNew, kUnderWay, kDone };
  struct Visit {
    int node;
    size_t next = 0;  // of what it needs
  };

  State& state_of(int node) { return state_[static_cast<size_t>(node)]; }

  void walk_from(int start) {
    enter(start);
    while (!stack_.empty()) {
      Visit& visit = stack_.back();
      const std::vector<int>& needed = needs_[static_cast<size_t>(visit.node)];
      if (visit.next < needed.size()) {
        const int node = needed[visit.next++];
        if (state_of(node) == kUnderWay) refuse_loop(node);
        if (state_of(node) == kNew) enter(node);
      } else {
        state_of(visit.node) = kDone;
        order_.push_back(visit.node);
        stack_.pop_back();
      }
    }
  }

  void enter(int node) {
    state_of(node) = kUnderWay;
    stack_.push_back({node});
  }

  [[noreturn]] void refuse_loop(int node) const {
    constexpr size_t kMostShown = 10;
    const std::string first = excerpt(graph_def_.node(node).name());
    std::string path = first;
    size_t shown = 0;
    for (auto visit = stack_.rbegin(); visit->node != node && shown < kMostShown; ++visit, ++shown) {
      path = fmt::format("{} -> {}", excerpt(graph_def_.node(visit->node).name()), path);
    }
    throw UnimplementedError(fmt::format("the graph has a loop, but loops are not supported: {} -> {}{}", first,
                                         shown == kMostShown ? "... -> " : "", path));
  }

  const proto::GraphDef& graph_def_;
  const std::vector<std::vector<int>>& needs_;
  std::vector<State> state_;
  std::vector<Visit> stack_;
  std::vector<int> order_;
};

}  // namespace

std::unordered_map<std::string_view, int> number_nodes(const proto::GraphDef& graph_def) {
  std::unordered_map<std::string_view, int> numbers;
  for (int i = 0; i < graph_def.node_size(); ++i) {
    const std::string& name = graph_def.node(i).name();
    if (std::count(name.begin(), name.end(), '/') > kMostScopes) {
      throw InvalidArgumentError(fmt::format("node {}: its name has more than {} scopes", i, kMostScopes));
    }
    if (!numbers.emplace(name, i).second) {
      throw InvalidArgumentError(
          fmt::format("node {} has the name '{}', like node {}", i, excerpt(name), numbers[name]));
    }
  }
  return numbers;
}

std::vector<int> order_nodes(const proto::GraphDef& graph_def, const std::vector<std::vector<int>>& needs) {
  return Walk(graph_def, needs).order();
}

}  // namespace longhaul
