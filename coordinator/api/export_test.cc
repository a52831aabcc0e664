// SPDX-License-Identifier: Apache-2.0
//
// Whole lists as files: that they are whole, that they are streamed, and what spreadsheets make of
// strangers' texts.

#include <atomic>
#include <stdexcept>
#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "coordinator/api/call.h"
#include "coordinator/testing/api_fixture.h"

namespace lockstep::coordinator {
namespace {

using audit::WorkerKey;
using ::testing::HasSubstr;
using testing::RawClient;
using testing::RawResponse;
using ::testing::StartsWith;

std::vector<std::string> Lines(absl::string_view text, absl::string_view end) {
  EXPECT_TRUE(absl::ConsumeSuffix(&text, end));
  return absl::StrSplit(text, std::string(end));
}

class ExportTest : public ApiTest {
 protected:
  void Begin(int steps) {
    network_.AddOperator(0);
    network_.AddOperator(1);
    network_.AddRun(steps);
    const LeaseRow lease = network_.Lease(WorkerKey(0)).lease;
    for (uint64_t step = lease.first_step; step < lease.end_step; ++step) {
      network_.Match(lease, step, WorkerKey(0));
    }
    const LeaseRow other = network_.Lease(WorkerKey(1)).lease;
    audit::StepRecord wrong = network_.Record(other.first_step);
    wrong.windows = audit::TestDigest("wrong", 0);
    network_.Attest(network_.Found(other, other.first_step, WorkerKey(1), &wrong), WorkerKey(1))
        .value();
  }
};

// Each list, three ways.
TEST_F(ExportTest, AllRowsOfEachList) {
  Begin(700);
  for (const auto& [path, name] :
       std::vector<std::pair<std::string, std::string>>{{RunPath("steps"), "steps"},
                                                        {RunPath("attestations"), "attestations"},
                                                        {RunPath("disputes"), "disputes"},
                                                        {"disputes", "disputes"},
                                                        {RunPath("leases"), "leases"},
                                                        {"leases", "leases"},
                                                        {"operators", "operators"},
                                                        {"workers", "workers"},
                                                        {"log/entries", "entries"}}) {
    SCOPED_TRACE(path);
    const std::vector<Json> list = All(path, name, 1000);
    ASSERT_FALSE(list.empty());
    const std::vector<std::string> lines = Lines(Download(path + ".jsonl"), "\n");
    ASSERT_EQ(lines.size(), list.size());
    for (size_t i = 0; i < list.size(); ++i) {
      const Json row = Json::parse(lines[i]);
      if (name != "disputes") {
        ASSERT_EQ(row, list[i]);
      } else {
        ASSERT_EQ(row["log_index"], list[i]["log_index"]);
      }
    }
    const std::vector<std::string> rows = Lines(Download(path + ".csv"), "\r\n");
    ASSERT_EQ(rows.size(), list.size() + 1);
    const std::vector<std::string> header = absl::StrSplit(rows[0], ',');
    for (size_t i = 0; i < list.size(); ++i) {
      const std::vector<std::string> cells = absl::StrSplit(rows[i + 1], ',');
      ASSERT_EQ(cells.size(), header.size()) << rows[i + 1];
      for (size_t c = 0; c < cells.size(); ++c) {
        if (!list[i].contains(header[c])) continue;  // "credit_valid", ...
        const Json& value = list[i][header[c]];
        const std::string text = value.is_string() ? value.get<std::string>()
                                 : value.is_null() ? ""
                                                   : value.dump();
        if (!value.is_array() && !value.is_number_float()) {
          ASSERT_EQ(cells[c], text) << header[c];
        }
      }
    }
  }
}

TEST_F(ExportTest, Filters) {
  Begin(10);
  EXPECT_EQ(Lines(Download(RunPath("steps.jsonl?state=disputed")), "\n").size(), 1u);
  EXPECT_EQ(Lines(Download(RunPath("attestations.csv?verdict=mismatch")), "\r\n").size(), 2u);
  EXPECT_EQ(Download(RunPath("attestations.jsonl?backend=cuda-sm90&newest=1")), "");
  EXPECT_EQ(Lines(Download(RunPath("leases.csv?state=live")), "\r\n").size(), 2u);
  EXPECT_EQ(Download(RunPath("leases.jsonl?state=unfinished")), "");
  EXPECT_EQ(Refusal(RunPath("steps.csv?state=x"), 400), "REQUEST_INVALID");
  EXPECT_EQ(Refusal(RunPath("leases.csv?state=x"), 400), "REQUEST_INVALID");
}

TEST_F(ExportTest, StrangersTextsInSpreadsheets) {
  AddOperator(0, "=HYPERLINK(\"http://x\")", "a,\"b\"", "@SUM(1)");
  const std::string operators = Download("operators.csv");
  EXPECT_THAT(operators, HasSubstr(",\"'=HYPERLINK(\"\"http://x\"\")\",\"a,\"\"b\"\"\",false,"));
  EXPECT_THAT(Download("workers.csv"), HasSubstr(",'@SUM(1),"));
  EXPECT_EQ(Json::parse(Download("operators.jsonl"))["name"], "=HYPERLINK(\"http://x\")");
  network_.AddRun(2);
  const LeaseRow lease = network_.Lease(WorkerKey(0)).lease;
  ASSERT_TRUE(network_
                  ->ReleaseLease(network_.CallerOf(WorkerKey(0)), lease.lease_id,
                                 ReleaseReason::kInconclusive, "+1, \"no\" state")
                  .ok());
  EXPECT_THAT(Download("leases.csv"), ::testing::EndsWith(",\"'+1, \"\"no\"\" state\"\r\n"));
}

TEST_F(ExportTest, HeadersAndOldClients) {
  Begin(3);
  const std::string csv = Download(RunPath("steps.csv"));
  RawClient client(server_->port());
  client.Send(absl::StrCat("HEAD /api/v1/", RunPath("steps.csv"), " HTTP/1.1\r\nHost: x\r\n\r\n"));
  const RawResponse head = client.ReadResponse(false);
  EXPECT_EQ(head.status, 200);
  EXPECT_EQ(head.Header("Content-Type"), "text/csv; charset=utf-8; header=present");
  EXPECT_EQ(head.Header("Content-Disposition"), "attachment; filename=\"steps.csv\"");
  EXPECT_EQ(head.Header("Access-Control-Allow-Origin"), "*");
  EXPECT_EQ(client.Get("/api/v1/server").status, 200);  // the same connection
  RawClient old(server_->port());
  old.Send(absl::StrCat("GET /api/v1/", RunPath("steps.csv"), " HTTP/1.0\r\n\r\n"));
  ASSERT_TRUE(old.ReceiveUntil("\r\n\r\n"));
  while (old.Receive()) {
  }
  EXPECT_THAT(old.buffer(), ::testing::EndsWith("\r\n\r\n" + csv));
}

// Rows are made as they are asked for, a few hundred at a time; what goes wrong is an error, and
// what comes meanwhile is not in it.
TEST(ExportRowsTest, AFewAtATime) {
  uint64_t asked = 0;
  const Source<EntryRow> source = [&](std::optional<uint64_t> place,
                                      size_t limit) -> absl::StatusOr<RowsFrom<EntryRow>> {
    ++asked;
    EXPECT_LE(limit, 1000u);
    const uint64_t first = place.value_or(0);
    RowsFrom<EntryRow> rows;
    for (uint64_t i = first; i < first + limit; ++i) {
      EntryRow row;
      row.log_index = i;
      row.kind = "record";
      rows.rows.push_back(row);
    }
    if (first > 100'000) return absl::UnavailableError("gone");
    rows.next = first + limit;
    return rows;
  };
  Export<EntryRow> all(Format::kCsv, source);
  EXPECT_THAT(all.Next().value(),
              StartsWith("index,kind,run,step,leaf_hash,bytes,received_ms\r\n"));
  EXPECT_EQ(asked, 0u);
  size_t bytes = 0;
  absl::StatusOr<std::string> next;
  while ((next = all.Next()).ok()) {
    EXPECT_LT(next->size(), 100'000u);
    bytes += next->size();
  }
  EXPECT_EQ(next.status(), absl::UnavailableError("gone"));
  EXPECT_GT(bytes, 1'000'000u);
}

// A page that holds nothing of a filtered list is not its end.
TEST(ExportRowsTest, EmptyPagesAreSkipped) {
  const Source<EntryRow> source = [](std::optional<uint64_t> place,
                                     size_t) -> absl::StatusOr<RowsFrom<EntryRow>> {
    RowsFrom<EntryRow> rows;
    const uint64_t at = place.value_or(0);
    if (at == 3) rows.rows.emplace_back();
    if (at < 5) rows.next = at + 1;
    return rows;
  };
  Export<EntryRow> all(Format::kJsonLines, source);
  EXPECT_THAT(all.Next().value(), StartsWith("{\"index\":0,"));
  EXPECT_EQ(all.Next().value(), "");
}

// Whoever reads slowly does not have the server make everything beforehand; and an error breaks off
// what was promised.
TEST(GeneratedBodyTest, BacksOffAndBreaksOff) {
  std::atomic<int> made = 0;
  Router router;
  router.Get("/long", [&](const HttpRequest&) {
    return HttpResponse{.body = GeneratedBody{[&]() -> absl::StatusOr<std::string> {
                          if (++made > 100) return absl::UnavailableError("enough");
                          return std::string(1 << 20, 'x');
                        }}};
  });
  router.Get("/throws", [&](const HttpRequest&) {
    return HttpResponse{.body = GeneratedBody{[]() -> absl::StatusOr<std::string> {
                          throw std::runtime_error("a bug");
                        }}};
  });
  const auto server =
      HttpServer::Start({.registry = std::make_shared<prometheus::Registry>()}, std::move(router))
          .value();
  RawClient slow(server->port(), 4096);
  slow.Send("GET /long HTTP/1.1\r\nHost: x\r\n\r\n");
  ASSERT_TRUE(slow.ReceiveUntil("\r\n\r\n"));
  RawClient other(server->port());
  EXPECT_EQ(other.Get("/none").status, 404);
  EXPECT_LT(made, 20);
  while (slow.Receive()) slow.buffer().clear();  // to the end, which has no last chunk
  EXPECT_EQ(made, 101);
  RawClient throwing(server->port());
  throwing.Send("GET /throws HTTP/1.1\r\nHost: x\r\n\r\n");
  ASSERT_TRUE(throwing.ReceiveUntil("\r\n\r\n"));
  EXPECT_TRUE(throwing.IsClosed());
  server->Stop(absl::Seconds(5));
}

}  // namespace
}  // namespace lockstep::coordinator
