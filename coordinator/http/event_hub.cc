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

EventHub::EventHub(std::string epoch, size_t bytes_kept)
    : epoch_(std::move(epoch)), bytes_kept_(bytes_kept) {}

EventHub::~EventHub() {
  for (const auto& listener : listeners_) listener->Close();
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
  std::erase_if(listeners_, [&](const auto& listener) { return !listener->Write(text); });
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
  return {.content_type = "text/event-stream",
          .headers = {{"X-Accel-Buffering", "no"}},  // nginx is not to hold events back
          .body = StreamBody{.start =
                                 [this, last_heard](std::shared_ptr<ResponseStream> stream) {
                                   Add(last_heard, std::move(stream));
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

void EventHub::Add(std::optional<uint64_t> last_heard, std::shared_ptr<ResponseStream> stream) {
  const std::lock_guard<std::mutex> lock(mutex_);
  // Also those who left while nothing was published.
  std::erase_if(listeners_, [](const auto& listener) { return !listener->Write(""); });
  if (stream->Write(Missed(last_heard))) listeners_.push_back(std::move(stream));
}

}  // namespace lockstep::coordinator
