// Uses the whole library: trains under a Supervisor for a few steps, twice, and looks at what is on the disk.
#include <longhaul/longhaul.h>
#include <longhaul/torch.h>

#include <filesystem>
#include <iostream>

namespace lh = longhaul;
namespace ops = longhaul::ops;

namespace {

// Trains until `last_step`; where it started.
int64_t train(const std::string& logdir, int64_t last_step) {
  lh::Graph graph;
  lh::Scope root(graph);
  auto x = ops::placeholder(root, lh::kFloat, {-1, 16}, "x");
  auto loss = ops::mse_loss(root, ops::dense(root, x, 1, "model"), ops::sum(root, x, {1}, true));
  auto step = ops::global_step(root);
  auto train_op = lh::AdamOptimizer().minimize(loss, step);

  int64_t first_step = -1;
  lh::Supervisor sv({.graph = &graph, .logdir = logdir});
  sv.managed_session([&](lh::Session& session) {
    first_step = session.run(step).item<int64_t>();
    auto train_step = session.make_callable(train_op, {x});
    for (int64_t i = first_step; i < last_step && !sv.should_stop(); ++i) train_step(lh::to_tensor(at::rand({32, 16})));
  });
  return first_step;
}

int64_t saved_step(const std::string& prefix) {
  return lh::BundleReader(lh::FileSystem::real(), prefix).read("global_step").item<int64_t>();
}

}  // namespace

int main() {
  const std::string logdir = "consumer_training";
  std::filesystem::remove_all(logdir);
  const int64_t first_start = train(logdir, 5);
  const int64_t second_start = train(logdir, 8);
  const int64_t saved = saved_step(logdir + "/model.ckpt-8");
  std::filesystem::remove_all(logdir);
  std::cout << "started at " << first_start << " and " << second_start << ", saved " << saved << "\n";
  return first_start == 0 && second_start == 5 && saved == 8 ? 0 : 1;
}
