// SPDX-License-Identifier: Apache-2.0
//
// SQLite as this project opens it: a connection and its prepared statements, with errors as
// absl::Status. Not an object mapper: SQL is written where it is used. The settings of every
// connection, and why, are in README.md ("SQLite").
//
// Codes: Unavailable is a busy or locked database, and nothing has happened; ResourceExhausted a
// full disk; AlreadyExists a broken uniqueness rule and FailedPrecondition another broken rule;
// DataLoss a damaged file or one that is no database; everything else Internal. The message has
// SQLite's own words and the file's path.

#ifndef LOCKSTEP_COORDINATOR_STORE_SQLITE_H_
#define LOCKSTEP_COORDINATOR_STORE_SQLITE_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "base/bytes.h"
#include "base/sha256.h"

struct sqlite3;
struct sqlite3_stmt;

namespace lockstep::coordinator {

// The values of one row, read by column number from 0. A column of another type than asked for
// reads as 0 or empty: tables are STRICT, so that would be our own mistake.
class SqliteRow {
 public:
  explicit SqliteRow(sqlite3_stmt* statement) : statement_(statement) {}

  bool IsNull(int column) const;
  int64_t Integer(int column) const;
  std::string Bytes(int column) const;
  // All zero unless the column has 32 bytes, which the tables' CHECKs see to.
  Digest AsDigest(int column) const;

 private:
  sqlite3_stmt* statement_;
};

// One parameter of a statement. Text and bytes must outlive the call.
class SqliteValue {
 public:
  enum class Type { kNull, kInteger, kText, kBytes };

  SqliteValue(std::nullopt_t) : type_(Type::kNull) {}                               // NOLINT
  SqliteValue(int64_t value) : type_(Type::kInteger), integer_(value) {}            // NOLINT
  SqliteValue(const Digest& digest) : type_(Type::kBytes), bytes_(digest.bytes) {}  // NOLINT
  static SqliteValue Text(absl::string_view text) { return {Type::kText, AsBytes(text)}; }
  static SqliteValue Bytes(absl::string_view bytes) { return {Type::kBytes, AsBytes(bytes)}; }

  Type type() const { return type_; }
  int64_t integer() const { return integer_; }
  ByteSpan bytes() const { return bytes_; }

 private:
  SqliteValue(Type type, ByteSpan bytes) : type_(type), bytes_(bytes) {}

  Type type_;
  int64_t integer_ = 0;
  ByteSpan bytes_;
};

enum class SqliteAccess {
  kWrite,  // makes the file if it is not there; write-ahead log, synchronous=FULL
  kRead    // the file must be there; can change nothing
};

// One connection. Used by one thread at a time.
class SqliteDatabase {
 public:
  using OnRow = absl::FunctionRef<void(const SqliteRow& row)>;

  // How long a statement waits for another connection's lock before it is Unavailable.
  static constexpr int kBusyMsDefault = 5000;

  static absl::StatusOr<std::unique_ptr<SqliteDatabase>> Open(const std::string& path,
                                                              SqliteAccess access,
                                                              int busy_ms = kBusyMsDefault);
  ~SqliteDatabase();
  SqliteDatabase(const SqliteDatabase&) = delete;
  SqliteDatabase& operator=(const SqliteDatabase&) = delete;

  // Statements without parameters or rows, one after another. For schemas and transactions.
  absl::Status Execute(const char* sql);

  // One statement, prepared at its first use and kept: `sql` is a literal that outlives the
  // connection. A row that is seen must not be kept.
  absl::Status Run(const char* sql, absl::Span<const SqliteValue> values, OnRow on_row);
  absl::Status Run(const char* sql, absl::Span<const SqliteValue> values);

  // The single integer that `sql` gives.
  absl::StatusOr<int64_t> Integer(const char* sql);

  int64_t RowsChanged() const;
  int64_t LastInsertId() const;
  // Whether a transaction is open. SQLite ends one by itself after some errors.
  bool InTransaction() const;
  // The first error after which nothing more should be done on this connection (a full disk, an
  // input or output error, damage); OK while there was none.
  const absl::Status& health() const { return health_; }
  const std::string& path() const { return path_; }

  // Copies the database as it is in one snapshot to `path`, which must not exist, and brings the
  // copy to the disk. Others may write meanwhile.
  absl::Status Backup(const std::string& path);

  // Checks application_id and the migrations: brings an older schema forward, each version in a
  // transaction of its own (writers only), and refuses a newer one, or another program's file, with
  // FailedPrecondition. `migrations[i]` leads from version i to i + 1.
  absl::Status Migrate(int32_t application_id, absl::Span<const char* const> migrations);

 private:
  SqliteDatabase(sqlite3* handle, std::string path, SqliteAccess access)
      : handle_(handle), path_(std::move(path)), access_(access) {}

  absl::Status Configure(int busy_ms);
  absl::Status Error(int code, absl::string_view what);
  absl::StatusOr<sqlite3_stmt*> Prepare(const char* sql);

  sqlite3* handle_;
  const std::string path_;
  const SqliteAccess access_;
  absl::Status health_;
  absl::flat_hash_map<const char*, sqlite3_stmt*> statements_;
};

}  // namespace lockstep::coordinator

#endif  // LOCKSTEP_COORDINATOR_STORE_SQLITE_H_
