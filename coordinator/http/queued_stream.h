// SPDX-License-Identifier: Apache-2.0
//
// The queue between those who write a stream and the connection that sends it. Private to the
// server.
#ifndef LOCKSTEP_COORDINATOR_HTTP_QUEUED_STREAM_H_
#define LOCKSTEP_COORDINATOR_HTTP_QUEUED_STREAM_H_

#include <functional>
#include <mutex>
#include <string>
#include <utility>

#include "coordinator/http/message.h"

namespace lockstep::coordinator {

class QueuedStream final : public ResponseStream {
 public:
  // `wake` asks the connection to look; it is called under the lock, never after End, and by any
  // thread.
  QueuedStream(size_t bytes_max, std::function<void()> wake)
      : bytes_max_(bytes_max), wake_(std::move(wake)) {}

  bool Write(std::string bytes) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (closed_) return false;
    if (bytes.size() > bytes_max_ - queue_.size()) {
      overflowed_ = true;
      closed_ = true;
    } else {
      queue_ += bytes;
    }
    Wake();
    return !closed_;
  }

  void Close() override {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (closed_) return;
    closed_ = true;
    Wake();
  }

  // ---- For the connection.

  struct Taken {
    std::string bytes;
    bool closed;      // nothing comes after `bytes`
    bool overflowed;  // the reader did not keep up
  };
  Taken Take() {
    const std::lock_guard<std::mutex> lock(mutex_);
    woken_ = false;
    return {std::exchange(queue_, {}), closed_, overflowed_};
  }
  // The reader is gone, or the server.
  void End() {
    const std::lock_guard<std::mutex> lock(mutex_);
    closed_ = true;
    wake_ = nullptr;
    queue_ = {};
  }

 private:
  void Wake() {
    if (woken_ || !wake_) return;
    woken_ = true;
    wake_();
  }

  const size_t bytes_max_;
  std::mutex mutex_;  // over all that follows
  std::function<void()> wake_;
  std::string queue_;
  bool closed_ = false;
  bool overflowed_ = false;
  bool woken_ = false;
};

}  // namespace lockstep::coordinator

#endif  // LOCKSTEP_COORDINATOR_HTTP_QUEUED_STREAM_H_
