// Files that PyTorch and Longhaul write for each other: read equal bit for bit on the other side. And the Python of the
// guide, which evaluates what a program of the guide has trained.
//
// LONGHAUL_PYTORCH is a Python with PyTorch 1.13 or later.

#include <gmock/gmock.h>
#include <longhaul/longhaul.h>
#include <longhaul/torch.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>
#include <torch/utils.h>

#include <algorithm>
#include <cstdlib>
#include <map>

#include "longhaul/testing/needs_fixture.h"
#include "longhaul/testing/temporary_directory.h"
#include "tests/process.h"

namespace longhaul {
namespace {

using testing::Process;

std::string text_of(const std::string& path) {
  return read_file(FileSystem::real(), path);
}

// "name float16 [2,3] 00ff...", as pytorch_files.py writes it.
std::string line_of(const std::string& name, const Tensor& tensor) {
  static const std::map<DType, std::string> names = {{kFloat, "float32"}, {kDouble, "float64"}, {kHalf, "float16"}};
  const auto found = names.find(tensor.dtype());
  const std::string dtype = found == names.end() ? dtype_name(tensor.dtype()) : found->second;
  std::string hexadecimal;
  const auto* bytes = static_cast<const unsigned char*>(tensor.data());
  for (size_t i = 0; i < tensor.size_bytes(); ++i) hexadecimal += fmt::format("{:02x}", bytes[i]);
  return fmt::format("{} {} {} {}\n", name, dtype, tensor.shape().to_string(), hexadecimal.empty() ? "-" : hexadecimal);
}

std::string lines_of(const StateDict& dict, const std::string& start = "") {
  std::string lines;
  for (const auto& [name, tensor] : dict) {
    if (name.starts_with(start)) lines += line_of(name, tensor);
  }
  return lines;
}

class PyTorch : public ::testing::Test {
 protected:
  void SetUp() override {
    python_ = std::getenv("LONGHAUL_PYTORCH");
    LONGHAUL_NEEDS("pytorch", python_ != nullptr, "LONGHAUL_PYTORCH names no Python that has PyTorch");
  }

  std::string file(const std::string& name) const { return directory_.file(name); }
  std::string run(const std::vector<std::string>& command) const {
    Process process(command, file("output"));
    EXPECT_EQ(process.wait(std::chrono::seconds(300)), 0) << process.errors();
    return process.output();
  }
  std::string files(const std::string& verb) const { return run({python_, PYTORCH_FILES, verb, directory_.path()}); }

  // The block of Python below <!-- python: NAME --> in the guide, run in the directory.
  std::string run_block(const std::string& name) const {
    const std::string page = text_of(EXCHANGE_PAGE), marker = "<!-- python: " + name + " -->\n```python\n";
    const size_t marked = page.find(marker);
    EXPECT_NE(marked, page.npos) << name;
    const size_t begin = marked + marker.size(), end = page.find("```", begin);
    const std::string lines = page.substr(begin, end - begin);
    EXPECT_LE(std::count(lines.begin(), lines.end(), '\n'), 5) << "the page speaks of five lines";
    return run({python_, "-c", "import os\nos.chdir('" + directory_.path() + "')\n" + lines});
  }

  const char* python_ = nullptr;
  const testing::TemporaryDirectory directory_;
};

TEST_F(PyTorch, EachKindOfTensorIsReadAsItWasSavedAndIsReadThereAsItWasWritten) {
  files("save");
  const StateDict kinds = load_state_dict(file("kinds.pt"));
  EXPECT_EQ(lines_of(kinds), text_of(file("kinds.txt")));
  save_state_dict(kinds, file("copy.pt"));
  EXPECT_EQ(files("compare"), text_of(file("kinds.txt")));
}

TEST_F(PyTorch, ACheckpointOfModelAndOptimizerIsReadAndConverted) {
  files("save");
  StateDict tensors = load_state_dict(file("checkpoint.pt"));
  EXPECT_EQ(load_state_dict(file("checkpoint.pt"), {.dict = "optimizer/param_groups/0"})[0].second.item<double>(),
            0.01);
  std::erase_if(
      tensors, [](const auto& one) { return one.first == "epoch" || one.first.starts_with("optimizer/param_groups"); });
  EXPECT_EQ(lines_of(tensors), text_of(file("checkpoint.txt")));
  import_state_dict(file("checkpoint.pt"), file("imported"));
  EXPECT_EQ(load_variable(file("imported"), "epoch").item<int64_t>(), 3);
  torch::nn::Sequential net(torch::nn::Linear(2, 3), torch::nn::BatchNorm1d(3));
  EXPECT_EQ(load_state_dict(*net, file("checkpoint.pt"), {.dict = "model"}).names.size(), 7u);
}

TEST_F(PyTorch, AnArchiveForCppIsATorchScriptModuleThere) {
  torch::nn::Sequential net(torch::nn::Linear(2, 3), torch::nn::BatchNorm1d(3));
  save_state_dict(*net, file("module.pt"), {.format = StateDictFormat::kTorchModule});
  const std::string names = files("module");
  for (const auto& parameter : net->named_parameters()) {
    const double sum = parameter.value().to(torch::kDouble).sum().item<double>();
    EXPECT_THAT(names, ::testing::HasSubstr(fmt::format("{} {:.6f}\n", parameter.key(), sum)));
  }
}

TEST_F(PyTorch, TheFiveLinesOfTheGuideEvaluateWhatTheGuidesProgramTrained) {
  const std::string trained = run({"/bin/sh", "-c", "cd \"$0\" && exec \"$1\"", directory_.path(), STATE_DICT_EXAMPLE});
  const std::string evaluated = run_block("evaluate");
  EXPECT_EQ(trained.substr(0, trained.find('\n') + 1), evaluated);
  EXPECT_THAT(trained, ::testing::HasSubstr("the same: true"));
}

TEST_F(PyTorch, WhatTheGuidesPythonSavesIsEvaluatedHere) {
  const std::string expected = run_block("save");
  torch::nn::Sequential net(torch::nn::Linear(2, 8), torch::nn::ReLU(), torch::nn::Linear(8, 1));
  load_state_dict(*net, file("pretrained.pt"));
  EXPECT_EQ(fmt::format("{:.4f}\n", net->forward(torch::ones({1, 2})).item<float>()), expected);
}

}  // namespace
}  // namespace longhaul
