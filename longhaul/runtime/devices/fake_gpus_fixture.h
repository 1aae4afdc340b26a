#pragma once

namespace longhaul {

// While it exists, sessions that are made have two GPUs, which are fake devices (testing/fake_device/). Their random
// numbers are the CPU's, so results are the same bytes. If LONGHAUL_TEST_DEVICE is "fake", all tests have them.
class FakeGpus {
 public:
  FakeGpus();
  ~FakeGpus();
  FakeGpus(const FakeGpus&) = delete;
};

}  // namespace longhaul
