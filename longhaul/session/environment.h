#pragma once

#include <functional>
#include <map>
#include <string>

namespace longhaul {

// The facts, other than graph and data, on which the results of a training run depend, by name: "libtorch" is "1.13.0",
// "BLAS threads" is "2". Each checkpoint records them (train/saved_state/environment_record.h). Any thread may call
// these functions.
using Environment = std::map<std::string, std::string>;

// The environment of this process: the facts from the runtime, and the recorded options.
Environment environment();

// Records one of the program's own options on which its results depend, such as a batch size or the version of a file.
// Recording the same name again replaces the value. A restart logs a warning if the value differs from the
// checkpoint's. InvalidArgumentError: the name or the value contains a line break, or the name contains ": ".
//
//   record_option("batch_size", std::to_string(options.batch_size));
void record_option(const std::string& name, const std::string& value);

// Sets the source of the facts that only the runtime knows; longhaul.h installs its own. `facts` is called at each save
// and restore, on any thread.
void install_environment(std::function<Environment()> facts);

}  // namespace longhaul
