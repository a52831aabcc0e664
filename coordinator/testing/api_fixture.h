// SPDX-License-Identifier: Apache-2.0
//
// A small network (small_network.h) behind the real HTTP server with its API and events, and a
// client of bare bytes. For tests only.

#ifndef LOCKSTEP_COORDINATOR_TESTING_API_FIXTURE_H_
#define LOCKSTEP_COORDINATOR_TESTING_API_FIXTURE_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "coordinator/api/api.h"
#include "coordinator/http/event_hub.h"
#include "coordinator/http/server.h"
#include "coordinator/http/testing/raw_client.h"
#include "coordinator/testing/small_network.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace lockstep::coordinator {

class ApiTest : public ::testing::Test {
 protected:
  using Json = nlohmann::json;

  void SetUp() override {
    network_.options.on_event = [this](absl::string_view kind, const std::string& json) {
      hub_.Publish(kind, json);
    };
    ASSERT_TRUE(network_.Open().ok());
    Serve();
  }
  void TearDown() override {
    if (server_) server_->Stop(absl::Seconds(5));
  }
  void Serve() {
    Router router;
    ServeApi(*network_,
             {.version = "test",
              .event_epoch = hub_.epoch(),
              .artifact_url = [] { return std::string("http://artifacts.example"); },
              .worker_url = [] { return std::string("http://workers.example:7440"); }},
             router);
    router.Get(
        "/events", [this](const HttpRequest& request) { return hub_.Listen(request); },
        Router::Origins::kAny);
    server_ =
        HttpServer::Start({.registry = std::make_shared<prometheus::Registry>()}, std::move(router))
            .value();
  }
  // The program ended and started anew on the same data.
  void Restart() {
    server_->Stop(absl::Seconds(5));
    server_.reset();
    ASSERT_TRUE(network_.Open().ok());
    Serve();
  }

  testing::RawResponse Ask(absl::string_view path, absl::string_view headers = "") {
    return testing::RawClient(server_->port()).Get(absl::StrCat("/api/v1/", path), headers);
  }
  // The answer's JSON, with status 200.
  Json Get(absl::string_view path) {
    const testing::RawResponse response = Ask(path);
    EXPECT_EQ(response.status, 200) << path << ": " << response.body;
    return Json::parse(response.body, nullptr, false);
  }
  // The reason of an error with this status.
  std::string Refusal(absl::string_view path, int status) {
    const testing::RawResponse response = Ask(path);
    EXPECT_EQ(response.status, status) << path;
    const Json json = Json::parse(response.body, nullptr, false);
    EXPECT_FALSE(json["error"]["message"].get<std::string>().empty()) << path;
    return json["error"]["reason"];
  }
  // All of a list, page by page.
  std::vector<Json> All(const std::string& path, const std::string& name, int limit) {
    std::vector<Json> items;
    const std::string query = absl::StrCat(path.find('?') == std::string::npos ? "?" : "&");
    for (std::string page; items.size() < 100'000;) {
      const Json answer = Get(absl::StrCat(path, query, "limit=", limit, page));
      EXPECT_LE(answer[name].size(), static_cast<size_t>(limit));
      for (const Json& item : answer[name]) items.push_back(item);
      if (answer["next"].is_null()) break;
      page = absl::StrCat("&page=", answer["next"].get<std::string>());
    }
    return items;
  }
  // A chunked answer's bytes; "broken" if it has no end.
  std::string Download(absl::string_view path) {
    testing::RawClient client(server_->port());
    client.Send(absl::StrCat("GET /api/v1/", path, " HTTP/1.1\r\nHost: x\r\n\r\n"));
    const testing::RawResponse response = client.ReadResponse();
    EXPECT_EQ(response.status, 200) << path;
    EXPECT_EQ(response.Header("Transfer-Encoding"), "chunked");
    EXPECT_THAT(response.Header("Content-Disposition"),
                ::testing::StartsWith("attachment; filename=\""));
    std::string body;
    while (true) {
      if (!client.ReceiveUntil("\r\n")) return "broken";
      std::string& buffer = client.buffer();
      uint64_t size = 0;
      const size_t line = buffer.find("\r\n");
      if (!absl::SimpleHexAtoi(buffer.substr(0, line), &size)) return "broken";
      while (buffer.size() < line + 2 + size + 2) {
        if (!client.Receive()) return "broken";
      }
      body += buffer.substr(line + 2, size);
      buffer.erase(0, line + 2 + size + 2);
      if (size == 0) return body;
    }
  }

  // An operator with texts of its own choice, and one worker.
  void AddOperator(int n, const std::string& name, const std::string& contact,
                   const std::string& hardware) {
    network_
        .AddKey(
            audit::OperatorEvent{.operator_key = audit::TestPublicKey(audit::OperatorKey(n)),
                                 .revocation_key = audit::TestPublicKey(audit::RevocationKey(n)),
                                 .name = name,
                                 .contact = contact},
            {audit::OperatorKey(n)})
        .value();
    network_
        .AddKey(audit::WorkerEvent{.worker_key = audit::TestPublicKey(audit::WorkerKey(n)),
                                   .operator_key = audit::TestPublicKey(audit::OperatorKey(n)),
                                   .hardware = hardware},
                {audit::OperatorKey(n), audit::WorkerKey(n)})
        .value();
  }
  std::string run() const { return network_.run_id().ToHex(); }
  std::string RunPath(absl::string_view rest) const {
    return absl::StrCat("runs/", run(), "/", rest);
  }
  static std::string KeyOf(int key) { return Digest{audit::TestPublicKey(key).bytes}.ToHex(); }

  EventHub hub_{"epoch", 128 << 10};
  SmallNetwork network_;
  std::unique_ptr<HttpServer> server_;
};

}  // namespace lockstep::coordinator

#endif  // LOCKSTEP_COORDINATOR_TESTING_API_FIXTURE_H_
