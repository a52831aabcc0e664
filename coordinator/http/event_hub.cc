// SPDX-License-Identifier: Apache-2.0
//
// See event_hub.h.
#include "coordinator/http/event_hub.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "net/http_range.h"

namespace lockstep::coordinator {

EventHub::EventHub(std::string epoch, size_t bytes_kept,
                   std::function<std::string(const HttpRequest&)> address_of)
    : epoch_(std::move(epoch)), bytes_kept_(bytes_kept), address_of_(std::move(address_of)) {}

EventHub::~EventHub() {
  for (const auto& listener : listeners_) listener.stream->Close();
}

size_t EventHub::listeners() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return listeners_.size();
}

void EventHub::Publish(absl::string_view event, absl::string_view data) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const uint64_t number = ++count_;
  std::string text = absl::StrCat("id: ", epoch_, ".", number, "\nevent: ", event, "\n");
  for (const absl::string_view line : absl::StrSplit(data, absl::ByAnyChar("\r\n"))) {
    absl::StrAppend(&text, "data: ", line, "\n");
  }
  text += "\n";
  std::erase_if(listeners_, [&](const auto& listener) { return !listener.stream->Write(text); });
  bytes_ += text.size();
  kept_.push_back({number, std::move(text)});
  while (bytes_ > bytes_kept_) {
    bytes_ -= kept_.front().text.size();
    kept_.pop_front();
  }
}

HttpResponse EventHub::Listen(const HttpRequest& request) {
  const auto header = request.Header("last-event-id");
  std::optional<uint64_t> last_heard;
  if (header) {
    absl::string_view id = *header;
    // Of another epoch, or none of ours: as one from before all that is kept.
    const bool ours = absl::ConsumePrefix(&id, epoch_) && absl::ConsumePrefix(&id, ".");
    last_heard = ours ? net::ParseDecimal(id).value_or(UINT64_MAX) : UINT64_MAX;
  }
  const std::string address = address_of_(request);
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    std::erase_if(listeners_, [](const auto& listener) { return !listener.stream->Write(""); });
    if (!HasShare(address)) {
      HttpResponse full = TextResponse(503, "this address has as many streams as one may have");
      full.headers.emplace_back("Retry-After", "60");
      return full;
    }
  }
  return {
      .content_type = "text/event-stream",
      .headers = {{"X-Accel-Buffering", "no"}},  // nginx is not to hold events back
      .body = StreamBody{.start =
                             [this, last_heard, address](std::shared_ptr<ResponseStream> stream) {
                               Add(last_heard, {std::move(stream), address});
                             },
                         .heartbeat = ":\n\n"}};
}

// Under the mutex: nothing is published between what was missed and what is told.
std::string EventHub::Missed(std::optional<uint64_t> last_heard) const {
  const std::string reset = absl::StrCat("id: ", epoch_, ".", count_, "\nevent: reset\ndata:\n\n");
  if (!last_heard) return absl::StrCat("id: ", epoch_, ".", count_, "\n\n");
  const uint64_t first_kept = count_ - kept_.size() + 1;
  if (*last_heard > count_ || *last_heard + 1 < first_kept) return reset;
  std::string text;
  for (const Event& event : kept_) {
    if (event.number > *last_heard) text += event.text;
  }
  return text;
}

// Under the mutex.
bool EventHub::HasShare(const std::string& address) const {
  if (address.empty()) return true;
  const auto has =
      std::count_if(listeners_.begin(), listeners_.end(),
                    [&](const Listener& listener) { return listener.address == address; });
  return static_cast<size_t>(has) < kListenersPerAddressMax;
}

void EventHub::Add(std::optional<uint64_t> last_heard, Listener listener) {
  const std::lock_guard<std::mutex> lock(mutex_);
  // Also those who left while nothing was published.
  std::erase_if(listeners_, [](const auto& other) { return !other.stream->Write(""); });
  // (Several may have been let in at once.)
  if (!HasShare(listener.address)) {
    listener.stream->Close();
  } else if (listener.stream->Write(Missed(last_heard))) {
    listeners_.push_back(std::move(listener));
  }
}

}  // namespace lockstep::coordinator
