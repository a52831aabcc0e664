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

// When entries came.
constexpr char kEntryTimes[] = R"sql(
ALTER TABLE entries ADD COLUMN received_unix_ms INTEGER;
)sql";

// How leases ended, in the holder's words too; leases handed back undone; states in doubt.
constexpr char kLeaseEnds[] = R"sql(
CREATE TABLE leases_with_ends (
  lease_id TEXT PRIMARY KEY,
  key BLOB NOT NULL CHECK (length(key) = 32),
  operator_key BLOB NOT NULL CHECK (length(operator_key) = 32),
  address TEXT NOT NULL,
  attempt_id TEXT NOT NULL,
  nonce BLOB NOT NULL UNIQUE CHECK (length(nonce) = 32),
  run BLOB NOT NULL CHECK (length(run) = 32),
  first_step INTEGER NOT NULL CHECK (first_step >= 0),
  end_step INTEGER NOT NULL CHECK (end_step > first_step),
  state TEXT NOT NULL CHECK (state IN ('live', 'done', 'canceled', 'inconclusive', 'expired')),
  granted_ms INTEGER NOT NULL,
  heartbeat_ms INTEGER NOT NULL,
  expires_ms INTEGER NOT NULL,
  bound_ms INTEGER NOT NULL,
  granted_unix_ms INTEGER NOT NULL,
  ended_unix_ms INTEGER NOT NULL,
  detail TEXT NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO leases_with_ends
  SELECT lease_id, key, operator_key, address, attempt_id, nonce, run, first_step, end_step,
    iif(state = 'released', 'canceled', state), granted_ms, heartbeat_ms, expires_ms, bound_ms,
    granted_unix_ms, iif(state = 'live', 0, granted_unix_ms + heartbeat_ms - granted_ms), ''
  FROM leases;
DROP TABLE leases;
ALTER TABLE leases_with_ends RENAME TO leases;
CREATE INDEX leases_live ON leases (lease_id) WHERE state = 'live';
CREATE INDEX leases_ended ON leases (run, ended_unix_ms) WHERE state <> 'live';

ALTER TABLE trust ADD COLUMN undone_in_a_row INTEGER NOT NULL DEFAULT 0;

CREATE TABLE doubts (log_index INTEGER PRIMARY KEY CHECK (log_index >= 0)) STRICT;
)sql";

// Who says what of a file: what was said before that was kept counts as trainers' word, as it did,
// of no run. And ways to what is counted, or may be dropped.
constexpr char kWordsAndEnds[] = R"sql(
CREATE TABLE artifact_words (
  digest BLOB NOT NULL CHECK (length(digest) = 32),
  source BLOB NOT NULL CHECK (length(source) = 32),
  by_trainer INTEGER NOT NULL CHECK (by_trainer IN (0, 1)),
  bytes INTEGER NOT NULL CHECK (bytes >= 0),
  mirrors TEXT NOT NULL,
  PRIMARY KEY (digest, source)
) STRICT, WITHOUT ROWID;
INSERT INTO artifact_words
  SELECT digest, zeroblob(32), 1, bytes,
         (SELECT ifnull(group_concat(mirror, char(10)), '')
          FROM artifact_mirrors WHERE artifact_mirrors.digest = artifacts.digest)
  FROM artifacts;
DROP TABLE artifact_mirrors;
DROP TABLE artifacts;

CREATE INDEX evidence_by_key ON evidence (key, reason);
CREATE INDEX leases_over ON leases (bound_ms) WHERE state <> 'live';
CREATE INDEX challenges_closed ON challenges (due_ms) WHERE state <> 'open';
)sql";

constexpr const char* kMigrations[] = {kEvidenceAndWork, kEntryTimes, kLeaseEnds, kWordsAndEnds};

}  // namespace

absl::Span<const char* const> StoreMigrations() { return kMigrations; }

}  // namespace lockstep::coordinator
