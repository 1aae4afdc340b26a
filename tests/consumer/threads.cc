// threads [VARIABLE | program]: trains twice and compares what the log says of threads, once, with what libtorch and
// OpenBLAS say themselves and with what is recorded beside the checkpoint. VARIABLE of the environment is set, or
// the program sets libtorch: then all is left as it was.
#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <dlfcn.h>
#include <longhaul/longhaul.h>
#include <longhaul/torch.h>

#include <filesystem>
#include <iostream>
#include <regex>

namespace lh = longhaul;
namespace ops = longhaul::ops;
namespace fs = std::filesystem;

namespace {

bool all_hold = true;

void expect(bool holds, const std::string& what) {
  if (holds) return;
  std::cout << "failed: " << what << "\n";
  all_hold = false;
}

// Of OpenBLAS; nothing: none is loaded.
std::optional<int> openblas_threads() {
  auto* const get = reinterpret_cast<int (*)()>(dlsym(RTLD_DEFAULT, "openblas_get_num_threads"));
  return get != nullptr ? std::optional(get()) : std::nullopt;
}

// One with POSIX threads starts them when it is loaded, before main(); with OpenMP none runs yet.
bool threads_run_already() {
  return std::distance(fs::directory_iterator("/proc/self/task"), fs::directory_iterator()) > 1;
}

void train(const std::string& logdir, int64_t last_step) {
  lh::Graph graph;
  lh::Scope root(graph);
  auto x = ops::placeholder(root, lh::kFloat, {-1, 16}, "x");
  auto loss = ops::mse_loss(root, ops::dense(root, x, 1, "model"), ops::sum(root, x, {1}, true));
  auto train_op = lh::AdamOptimizer().minimize(loss, ops::global_step(root));
  lh::Supervisor sv({.graph = &graph, .logdir = logdir});
  sv.managed_session([&](lh::Session& session) {
    auto train_step = session.make_callable(train_op, {x});
    for (int64_t i = 0; i < last_step && !sv.should_stop(); ++i) train_step(lh::to_tensor(at::rand({32, 16})));
  });
}

// The one line about threads that two sessions log.
std::string logged_line(const std::string& logdir) {
  std::vector<std::string> lines;
  lh::set_log_sink([&](lh::LogLevel level, const std::string& message) {
    if (level >= lh::LogLevel::kInfo && message.find("each operation uses") != std::string::npos)
      lines.push_back(message);
  });
  train(logdir, 2);
  train(logdir, 2);
  lh::set_log_sink(nullptr);
  expect(lines.size() == 1, std::to_string(lines.size()) + " lines about threads");
  return lines.empty() ? "" : lines.front();
}

void expect_recorded(const std::string& prefix) {
  const auto record = lh::recorded_environment(lh::FileSystem::real(), prefix);
  if (!record) return expect(false, "there is a record beside " + prefix);
  const auto entry = [&](const std::string& name) { return record->contains(name) ? record->at(name) : "none"; };
  const auto blas = openblas_threads();
  expect(entry("threads") == std::to_string(at::get_num_threads()), "threads recorded: " + entry("threads"));
  expect(entry("BLAS threads") == (blas ? std::to_string(*blas) : "none"),
         "BLAS threads recorded: " + entry("BLAS threads"));
}

void expect_choice(const std::string& line, bool openblas_has_threads) {
  const bool is_choice = !line.ends_with("may use 1 processor");
  const bool says_so = line.find("OpenBLAS has threads of its own") != std::string::npos;
  expect(says_so == (openblas_has_threads && is_choice), "OpenBLAS is the reason where it has threads of its own");
  if (openblas_has_threads) expect(at::get_num_threads() == 1 && openblas_threads() == 1, "both use one thread");
}

}  // namespace

int main(int argc, char** argv) {
  const std::string set_by = argc > 1 ? argv[1] : "";
  const bool openblas_has_threads = threads_run_already() && openblas_threads() && !at::hasMKL();
  if (set_by == "program") at::set_num_threads(at::get_num_threads() + 1);
  const auto blas_before = openblas_threads();
  const int before = set_by.empty() ? 0 : at::get_num_threads();  // asking settles it

  const std::string logdir = "consumer_threads";
  fs::remove_all(logdir);
  const std::string line = logged_line(logdir);
  std::cout << line << "\n";
  std::smatch number;
  const bool found = std::regex_search(line, number, std::regex("each operation uses (\\d+) thread"));
  expect(found && number[1] == std::to_string(at::get_num_threads()),
         "libtorch uses as many as the line says: " + std::to_string(at::get_num_threads()));
  expect_recorded(logdir + "/model.ckpt-2");
  fs::remove_all(logdir);

  if (set_by.empty()) {
    expect_choice(line, openblas_has_threads);
  } else {
    expect(at::get_num_threads() == before && openblas_threads() == blas_before, "both are left alone");
    expect(line.ends_with(set_by == "program" ? "as set in libtorch" : set_by + " is set"), "the line says why");
  }
  return all_hold ? 0 : 1;
}
