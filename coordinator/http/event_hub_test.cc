// SPDX-License-Identifier: Apache-2.0
//
// Events to listeners that come, go and come back; and once over a socket.
#include "coordinator/http/event_hub.h"

#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/testing/status_matchers.h"
#include "coordinator/http/server.h"
#include "coordinator/http/testing/raw_client.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep::coordinator {
namespace {

class Listener final : public ResponseStream {
 public:
  bool Write(std::string bytes) override {
    if (closed) return false;
    heard += bytes;
    return true;
  }
  void Close() override { closed = true; }
  std::string heard;
  bool closed = false;
};

std::shared_ptr<Listener> Listen(EventHub& hub, const std::string& last_event_id = "none") {
  HttpRequest request;
  if (last_event_id != "none") request.headers = {{"last-event-id", last_event_id}};
  auto listener = std::make_shared<Listener>();
  std::get<StreamBody>(hub.Listen(request).body).start(listener);
  return listener;
}

TEST(EventHubTest, ListenersHearWhatIsPublished) {
  EventHub hub("e", 1000);
  hub.Publish("before", "0");
  const auto a = Listen(hub), b = Listen(hub);
  hub.Publish("step", "{\"a\":1}");
  const std::string text = "id: e.1\n\nid: e.2\nevent: step\ndata: {\"a\":1}\n\n";
  EXPECT_EQ(a->heard, text);
  EXPECT_EQ(b->heard, text);
}

// No data can be taken for a field of its own.
TEST(EventHubTest, LinesOfDataAreOneEvent) {
  EventHub hub("e", 1000);
  const auto listener = Listen(hub);
  listener->heard.clear();
  hub.Publish("x", "a\n\nevent: evil\rb");
  EXPECT_EQ(listener->heard, "id: e.1\nevent: x\ndata: a\ndata: \ndata: event: evil\ndata: b\n\n");
}

TEST(EventHubTest, WhoComesBackHearsWhatItMissed) {
  EventHub hub("e", 1000);
  for (int i = 1; i <= 4; ++i) hub.Publish("n", absl::StrCat(i));
  EXPECT_EQ(Listen(hub, "e.2")->heard,
            "id: e.3\nevent: n\ndata: 3\n\nid: e.4\nevent: n\ndata: 4\n\n");
  EXPECT_EQ(Listen(hub, "e.4")->heard, "");
}

TEST(EventHubTest, WhatIsNoLongerKeptIsAReset) {
  EventHub hub("e", 100);
  for (int i = 1; i <= 10; ++i) hub.Publish("n", std::string(20, 'x'));
  const std::string reset = "id: e.10\nevent: reset\ndata:\n\n";
  for (const char* id :
       {"e.1", "e.0", "e.11", "other.9", "e.", "e", "", "e.99999999999999999999", "e.-1", "e.9 "}) {
    EXPECT_EQ(Listen(hub, id)->heard, reset) << id;
  }
  EXPECT_THAT(Listen(hub, "e.9")->heard, ::testing::StartsWith("id: e.10\nevent: n\n"));
  EXPECT_EQ(Listen(hub, "e.10")->heard, "");
}

TEST(EventHubTest, AnAddressHasItsShareOfStreams) {
  EventHub hub("e", 1000, [](const HttpRequest& request) { return request.peer; });
  HttpRequest request;
  request.peer = "192.0.2.1";
  std::vector<std::shared_ptr<Listener>> listeners;
  const auto listen = [&](const HttpRequest& by) {
    const HttpResponse response = hub.Listen(by);
    if (response.status != 200) return false;
    listeners.push_back(std::make_shared<Listener>());
    std::get<StreamBody>(response.body).start(listeners.back());
    return true;
  };
  const HttpResponse late = hub.Listen(request);
  for (size_t i = 0; i < kListenersPerAddressMax; ++i) EXPECT_TRUE(listen(request));
  EXPECT_FALSE(listen(request));
  // One that was let in before is ended.
  const auto one_more = std::make_shared<Listener>();
  std::get<StreamBody>(late.body).start(one_more);
  EXPECT_TRUE(one_more->closed);
  HttpRequest other;
  other.peer = "192.0.2.2";
  EXPECT_TRUE(listen(other));
  other.peer = "";
  for (int i = 0; i < 100; ++i) EXPECT_TRUE(listen(other));
  listeners[0]->closed = true;
  EXPECT_TRUE(listen(request));
}

TEST(EventHubTest, WhoIsGoneIsForgotten) {
  EventHub hub("e", 1000);
  const auto a = Listen(hub), b = Listen(hub);
  EXPECT_EQ(hub.listeners(), 2u);
  a->closed = true;
  hub.Publish("n", "");
  EXPECT_EQ(hub.listeners(), 1u);
  b->closed = true;
  Listen(hub);
  EXPECT_EQ(hub.listeners(), 1u);
}

TEST(EventHubTest, OverSockets) {
  EventHub hub("e", 100000);
  Router router;
  router.Get("/events", [&](const HttpRequest& request) { return hub.Listen(request); });
  auto server =
      HttpServer::Start({.registry = std::make_shared<prometheus::Registry>()}, std::move(router));
  ASSERT_THAT(server, IsOk());
  std::vector<testing::RawClient> clients;
  for (int c = 0; c < 5; ++c) {
    clients.emplace_back((*server)->port())
        .Send("GET /events HTTP/1.1\r\nHost: x\r\nLast-Event-ID: e.0\r\n\r\n");
  }
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 100; ++i) hub.Publish("n", "x");
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (testing::RawClient& client : clients) {
    ASSERT_TRUE(client.ReceiveUntil("id: e.400\n"));
    size_t at = 0;
    for (int i = 1; i <= 400; ++i) {  // all of them, in order
      at = client.buffer().find(absl::StrCat("id: e.", i, "\n"), at);
      ASSERT_NE(at, std::string::npos) << i;
    }
  }
  (*server)->Stop(absl::Seconds(10));
}

}  // namespace
}  // namespace lockstep::coordinator
