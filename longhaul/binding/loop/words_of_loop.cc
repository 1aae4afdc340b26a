#include "longhaul/binding/loop/words_of_loop.h"

#include <string_view>
#include <utility>

namespace longhaul {
namespace {

// A later pair finds what an earlier one has left.
constexpr std::pair<std::string_view, std::string_view> kWords[] = {
    {"by the step function", "in the Trainer's loop"},
    {"outside the step function", "outside the Trainer's loop"},
    {"in the step function", "within a step of the Trainer's loop"},
    {"inside the step function", "within a step of the Trainer's loop"},
    {"the step function", "the Trainer's loop"},
    {"no bound optimizer has it", "no optimizer of the Trainer has it"},
    {"no bound scheduler", "no scheduler of the Trainer"},
    {"by a bound scheduler", "by a scheduler of the Trainer"},
    {"the bound module", "the Trainer's module"},
    {"of the bound one: bind the module that is trained", "of the Trainer's: give it the module that is trained"},
    {"bind its optimizer", "give the Trainer its optimizer"},
    {"Bind the optimizer that steps", "Give the Trainer the optimizer that steps"},
    {"that is not bound", "that the Trainer does not have"},
    {"after it was bound", "after the Trainer was made"},
    {"Bind the scheduler", "Give the Trainer the scheduler"},
    {"to torch_training()", "to the Trainer"},
    {"in an ops::external_variable", "by Trainer::keep()"},
    {"from such a variable", "from such a value"},
    {"TorchTrainingOptions::", "TrainerOptions::training."},
};

}  // namespace

std::string in_words_of_loop(std::string text) {
  for (const auto& [words, others] : kWords) {
    for (size_t at = text.find(words); at != std::string::npos; at = text.find(words, at + others.size())) {
      text.replace(at, words.size(), others);
    }
  }
  return text;
}

}  // namespace longhaul
