#pragma once

#include <string>
#include <vector>

#include "longhaul/console/text/report.h"
#include "longhaul/console/text/terminal.h"
#include "longhaul/io/files/file.h"

namespace longhaul::console {

// s/pattern/replacement/ of a tensor's name; the pattern is ECMAScript's, "$1" is its first group.
struct NameRule {
  std::string pattern{};
  std::string replacement{};
};

// "PATTERN=REPLACEMENT", divided at the last '='. InvalidArgumentError: there is none, or the pattern is no regular
// expression.
NameRule parse_name_rule(const std::string& text);

struct ConversionOptions {
  std::string from{};  // a checkpoint, a directory (its latest), or a file of weights
  // Ends in ".safetensors", ".pt" or ".pth"; else it is the prefix of a checkpoint.
  std::string to{};
  std::vector<NameRule> rules{};   // the first whose pattern is found in a name changes it
  std::string only{};              // a regular expression: other names are left out; empty: none is
  bool module_only = false;        // of a checkpoint, the module's tensors alone, as state dicts have them
  bool skips_unsupported = false;  // dtypes that the other format lacks; false: they are an error
  bool replaces = false;           // what is there already; false: that is an error
};

// InvalidArgumentError: what `options` say makes no sense, whatever the files have: a pattern that is no regular
// expression, or longer than 1000 bytes; an empty name, or that of a directory ("runs/..").
void check_conversion(const ConversionOptions& options);

// longhaul convert: copies tensors from one format to another, or renames them. The result is there whole, or not at
// all. Directories that `to` lacks are made. The directory of a checkpoint that is written is locked meanwhile:
// DirectoryLockedError, a training runs there. AlreadyExistsError: `to` exists, if only as a link to nothing.
// NotFoundError: no tensor has a name that is wanted. InvalidArgumentError: a rule makes two names one; a name is
// longer than rules may have (4096 bytes); `to` is a prefix, and there is a directory, a file or a device of exactly
// that name. Other errors are those of the formats.
Report convert_tensors(FileSystem& files, const ConversionOptions& options, const Terminal& terminal);

}  // namespace longhaul::console
