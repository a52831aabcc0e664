// SPDX-License-Identifier: Apache-2.0
//
// The answers of the coordinator's JSON API, /api/v1, as docs/api.md has them, in the same words. Only types: nothing here checks that an
// answer keeps to them. What a page shows as checked is checked in src/checks.

// 64 lower-case hexadecimal digits: a digest or a public key.
export type Hex = string;
// A 32-bit float as the API writes it.
export type Float = number | 'nan' | 'inf' | '-inf';

export type StateName = 'unaudited' | 'claimed' | 'provisional' | 'confirmed' | 'disputed';
export type Counts = Record<StateName, number>;

export interface Server {
  origin: string;
  log_key: string;
  log_public_key: Hex;
  version: string;
  time_ms: number;
  artifact_url: string;
  worker_url: string;
  event_epoch: string;
  log_size: number;
}

export interface Run {
  run: Hex;
  name: string;
  trainer_key: Hex;
  trainer_operator: Hex | null;
  quorum: { operators: number; backends: number; openings: number };
  steps: number;
  steps_planned: number;
  first_step: number;
  chain: Hex;
  counts: Counts;
  log_index: number;
  registered_ms: number | null;
  parent: Hex | null;
  tokens: number;
  last_step: { step: number; loss: Float; gradient_norm: Float; learning_rate: Float; outcome: number } | null;
  operators: number;
  backends: { backend: string; matches: number }[];
  attestations: number;
  matches: number;
  mismatches: number;
  confirmed_per_hour: number;
  records_per_hour: number;
  last_record_ms: number | null;
  disputes: number;
}

export interface Checkpoint {
  step: number;
  log_index: number;
  by: Hex;
  manifest: Hex;
  available: boolean;
}

export interface RunDetail extends Run {
  manifest: string;
  registration: string | null;
  checkpoints: Checkpoint[];
  checkpoint_count: number;
}

type Numbers = (number | null)[];

export interface Curves {
  begin: number;
  end: number;
  bucket_steps: number;
  step: number[];
  loss: { min: Numbers; max: Numbers; mean: Numbers };
  gradient_norm: { min: Numbers; max: Numbers; mean: Numbers };
  learning_rate: { last: Numbers };
  z_loss: { mean: Numbers };
  skipped: { step: number; outcome: number }[];
  skipped_count: number;
  spikes: { step: number; outcome: number }[];
  spike_count: number;
  held_out: { step: number; set: string; nats_per_token: number; bits_per_byte: number; log_index: number }[];
}

export interface Step {
  step: number;
  state: StateName;
  outcome: number;
  loss: Float;
  z_loss: Float;
  gradient_norm: Float;
  learning_rate: Float;
  tokens: number;
  tokens_before: number;
  updates: number;
  matches: number;
  operators: number;
  backends: number;
  awaiting_openings: number;
  mismatches: number;
  voided: number;
  attestations: number;
  second_history: boolean;
  log_index: number;
  received_ms: number | null;
}

export type RootName = 'parameters' | 'first_moment' | 'second_moment' | 'gradient' | 'windows' | 'transcript' | 'cursor';

export interface StepDetail extends Omit<Step, 'attestations'> {
  run: Hex;
  record: string;
  record_digest: Hex;
  chain: Hex;
  previous_chain: Hex;
  roots: Record<RootName, Hex>;
  record_envelope: string | null;
  attestation_count: number;
  attestations: Attestation[];
  second_record: { log_index: number; envelope: string | null; record: string } | null;
  disputes: Dispute[];
  leases: { operator: string; operator_key: Hex; backend: string | null; granted_ms: number }[];
  openings_needed: number;
  transcript_leaves: number;
  last_step: number;
  first_step: number;
}

export interface Attestation {
  log_index: number;
  run: Hex;
  step: number;
  worker_key: Hex;
  operator_key: Hex;
  operator: string;
  hardware: string;
  backend: string;
  isa: string | null;
  cpu: string | null;
  threads: number | null;
  engine: { name: string; version: string; build: Hex; numerics: string } | null;
  verdict: 'match' | 'mismatch';
  counts: boolean;
  why_not: string;
  replayed_at: string | null;
  received_ms: number | null;
  openings: number[] | null;
  openings_given: number;
  openings_needed: number;
  leaf_hash: Hex | null;
  envelope: string | null;
  difference?: Difference;
}

export interface Difference {
  field: string;
  expected: string;
  found: string;
  place?: string | null;
}

export interface Dispute {
  log_index: number;
  run: Hex;
  step: number;
  reason: string;
  received_ms: number | null;
  state: StateName;
  evidence: ({ log_index: number; leaf_hash: Hex } | { envelope: string })[];
  envelope: string | null;
  published_record?: string;
  computed_record?: string;
  first_difference?: Difference;
}

export type LeaseState = 'live' | 'done' | 'canceled' | 'inconclusive' | 'expired';

export interface Lease {
  run: Hex;
  state: LeaseState;
  first_step: number;
  end_step: number; // one past the last
  worker_key: Hex;
  operator_key: Hex;
  operator: string;
  hardware: string;
  backends: string[];
  granted_ms: number;
  ended_ms: number | null;
  detail: string;
}

export interface Credit {
  valid: number;
  pending: number;
  rejected: number;
  mismatches: number;
}

export interface Operator {
  key: Hex;
  name: string;
  contact: string;
  revoked: boolean;
  revoked_log_index: number | null;
  revoked_reason: string | null;
  log_index: number;
  received_ms: number | null;
  own_run: number;
  worker_keys: number;
  credit: Credit;
  rejected_why: { reason: string; count: number }[];
  backends: string[];
  last_seen_ms: number | null;
}

export interface OperatorDetail extends Operator {
  workers: Worker[];
  recent: Attestation[];
}

export interface Worker {
  key: Hex;
  operator_key: Hex;
  operator: string;
  hardware: string;
  ended: boolean;
  ended_log_index: number | null;
  log_index: number;
  received_ms: number | null;
  credit: Credit;
  own_run: number;
  rejected_why: { reason: string; count: number }[];
  trust: { valid_in_a_row: number; valid: number; invalid: number; expired: number };
  backends: string[];
  last_seen_ms: number | null;
}

export interface WorkerDetail extends Worker {
  recent: Attestation[];
}

export interface Log {
  checkpoint: string;
  size: number;
  root: string;
  key: string;
  origin: string;
}

export interface LogEntry {
  index: number;
  kind: string;
  run: Hex | null;
  step: number | null;
  leaf_hash: Hex;
  bytes: number;
  received_ms: number | null;
}

export interface LogEntryDetail extends LogEntry {
  envelope: string;
  receipt: string;
}

// A page of a list: its items stand under the list's own name.
export type Page<Name extends string, Item> = { [name in Name]: Item[] } & { next: string | null };
