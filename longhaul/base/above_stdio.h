#pragma once

namespace longhaul {

// While one lives, what the process opens gets a descriptor above 2, also where it was started with descriptors 0 to 2
// closed, as daemons and some schedulers do: or what the program prints would go into a checkpoint, or into the pipe
// that signals come through. Everything in the library that makes a descriptor stands behind one, which
// tests/descriptor_lint.sh looks after:
//
//   const AboveStdio above;
//   const int fd = ::open(...);
//
// The descriptors that are free are taken meanwhile, by ones that can neither be read nor written, as a closed one; it
// is never that a file has such a number for a moment. Any thread, any number at a time; nothing waits.
class AboveStdio {
 public:
  AboveStdio();
  ~AboveStdio();
  AboveStdio(const AboveStdio&) = delete;
  AboveStdio& operator=(const AboveStdio&) = delete;

 private:
  bool counts_;  // among those for whom the free ones are taken
};

}  // namespace longhaul
