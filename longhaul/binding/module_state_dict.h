#pragma once

#include <string>
#include <vector>

#include "longhaul/checkpoint/state_dict/state_dict.h"
#include "longhaul/io/files/file.h"

namespace torch::nn {
class Module;
}

namespace longhaul {

// Writes the module's parameters and buffers by PyTorch's names, in the form that the path's ending or `options.format`
// says: for torch.load() in Python, torch::load() in C++, or as safetensors (checkpoint/state_dict/state_dict.h has the
// options, the errors and the commit).
//
//   save_state_dict(*net, "net.pt");  // Python: net.load_state_dict(torch.load("net.pt"))
//
// Tied parameters are written under each of their names. The module must not change meanwhile: a program that trains
// exports a checkpoint instead (export_state_dict), or calls this between two steps.
StateDictReport save_state_dict(const torch::nn::Module& module, const std::string& path,
                                const StateDictOptions& options = {}, FileSystem& files = FileSystem::real());

enum class StateDictMatch {
  kStrict,  // the file and the module have the same names
  kCommon,  // what only one of them has is left out, and logged; at least one name is common
};

// Copies the tensors of a file that PyTorch wrote, or save_state_dict(), into the module's parameters and buffers of
// the same names. A training starts from such a file if this is called before torch_training(): a run that has a
// checkpoint of its own replaces the values again. Later, and above all within a session, it would itself replace what
// was restored or trained, at each restart anew; a warning says so.
//
//   load_state_dict(*net, "pretrained.pt");
//   load_state_dict(*net, "checkpoint.pt", {.dict = "model"});  // torch.save({"model": model.state_dict(), ...}, path)
//
// A floating-point tensor is converted to the parameter's floating-point dtype, as in PyTorch; the log says so once.
//
// InvalidArgumentError: the file does not fit; the message lists all names that are missing or unexpected, and all
// shapes and dtypes that differ. Other errors are those of load_state_dict(path). After an error nothing was changed.
// Takes the memory of the file's tensors. One thread at a time may use the module.
StateDictReport load_state_dict(torch::nn::Module& module, const std::string& path,
                                const StateDictOptions& options = {}, StateDictMatch match = StateDictMatch::kStrict,
                                FileSystem& files = FileSystem::real());

// The same from memory: what state_dict() has returned, or the tensors of published weights (NewestWeights), for a
// thread's own copy of the module:
//
//   load_state_dict(*net, weights->tensors);
//
// Only copies; no file is read, and nothing is logged if all fits.
void load_state_dict(torch::nn::Module& module, const StateDict& tensors,
                     StateDictMatch match = StateDictMatch::kStrict);

// The module's parameters and buffers by PyTorch's names, as copies that later steps do not change. The module must not
// change meanwhile. InvalidArgumentError: one has a dtype or a layout that longhaul::Tensor lacks.
StateDict state_dict(const torch::nn::Module& module);

}  // namespace longhaul
