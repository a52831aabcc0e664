// SPDX-License-Identifier: Apache-2.0
//
// Server-sent events (WHATWG HTML, section 9.2): one sequence of them, told to all who listen. A
// listener who comes back with Last-Event-ID hears what it missed, as far as that is still kept;
// otherwise it is told "reset", and should load everything anew.
#ifndef LOCKSTEP_COORDINATOR_HTTP_EVENT_HUB_H_
#define LOCKSTEP_COORDINATOR_HTTP_EVENT_HUB_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "coordinator/http/message.h"

namespace lockstep::coordinator {

inline constexpr size_t kListenersPerAddressMax = 16;

// Any thread may call. Ids are "<epoch>.<number>": two hubs, such as those before and after a
// restart, have different epochs.
class EventHub {
 public:
  // `epoch` is of letters and digits. Keeps the last events, up to `bytes_kept` of them in all: no
  // more than a stream may have queued (HttpServerOptions::stream_bytes_max), since all may be
  // missed.
  // `address_of`: who listens, for a share of the streams; empty: without limit.
  EventHub(
      std::string epoch, size_t bytes_kept,
      std::function<std::string(const HttpRequest&)> address_of = [](const HttpRequest&) {
        return std::string();
      });
  // Listeners' answers end.
  ~EventHub();

  // Tells all listeners. `event` is a word of letters and "-"; each line of `data` is sent as one.
  void Publish(absl::string_view event, absl::string_view data);

  // The handler for the stream's path; 503 if the address has its share of streams. The hub
  // outlives the server.
  HttpResponse Listen(const HttpRequest& request);

  size_t listeners() const;
  const std::string& epoch() const { return epoch_; }

 private:
  struct Event {
    uint64_t number;
    std::string text;  // as sent
  };
  struct Listener {
    std::shared_ptr<ResponseStream> stream;
    std::string address;
  };
  void Add(std::optional<uint64_t> last_heard, Listener listener);
  bool HasShare(const std::string& address) const;
  std::string Missed(std::optional<uint64_t> last_heard) const;

  const std::string epoch_;
  const size_t bytes_kept_;
  const std::function<std::string(const HttpRequest&)> address_of_;
  mutable std::mutex mutex_;  // over all that follows
  uint64_t count_ = 0;        // of events published; the number of the last
  std::deque<Event> kept_;
  size_t bytes_ = 0;  // of kept_
  std::vector<Listener> listeners_;
};

}  // namespace lockstep::coordinator

#endif  // LOCKSTEP_COORDINATOR_HTTP_EVENT_HUB_H_
