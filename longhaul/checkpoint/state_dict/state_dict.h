#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "longhaul/io/files/file.h"
#include "longhaul/tensor/tensor.h"

namespace longhaul {

// Files of weights that PyTorch programs write and read: torch.save(model.state_dict(), path) in Python,
// torch::save(module, path) in C++, and safetensors. The guide: docs/guide/exchange.md. A program with a libtorch
// module of its own has save_state_dict(module, path) and load_state_dict(module, path) (longhaul/torch.h).

// How a file is written. A file that is read shows its form itself.
enum class StateDictFormat {
  kByEnding,     // kSafetensors if the path ends in ".safetensors", else kTorch
  kTorch,        // torch.save() of a dict in Python: torch.load(path, weights_only=True) reads it
  kTorchModule,  // torch::save() of a module in C++: torch::load(module, path) reads it
  kSafetensors,
};

struct StateDictOptions {
  // Returns the name of a tensor on the other side, or nullopt to leave it out. Empty: all names are kept; an export of
  // a checkpoint has only those of a bound module (module_tensor_name).
  std::function<std::optional<std::string>(const std::string& name)> rename{};

  // Whether a tensor whose dtype the other side lacks is left out and reported. false: it is an error.
  bool skip_unsupported = false;

  // Of a file with dicts in a dict, the one that is read: "model", "model/ema". `rename` is called with the names in
  // it. Empty: all, with names such as "model/0.weight". Not for safetensors.
  std::string dict{};

  StateDictFormat format = StateDictFormat::kByEnding;  // of a file that is written
};

struct StateDictReport {
  std::vector<std::string> names;    // new names of the copied tensors; sorted
  std::vector<std::string> skipped;  // old names of the tensors that `skip_unsupported` left out; sorted
  uint64_t bytes = 0;                // of the tensors
};

// A model's tensors by name ("0.weight"), in the order of the file.
using StateDict = std::vector<std::pair<std::string, Tensor>>;

// Writes the module in a checkpoint as a state dict. The first argument is the prefix of the checkpoint, or a
// directory, which stands for the latest checkpoint there.
//
//   export_state_dict("runs/net", "net.pt");           // Python: net.load_state_dict(torch.load("net.pt"))
//   export_state_dict("runs/net", "net.safetensors");
//
// Verifies the checksum of each tensor. Of a checkpoint of torch_training() the file gets the parameters and buffers,
// and not the optimizer's state, nor what else a restart needs; a module that was bound in a scope, or a graph's
// variables, need a `rename`. At any time, memory holds tensors of up to 64 MiB together, or a single larger one, and
// those on their way to the disk. The same checkpoint gives the same bytes.
//
// A crash or an error at any moment leaves the old file, or none if there was none, or the new one, intact
// (write_committed_file).
//
// NotFoundError: no such checkpoint, or without a `rename` it has no tensor of a module. InvalidArgumentError: two
// tensors get the same name, or one gets a name that such files cannot have. UnimplementedError: they lack its dtype.
// Other errors are those of BundleReader and the file system. Any thread may call.
StateDictReport export_state_dict(const std::string& prefix_or_directory, const std::string& path,
                                  const StateDictOptions& options = {}, FileSystem& files = FileSystem::real());

// Converts such a file into a checkpoint, which init_from_checkpoint(), a Saver, or TensorFlow reads. Numbers and texts
// of the file become scalars: int64, double, bool and strings. The keys of dicts in dicts are joined by '/':
// "optimizer/state/0/exp_avg". It is committed like any other checkpoint (bundle_writer.h), but no state file names it.
// Nothing in the file is executed, and objects of other classes than state dicts need are refused by name.
//
// NotFoundError: no such file, or no such `dict` in it. DataLossError: the file is damaged, or none of these.
// UnimplementedError: it is intact, but not supported. InvalidArgumentError: two tensors get the same name, or one gets
// a name that checkpoints cannot have. Other errors are those of BundleWriter.
StateDictReport import_state_dict(const std::string& path, const std::string& prefix,
                                  const StateDictOptions& options = {}, FileSystem& files = FileSystem::real());

// Reads all of such a file into memory. Errors as those of import_state_dict().
StateDict load_state_dict(const std::string& path, const StateDictOptions& options = {},
                          FileSystem& files = FileSystem::real());

// Writes such a file from memory. Errors and the commit as those of export_state_dict().
StateDictReport save_state_dict(const StateDict& tensors, const std::string& path, const StateDictOptions& options = {},
                                FileSystem& files = FileSystem::real());

// The tensors of a bound module by their names in a checkpoint: these have no '/', and are not "global_step". nullopt:
// it is none. For a `rename`, such as that of a module bound in the scope "net":
//
//   const auto rename = [](const std::string& name) -> std::optional<std::string> {
//     return name.starts_with("net/") ? module_tensor_name(name.substr(4)) : std::nullopt;
//   };
std::optional<std::string> module_tensor_name(const std::string& name);

}  // namespace longhaul
