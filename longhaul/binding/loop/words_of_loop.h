#pragma once

#include <string>

namespace longhaul {

// Findings and advice are written for programs with a step function, a TorchTraining and its options. The same text for
// one that makes its steps in the loops of a Trainer, and has none of these.
std::string in_words_of_loop(std::string text);

}  // namespace longhaul
