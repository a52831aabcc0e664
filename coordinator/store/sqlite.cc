// SPDX-License-Identifier: Apache-2.0
//
// Connections to SQLite. See sqlite.h.

#include "coordinator/store/sqlite.h"

#include <fcntl.h>
#include <sqlite3.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "base/status.h"

namespace lockstep::coordinator {
namespace {

// Kept: a transaction's largest use of the log is far below it, and a log that grew once is cut.
constexpr int64_t kWalBytesKept = int64_t{64} << 20;
// Pages in the log that are brought to the database together. A batch of the writer's may have a
// thousand, and with SQLite's own number each commit would pay for that too.
constexpr int kWalPagesMax = 8'192;
// The writer's pages: a batch that does not fit is written to the log before it is committed.
constexpr int kCacheKibibytes = 32 << 10;

absl::StatusCode CodeOf(int code) {
  switch (code & 0xff) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return absl::StatusCode::kUnavailable;
    case SQLITE_FULL:
      return absl::StatusCode::kResourceExhausted;
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
      return absl::StatusCode::kDataLoss;
    case SQLITE_READONLY:
    case SQLITE_CANTOPEN:
    case SQLITE_PERM:
      return absl::StatusCode::kFailedPrecondition;
    case SQLITE_CONSTRAINT:
      return code == SQLITE_CONSTRAINT_PRIMARYKEY || code == SQLITE_CONSTRAINT_UNIQUE ||
                     code == SQLITE_CONSTRAINT_ROWID
                 ? absl::StatusCode::kAlreadyExists
                 : absl::StatusCode::kFailedPrecondition;
    default:
      return absl::StatusCode::kInternal;
  }
}

// Whether what the connection does next could be trusted after this.
bool Poisons(int code) {
  switch (code & 0xff) {
    case SQLITE_FULL:
    case SQLITE_IOERR:
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
    case SQLITE_NOMEM:
    case SQLITE_CANTOPEN:
      return true;
    default:
      return false;
  }
}

int Bind(sqlite3_stmt* statement, int index, const SqliteValue& value) {
  const ByteSpan bytes = value.bytes();
  // A null pointer would bind NULL, and no bytes are not NULL.
  const char* data = bytes.empty() ? "" : reinterpret_cast<const char*>(bytes.data());
  switch (value.type()) {
    case SqliteValue::Type::kNull:
      return sqlite3_bind_null(statement, index);
    case SqliteValue::Type::kInteger:
      return sqlite3_bind_int64(statement, index, value.integer());
    case SqliteValue::Type::kText:
      return sqlite3_bind_text64(statement, index, data, bytes.size(), SQLITE_STATIC, SQLITE_UTF8);
    case SqliteValue::Type::kBytes:
      return sqlite3_bind_blob64(statement, index, data, bytes.size(), SQLITE_STATIC);
  }
  return SQLITE_MISUSE;
}

absl::Status SyncPath(const std::string& path, int flags) {
  const int fd = ::open(path.c_str(), flags | O_CLOEXEC);
  if (fd < 0) return absl::ErrnoToStatus(errno, absl::StrCat("open ", path));
  const auto close = absl::MakeCleanup([fd] { ::close(fd); });
  if (::fsync(fd) != 0) return absl::ErrnoToStatus(errno, absl::StrCat("fsync ", path));
  return absl::OkStatus();
}

}  // namespace

bool SqliteRow::IsNull(int column) const {
  return sqlite3_column_type(statement_, column) == SQLITE_NULL;
}

int64_t SqliteRow::Integer(int column) const { return sqlite3_column_int64(statement_, column); }

std::string SqliteRow::Bytes(int column) const {
  const void* data = sqlite3_column_blob(statement_, column);
  const int size = sqlite3_column_bytes(statement_, column);
  return size == 0 ? std::string() : std::string(static_cast<const char*>(data), size);
}

Digest SqliteRow::AsDigest(int column) const {
  Digest digest;
  const void* data = sqlite3_column_blob(statement_, column);
  if (data != nullptr && sqlite3_column_bytes(statement_, column) == 32) {
    std::memcpy(digest.bytes.data(), data, 32);
  }
  return digest;
}

absl::StatusOr<std::unique_ptr<SqliteDatabase>> SqliteDatabase::Open(const std::string& path,
                                                                     SqliteAccess access,
                                                                     int busy_ms) {
  const int flags = (access == SqliteAccess::kWrite ? SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE
                                                    : SQLITE_OPEN_READONLY) |
                    SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE;
  sqlite3* handle = nullptr;
  const int code = sqlite3_open_v2(path.c_str(), &handle, flags, nullptr);
  // Even a failed open gives a handle, to be closed.
  std::unique_ptr<SqliteDatabase> database(new SqliteDatabase(handle, path, access));
  if (code != SQLITE_OK) return database->Error(code, "open");
  LOCKSTEP_RETURN_IF_ERROR(database->Configure(busy_ms));
  return database;
}

absl::Status SqliteDatabase::Configure(int busy_ms) {
  if (const int code = sqlite3_busy_timeout(handle_, busy_ms); code != SQLITE_OK) {
    return Error(code, "set the busy timeout of");
  }
  const bool reads = access_ == SqliteAccess::kRead;
  const std::pair<int, int> settings[] = {
      {SQLITE_DBCONFIG_DEFENSIVE, 1},
      {SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0},
      {SQLITE_DBCONFIG_ENABLE_FKEY, 1},
      {SQLITE_DBCONFIG_ENABLE_TRIGGER, 0},
      {SQLITE_DBCONFIG_ENABLE_VIEW, 0},
      {SQLITE_DBCONFIG_DQS_DML, 0},
      {SQLITE_DBCONFIG_DQS_DDL, 0},
      {SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 0},
      {SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, reads ? 1 : 0},
  };
  for (const auto& [setting, value] : settings) {
    if (const int code = sqlite3_db_config(handle_, setting, value, nullptr); code != SQLITE_OK) {
      return Error(code, "configure");
    }
  }
  LOCKSTEP_RETURN_IF_ERROR(Execute("PRAGMA cell_size_check=ON; PRAGMA temp_store=MEMORY;"));
  if (reads) return Execute("PRAGMA query_only=ON");
  std::string mode;
  LOCKSTEP_RETURN_IF_ERROR(
      Run("PRAGMA journal_mode=WAL", {}, [&](const SqliteRow& row) { mode = row.Bytes(0); }));
  if (mode != "wal") {
    return absl::FailedPreconditionError(
        absl::StrCat(path_, " has journal mode \"", mode,
                     "\" where a write-ahead log was asked for; put it on a local file system"));
  }
  return Execute(absl::StrCat("PRAGMA synchronous=FULL; PRAGMA journal_size_limit=", kWalBytesKept,
                              "; PRAGMA wal_autocheckpoint=", kWalPagesMax, "; PRAGMA cache_size=-",
                              kCacheKibibytes)
                     .c_str());
}

SqliteDatabase::~SqliteDatabase() {
  for (const auto& [sql, statement] : statements_) sqlite3_finalize(statement);
  sqlite3_close(handle_);
}

absl::Status SqliteDatabase::Error(int code, absl::string_view what) {
  // Without memory SQLite may have no handle and so no words of its own.
  const absl::string_view words =
      handle_ != nullptr ? sqlite3_errmsg(handle_) : sqlite3_errstr(code);
  absl::Status status(CodeOf(code),
                      absl::StrCat(what, " ", path_, ": ", words, " (SQLite code ", code, ")"));
  if (Poisons(code) && health_.ok()) health_ = status;
  return status;
}

absl::Status SqliteDatabase::Execute(const char* sql) {
  const int code = sqlite3_exec(handle_, sql, nullptr, nullptr, nullptr);
  if (code == SQLITE_OK) return absl::OkStatus();
  return Error(code, absl::StrCat("\"", absl::string_view(sql).substr(0, 60), "\" on"));
}

absl::StatusOr<sqlite3_stmt*> SqliteDatabase::Prepare(const char* sql) {
  sqlite3_stmt*& statement = statements_[sql];
  if (statement == nullptr) {
    const int code =
        sqlite3_prepare_v3(handle_, sql, -1, SQLITE_PREPARE_PERSISTENT, &statement, nullptr);
    if (code != SQLITE_OK) return Error(code, absl::StrCat("prepare \"", sql, "\" on"));
  }
  return statement;
}

absl::Status SqliteDatabase::Run(const char* sql, absl::Span<const SqliteValue> values) {
  return Run(sql, values, [](const SqliteRow&) {});
}

absl::Status SqliteDatabase::Run(const char* sql, absl::Span<const SqliteValue> values,
                                 OnRow on_row) {
  LOCKSTEP_ASSIGN_OR_RETURN(sqlite3_stmt* const statement, Prepare(sql));
  // A statement that is not reset holds its snapshot, and what was bound may be gone next time.
  const auto reset = absl::MakeCleanup([statement] {
    sqlite3_reset(statement);
    sqlite3_clear_bindings(statement);
  });
  for (size_t i = 0; i < values.size(); ++i) {
    const int code = Bind(statement, static_cast<int>(i) + 1, values[i]);
    if (code != SQLITE_OK) return Error(code, absl::StrCat("bind a value of \"", sql, "\" on"));
  }
  while (true) {
    const int code = sqlite3_step(statement);
    if (code == SQLITE_DONE) return absl::OkStatus();
    if (code != SQLITE_ROW) return Error(code, absl::StrCat("\"", sql, "\" on"));
    on_row(SqliteRow(statement));
  }
}

absl::StatusOr<int64_t> SqliteDatabase::Integer(const char* sql) {
  int64_t value = 0;
  LOCKSTEP_RETURN_IF_ERROR(Run(sql, {}, [&](const SqliteRow& row) { value = row.Integer(0); }));
  return value;
}

int64_t SqliteDatabase::RowsChanged() const { return sqlite3_changes64(handle_); }
int64_t SqliteDatabase::LastInsertId() const { return sqlite3_last_insert_rowid(handle_); }
bool SqliteDatabase::InTransaction() const { return sqlite3_get_autocommit(handle_) == 0; }

absl::Status SqliteDatabase::Backup(const std::string& path) {
  if (::access(path.c_str(), F_OK) == 0) {
    return absl::AlreadyExistsError(absl::StrCat(path, " exists; name a new file for the backup"));
  }
  const std::string temporary = absl::StrCat(path, ".partial");
  ::unlink(temporary.c_str());
  const auto remove = absl::MakeCleanup([&] { ::unlink(temporary.c_str()); });
  {
    sqlite3* handle = nullptr;
    const int opened =
        sqlite3_open_v2(temporary.c_str(), &handle,
                        SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX, nullptr);
    const auto close = absl::MakeCleanup([&] { sqlite3_close(handle); });
    if (opened != SQLITE_OK) return Error(opened, absl::StrCat("open ", temporary, " to back up"));
    sqlite3_backup* const backup = sqlite3_backup_init(handle, "main", handle_, "main");
    if (backup == nullptr) return Error(sqlite3_errcode(handle), "begin a backup of");
    const int stepped = sqlite3_backup_step(backup, -1);
    const int finished = sqlite3_backup_finish(backup);
    if (stepped != SQLITE_DONE || finished != SQLITE_OK) {
      return absl::Status(
          CodeOf(stepped != SQLITE_DONE ? stepped : finished),
          absl::StrCat("back up ", path_, " to ", temporary, ": ", sqlite3_errmsg(handle)));
    }
  }
  LOCKSTEP_RETURN_IF_ERROR(SyncPath(temporary, O_RDONLY));
  // A link, unlike a rename, does not replace what came to have the name meanwhile.
  if (::link(temporary.c_str(), path.c_str()) != 0) {
    return absl::ErrnoToStatus(errno, absl::StrCat("link ", path));
  }
  const std::string directory = path.substr(0, path.rfind('/') + 1);
  return SyncPath(directory.empty() ? "." : directory, O_RDONLY | O_DIRECTORY);
}

absl::Status SqliteDatabase::Migrate(int32_t application_id,
                                     absl::Span<const char* const> migrations) {
  LOCKSTEP_ASSIGN_OR_RETURN(const int64_t id, Integer("PRAGMA application_id"));
  LOCKSTEP_ASSIGN_OR_RETURN(const int64_t found, Integer("PRAGMA user_version"));
  LOCKSTEP_ASSIGN_OR_RETURN(const int64_t tables, Integer("SELECT count(*) FROM sqlite_schema"));
  const auto newest = static_cast<int64_t>(migrations.size());
  const bool fresh = id == 0 && found == 0 && tables == 0;
  if (!fresh && id != application_id) {
    return absl::FailedPreconditionError(
        absl::StrCat(path_, " belongs to another program: its application_id is ", id,
                     ", expected ", application_id, "; name another data directory"));
  }
  if (found < 0 || found > newest) {
    return absl::FailedPreconditionError(
        absl::StrCat(path_, " has schema version ", found, ", but this program knows versions to ",
                     newest, "; use the program that wrote it, or a newer one"));
  }
  if (found == newest) return absl::OkStatus();
  if (access_ == SqliteAccess::kRead) {
    return absl::FailedPreconditionError(absl::StrCat(
        path_, " has schema version ", found, ", expected ", newest, "; open it to write first"));
  }
  for (int64_t version = found; version < newest; ++version) {
    absl::Status status = Execute("BEGIN IMMEDIATE");
    if (status.ok()) status = Execute(migrations[static_cast<size_t>(version)]);
    if (status.ok()) {
      status = Execute(absl::StrCat("PRAGMA application_id=", application_id,
                                    "; PRAGMA user_version=", version + 1, "; COMMIT")
                           .c_str());
    }
    if (!status.ok()) {
      if (InTransaction()) Execute("ROLLBACK").IgnoreError();
      return WithContext(std::move(status), absl::StrCat("migrate ", path_, " from schema version ",
                                                         version, " to ", version + 1));
    }
  }
  return absl::OkStatus();
}

}  // namespace lockstep::coordinator
