#include "longhaul/base/thread.h"

#include <pthread.h>

#include <utility>

namespace longhaul {

NamedThread::NamedThread(std::string name, std::function<void()> body)
    : name_(std::move(name)), thread_([short_name = name_.substr(0, 15), body = std::move(body)] {
        pthread_setname_np(pthread_self(), short_name.c_str());
        body();
      }) {}

NamedThread::~NamedThread() {
  if (thread_.joinable()) thread_.join();
}

}  // namespace longhaul
