#pragma once

#include <functional>
#include <map>
#include <string>

namespace longhaul {

// What the results of a training depend on beside its graph and its data, by name: "libtorch" is "1.13.0", "BLAS
// threads" is "2". Each checkpoint records it (train/saved_state/environment_record.h). Any thread may call these
// functions.
using Environment = std::map<std::string, std::string>;

// What is known of this process: what the runtime says, and the options that were recorded.
Environment environment();

// Adds an option of the program's own, on which its results depend: a batch size, a file's version. The same name again
// replaces its value. A resume warns if it is another one than that of the checkpoint. InvalidArgumentError: a line
// break in either, or ": " in the name.
//
//   record_option("batch_size", std::to_string(options.batch_size));
void record_option(const std::string& name, const std::string& value);

// Where facts come from that only the runtime knows; longhaul.h installs its own. It is called at each save and
// restore, on any thread.
void install_environment(std::function<Environment()> facts);

}  // namespace longhaul
