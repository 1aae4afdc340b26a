#pragma once

#include "longhaul/session/session.h"

namespace longhaul {

// Called before a chief makes a model ready that its servers do not have as a whole. FailedPreconditionError, which
// names the variables: a task has some of this program's variables but lacks others, and the global step says that
// they were trained. A task that was started anew lacks all of its own, so this is the model of a program with
// other variables, or with the same ones on other tasks, which others may still train: setting it back would undo
// their steps, and they would go on with variables that nobody saves.
void check_no_other_program_has_model(Session& session, const Output& ready_op);

}  // namespace longhaul
