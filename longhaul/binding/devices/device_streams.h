#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>
#include <c10/core/Stream.h>

#include <vector>

namespace longhaul {

// Whether the device has streams and events, by which what the host wants is ordered without a wait. It is tried once
// for each kind of device. Any thread.
bool has_streams(c10::Device device);

// On which streams a program makes its steps: what reads or writes its tensors between two steps, on another thread,
// has to use the same ones. Not synchronised.
class DeviceStreams {
 public:
  void add(const at::Tensor& tensor);  // its device, unless that is the CPU or has no streams
  void note();                         // the calling thread's: it has made a step

  // While it exists, the calling thread uses the streams that were noted.
  class Use {
   public:
    explicit Use(const DeviceStreams& streams);
    ~Use();
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;

   private:
    std::vector<c10::Stream> before_;
  };

 private:
  std::vector<c10::Stream> streams_;  // one of each device
};

}  // namespace longhaul
