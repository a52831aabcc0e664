// SPDX-License-Identifier: Apache-2.0
//
// Uploads that become artifacts, quotas, restarts at every point, expiry, a disk that is full.
#include "coordinator/http/artifact_store.h"

#include <cerrno>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/file_calls.h"
#include "base/testing/fake_clock.h"
#include "base/testing/status_matchers.h"
#include "base/testing/temporary_folder.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep::coordinator {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

bool disk_full = false;
bool fsync_fails = false;

class ArtifactStoreTest : public ::testing::Test {
 protected:
  ArtifactStoreTest() : clock_(absl::Now()) {
    disk_full = fsync_fails = false;
    file_internal::calls.write = [](int fd, const void* bytes, size_t size) -> ssize_t {
      if (!disk_full) return ::write(fd, bytes, size);
      errno = ENOSPC;
      return -1;
    };
    file_internal::calls.fsync = [](int fd) {
      if (!fsync_fails) return ::fsync(fd);
      errno = EIO;
      return -1;
    };
    options_.artifact_bytes_max = 1000;
    options_.bytes_max = 2000;
    options_.clock = &clock_;
    Open();
  }
  ~ArtifactStoreTest() override { file_internal::calls = {}; }

  void Open() {
    store_.reset();
    auto store = ArtifactStore::Open(folder_.path(), options_);
    ASSERT_THAT(store, IsOk());
    store_ = *std::move(store);
  }
  static Digest DigestOf(const std::string& content) { return Sha256(AsBytes(content)); }
  auto Resume(const std::string& content, const std::string& owner = "alice", uint64_t quota = 1500,
              bool trainer = false) {
    return store_->Resume({.digest = DigestOf(content),
                           .bytes = content.size(),
                           .owner = owner,
                           .owner_bytes_max = quota,
                           .trainer = trainer});
  }
  void Put(const std::string& content, const std::string& owner = "alice") {
    auto upload = Resume(content, owner);
    ASSERT_THAT(upload, IsOk());
    ASSERT_THAT((*upload)->Append(AsBytes(content).subspan((*upload)->offset())), IsOk());
    ASSERT_THAT((*upload)->Finish(), IsOk());
  }
  bool IsThere(const std::string& content) const {
    const auto file = store_->Find(DigestOf(content));
    if (!file.ok()) return false;
    EXPECT_EQ((*file)->bytes(), content.size());
    EXPECT_EQ(ReadBytes(absl::StrCat(folder_.path(), "/artifact/", DigestOf(content).ToHex())),
              content);
    return true;
  }
  std::vector<std::string> Uploads() const {
    std::vector<std::string> names;
    for (const auto& [name, content] : ReadAll(folder_ / "uploads")) names.push_back(name);
    return names;
  }

  TemporaryFolder folder_;
  FakeClock clock_;
  ArtifactStoreOptions options_;
  std::unique_ptr<ArtifactStore> store_;
};

TEST_F(ArtifactStoreTest, VisibleWhenWholeAndNotBefore) {
  const std::string content(500, 'a');
  {
    auto upload = Resume(content);
    ASSERT_THAT(upload, IsOk());
    ASSERT_THAT((*upload)->Append(AsBytes(content)), IsOk());
    EXPECT_FALSE(IsThere(content));
    ASSERT_THAT((*upload)->Finish(), IsOk());
  }
  EXPECT_TRUE(IsThere(content));
  EXPECT_THAT(Uploads(), IsEmpty());
  EXPECT_THAT(Resume(content), StatusIs(absl::StatusCode::kAlreadyExists));
  EXPECT_EQ(store_->bytes(), 500u);
}

TEST_F(ArtifactStoreTest, PartsSurviveARestart) {
  const std::string content(500, 'a');
  for (int part = 0; part < 5; ++part) {
    {
      auto upload = Resume(content);
      ASSERT_THAT(upload, IsOk());
      EXPECT_EQ((*upload)->offset(), part * 100u);
      ASSERT_THAT((*upload)->Append(AsBytes(content).first(100)), IsOk());
      ASSERT_THAT((*upload)->Sync(), IsOk());
    }
    EXPECT_EQ(store_->bytes(), 500u);
    if (part % 2 == 0) Open();
  }
  auto upload = Resume(content);
  EXPECT_EQ((*upload)->offset(), 500u);
  ASSERT_THAT((*upload)->Finish(), IsOk());
  EXPECT_TRUE(IsThere(content));
}

TEST_F(ArtifactStoreTest, WrongBytesAreDropped) {
  const std::string content(500, 'a');
  {
    auto upload = Resume(content);
    ASSERT_THAT((*upload)->Append(AsBytes(std::string(500, 'b'))), IsOk());
    EXPECT_THAT((*upload)->Finish(), StatusIs(absl::StatusCode::kDataLoss));
  }
  EXPECT_FALSE(IsThere(content));
  EXPECT_THAT(Uploads(), IsEmpty());
  EXPECT_EQ(store_->bytes(), 0u);
  Put(content);
  EXPECT_TRUE(IsThere(content));
}

// A stranger cannot hold an artifact's name with bytes of their own.
TEST_F(ArtifactStoreTest, OwnersDoNotShareUploads) {
  const std::string content(500, 'a');
  auto squatter = Resume(content, "mallory");
  ASSERT_THAT((*squatter)->Append(AsBytes(std::string(400, 'x'))), IsOk());
  Put(content, "alice");
  EXPECT_TRUE(IsThere(content));
  ASSERT_THAT((*squatter)->Append(AsBytes(std::string(100, 'x'))), IsOk());
  EXPECT_THAT((*squatter)->Finish(), StatusIs(absl::StatusCode::kDataLoss));
  EXPECT_TRUE(IsThere(content));
  EXPECT_EQ(store_->bytes(), 500u);
}

TEST_F(ArtifactStoreTest, TwoWhoFinishTheSameCountOnce) {
  const std::string content(500, 'a');
  auto a = Resume(content, "alice"), b = Resume(content, "bob");
  for (auto* upload : {&a, &b}) {
    ASSERT_THAT((**upload)->Append(AsBytes(content)), IsOk());
    ASSERT_THAT((**upload)->Finish(), IsOk());
  }
  EXPECT_EQ(store_->bytes(), 500u);
  EXPECT_TRUE(IsThere(content));
  EXPECT_THAT(Resume(std::string(1000, 'c'), "bob", 1000), IsOk());
  EXPECT_THAT(Resume(std::string(1000, 'd'), "alice", 1000),
              StatusIs(absl::StatusCode::kResourceExhausted));
}

TEST_F(ArtifactStoreTest, OneHolderAtATime) {
  const std::string content(500, 'a');
  auto upload = Resume(content);
  EXPECT_THAT(Resume(content), StatusIs(absl::StatusCode::kUnavailable));
  *upload = nullptr;
  EXPECT_THAT(Resume(content), IsOk());
  EXPECT_THAT(store_->Resume({DigestOf(content), 499, "alice", 1500}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("500")));
}

TEST_F(ArtifactStoreTest, SizesAndQuotas) {
  EXPECT_THAT(Resume(std::string(1001, 'a')), StatusIs(absl::StatusCode::kOutOfRange));
  EXPECT_THAT(Resume(std::string(501, 'a'), "alice", 500),
              StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("quota")));
  Put(std::string(1000, 'a'));
  const auto quota = [&](size_t bytes) { return Resume(std::string(bytes, 'b')).status(); };
  EXPECT_THAT(quota(501),
              StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("1000 are here")));
  EXPECT_THAT(quota(500), IsOk());
  Open();  // the quota counts what is whole and what is to come, also after a restart
  EXPECT_THAT(Resume("x"), StatusIs(absl::StatusCode::kResourceExhausted));
  EXPECT_THAT(Resume(std::string(501, 'c'), "bob"),
              StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("store is full")));
  EXPECT_THAT(Resume(std::string(500, 'c'), "bob"), IsOk());
}

TEST_F(ArtifactStoreTest, UploadsAreCounted) {
  options_.uploads_per_owner_max = 2;
  options_.uploads_max = 3;
  Open();
  EXPECT_THAT(Resume("1"), IsOk());
  EXPECT_THAT(Resume("2"), IsOk());
  EXPECT_THAT(Resume("3"), StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_THAT(Resume("2"), IsOk());
  EXPECT_THAT(Resume("3", "bob"), IsOk());
  EXPECT_THAT(Resume("4", "carol"), StatusIs(absl::StatusCode::kUnavailable));
}

TEST_F(ArtifactStoreTest, WorkersLeaveRoomForTrainers) {
  options_.uploads_max = 2;
  options_.workers_bytes_max = 900;
  for (int start = 0; start < 2; ++start) {
    Open();  // the second time with what is under way
    EXPECT_THAT(Resume(std::string(400, '1'), "bob"), IsOk());
    EXPECT_THAT(Resume(std::string(400, '2'), "carol"), IsOk());
    EXPECT_THAT(Resume("3", "dave"),
                StatusIs(absl::StatusCode::kUnavailable, HasSubstr("too many")));
    EXPECT_THAT(Resume("4", "dave", 1500, /*trainer=*/true), IsOk());
  }
  options_.uploads_max = 100;
  Open();
  EXPECT_THAT(Resume(std::string(101, '5'), "dave"),
              StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("workers' share")));
  EXPECT_THAT(Resume(std::string(101, '5'), "dave", 1500, /*trainer=*/true), IsOk());
  EXPECT_THAT(Resume("6", "trainer:eve"), StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST_F(ArtifactStoreTest, WhatWorkersBroughtIsKnownAsTheirs) {
  Put("worker's", "bob");
  auto upload = Resume("trainer's", "carol", 1500, /*trainer=*/true);
  ASSERT_THAT((*upload)->Append(AsBytes("trainer's")), IsOk());
  ASSERT_THAT((*upload)->Finish(), IsOk());
  clock_.Advance(absl::Hours(30));
  for (int start = 0; start < 2; ++start) {
    const auto brought = store_->OfWorkers();
    ASSERT_EQ(brought.size(), 1u);
    EXPECT_EQ(brought[0].first, DigestOf("worker's"));
    EXPECT_GT(brought[0].second, absl::Hours(29));
    EXPECT_LT(brought[0].second, absl::Hours(31));
    upload->reset();
    Open();
  }
  ASSERT_THAT(store_->Remove(DigestOf("worker's")), IsOk());
  EXPECT_THAT(store_->OfWorkers(), IsEmpty());
  EXPECT_TRUE(IsThere("trainer's"));
}

TEST_F(ArtifactStoreTest, UploadsExpire) {
  const std::string old(400, 'o'), fresh(400, 'f'), held(400, 'h');
  for (const std::string& content : {old, fresh, held}) {
    ASSERT_THAT((*Resume(content))->Append(AsBytes("x")), IsOk());
  }
  auto holder = Resume(held);
  clock_.Advance(absl::Hours(23));
  ASSERT_THAT(Resume(fresh), IsOk());
  clock_.Advance(absl::Hours(2));
  EXPECT_EQ(store_->Expire(), 1);
  EXPECT_EQ(store_->bytes(), 800u);
  EXPECT_EQ((*Resume(old))->offset(), 0u);
  EXPECT_EQ((*Resume(fresh))->offset(), 1u);
  *holder = nullptr;
  // Also those that an earlier process left, by the time of their files.
  clock_.Advance(absl::Hours(25));
  Open();
  EXPECT_EQ(store_->bytes(), 0u);
  EXPECT_THAT(Uploads(), IsEmpty());
}

TEST_F(ArtifactStoreTest, FullDisksKeepWhatFitted) {
  const std::string content(500, 'a');
  disk_full = true;
  EXPECT_THAT(Resume(content), StatusIs(absl::StatusCode::kResourceExhausted));
  EXPECT_EQ(store_->bytes(), 0u);
  disk_full = false;
  auto upload = Resume(content);
  ASSERT_THAT((*upload)->Append(AsBytes(content).first(100)), IsOk());
  disk_full = true;
  EXPECT_THAT((*upload)->Append(AsBytes(content).subspan(100)),
              StatusIs(absl::StatusCode::kResourceExhausted));
  EXPECT_EQ((*upload)->offset(), 100u);
  disk_full = false;
  *upload = nullptr;
  Put(content);
  EXPECT_TRUE(IsThere(content));
}

TEST_F(ArtifactStoreTest, FailedSyncsAreNotGoneOnWith) {
  const std::string content(500, 'a');
  for (const bool finish : {false, true}) {
    auto upload = Resume(content);
    ASSERT_THAT((*upload)->Append(AsBytes(content)), IsOk());
    fsync_fails = true;
    EXPECT_FALSE((finish ? (*upload)->Finish() : (*upload)->Sync()).ok());
    fsync_fails = false;
    *upload = nullptr;
    EXPECT_FALSE(IsThere(content));
    EXPECT_EQ(store_->bytes(), 0u);
    EXPECT_THAT(Uploads(), IsEmpty());
  }
  Put(content);
  EXPECT_TRUE(IsThere(content));
}

// Every state that a kill can leave between two calls of Resume, Append and Finish.
TEST_F(ArtifactStoreTest, RestartsAtEveryPoint) {
  const std::string content(500, 'a');
  ASSERT_THAT((*Resume(content))->Append(AsBytes(content)), IsOk());
  const std::vector<std::string> names = Uploads();
  ASSERT_EQ(names.size(), 2u);
  const std::string json = folder_ / "uploads/" + names[0],
                    partial = folder_ / "uploads/" + names[1];
  const std::string artifact = folder_ / "artifact/" + DigestOf(content).ToHex();
  const std::string owner = folder_ / "owners/" + DigestOf(content).ToHex() + ".json";
  const std::string sidecar = ReadBytes(json);
  EXPECT_EQ(sidecar, absl::StrCat("{\"bytes\":500,\"owner\":\"alice\",\"sha256\":\"",
                                  DigestOf(content).ToHex(), "\"}"));
  // After the first write of an upload, before its file.
  std::filesystem::remove(partial);
  Open();
  EXPECT_EQ((*Resume(content))->offset(), 0u);
  EXPECT_EQ(store_->bytes(), 500u);
  // Between the renames of Finish.
  std::filesystem::rename(partial, artifact);
  Open();
  EXPECT_EQ(ReadBytes(owner), sidecar);
  EXPECT_THAT(Uploads(), IsEmpty());
  EXPECT_EQ(store_->bytes(), 0u);  // the artifact is empty, as the file was
  std::filesystem::remove(artifact);
  // A file of nobody, a torn or foreign sidecar, and what a writer of files leaves.
  WriteBytes(partial, content);
  WriteBytes(json, sidecar.substr(0, 20));
  WriteBytes(folder_ / "uploads/0123.json", sidecar);
  WriteBytes(folder_ / "uploads/.lockstep-1-1.tmp", "x");
  Open();
  EXPECT_THAT(Uploads(), IsEmpty());
  EXPECT_EQ(store_->bytes(), 0u);
}

TEST_F(ArtifactStoreTest, FilesPutThereByOthersCountForNobody) {
  const std::string content(700, 'a');
  WriteBytes(folder_ / "artifact/" + DigestOf(content).ToHex(), content);
  WriteBytes(folder_ / "artifact/README", "x");
  EXPECT_TRUE(IsThere(content));
  Open();
  EXPECT_EQ(store_->bytes(), 700u);
  EXPECT_THAT(Resume(std::string(1000, 'b'), "alice", 1000), IsOk());
}

TEST_F(ArtifactStoreTest, Removal) {
  const std::string content(500, 'a');
  Put(content);
  EXPECT_THAT(store_->Remove(DigestOf(content)), IsOk());
  EXPECT_FALSE(IsThere(content));
  EXPECT_EQ(store_->bytes(), 0u);
  EXPECT_THAT(store_->Remove(DigestOf(content)), StatusIs(absl::StatusCode::kNotFound));
  EXPECT_THAT(ReadAll(folder_.path()),
              ElementsAre(std::pair<std::string, std::string>("lock", "")));
  Put(content);
}

TEST_F(ArtifactStoreTest, OneProcessAtATime) {
  EXPECT_THAT(ArtifactStore::Open(folder_.path(), options_),
              StatusIs(absl::StatusCode::kFailedPrecondition));
}

}  // namespace
}  // namespace lockstep::coordinator
