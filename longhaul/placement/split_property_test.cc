#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <random>
#include <set>

#include "longhaul/placement/placement_fixture.h"

// Random graphs on random devices: their parts, run by hand in a random interleaving, give what one plan gives, and
// never wait for ever. LONGHAUL_SPLIT_GRAPHS says how many; a failure names its seed.
namespace longhaul {
namespace {

using Texts = std::map<std::string, std::string>;

std::string result_of(const std::string& name, const std::string& type, const std::vector<std::string>& inputs) {
  if (type == "Identity" || type == "Assign") return inputs.back();
  std::string joined = name + "(";
  for (const std::string& input : inputs) joined += input + ",";
  return fmt::format("{:x}", std::hash<std::string>()(joined));
}

// A graph with variables, constants, computations, writes, no-ops and control edges, all on random devices, and a
// request.
class RandomGraph {
 public:
  explicit RandomGraph(uint64_t seed) : random_(seed) {
    const int size = pick(4, 30);
    for (int i = 0; i < 3; ++i) variables_.push_back(add_variable(i));
    values_ = variables_;
    for (int i = 0; i < size; ++i) add_operation(i);
    for (int i = pick(1, 4); i > 0; --i) request_.fetches.push_back(random_fetch());
    if (pick(0, 3) == 0) request_.feeds.push_back(random_of(values_));
  }

  Graph& graph() { return graph_; }
  const Session::Request& request() const { return request_; }
  const std::vector<Output>& variables() const { return variables_; }
  std::mt19937_64& random() { return random_; }

 private:
  int pick(int from, int to) { return std::uniform_int_distribution<int>(from, to)(random_); }
  template <typename T>
  const T& random_of(const std::vector<T>& all) {
    return all[static_cast<size_t>(pick(0, static_cast<int>(all.size()) - 1))];
  }

  Scope place() {
    static const std::vector<std::string> devices = {"",        "",        "/job:ps/task:0",     "/job:ps/task:1",
                                                     "/job:ps", "/task:1", "/job:worker/task:0", "/job:worker/task:1"};
    return Scope(graph_).with_device(random_of(devices));
  }

  Output add_variable(int number) {
    const std::string name = fmt::format("v{}", number);
    return place().add("VariableV2", name, {}, {{"dtype", kString}, {"shape", Shape()}}).output();
  }

  void add_operation(int number) {
    std::vector<Operation> controls;
    while (!operations_.empty() && pick(0, 2) == 0) controls.push_back(random_of(operations_));
    const Scope scope = place().with_control_dependencies(controls);
    const std::string name = fmt::format("op{}", number);
    const int kind = pick(0, 9);
    Operation op;
    if (kind == 0) {
      op = scope.add("NoOp", name);
    } else if (kind == 1) {
      op = scope.add("Const", name, {}, {{"value", Tensor::scalar(name)}, {"dtype", kString}});
    } else if (kind <= 3) {
      op = scope.add(kind == 2 ? "Assign" : "AssignAdd", name, {random_of(variables_), random_of(values_)});
    } else if (kind <= 5) {
      op = scope.add("Identity", name, {random_of(values_)});
    } else {
      std::vector<Output> inputs;
      for (int i = pick(1, 3); i > 0; --i) inputs.push_back(random_of(values_));
      op = scope.add("StringJoin", name, inputs, {{"separator", std::string("+")}});
    }
    operations_.push_back(op);
    if (op.num_outputs() > 0) values_.push_back(op.output());
  }

  Fetch::Target random_fetch() {
    if (pick(0, 1) == 0) return Fetch(random_of(operations_)).resolve(graph_);
    return Fetch(random_of(values_)).resolve(graph_);
  }

  std::mt19937_64 random_;
  Graph graph_;
  std::vector<Output> variables_, values_;
  std::vector<Operation> operations_;
  Session::Request request_;
};

Texts first_values(const RandomGraph& graph) {
  Texts values;
  for (const Output& variable : graph.variables()) values[variable.op().name()] = "first " + variable.op().name();
  return values;
}

// What a run leaves in the variables, and what it fetches.
struct Outcome {
  Texts variables;
  std::map<int, std::string> fetched;
  bool operator==(const Outcome&) const = default;
};

// One task does all, in the given order.
class OnePlan {
 public:
  OnePlan(const RandomGraph& graph, const RunOrder& run)
      : request_(graph.request()), run_(run), at_start_(first_values(graph)), now_(at_start_) {
    for (const Output& feed : request_.feeds) values_[feed.name()] = "fed " + feed.name();
  }

  Outcome outcome(const std::vector<Operation>& order) && {
    for (const Operation& op : order) evaluate(op);
    for (size_t i = 0; i < request_.fetches.size(); ++i) {
      const Fetch::Target& fetch = request_.fetches[i];
      if (!fetch.is_operation()) outcome_.fetched[static_cast<int>(i)] = value_of(fetch.output(), false);
    }
    outcome_.variables = now_;
    return outcome_;
  }

 private:
  std::string value_of(const Output& output, bool late) {
    if (const auto value = values_.find(output.name()); run_.is_fed(output)) return value->second;
    if (output.op().type() == "VariableV2") return (late ? now_ : at_start_).at(output.op().name());
    if (output.op().type() == "Const") return output.op().name();
    return values_.at(output.name());
  }

  void evaluate(const Operation& op) {
    if (op.num_outputs() == 0 || op.type() == "VariableV2" || op.type() == "Const") return;
    const bool late = run_.depends_on_write(op);
    std::vector<std::string> inputs;
    if (op.type() == "AssignAdd") inputs.push_back(now_.at(op.inputs()[0].op().name()));
    for (size_t i = static_cast<size_t>(op.ref_inputs()); i < op.inputs().size(); ++i) {
      inputs.push_back(value_of(op.inputs()[i], late));
    }
    const std::string result = result_of(op.name(), op.type(), inputs);
    if (writes_variable(op)) now_[op.inputs()[0].op().name()] = result;
    if (!run_.is_fed(op.output())) values_[op.output().name()] = result;
  }

  const Session::Request& request_;
  const RunOrder& run_;
  const Texts at_start_;
  Texts now_, values_;
  Outcome outcome_;
};

// The parts of a run: each goes on by one node when its turn comes, unless it waits.
class ByHand {
 public:
  ByHand(RandomGraph& graph, const DividedRun& run) : graph_(graph), now_(first_values(graph)) {
    for (const RunPart& part : run.parts) tasks_.push_back(start(part));
    for (const auto& [fetch, feed] : run.fetched_feeds) outcome_.fetched[fetch] = fed(feed);
  }

  Outcome outcome() {
    while (!all_done()) {
      std::vector<Task*> able;
      for (Task& task : tasks_) {
        if (is_able(task)) able.push_back(&task);
      }
      if (able.empty()) {
        ADD_FAILURE() << "all tasks wait";
        return outcome_;
      }
      advance(*able[std::uniform_int_distribution<size_t>(0, able.size() - 1)(graph_.random())]);
    }
    for (Task& task : tasks_) fetch(task);
    outcome_.variables = now_;
    return outcome_;
  }

  const std::vector<std::string>& ran() const { return ran_; }

 private:
  struct Task {
    const RunPart* part;
    int next = 0, first_write = -1, last_write = -1;
    Texts at_start, values;
    std::set<int> arrived;  // messages
  };

  std::string fed(int feed) const { return "fed " + graph_.request().feeds[static_cast<size_t>(feed)].name(); }

  Task start(const RunPart& part) {
    Task task{.part = &part, .at_start = now_};
    for (const auto& [feed, name] : part.feeds) task.values[name.substr(0, name.find(':'))] = fed(feed);
    for (int i = 0; i < part.graph.node_size(); ++i) {
      if (!is_write(part.graph.node(i))) continue;
      if (task.first_write < 0) task.first_write = i;
      task.last_write = i;
    }
    EXPECT_EQ(part.writes, task.first_write >= 0);
    return task;
  }

  static bool is_write(const proto::NodeDef& node) { return node.op() == "Assign" || node.op() == "AssignAdd"; }
  static bool is_receive(const proto::NodeDef& node) { return node.op().starts_with("_Recv"); }
  static bool is_done(const Task& task) { return task.next == task.part->graph.node_size(); }
  bool all_done() const { return std::all_of(tasks_.begin(), tasks_.end(), is_done); }
  static int number(const proto::NodeDef& node, const char* attr) { return static_cast<int>(node.attr().at(attr).i()); }

  bool is_able(const Task& task) const {
    if (is_done(task)) return false;
    const proto::NodeDef& node = task.part->graph.node(task.next);
    if (is_receive(node)) return delivered_.contains(number(node, "bundle"));
    return task.next != task.first_write || std::all_of(tasks_.begin(), tasks_.end(), [](const Task& other) {
             return other.first_write < 0 || other.next >= other.first_write;
           });
  }

  void advance(Task& task) {
    const proto::NodeDef& node = task.part->graph.node(task.next);
    const bool among_writes = task.first_write >= 0 && task.first_write <= task.next && task.next < task.last_write;
    EXPECT_FALSE(among_writes && (is_receive(node) || node.op().starts_with("_Send"))) << node.name();
    run(task, node);
    ran_.push_back(node.name());
    ++task.next;
  }

  void run(Task& task, const proto::NodeDef& node) {
    if (node.op() == "_SendControl") {
      EXPECT_TRUE(delivered_.insert(number(node, "bundle")).second);
    } else if (node.op() == "_Send") {
      send(task, node);
    } else if (node.op() == "_Recv") {
      const auto value = messages_[number(node, "bundle")].extract(number(node, "slot"));
      ASSERT_FALSE(value.empty()) << "taken twice, or never sent: " << node.name();
      task.values[node.name()] = value.mapped();
    } else if (node.op() == "Const") {
      task.values[node.name()] = node.name();
    } else if (node.op() != "VariableV2" && node.op() != "Placeholder" && !is_receive(node)) {
      compute(task, node);
    }
  }

  void send(Task& task, const proto::NodeDef& node) {
    const int bundle = number(node, "bundle");
    EXPECT_TRUE(messages_[bundle].emplace(number(node, "slot"), value_of(task, node, 0)).second);
    for (const RunPart::Message& message : task.part->sends) {
      if (message.bundle == bundle && message.values == static_cast<int>(messages_[bundle].size())) {
        EXPECT_TRUE(delivered_.insert(bundle).second);
      }
    }
  }

  std::string value_of(const Task& task, const proto::NodeDef& node, int input) const {
    const std::string name = node.input(input).substr(0, node.input(input).find(':'));
    if (const auto value = task.values.find(name); value != task.values.end()) return value->second;
    return (node.attr().at(kAfterWriteAttr).b() ? now_ : task.at_start).at(name);
  }

  void compute(Task& task, const proto::NodeDef& node) {
    std::vector<std::string> inputs;
    if (node.op() == "AssignAdd") inputs.push_back(now_.at(node.input(0)));
    for (int i = is_write(node) ? 1 : 0; i < node.input_size() && !node.input(i).starts_with('^'); ++i) {
      inputs.push_back(value_of(task, node, i));
    }
    task.values[node.name()] = result_of(node.name(), node.op(), inputs);
    if (is_write(node)) now_[node.input(0)] = task.values[node.name()];
  }

  void fetch(const Task& task) {
    for (const auto& [fetch, name] : task.part->fetches) {
      const std::string node = name.substr(0, name.find(':'));
      const auto value = task.values.find(node);
      outcome_.fetched[fetch] = value == task.values.end() ? task.at_start.at(node) : value->second;
    }
  }

  RandomGraph& graph_;
  Texts now_;
  std::vector<Task> tasks_;
  std::map<int, std::map<int, std::string>> messages_;  // values by message and slot
  std::set<int> delivered_;
  std::vector<std::string> ran_;
  Outcome outcome_;
};

class SplitPropertyTest : public PlacementTest {
 protected:
  // false: the run cannot be divided.
  bool check(uint64_t seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    RandomGraph graph(seed);
    const RunOrder run(graph.request());
    Placement placement;
    DividedRun divided;
    try {
      placement = Placer().place(graph.graph(), run.operations(), devices_);
      divided = divide_run(graph.request(), run, placement);
    } catch (const InvalidArgumentError&) {
      return false;
    }
    const SharedOrder shared(run, placement);
    ByHand by_hand(graph, divided);
    const Outcome outcome = by_hand.outcome();
    EXPECT_EQ(outcome, OnePlan(graph, run).outcome(shared.operations()));
    if (std::none_of(run.operations().begin(), run.operations().end(), [&](auto& op) { return shared.is_late(op); })) {
      EXPECT_EQ(outcome, OnePlan(graph, run).outcome(run.ordered()));
    }
    check_control_edges(shared, by_hand.ran());
    return true;
  }

  static void check_control_edges(const SharedOrder& shared, const std::vector<std::string>& ran) {
    std::map<std::string, size_t> positions;
    for (size_t i = 0; i < ran.size(); ++i) positions[ran[i]] = i;
    for (const Operation& op : shared.operations()) {
      EXPECT_TRUE(positions.contains(op.name())) << op.name() << " was not run";
      for (const Operation& before : op.control_inputs()) {
        const bool joint = writes_variable(op) && shared.after_write(op);
        if (joint || !positions.contains(before.name()) || stands_for_value(before)) continue;
        EXPECT_LT(positions[before.name()], positions[op.name()]) << before.name() << " before " << op.name();
      }
    }
  }
};

TEST_F(SplitPropertyTest, PartsInAnyInterleavingGiveWhatOnePlanGives) {
  const char* given = std::getenv("LONGHAUL_SPLIT_GRAPHS");
  const int graphs = given != nullptr ? std::atoi(given) : 1000;
  int divided = 0;
  for (int i = 0; i < graphs && !HasFailure(); ++i) divided += check(static_cast<uint64_t>(i) + 1) ? 1 : 0;
  EXPECT_GT(divided, graphs / 4) << "of " << graphs << " graphs";
}

}  // namespace
}  // namespace longhaul
