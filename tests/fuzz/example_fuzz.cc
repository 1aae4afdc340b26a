// tf.Example messages, each with its length.
#include "longhaul/base/error.h"
#include "longhaul/host/parsing/example.h"
#include "tests/fuzz/input.h"

namespace {

using namespace longhaul;

ExampleSpec wanted() {
  return {.sparse = {{"i", kInt64}, {"s", kString}, {"f", kFloat}},
          .dense = {{"pair", kFloat, {2}, Tensor::of<float>({0.5f})},
                    {"label", kInt64, {}, Tensor::of<int64_t>({7})},
                    {"words", kString, {-1}, {}},
                    {"points", kFloat, {-1, 2}, Tensor::of<float>({-1})}}};
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const ExampleSpec spec = wanted();
  fuzz::Input input(data, size);
  std::vector<std::string> examples;
  while (!input.empty()) examples.push_back(input.counted_bytes());
  try {
    parse_examples(Tensor::of<std::string>(examples), Tensor(), spec);
  } catch (const Error&) {
  }
  for (const std::string& example : examples) {
    try {
      parse_single_example(example, spec);
    } catch (const Error&) {
    }
  }
  return 0;
}
