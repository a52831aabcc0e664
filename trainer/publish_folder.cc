// SPDX-License-Identifier: Apache-2.0
//
// Small files, each written durably.
#include "trainer/publish_folder.h"

#include <unistd.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "audit/evidence/log_entry.h"
#include "base/bytes.h"
#include "base/canonical_json.h"
#include "base/directory.h"
#include "base/file.h"
#include "base/status.h"

namespace lockstep::trainer {
namespace {

constexpr size_t kFileBytesMax = size_t{1} << 20;

// What a kill left behind (base/file.h names them so).
void RemoveHalfWritten(const std::string& folder) {
  const absl::StatusOr<std::vector<std::string>> names = ListDirectory(folder);
  if (!names.ok()) return;
  for (const std::string& name : *names) {
    if (absl::StartsWith(name, ".lockstep-") && absl::EndsWith(name, ".tmp")) {
      ::unlink(absl::StrCat(folder, "/", name).c_str());
    }
  }
}

}  // namespace

absl::StatusOr<PublishFolder> PublishFolder::Open(const engine::RunFolder& run) {
  std::string path = run.path() + "/publish";
  LOCKSTEP_RETURN_IF_ERROR(MakeDirectories(path + "/receipts"));
  LOCKSTEP_ASSIGN_OR_RETURN(DirectoryLock lock, DirectoryLock::Take(path));
  for (const std::string& folder : {path, path + "/receipts"}) RemoveHalfWritten(folder);
  return PublishFolder(std::move(path), std::move(lock));
}

absl::StatusOr<std::optional<std::string>> PublishFolder::Read(absl::string_view name) const {
  absl::StatusOr<std::string> bytes = ReadFile(absl::StrCat(path_, "/", name), kFileBytesMax);
  if (absl::IsNotFound(bytes.status())) return std::optional<std::string>();
  LOCKSTEP_RETURN_IF_ERROR(bytes.status());
  return std::optional<std::string>(*std::move(bytes));
}

absl::Status PublishFolder::Save(absl::string_view name, absl::string_view bytes) const {
  return WriteFileDurably(absl::StrCat(path_, "/", name), AsBytes(bytes));
}

absl::StatusOr<std::optional<std::string>> PublishFolder::ReadRegistration() const {
  return Read("registration.json");
}

absl::Status PublishFolder::SaveRegistration(absl::string_view entry) const {
  return Save("registration.json", entry);
}

absl::StatusOr<std::optional<std::string>> PublishFolder::ReadLogKey() const {
  LOCKSTEP_ASSIGN_OR_RETURN(std::optional<std::string> text, Read("log_key"));
  if (text && !text->empty() && text->back() == '\n') text->pop_back();
  return text;
}

absl::Status PublishFolder::SaveLogKey(absl::string_view text) const {
  return Save("log_key", absl::StrCat(text, "\n"));
}

absl::StatusOr<std::optional<PublishProgress>> PublishFolder::ReadProgress() const {
  LOCKSTEP_ASSIGN_OR_RETURN(const std::optional<std::string> text, Read("progress.json"));
  if (!text) return std::optional<PublishProgress>();
  const std::string where = path_ + "/progress.json";
  LOCKSTEP_ASSIGN_OR_RETURN(const nlohmann::json json, ParseCanonicalJson(*text), where);
  JsonReader reader(json, where);
  PublishProgress progress;
  progress.next_step = static_cast<uint64_t>(reader.Integer("next_step", 0, kJsonIntegerMax));
  progress.chain = reader.Sha256Digest("chain");
  LOCKSTEP_RETURN_IF_ERROR(reader.Finish());
  return std::optional<PublishProgress>(progress);
}

absl::Status PublishFolder::SaveProgress(const PublishProgress& progress) const {
  LOCKSTEP_ASSIGN_OR_RETURN(
      const std::string text,
      CanonicalJson({{"chain", progress.chain.ToHex()}, {"next_step", progress.next_step}}));
  return Save("progress.json", text);
}

absl::Status PublishFolder::SaveReceipt(absl::string_view name,
                                        const audit::Receipt& receipt) const {
  LOCKSTEP_ASSIGN_OR_RETURN(const std::string text, audit::EncodeReceipt(receipt));
  return Save(absl::StrCat("receipts/", name, ".json"), text);
}

}  // namespace lockstep::trainer
