#pragma once

#include <functional>
#include <map>
#include <string>

namespace longhaul {

// The facts, other than graph and data, that the results of a training run depend on, by name: "libtorch" is "1.13.0",
// "BLAS threads" is "2". Each checkpoint records them (train/saved_state/environment_record.h). Any thread may call
// these functions.
using Environment = std::map<std::string, std::string>;

// The environment of this process: the runtime's facts, and the recorded options.
Environment environment();

// Records one of the program's own options on which its results depend: a batch size, a file's version. Recording the
// same name again replaces the value. A resume warns if the value differs from the checkpoint's. InvalidArgumentError:
// a line break in either, or ": " in the name.
//
//   record_option("batch_size", std::to_string(options.batch_size));
void record_option(const std::string& name, const std::string& value);

// Sets the source of the facts that only the runtime knows; longhaul.h installs its own. It is called at each save and
// restore, on any thread.
void install_environment(std::function<Environment()> facts);

}  // namespace longhaul
