#include "longhaul/runtime/kernels/update_loops.h"

#include <ATen/Parallel.h>

#include <cmath>

// One version for processors with AVX2, chosen when the program is loaded. (The sanitizers' start-up code does not bear
// that.)
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(LONGHAUL_SANITIZED)
#define LONGHAUL_VECTORIZED __attribute__((target_clones("arch=haswell", "default")))
#else
#define LONGHAUL_VECTORIZED
#endif

namespace longhaul::update_loops {
namespace {

constexpr int64_t kGrain = 1 << 16;  // elements for which another thread is worth waking

// The loops themselves, for the elements [begin, end). Templates cannot have clones, hence the macro for float and
// double.
#define LONGHAUL_LOOPS(T)                                                                                             \
  LONGHAUL_VECTORIZED void descend(int64_t begin, int64_t end, const T* var, T* var_out, const T* grad, T rate) {     \
    _Pragma("GCC ivdep") for (int64_t i = begin; i < end; ++i) var_out[i] = var[i] - rate * grad[i];                  \
  }                                                                                                                   \
  LONGHAUL_VECTORIZED void move(int64_t begin, int64_t end, const T* var, T* var_out, const T* acc, T* acc_out,       \
                                const T* grad, T rate, T momentum, T gradient_share, T accumulator_share) {           \
    _Pragma("GCC ivdep") for (int64_t i = begin; i < end; ++i) {                                                      \
      const T sum = momentum * acc[i] + grad[i];                                                                      \
      var_out[i] = var[i] - rate * (gradient_share * grad[i] + accumulator_share * sum);                              \
      acc_out[i] = sum;                                                                                               \
    }                                                                                                                 \
  }                                                                                                                   \
  LONGHAUL_VECTORIZED void adapt(int64_t begin, int64_t end, const T* var, T* var_out, const T* m, T* m_out,          \
                                 const T* v, T* v_out, const T* grad, T rate, T beta1, T beta2, T epsilon) {          \
    _Pragma("GCC ivdep") for (int64_t i = begin; i < end; ++i) {                                                      \
      const T first = m[i] + (1 - beta1) * (grad[i] - m[i]);                                                          \
      const T second = v[i] + (1 - beta2) * (grad[i] * grad[i] - v[i]);                                               \
      var_out[i] = var[i] - rate * first / (std::sqrt(second) + epsilon);                                             \
      m_out[i] = first;                                                                                               \
      v_out[i] = second;                                                                                              \
    }                                                                                                                 \
  }                                                                                                                   \
  LONGHAUL_VECTORIZED void scale(int64_t begin, int64_t end, const T* var, T* var_out, const T* acc, T* acc_out,      \
                                 const T* grad, T rate) {                                                             \
    _Pragma("GCC ivdep") for (int64_t i = begin; i < end; ++i) {                                                      \
      const T sum = acc[i] + grad[i] * grad[i];                                                                       \
      var_out[i] = var[i] - rate * grad[i] / std::sqrt(sum);                                                          \
      acc_out[i] = sum;                                                                                               \
    }                                                                                                                 \
  }                                                                                                                   \
  LONGHAUL_VECTORIZED void propagate(int64_t begin, int64_t end, const T* var, T* var_out, const T* ms, T* ms_out,    \
                                     const T* mom, T* mom_out, const T* grad, T rate, T rho, T momentum, T epsilon) { \
    _Pragma("GCC ivdep") for (int64_t i = begin; i < end; ++i) {                                                      \
      const T square = ms[i] + (1 - rho) * (grad[i] * grad[i] - ms[i]);                                               \
      const T moment = momentum * mom[i] + rate * grad[i] / std::sqrt(square + epsilon);                              \
      var_out[i] = var[i] - moment;                                                                                   \
      ms_out[i] = square;                                                                                             \
      mom_out[i] = moment;                                                                                            \
    }                                                                                                                 \
  }
LONGHAUL_LOOPS(float)
LONGHAUL_LOOPS(double)
#undef LONGHAUL_LOOPS

template <typename Loop>
void split(int64_t count, const Loop& loop) {
  if (count <= kGrain) return loop(0, count);
  at::parallel_for(0, count, kGrain, loop);
}

}  // namespace

template <typename T>
void gradient_descent(int64_t count, State<T> variable, const T* gradient, T rate) {
  split(count, [=](int64_t begin, int64_t end) { descend(begin, end, variable.in, variable.out, gradient, rate); });
}

template <typename T>
void momentum(int64_t count, State<T> variable, State<T> accumulator, const T* gradient, T rate, T momentum,
              bool nesterov) {
  split(count, [=](int64_t begin, int64_t end) {
    move(begin, end, variable.in, variable.out, accumulator.in, accumulator.out, gradient, rate, momentum,
         T(nesterov ? 1 : 0), nesterov ? momentum : T(1));
  });
}

template <typename T>
void adam(int64_t count, State<T> variable, State<T> m, State<T> v, const T* gradient, T rate, T beta1, T beta2,
          T epsilon) {
  split(count, [=](int64_t begin, int64_t end) {
    adapt(begin, end, variable.in, variable.out, m.in, m.out, v.in, v.out, gradient, rate, beta1, beta2, epsilon);
  });
}

template <typename T>
void adagrad(int64_t count, State<T> variable, State<T> accumulator, const T* gradient, T rate) {
  split(count, [=](int64_t begin, int64_t end) {
    scale(begin, end, variable.in, variable.out, accumulator.in, accumulator.out, gradient, rate);
  });
}

template <typename T>
void rmsprop(int64_t count, State<T> variable, State<T> mean_square, State<T> moment, const T* gradient, T rate, T rho,
             T momentum, T epsilon) {
  split(count, [=](int64_t begin, int64_t end) {
    propagate(begin, end, variable.in, variable.out, mean_square.in, mean_square.out, moment.in, moment.out, gradient,
              rate, rho, momentum, epsilon);
  });
}

#define LONGHAUL_INSTANTIATE(T)                                                       \
  template void gradient_descent<T>(int64_t, State<T>, const T*, T);                  \
  template void momentum<T>(int64_t, State<T>, State<T>, const T*, T, T, bool);       \
  template void adam<T>(int64_t, State<T>, State<T>, State<T>, const T*, T, T, T, T); \
  template void adagrad<T>(int64_t, State<T>, State<T>, const T*, T);                 \
  template void rmsprop<T>(int64_t, State<T>, State<T>, State<T>, const T*, T, T, T, T);
LONGHAUL_INSTANTIATE(float)
LONGHAUL_INSTANTIATE(double)
#undef LONGHAUL_INSTANTIATE

}  // namespace longhaul::update_loops
