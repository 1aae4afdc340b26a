// A small training that TensorFlow can go on with, and the other way round, for crossing_test.cc:
//
//   crossing_program supervisor|monitored MODEL OPTIMIZER LOGDIR LAST [EVERY]
//   crossing_program import FILE.meta
//   crossing_program serve
//
// serve: a server for clients, until it is killed; it says its target. A training's arguments:
//
// It says from which step it goes on, and each step's loss; a step's batch follows from its number. It trains up to the
// step LAST, saves and ends. With EVERY it saves after so many steps instead, and at the end says so and waits for its
// end. The model "state" has no layers, and is that of the newest checkpoint's .meta file where there is one.
// original.py is the same for TensorFlow.
#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "longhaul/checkpoint/files/latest_checkpoint.h"
#include "longhaul/longhaul.h"
#include "longhaul/server.h"

namespace lh = longhaul;
namespace ops = longhaul::ops;

namespace {

constexpr int64_t kRows = 8, kInputs = 4, kHidden = 5, kWords = 6;

void say(const std::string& line) {
  std::puts(line.c_str());
  std::fflush(stdout);
}

int64_t number(int64_t index, int64_t factor, int64_t offset, int64_t modulus) {
  return (index * factor + offset) % modulus;
}

template <typename T>
lh::Tensor fractions(const lh::Shape& shape, int64_t factor, int64_t offset, int64_t modulus, int64_t divisor) {
  std::vector<T> values(static_cast<size_t>(shape.num_elements()));
  for (size_t i = 0; i < values.size(); ++i) {
    const int64_t centred = number(static_cast<int64_t>(i), factor, offset, modulus) - modulus / 2;
    values[i] = static_cast<T>(centred) / static_cast<T>(divisor);
  }
  return lh::Tensor::of(shape, values);
}

// Small fractions, which floats have exactly.
lh::Tensor pattern(lh::DType dtype, const lh::Shape& shape, int64_t factor, int64_t offset, int64_t modulus,
                   int64_t divisor) {
  return dtype == lh::kDouble ? fractions<double>(shape, factor, offset, modulus, divisor)
                              : fractions<float>(shape, factor, offset, modulus, divisor);
}

lh::Tensor words_of(int64_t step) {
  std::vector<int64_t> words(kRows);
  for (int64_t i = 0; i < kRows; ++i) words[static_cast<size_t>(i)] = number(i, 5, step, kWords);
  return lh::Tensor::of({kRows}, words);
}

std::unique_ptr<lh::Optimizer> make_optimizer(const std::string& name) {
  if (name == "gradient_descent") return std::make_unique<lh::GradientDescentOptimizer>(0.1);
  if (name == "momentum") return std::make_unique<lh::MomentumOptimizer>(0.05, 0.9);
  if (name == "named_momentum") return std::make_unique<lh::MomentumOptimizer>(0.05, 0.9, false, "Speed");
  if (name == "nesterov") return std::make_unique<lh::MomentumOptimizer>(0.05, 0.9, true);
  if (name == "adam") return std::make_unique<lh::AdamOptimizer>(0.02);
  if (name == "named_adam") return std::make_unique<lh::AdamOptimizer>(0.02, 0.9, 0.999, 1e-8, "AdamG");
  if (name == "adagrad") return std::make_unique<lh::AdagradOptimizer>(0.1);
  if (name == "rmsprop") return std::make_unique<lh::RMSPropOptimizer>(0.01, 0.9, 0.5, 1e-3);
  if (name == "centered_rmsprop") return std::make_unique<lh::RMSPropOptimizer>(0.01, 0.9, 0.5, 1e-3, true);
  if (name == "adadelta") return std::make_unique<lh::AdadeltaOptimizer>(1.0, 0.95, 1e-4);
  if (name == "ftrl") return std::make_unique<lh::FtrlOptimizer>(0.1);
  throw std::invalid_argument("unknown optimizer " + name);
}

struct Model {
  lh::Output loss;
  lh::Output step;
  lh::Operation train;
  std::function<lh::Feeds(int64_t step)> batch;
  std::shared_ptr<lh::Saver> saver;  // nullptr: the manager's
};

// Adds a model to a graph.
class ModelBuilder {
 public:
  ModelBuilder(lh::Graph& graph, std::string optimizer, lh::DType dtype = lh::kFloat)
      : root_(graph), optimizer_(std::move(optimizer)), dtype_(dtype) {}

  Model perceptron() {
    const lh::Output loss = squared_error(two_layers(root_, x()));
    return trained(root_, loss, ops::create_global_step(root_));
  }

  Model in_scopes() {
    const lh::Scope net = root_.variable_scope("net");
    const lh::Output loss = squared_error(two_layers(net, x()));
    return trained(root_.variable_scope("train"), loss, ops::create_global_step(net));
  }

  Model with_names_of_tf_layers() {
    const auto names = ops::LayerNames::kTfLayers;
    const lh::Output hidden = ops::tanh(root_, ops::dense(root_, x(), kHidden, "", names));
    const lh::Output loss = squared_error(ops::dense(root_, hidden, 1, "", names));
    return trained(root_, loss, ops::create_global_step(root_));
  }

  Model with_embedding() {
    const lh::Output words = ops::placeholder(root_, lh::kInt64, {kRows}, "words");
    const lh::Variable table = variable(root_, "table", {kWords, kInputs}, 6);
    const lh::Output rows = ops::embedding(root_, table, words, {.sparse_gradient = true});
    Model model = trained(root_, squared_error(two_layers(root_, rows)), ops::create_global_step(root_));
    model.batch = [y = y_, words](int64_t at) {
      return lh::Feeds{{words, words_of(at)}, {y, pattern(lh::kFloat, {kRows, 1}, 5, at, 7, 4)}};
    };
    return model;
  }

  Model state() {
    const lh::Variable sum = variable(root_, "sum", {}, 1), table = variable(root_, "table", {2, 3}, 5);
    const lh::Variable step = ops::create_global_step(root_);
    const lh::Output quarter = ops::constant(root_, 0.25f), one = ops::constant(root_, int64_t{1});
    const lh::Output part = ops::constant(root_, pattern(dtype_, {2, 3}, 1, 0, 6, 4));
    const lh::Output loss = ops::assign_add(root_, sum, quarter, "loss");
    const lh::Operation train = ops::group(
        root_, {loss.op(), ops::assign_sub(root_, table, part).op(), ops::assign_add(root_, step, one).op()}, "train");
    return {.loss = loss, .step = step, .train = train, .batch = [](int64_t) { return lh::Feeds{}; }};
  }

  // That of a .meta file.
  Model imported(const std::string& path) {
    lh::Graph& graph = root_.graph();
    const std::shared_ptr<lh::Saver> saver = lh::import_meta_graph(graph, path);
    return {.loss = graph.find_output("loss:0"),
            .step = graph.find_output("global_step:0"),
            .train = graph.operation("train"),
            .batch = [](int64_t) { return lh::Feeds{}; },
            .saver = saver};
  }

 private:
  lh::Output x() {
    if (!x_.valid()) x_ = ops::placeholder(root_, dtype_, {kRows, kInputs}, "x");
    return x_;
  }
  lh::Variable variable(const lh::Scope& scope, const char* name, const lh::Shape& shape, int64_t factor) const {
    return ops::variable(scope, name, pattern(dtype_, shape, factor, 0, 13, 16));
  }

  lh::Output two_layers(const lh::Scope& scope, const lh::Output& x) const {
    const lh::Variable w1 = variable(scope, "w1", {kInputs, kHidden}, 5), b1 = variable(scope, "b1", {kHidden}, 4);
    const lh::Variable w2 = variable(scope, "w2", {kHidden, 1}, 3), b2 = variable(scope, "b2", {1}, 7);
    const lh::Output hidden = ops::tanh(scope, ops::matmul(scope, x, w1) + b1);
    return ops::matmul(scope, hidden, w2) + b2;
  }
  lh::Output squared_error(const lh::Output& result) {
    y_ = ops::placeholder(root_, dtype_, {kRows, 1}, "y");
    return ops::mse_loss(root_, result, y_);
  }

  Model trained(const lh::Scope& scope, const lh::Output& loss, const lh::Variable& step) {
    const lh::Operation train = make_optimizer(optimizer_)->minimize(scope, loss, step);
    const auto batch = [x = x_, y = y_, dtype = dtype_](int64_t at) {
      return lh::Feeds{{x, pattern(dtype, {kRows, kInputs}, 7, 3 * at, 11, 8)},
                       {y, pattern(dtype, {kRows, 1}, 5, at, 7, 4)}};
    };
    return {.loss = loss, .step = step, .train = train, .batch = batch};
  }

  const lh::Scope root_;
  const std::string optimizer_;
  const lh::DType dtype_;
  lh::Output x_, y_;
};

Model make_model(lh::Graph& graph, const std::string& name, const std::string& optimizer, const std::string& logdir) {
  ModelBuilder builder(graph, optimizer, name == "doubles" ? lh::kDouble : lh::kFloat);
  if (name == "perceptron" || name == "doubles") return builder.perceptron();
  if (name == "scopes") return builder.in_scopes();
  if (name == "layers") return builder.with_names_of_tf_layers();
  if (name == "embedding") return builder.with_embedding();
  if (name != "state") throw std::invalid_argument("unknown model " + name);
  const auto latest = lh::latest_checkpoint(lh::FileSystem::real(), logdir);
  return latest ? builder.imported(*latest + ".meta") : builder.state();
}

class Training {
 public:
  Training(const std::string& model, const std::string& optimizer, std::string logdir, int64_t last, int64_t every)
      : logdir_(std::move(logdir)), last_(last), every_(every), model_(make_model(graph_, model, optimizer, logdir_)) {}

  void run_supervised() {
    lh::SupervisorOptions options{
        .graph = &graph_, .logdir = logdir_, .save_summaries_secs = lh::Seconds{0}, .save_model_secs = lh::Seconds{0}};
    if (model_.saver) options.saver = model_.saver;
    lh::Supervisor sv(options);
    sv.managed_session([&](lh::Session& session) {
      begin(session);
      while (at_ < last_) {
        make_step(session);
        if (every_ > 0 && (at_ - begins_) % every_ == 0) sv.saver()->save(session, sv.save_path(), sv.global_step());
      }
      if (every_ > 0) hold();
    });
  }

  void run_monitored() {
    lh::ScaffoldOptions scaffold;
    if (model_.saver) scaffold.saver = model_.saver;
    const lh::MonitoredTrainingSessionOptions options{.graph = &graph_,
                                                      .checkpoint_dir = logdir_,
                                                      .scaffold = std::make_shared<lh::Scaffold>(scaffold),
                                                      .save_checkpoint_steps = every_ > 0 ? every_ : 1000000,
                                                      .save_summaries_steps = 0,
                                                      .log_step_count_steps = 0};
    lh::monitored_training_session(options, [&](lh::MonitoredSession& session) {
      session.run_step_fn([&](lh::StepContext& context) { begin(context.session()); });
      while (at_ < last_) make_step(session);
      if (every_ > 0) hold();
    });
  }

 private:
  void begin(lh::Session& session) {
    begins_ = at_ = session.run(model_.step).item<int64_t>();
    say(fmt::format("begins at step {}", at_));
  }

  template <typename AnySession>
  void make_step(AnySession& session) {
    const lh::Tensor loss = session.run(std::vector<lh::Fetch>{model_.loss, model_.train}, model_.batch(at_))[0];
    const double value = loss.dtype() == lh::kDouble ? loss.item<double>() : loss.item<float>();
    say(fmt::format("step {} loss {:.17g}", ++at_, value));
  }

  [[noreturn]] static void hold() {
    say("holds");
    while (true) ::pause();
  }

  const std::string logdir_;
  const int64_t last_, every_;
  lh::Graph graph_;
  const Model model_;
  int64_t begins_ = 0, at_ = 0;
};

int serve() {
  const auto server = lh::Server::create_local_server();
  say("target " + server->target());
  server->join();
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  try {
    if (arguments.size() == 2 && arguments[0] == "import") {
      lh::Graph graph;
      lh::import_meta_graph(graph, arguments[1]);
      return 0;
    }
    if (arguments == std::vector<std::string>{"serve"}) return serve();
    if (arguments.size() < 5) return 2;
    const int64_t every = arguments.size() > 5 ? std::stoll(arguments[5]) : 0;
    Training training(arguments[1], arguments[2], arguments[3], std::stoll(arguments[4]), every);
    if (arguments[0] == "monitored") {
      training.run_monitored();
    } else {
      training.run_supervised();
    }
    return 0;
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
}
