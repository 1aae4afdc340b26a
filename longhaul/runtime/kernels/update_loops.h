#pragma once

#include <cstdint>

namespace longhaul::update_loops {

// The optimizers' arithmetic on contiguous memory, with TensorFlow's formulas (training_ops.cc, documented at
// ApplyGradientDescent and so on). Each reads *_in and writes *_out, which may be the same memory. T is float or
// double. They split large arrays among libtorch's threads.

template <typename T>
struct State {  // of a variable or a slot
  const T* in;
  T* out;
};

// variable -= rate * gradient
template <typename T>
void gradient_descent(int64_t count, State<T> variable, const T* gradient, T rate);

// accumulator = momentum * accumulator + gradient; variable -= rate * accumulator, or with Nesterov's look-ahead
// variable -= rate * (gradient + momentum * accumulator)
template <typename T>
void momentum(int64_t count, State<T> variable, State<T> accumulator, const T* gradient, T rate, T momentum,
              bool nesterov);

// m += (1 - beta1) (gradient - m); v += (1 - beta2) (gradient^2 - v); variable -= rate * m / (sqrt(v) + epsilon), where
// `rate` includes the bias correction. Kingma & Ba, https://arxiv.org/abs/1412.6980, the form before section 2.1.
template <typename T>
void adam(int64_t count, State<T> variable, State<T> m, State<T> v, const T* gradient, T rate, T beta1, T beta2,
          T epsilon);

// accumulator += gradient^2; variable -= rate * gradient / sqrt(accumulator). Duchi et al., JMLR 12 (2011).
template <typename T>
void adagrad(int64_t count, State<T> variable, State<T> accumulator, const T* gradient, T rate);

// mean_square += (1 - rho) (gradient^2 - mean_square); moment = momentum * moment + rate * gradient / sqrt(mean_square
// + epsilon); variable -= moment
template <typename T>
void rmsprop(int64_t count, State<T> variable, State<T> mean_square, State<T> moment, const T* gradient, T rate, T rho,
             T momentum, T epsilon);

}  // namespace longhaul::update_loops
