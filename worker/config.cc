// SPDX-License-Identifier: Apache-2.0
//
// The list of settings, and the four places they come from.
#include "worker/config.h"

#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "base/file.h"
#include "base/status.h"
#include "toml++/toml.h"

namespace lockstep::worker {
namespace {

constexpr size_t kConfigBytesMax = size_t{1} << 20;
constexpr char kVariablePrefix[] = "LOCKSTEP_WORKER_";
constexpr double kGiB = 1024.0 * 1024 * 1024;
constexpr double kMiB = 1024.0 * 1024;

using Values = std::vector<std::string>;

absl::Status Expected(absl::string_view what, absl::string_view found) {
  return absl::InvalidArgumentError(absl::StrCat("expected ", what, "; found \"", found, "\""));
}

Setting Text(std::string name, std::string help, std::string WorkerConfig::*field) {
  return {.name = std::move(name),
          .help = std::move(help),
          .apply = [field](const Values& values, WorkerConfig* config) {
            config->*field = values[0];
            return absl::OkStatus();
          }};
}

Setting List(std::string name, std::string help, std::vector<std::string> WorkerConfig::*field) {
  return {.name = std::move(name),
          .list = true,
          .help = std::move(help),
          .apply = [field](const Values& values, WorkerConfig* config) {
            config->*field = values;
            return absl::OkStatus();
          }};
}

Setting Flag(std::string name, std::string help, std::function<void(WorkerConfig*, bool)> set) {
  return {.name = std::move(name),
          .help = std::move(help),
          .apply = [set = std::move(set)](const Values& values, WorkerConfig* config) {
            const std::string& text = values[0];
            if (text != "true" && text != "false") return Expected("true or false", text);
            set(config, text == "true");
            return absl::OkStatus();
          }};
}

Setting Number(std::string name, std::string help, double least, double most,
               std::function<void(WorkerConfig*, double)> set) {
  return {.name = std::move(name),
          .help = std::move(help),
          .apply = [least, most, set = std::move(set)](const Values& values, WorkerConfig* config) {
            double value = 0;
            if (!absl::SimpleAtod(values[0], &value) || !(value >= least && value <= most)) {
              return Expected(absl::StrCat("a number from ", least, " to ", most), values[0]);
            }
            set(config, value);
            return absl::OkStatus();
          }};
}

Setting Integer(std::string name, std::string help, int64_t least, int64_t most,
                std::function<void(WorkerConfig*, int64_t)> set) {
  return {.name = std::move(name),
          .help = std::move(help),
          .apply = [least, most, set = std::move(set)](const Values& values, WorkerConfig* config) {
            int64_t value = 0;
            if (!absl::SimpleAtoi(values[0], &value) || value < least || value > most) {
              return Expected(absl::StrCat("an integer from ", least, " to ", most), values[0]);
            }
            set(config, value);
            return absl::OkStatus();
          }};
}

uint64_t Bytes(double number, double unit) { return static_cast<uint64_t>(number * unit); }

std::vector<Setting> MakeSettings() {
  std::vector<Setting> all = {
      List("coordinators", "addresses of coordinators, asked in turn", &WorkerConfig::coordinators),
      {.name = "mirrors",
       .list = true,
       .help = "more addresses of artifacts, each at ADDRESS/artifact/<sha256>",
       .apply =
           [](const Values& values, WorkerConfig* config) {
             for (const std::string& value : values) {
               if (!absl::StartsWith(value, "https://") && !absl::StartsWith(value, "http://")) {
                 return Expected("an address such as https://mirror.example", value);
               }
             }
             config->mirrors = values;
             return absl::OkStatus();
           }},
      Text("ca_file", "certificates to trust, PEM; the system's if not given",
           &WorkerConfig::ca_file),
      Text("data_folder", "keys, outbox, receipts", &WorkerConfig::data_folder),
      Text("cache_folder", "artifacts and run folders", &WorkerConfig::cache_folder),
      Text("runtime_folder", "where the control socket is", &WorkerConfig::runtime_folder),
      Integer("threads", "threads; 0: as many as there are CPUs", 0, 1024,
              [](WorkerConfig* c, int64_t n) { c->threads = static_cast<int>(n); }),
      Number("memory_gib", "GiB that a replay may take; 0: nine tenths of what is free", 0, 1e6,
             [](WorkerConfig* c, double n) { c->memory_bytes = Bytes(n, kGiB); }),
      Number("disk_gib", "GiB of artifacts to keep", 0.001, 1e6,
             [](WorkerConfig* c, double n) { c->disk_bytes = Bytes(n, kGiB); }),
      Number("bandwidth_mib", "MiB a second of transfers; 0: no cap", 0, 1e6,
             [](WorkerConfig* c, double n) { c->bytes_per_second = Bytes(n, kMiB); }),
      Integer("steps_max", "steps of a lease at most; 0: as the coordinator likes", 0, 1 << 20,
              [](WorkerConfig* c, int64_t n) { c->steps_max = static_cast<uint32_t>(n); }),
      Flag("offer_states", "upload the state at the end of a lease, for others to start from",
           [](WorkerConfig* c, bool on) { c->offer_states = on; }),
      Number("checkpoint_minutes", "minutes between local checkpoints within a lease", 0.01, 1e5,
             [](WorkerConfig* c, double n) { c->checkpoint_every = absl::Minutes(n); }),
      Number("release_minutes", "a pause of so many minutes gives the lease up", 0, 1e5,
             [](WorkerConfig* c, double n) { c->release_after = absl::Minutes(n); }),
      Flag("pause_on_activity", "pause while somebody uses the machine",
           [](WorkerConfig* c, bool on) { c->guest.pause_on_activity = on; }),
      Number("idle_minutes", "minutes without activity before work goes on", 0, 1e5,
             [](WorkerConfig* c, double n) { c->guest.idle_min = absl::Minutes(n); }),
      Flag("pause_on_battery", "pause while the machine runs on its battery",
           [](WorkerConfig* c, bool on) { c->guest.pause_on_battery = on; }),
      Number("other_load_max", "pause while others use more than this part of the CPUs; 1: never",
             0, 1, [](WorkerConfig* c, double n) { c->guest.other_load_max = n; }),
      Number("disk_free_gib", "pause while less than this is free", 0, 1e6,
             [](WorkerConfig* c, double n) { c->guest.disk_free_bytes_min = Bytes(n, kGiB); }),
  };
  all.push_back({.name = "hours",
                 .list = true,
                 .help = "work only then, local time: 22:00-07:00",
                 .apply = [](const Values& values, WorkerConfig* config) {
                   config->guest.hours.clear();
                   for (const std::string& value : values) {
                     LOCKSTEP_ASSIGN_OR_RETURN(const Hours hours, ParseHours(value));
                     config->guest.hours.push_back(hours);
                   }
                   return absl::OkStatus();
                 }});
  return all;
}

const Setting* FindSetting(absl::string_view name) {
  for (const Setting& setting : AllSettings()) {
    if (setting.name == name) return &setting;
  }
  return nullptr;
}

absl::Status Apply(const Settings& settings, absl::string_view source, WorkerConfig* config) {
  for (const auto& [name, values] : settings) {
    const Setting* const setting = FindSetting(name);
    if (setting == nullptr) {
      return absl::InvalidArgumentError(
          absl::StrCat(source,
                       ": expected a known setting (lockstep-worker run --help lists them); "
                       "found \"",
                       name, "\""));
    }
    if (values.empty() || (!setting->list && values.size() != 1)) {
      return absl::InvalidArgumentError(
          absl::StrCat(source, ": ", name, ": expected ", setting->list ? "values" : "one value"));
    }
    LOCKSTEP_RETURN_IF_ERROR(setting->apply(values, config), source, ": ", name);
  }
  return absl::OkStatus();
}

std::optional<std::string> ValueText(const toml::node& node) {
  if (const auto* text = node.as_string()) return text->get();
  if (const auto* integer = node.as_integer()) return absl::StrCat(integer->get());
  if (const auto* number = node.as_floating_point()) return absl::StrFormat("%.17g", number->get());
  if (const auto* flag = node.as_boolean()) return std::string(flag->get() ? "true" : "false");
  return std::nullopt;
}

absl::StatusOr<Settings> ParseToml(absl::string_view text) {
  toml::table table;
  try {
    table = toml::parse(std::string_view(text.data(), text.size()));
  } catch (const toml::parse_error& error) {
    return absl::InvalidArgumentError(
        absl::StrCat("line ", error.source().begin.line, ": ", std::string(error.description())));
  }
  Settings settings;
  for (const auto& [key, node] : table) {
    const std::string name(key.str());
    std::vector<std::string>& values = settings[name];
    const toml::array* const array = node.as_array();
    const size_t count = array == nullptr ? 1 : array->size();
    for (size_t i = 0; i < count; ++i) {
      const std::optional<std::string> value = ValueText(array == nullptr ? node : (*array)[i]);
      if (!value) {
        return absl::InvalidArgumentError(absl::StrCat("line ", node.source().begin.line, ": ",
                                                       name,
                                                       ": expected text, numbers, true or false"));
      }
      values.push_back(*value);
    }
  }
  return settings;
}

absl::Status ApplyFile(const std::string& path, bool must_exist, WorkerConfig* config) {
  const absl::StatusOr<std::string> text = ReadFile(path, kConfigBytesMax);
  if (absl::IsNotFound(text.status()) && !must_exist) return absl::OkStatus();
  if (!text.ok()) return absl::InvalidArgumentError(text.status().message());
  LOCKSTEP_ASSIGN_OR_RETURN(const Settings settings, ParseToml(*text), path);
  return Apply(settings, path, config);
}

absl::Status ApplyEnvironment(const Environment& environment, WorkerConfig* config) {
  Settings settings;
  for (const Setting& setting : AllSettings()) {
    const std::optional<std::string> value =
        environment(absl::StrCat(kVariablePrefix, absl::AsciiStrToUpper(setting.name)));
    if (!value) continue;
    settings[setting.name] =
        setting.list ? std::vector<std::string>(absl::StrSplit(*value, ',', absl::SkipEmpty()))
                     : std::vector<std::string>{*value};
  }
  return Apply(settings, "environment", config);
}

// $VARIABLE if it is an absolute path (the XDG specification has others ignored), or $HOME/REST.
absl::StatusOr<std::string> XdgFolder(const Environment& environment, const std::string& variable,
                                      absl::string_view rest) {
  if (const auto value = environment(variable); value && !value->empty() && (*value)[0] == '/') {
    return *value;
  }
  const std::optional<std::string> home = environment("HOME");
  if (!home || home->empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("expected $", variable, " or $HOME to be set, or the folders to be given"));
  }
  return absl::StrCat(*home, "/", rest);
}

absl::Status FillFolders(const Environment& environment, WorkerConfig* config) {
  if (config->data_folder.empty()) {
    // What systemd gives to a unit with StateDirectory=, CacheDirectory=, RuntimeDirectory=.
    if (const auto given = environment("STATE_DIRECTORY")) {
      config->data_folder = *given;
    } else {
      LOCKSTEP_ASSIGN_OR_RETURN(const std::string folder,
                                XdgFolder(environment, "XDG_DATA_HOME", ".local/share"));
      config->data_folder = folder + "/lockstep-worker";
    }
  }
  if (config->cache_folder.empty()) {
    if (const auto given = environment("CACHE_DIRECTORY")) {
      config->cache_folder = *given;
    } else {
      LOCKSTEP_ASSIGN_OR_RETURN(const std::string folder,
                                XdgFolder(environment, "XDG_CACHE_HOME", ".cache"));
      config->cache_folder = folder + "/lockstep-worker";
    }
  }
  if (config->runtime_folder.empty()) {
    if (const auto given = environment("RUNTIME_DIRECTORY")) {
      config->runtime_folder = *given;
    } else if (const auto runtime = environment("XDG_RUNTIME_DIR"); runtime && !runtime->empty()) {
      config->runtime_folder = *runtime + "/lockstep-worker";
    } else {
      config->runtime_folder = config->data_folder;
    }
  }
  return absl::OkStatus();
}

}  // namespace

const std::vector<Setting>& AllSettings() {
  static const auto* const settings = new std::vector<Setting>(MakeSettings());
  return *settings;
}

absl::StatusOr<WorkerConfig> LoadConfig(const ConfigSources& sources) {
  WorkerConfig config;
  LOCKSTEP_RETURN_IF_ERROR(ApplyFile(sources.system_file, /*must_exist=*/false, &config));
  std::string user_file = sources.user_file;
  if (user_file.empty()) {
    const absl::StatusOr<std::string> folder =
        XdgFolder(sources.environment, "XDG_CONFIG_HOME", ".config");
    if (folder.ok()) user_file = *folder + "/lockstep/worker.toml";
  }
  if (!user_file.empty()) {
    LOCKSTEP_RETURN_IF_ERROR(ApplyFile(user_file, !sources.user_file.empty(), &config));
  }
  LOCKSTEP_RETURN_IF_ERROR(ApplyEnvironment(sources.environment, &config));
  LOCKSTEP_RETURN_IF_ERROR(Apply(sources.flags, "flags", &config));
  LOCKSTEP_RETURN_IF_ERROR(FillFolders(sources.environment, &config));
  return config;
}

}  // namespace lockstep::worker
