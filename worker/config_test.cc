// SPDX-License-Identifier: Apache-2.0
#include "worker/config.h"

#include <map>

#include "base/testing/status_matchers.h"
#include "base/testing/temporary_folder.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep::worker {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class ConfigTest : public ::testing::Test {
 protected:
  ConfigSources Sources() {
    variables_["HOME"] = "/home/somebody";
    return {.flags = flags_,
            .environment = [this](const std::string& name) -> std::optional<std::string> {
              const auto found = variables_.find(name);
              if (found == variables_.end()) return std::nullopt;
              return found->second;
            },
            .user_file = user_file_,
            .system_file = folder_ / "system.toml"};
  }
  void User(absl::string_view text) {
    user_file_ = folder_ / "user.toml";
    WriteBytes(user_file_, text);
  }
  void System(absl::string_view text) { WriteBytes(folder_ / "system.toml", text); }

  TemporaryFolder folder_;
  Settings flags_;
  std::map<std::string, std::string> variables_;
  std::string user_file_;
};

TEST_F(ConfigTest, DefaultsAreThoseOfAGuest) {
  const absl::StatusOr<WorkerConfig> config = LoadConfig(Sources());
  ASSERT_THAT(config, IsOk());
  EXPECT_TRUE(config->guest.pause_on_activity);
  EXPECT_TRUE(config->guest.pause_on_battery);
  EXPECT_EQ(config->data_folder, "/home/somebody/.local/share/lockstep-worker");
  EXPECT_EQ(config->cache_folder, "/home/somebody/.cache/lockstep-worker");
  EXPECT_EQ(config->runtime_folder, config->data_folder);
}

TEST_F(ConfigTest, FlagsOverEnvironmentOverUserOverSystem) {
  System("threads = 1\nidle_minutes = 1\ndisk_gib = 1\nsteps_max = 1\n");
  User("idle_minutes = 2\ndisk_gib = 2\nsteps_max = 2\n");
  variables_["LOCKSTEP_WORKER_DISK_GIB"] = "3";
  variables_["LOCKSTEP_WORKER_STEPS_MAX"] = "3";
  flags_["steps_max"] = {"4"};
  const absl::StatusOr<WorkerConfig> config = LoadConfig(Sources());
  ASSERT_THAT(config, IsOk());
  EXPECT_EQ(config->threads, 1);
  EXPECT_EQ(config->guest.idle_min, absl::Minutes(2));
  EXPECT_EQ(config->disk_bytes, uint64_t{3} << 30);
  EXPECT_EQ(config->steps_max, 4u);
}

TEST_F(ConfigTest, ListsAndFolders) {
  User(
      "coordinators = [\"https://a:1\", \"https://b:2\"]\nhours = \"22:00-07:00\"\n"
      "pause_on_battery = false\nother_load_max = 0.25\n");
  variables_["XDG_DATA_HOME"] = "/data";
  variables_["XDG_CACHE_HOME"] = "not/absolute";
  variables_["XDG_RUNTIME_DIR"] = "/run/user/1";
  variables_["LOCKSTEP_WORKER_MIRRORS"] = "https://m/x,https://n";
  const absl::StatusOr<WorkerConfig> config = LoadConfig(Sources());
  ASSERT_THAT(config, IsOk());
  EXPECT_THAT(config->coordinators, ElementsAre("https://a:1", "https://b:2"));
  EXPECT_THAT(config->mirrors, ElementsAre("https://m/x", "https://n"));
  EXPECT_THAT(config->guest.hours, ElementsAre(Hours{.begin = 1320, .end = 420}));
  EXPECT_FALSE(config->guest.pause_on_battery);
  EXPECT_EQ(config->guest.other_load_max, 0.25);
  EXPECT_EQ(config->data_folder, "/data/lockstep-worker");
  EXPECT_EQ(config->cache_folder, "/home/somebody/.cache/lockstep-worker");
  EXPECT_EQ(config->runtime_folder, "/run/user/1/lockstep-worker");
}

TEST_F(ConfigTest, WhatIsWrongIsNamed) {
  for (const auto& [text, expected] : std::initializer_list<std::pair<const char*, const char*>>{
           {"idle_minuts = 1\n", "idle_minuts"},
           {"threads = 1.5\n", "threads"},
           {"threads = -1\n", "threads"},
           {"threads = [1, 2]\n", "threads"},
           {"hours = [\"25:00-07:00\"]\n", "hours"},
           {"pause_on_battery = \"yes\"\n", "pause_on_battery"},
           {"other_load_max = nan\n", "other_load_max"},
           {"coordinators = []\n", "coordinators"},
           {"mirrors = [[1]]\n", "mirrors"},
           {"mirrors = [\"mirror.example\"]\n", "https://mirror.example"},
           {"threads = \n", "line 1"}}) {
    User(text);
    EXPECT_THAT(LoadConfig(Sources()), StatusIs(absl::StatusCode::kInvalidArgument,
                                                AllOf(HasSubstr(expected), HasSubstr("user.toml"))))
        << text;
  }
}

TEST_F(ConfigTest, AFileThatWasNamedMustExist) {
  user_file_ = folder_ / "missing.toml";
  EXPECT_THAT(LoadConfig(Sources()),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("missing.toml")));
}

}  // namespace
}  // namespace lockstep::worker
