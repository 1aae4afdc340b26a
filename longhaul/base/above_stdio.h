#pragma once

namespace longhaul {

// While an object of this class exists, every file that the process opens gets a descriptor above 2, even in a process
// that was started with descriptors 0 to 2 closed, as daemons and some schedulers do. Otherwise the program's output
// could end up in a checkpoint, or in the pipe that delivers signals. All library code that creates a descriptor
// creates one of these first; tests/descriptor_lint.sh checks this:
//
//   const AboveStdio above;
//   const int fd = ::open(...);
//
// Meanwhile the free descriptors among 0 to 2 are occupied by ones that can be neither read nor written, like closed
// ones, so that no file has such a number even for a moment. Any thread, any number of objects at a time; never waits.
class AboveStdio {
 public:
  AboveStdio();
  ~AboveStdio();
  AboveStdio(const AboveStdio&) = delete;
  AboveStdio& operator=(const AboveStdio&) = delete;

 private:
  bool counts_;  // one of the objects for which the free descriptors are occupied
};

}  // namespace longhaul
