// SPDX-License-Identifier: Apache-2.0
//
// SQL of the tables. See migrations.h; the meaning of each column is in rows.h.

#include "coordinator/store/migrations.h"

namespace lockstep::coordinator {
namespace {

// The log's entries, and what goes with auditing them.
constexpr char kEvidenceAndWork[] = R"sql(
CREATE TABLE entries (
  log_index INTEGER PRIMARY KEY CHECK (log_index >= 0),
  kind TEXT NOT NULL,
  run BLOB CHECK (length(run) = 32),
  step INTEGER CHECK (step >= 0),
  leaf_hash BLOB NOT NULL UNIQUE CHECK (length(leaf_hash) = 32),
  envelope BLOB NOT NULL CHECK (length(envelope) BETWEEN 1 AND 65535)
) STRICT;
CREATE INDEX entries_by_step ON entries (run, kind, step, log_index);

CREATE TABLE leases (
  lease_id TEXT PRIMARY KEY,
  key BLOB NOT NULL CHECK (length(key) = 32),
  operator_key BLOB NOT NULL CHECK (length(operator_key) = 32),
  address TEXT NOT NULL,
  attempt_id TEXT NOT NULL,
  nonce BLOB NOT NULL UNIQUE CHECK (length(nonce) = 32),
  run BLOB NOT NULL CHECK (length(run) = 32),
  first_step INTEGER NOT NULL CHECK (first_step >= 0),
  end_step INTEGER NOT NULL CHECK (end_step > first_step),
  state TEXT NOT NULL CHECK (state IN ('live', 'done', 'released', 'expired')),
  granted_ms INTEGER NOT NULL,
  heartbeat_ms INTEGER NOT NULL,
  expires_ms INTEGER NOT NULL,
  bound_ms INTEGER NOT NULL,
  granted_unix_ms INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX leases_live ON leases (lease_id) WHERE state = 'live';

CREATE TABLE requests (
  key BLOB NOT NULL CHECK (length(key) = 32),
  request_id TEXT NOT NULL,
  fingerprint BLOB NOT NULL CHECK (length(fingerprint) = 32),
  response BLOB NOT NULL,
  answered_ms INTEGER NOT NULL,
  PRIMARY KEY (key, request_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX requests_by_time ON requests (answered_ms);

CREATE TABLE evidence (
  evidence_id INTEGER PRIMARY KEY AUTOINCREMENT,
  reason TEXT NOT NULL,
  run BLOB CHECK (length(run) = 32),
  step INTEGER CHECK (step >= 0),
  key BLOB CHECK (length(key) = 32),
  digest BLOB NOT NULL CHECK (length(digest) = 32),
  envelope BLOB NOT NULL,
  received_unix_ms INTEGER NOT NULL,
  UNIQUE (digest, reason)
) STRICT;

CREATE TABLE challenges (
  attestation BLOB NOT NULL CHECK (length(attestation) = 32),
  leaf_index INTEGER NOT NULL CHECK (leaf_index >= 0),
  run BLOB NOT NULL CHECK (length(run) = 32),
  step INTEGER NOT NULL CHECK (step >= 0),
  key BLOB NOT NULL CHECK (length(key) = 32),
  state TEXT NOT NULL CHECK (state IN ('open', 'answered', 'failed', 'expired')),
  asked_ms INTEGER NOT NULL,
  due_ms INTEGER NOT NULL,
  PRIMARY KEY (attestation, leaf_index)
) STRICT, WITHOUT ROWID;
CREATE INDEX challenges_open ON challenges (due_ms) WHERE state = 'open';

CREATE TABLE canaries (
  lease_id TEXT PRIMARY KEY,
  key BLOB NOT NULL CHECK (length(key) = 32),
  run BLOB NOT NULL CHECK (length(run) = 32),
  step INTEGER NOT NULL CHECK (step >= 0),
  false_record BLOB NOT NULL,
  state TEXT NOT NULL CHECK (state IN ('open', 'seen', 'missed', 'expired'))
) STRICT, WITHOUT ROWID;

CREATE TABLE trust (
  key BLOB PRIMARY KEY CHECK (length(key) = 32),
  valid_in_a_row INTEGER NOT NULL,
  valid INTEGER NOT NULL,
  invalid INTEGER NOT NULL,
  expired INTEGER NOT NULL,
  canaries INTEGER NOT NULL,
  failures_in_a_row INTEGER NOT NULL,
  quota_steps INTEGER NOT NULL,
  not_before_ms INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE artifacts (
  digest BLOB PRIMARY KEY CHECK (length(digest) = 32),
  bytes INTEGER NOT NULL CHECK (bytes >= 0),
  stored INTEGER NOT NULL CHECK (stored IN (0, 1))
) STRICT, WITHOUT ROWID;
CREATE TABLE artifact_mirrors (
  digest BLOB NOT NULL REFERENCES artifacts (digest),
  mirror TEXT NOT NULL,
  PRIMARY KEY (digest, mirror)
) STRICT, WITHOUT ROWID;

CREATE TABLE events (
  event_id INTEGER PRIMARY KEY AUTOINCREMENT,
  kind TEXT NOT NULL,
  run BLOB CHECK (length(run) = 32),
  data TEXT NOT NULL,
  at_unix_ms INTEGER NOT NULL
) STRICT;

CREATE TABLE state (
  name TEXT PRIMARY KEY CHECK (name IN ('service_ms', 'log_size')),
  value INTEGER NOT NULL CHECK (value >= 0)
) STRICT, WITHOUT ROWID;
INSERT INTO state VALUES ('service_ms', 0), ('log_size', 0);
)sql";

constexpr const char* kMigrations[] = {kEvidenceAndWork};

}  // namespace

absl::Span<const char* const> StoreMigrations() { return kMigrations; }

}  // namespace lockstep::coordinator
