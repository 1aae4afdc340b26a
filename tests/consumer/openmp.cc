// Has parallel loops of its own, before the first session, during a training and after it.
#include <longhaul/longhaul.h>
#include <omp.h>

#include <algorithm>
#include <atomic>
#include <iostream>
#include <vector>

namespace lh = longhaul;
namespace ops = longhaul::ops;

namespace {

constexpr int kThreads = 3;  // more than the library chooses on a small machine
constexpr int kSize = 192;

bool all_hold = true;

void expect(bool holds, const std::string& what) {
  if (holds) return;
  std::cout << "failed: " << what << "\n";
  all_hold = false;
}

// The square of a matrix of small integers: exact in floats.
std::vector<float> square(const std::vector<float>& a, const std::string& when) {
  std::vector<float> product(a.size());
  std::atomic<int> used{0};
#pragma omp parallel num_threads(kThreads)
  {
    used = omp_get_num_threads();
#pragma omp for
    for (int i = 0; i < kSize; ++i)
      for (int j = 0; j < kSize; ++j)
        for (int k = 0; k < kSize; ++k) product[i * kSize + j] += a[i * kSize + k] * a[k * kSize + j];
  }
  expect(used == kThreads, when + " a loop has " + std::to_string(used) + " threads");
  return product;
}

int threads_without_clause() {
  std::atomic<int> used{0};
#pragma omp parallel
  used = omp_get_num_threads();
  return used;
}

// Halves a variable's distance to 3 in each step, and computes the product of matrices as a loop does.
void train(const std::vector<float>& a) {
  lh::Graph graph;
  lh::Scope root(graph);
  auto w = ops::variable(root, "w", lh::Tensor::scalar(67.F));
  auto train_op = lh::GradientDescentOptimizer(0.25).minimize(ops::square(root, ops::sub(root, w, 3)));
  auto matrix = ops::placeholder(root, lh::kFloat, {kSize, kSize}, "matrix");
  auto product = ops::matmul(root, matrix, matrix);
  const auto steps = [&](lh::Session& session) {
    const auto fed = lh::Tensor::of<float>({kSize, kSize}, a);
    for (int i = 0; i < 4; ++i) {
      session.run(train_op);
      const lh::Tensor computed = session.run(product, {{matrix, fed}});
      expect(std::ranges::equal(computed.flat<float>(), square(a, "during the training")),
             "the session's product is the loop's");
    }
    expect(session.run(w).item<float>() == 7.F, "the variable is trained");
  };
  lh::Supervisor sv({.graph = &graph});
  sv.managed_session(steps, {.start_standard_services = false});
}

}  // namespace

int main() {
  std::vector<float> a(kSize * kSize);
  for (size_t i = 0; i < a.size(); ++i) a[i] = static_cast<float>(i % 7);
  omp_set_dynamic(0);
  const auto before = square(a, "before the first session");
  std::cout << "loops without a clause have " << threads_without_clause() << " threads, ";
  train(a);
  std::cout << "after the first session " << threads_without_clause() << "\n";
  expect(before == square(a, "after the training"), "the products before and after are the same");
  omp_set_num_threads(kThreads);
  expect(threads_without_clause() == kThreads, "a loop has the number that the program sets");
  return all_hold ? 0 : 1;
}
