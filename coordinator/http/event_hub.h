// SPDX-License-Identifier: Apache-2.0
//
// Server-sent events (WHATWG HTML, section 9.2): one sequence of them, told to all who listen. A
// listener who comes back with Last-Event-ID hears what it missed, as far as that is still kept;
// otherwise it is told "reset", and should load everything anew.
#ifndef LOCKSTEP_COORDINATOR_HTTP_EVENT_HUB_H_
#define LOCKSTEP_COORDINATOR_HTTP_EVENT_HUB_H_

#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "coordinator/http/message.h"

namespace lockstep::coordinator {

// Any thread may call. Ids are "<epoch>.<number>": two hubs, such as those before and after a
// restart, have different epochs.
class EventHub {
 public:
  // `epoch` is of letters and digits. Keeps the last events, up to `bytes_kept` of them in all: no
  // more than a stream may have queued (HttpServerOptions::stream_bytes_max), since all may be
  // missed.
  EventHub(std::string epoch, size_t bytes_kept);
  // Listeners' answers end.
  ~EventHub();

  // Tells all listeners. `event` is a word of letters and "-"; each line of `data` is sent as one.
  void Publish(absl::string_view event, absl::string_view data);

  // The handler for the stream's path. The hub outlives the server.
  HttpResponse Listen(const HttpRequest& request);

  size_t listeners() const;

 private:
  struct Event {
    uint64_t number;
    std::string text;  // as sent
  };
  void Add(std::optional<uint64_t> last_heard, std::shared_ptr<ResponseStream> stream);
  std::string Missed(std::optional<uint64_t> last_heard) const;

  const std::string epoch_;
  const size_t bytes_kept_;
  mutable std::mutex mutex_;  // over all that follows
  uint64_t count_ = 0;        // of events published; the number of the last
  std::deque<Event> kept_;
  size_t bytes_ = 0;  // of kept_
  std::vector<std::shared_ptr<ResponseStream>> listeners_;
};

}  // namespace lockstep::coordinator

#endif  // LOCKSTEP_COORDINATOR_HTTP_EVENT_HUB_H_
