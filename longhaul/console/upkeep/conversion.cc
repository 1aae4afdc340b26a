#include "longhaul/console/upkeep/conversion.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <regex>

#include "longhaul/base/size_text.h"
#include "longhaul/checkpoint/bundle/bundle_reader.h"
#include "longhaul/checkpoint/bundle/bundle_writer.h"
#include "longhaul/checkpoint/directory/checkpoint_reader.h"
#include "longhaul/checkpoint/files/checkpoint_files.h"
#include "longhaul/checkpoint/safetensors/safetensors.h"
#include "longhaul/checkpoint/state_dict/state_dict.h"
#include "longhaul/console/checkpoints/tensor_source.h"
#include "longhaul/console/text/shown_text.h"
#include "longhaul/io/lock/directory_lock.h"

namespace longhaul::console {
namespace {

constexpr size_t kLongestPattern = 1000;  // it takes stack too
constexpr size_t kLongestName = 4096;     // that a regular expression is tried on: it takes stack for each byte

std::regex compiled(const std::string& pattern) {
  if (pattern.size() > kLongestPattern) {
    throw InvalidArgumentError(fmt::format("the pattern '{}' is too long: it has {} bytes, and {} are allowed",
                                           shown(pattern, 60), pattern.size(), kLongestPattern));
  }
  try {
    return std::regex(pattern);
  } catch (const std::regex_error& error) {
    throw InvalidArgumentError(fmt::format("'{}' is no regular expression: {}", shown(pattern), error.what()));
  }
}

// A link to nothing is there too, and would be replaced.
bool is_taken(FileSystem& files, const std::string& path) {
  const std::vector<std::string> names = names_in(files, directory_name(path));
  return files.exists(path) || std::find(names.begin(), names.end(), base_name(path)) != names.end();
}

bool is_taken_by_checkpoint(FileSystem& files, const std::string& prefix) {
  return committed_prefix(files, prefix) || is_taken(files, index_path(prefix)) ||
         !data_files_of(files, prefix).empty();
}

// A prefix is the beginning of the names of a checkpoint's files: what has exactly that name is something else.
void check_prefix(FileSystem& files, const std::string& to) {
  if (!files.exists(to)) return;
  throw InvalidArgumentError(fmt::format(
      "{} is {}, and the files of a checkpoint would only begin with that name: TO is a file of weights (.safetensors, "
      ".pt, .pth) or a prefix that names nothing yet{}",
      to, files.is_directory(to) ? "a directory" : "a file",
      files.is_directory(to) ? ", as " + to + "/model.ckpt-0 is" : ""));
}

using Rename = std::function<std::optional<std::string>(const std::string& name)>;

struct CompiledRule {
  std::regex pattern;
  std::string replacement;
};

Rename rename_by(const ConversionOptions& options) {
  if (options.rules.empty() && options.only.empty()) return {};
  std::vector<CompiledRule> rules;
  for (const NameRule& rule : options.rules) rules.push_back({compiled(rule.pattern), rule.replacement});
  std::optional<std::regex> only;
  if (!options.only.empty()) only = compiled(options.only);
  return [rules, only](const std::string& name) -> std::optional<std::string> {
    if (name.size() > kLongestName) {
      throw InvalidArgumentError(fmt::format("the name {} is too long for a rule", shown(name)));
    }
    if (only && !std::regex_search(name, *only)) return std::nullopt;
    for (const CompiledRule& rule : rules) {
      if (std::regex_search(name, rule.pattern)) return std::regex_replace(name, rule.pattern, rule.replacement);
    }
    return name;
  };
}

// The module's tensors under their own names, and then by the rules.
Rename of_module(const Rename& rename) {
  return [rename](const std::string& name) -> std::optional<std::string> {
    const auto own = module_tensor_name(name);
    return own && rename ? rename(*own) : own;
  };
}

bool is_file_of_weights(const std::string& path) {
  return path.ends_with(".safetensors") || path.ends_with(".pt") || path.ends_with(".pth");
}

struct Copied {
  std::vector<std::string> names, skipped;
  uint64_t bytes = 0;
};

template <typename From>
Copied to_copied(From report) {
  return {std::move(report.names), std::move(report.skipped), report.bytes};
}

Copied copy_checkpoint_renamed(FileSystem& files, const ConversionOptions& options, const Rename& rename) {
  const CheckpointReader reader(options.from, files);
  const BundleReader& bundle = reader.bundle();
  BundleWriter writer(files, options.to);
  Copied copied;
  for (const std::string& name : bundle.keys()) {
    const auto to = rename ? rename(name) : std::optional(name);
    if (!to) continue;
    if (!is_known_dtype(bundle.entry(name).dtype)) {
      if (!options.skips_unsupported) {
        throw UnimplementedError(fmt::format("{}: the library lacks the dtype of {}", reader.prefix(), shown(name)));
      }
      copied.skipped.push_back(name);
      continue;
    }
    writer.add(*to, bundle.read(name));
    copied.names.push_back(*to);
    copied.bytes += bundle.entry(name).bytes;
  }
  writer.finish();
  return copied;
}

// A file without tensors is nobody's wish.
void check_choice(FileSystem& files, const ConversionOptions& options, const Rename& chosen) {
  if (!chosen) return;
  const auto source = open_tensors(files, options.from);
  const std::vector<StoredTensor>& all = source->tensors();
  const bool has_some = std::any_of(all.begin(), all.end(), [&](const StoredTensor& one) { return chosen(one.name); });
  if (has_some || all.empty()) return;
  throw NotFoundError(fmt::format("none of the {} tensors of {} is wanted ({}{}{}), so nothing is written", all.size(),
                                  options.from, options.module_only ? "--module" : "",
                                  options.module_only && !options.only.empty() ? ", " : "",
                                  options.only.empty() ? "" : "--only=" + shown(options.only)));
}

Copied convert(FileSystem& files, const ConversionOptions& options) {
  const Rename rename = rename_by(options);
  const bool is_checkpoint = files.is_directory(options.from) || committed_prefix(files, options.from);
  check_choice(files, options, is_checkpoint && options.module_only ? of_module(rename) : rename);
  StateDictOptions state_dict{.rename = rename, .skip_unsupported = options.skips_unsupported};
  if (!is_checkpoint && is_file_of_weights(options.to)) {
    return to_copied(save_state_dict(load_state_dict(options.from, state_dict, files), options.to, {}, files));
  }
  if (!is_checkpoint) return to_copied(import_state_dict(options.from, options.to, state_dict, files));
  const Rename chosen = options.module_only ? of_module(rename) : rename;
  if (!is_file_of_weights(options.to)) return copy_checkpoint_renamed(files, options, chosen);
  if (options.to.ends_with(".safetensors")) {
    return to_copied(export_safetensors(options.from, options.to,
                                        {.rename = chosen, .skip_unsupported = options.skips_unsupported}, files));
  }
  const auto as_it_is = [](const std::string& name) { return std::optional(name); };
  state_dict.rename = chosen ? chosen : Rename(as_it_is);
  return to_copied(export_state_dict(options.from, options.to, state_dict, files));
}

}  // namespace

void check_conversion(const ConversionOptions& options) {
  if (options.from.empty()) throw InvalidArgumentError("what is to be copied has an empty name");
  const std::string name = base_name(options.to);
  if (name.empty() || name == "." || name == "..") {
    throw InvalidArgumentError(
        fmt::format("'{}' names no file: TO is that of a file of weights, or the prefix of a checkpoint", options.to));
  }
  rename_by(options);
}

NameRule parse_name_rule(const std::string& text) {
  const size_t at = text.rfind('=');
  if (at == text.npos || at == 0) {
    throw InvalidArgumentError(fmt::format("'{}' is no rule: PATTERN=REPLACEMENT, such as '^net/=model.'", text));
  }
  compiled(text.substr(0, at));
  return {text.substr(0, at), text.substr(at + 1)};
}

Report convert_tensors(FileSystem& files, const ConversionOptions& options, const Terminal&) {
  check_conversion(options);
  if (!is_file_of_weights(options.to)) check_prefix(files, options.to);
  const bool exists =
      is_file_of_weights(options.to) ? is_taken(files, options.to) : is_taken_by_checkpoint(files, options.to);
  if (exists && !options.replaces) {
    throw AlreadyExistsError(fmt::format("{} exists: name another, or pass --replace", options.to));
  }
  // So that the files of a save that is under way are not taken for leftovers.
  std::unique_ptr<DirectoryLock> lock;
  if (!is_file_of_weights(options.to)) {
    lock = std::make_unique<DirectoryLock>(directory_name(options.to), DirectoryLockOptions{.files = &files});
  }
  const Copied copied = convert(files, options);
  Report report{.json = json_of("convert")};
  report.json["from"] = options.from;
  report.json["to"] = options.to;
  report.json["tensors"] = copied.names;
  report.json["skipped"] = copied.skipped;
  report.json["bytes"] = copied.bytes;
  report.text = fmt::format("{}: {} tensor{}, {}\n", shown(options.to, 1000), copied.names.size(),
                            copied.names.size() == 1 ? "" : "s", size_text(copied.bytes));
  for (const std::string& name : copied.skipped) report.text += fmt::format("left out: {}\n", shown(name));
  return report;
}

}  // namespace longhaul::console
