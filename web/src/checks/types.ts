// SPDX-License-Identifier: Apache-2.0
//
// The types that web/src/checks gives and takes: what the entries of the log say, once they are read and every rule of form in
// docs/attestation.md holds. Digests and public keys are 64 lower-case hexadecimal digits. Integers of JSON are numbers; those of
// binary formats, which may use all of 64 bits, are bigints.

import type { DocumentsCache } from './documents/cache';

/** 64 lower-case hexadecimal digits: a SHA-256 or an Ed25519 public key. */
export type Hex = string;

/** One thing that was looked at, for a list of ticks and crosses. */
export interface Check {
  /** What was looked at, fixed words for programs: "signature", "subject", "chain", ... Each function lists its own. */
  readonly name: string;
  readonly ok: boolean;
  /** One sentence for people: what holds, or what was expected and found. */
  readonly message: string;
  /** Of a check that failed. */
  readonly expected?: string;
  readonly found?: string;
}

// ---------------------------------------------------------------- DSSE

export interface DsseSignature {
  /** A hint which key to try; never believed. May be empty. */
  readonly keyId: string;
  readonly bytes: Uint8Array;
}
export interface DsseEnvelope {
  readonly payloadType: string;
  readonly payload: Uint8Array;
  /** 1 to 16. */
  readonly signatures: readonly DsseSignature[];
}

// ---------------------------------------------------------------- step records

/** docs/step_record.md: the 336 bytes. Floats are as binary32 holds them; `bits` has the bits, since a NaN has several. */
export interface StepRecord {
  readonly bytes: Uint8Array;
  readonly step: bigint;
  readonly tokensBefore: bigint;
  readonly tokens: bigint;
  readonly updates: bigint;
  readonly parameters: Hex;
  readonly firstMoment: Hex;
  readonly secondMoment: Hex;
  readonly gradient: Hex;
  readonly windows: Hex;
  readonly transcript: Hex;
  readonly cursor: Hex;
  readonly loss: number;
  readonly zLoss: number;
  readonly gradientNorm: number;
  readonly learningRate: number;
  readonly bits: { readonly loss: number; readonly zLoss: number; readonly gradientNorm: number; readonly learningRate: number };
  /** 0 updated; 1 skipped, not finite; 2 skipped, a spike; 3 skipped after one of these. */
  readonly outcome: 0 | 1 | 2 | 3;
  readonly skipsLeft: number;
  readonly events: number;
  readonly eventsSince: bigint;
  readonly previousChain: Hex;
}

/** The first place in which a published and a replayed record differ, in the order in which a step computes. */
export interface Difference {
  readonly field: string;
  readonly expected: string;
  readonly found: string;
  readonly place?: string;
}

export interface TranscriptLeaf {
  readonly rank: number;
  readonly microBatch: number;
  readonly losses: Hex;
  readonly zLosses: Hex;
  readonly residual: readonly Hex[];
  readonly dresidual: readonly Hex[];
}

// ---------------------------------------------------------------- run manifests

/** docs/run_manifest.md. The objects have the fields of that page under their own names. */
export interface RunManifest {
  /** SHA-256 of the canonical text. */
  readonly runId: Hex;
  readonly text: string;
  readonly name: string;
  readonly numerics: string;
  readonly precision: 'int8' | 'bf16';
  readonly parameterStorage: 'bf16' | 'f32';
  readonly model: Readonly<Record<ModelField, number>>;
  readonly recipe: Readonly<Record<RecipeField, number>>;
  readonly topology: Readonly<Record<TopologyField, number>>;
  readonly batch: readonly { readonly windows_per_step: number; readonly until_tokens: number }[];
  readonly seed: number;
  readonly checkpointEvery: number;
  /** Digest of the corpus manifest (docs/shards.md). */
  readonly corpus: Hex;
  /** Digest of the tokenizer file (docs/tokenizer.md). */
  readonly tokenizer: Hex;
  readonly parent?: { readonly chain: Hex; readonly runId: Hex; readonly step: number; readonly tokens: number };
}
export type ModelField =
  | 'layers'
  | 'width'
  | 'query_heads'
  | 'kv_heads'
  | 'head_dim'
  | 'ffn_width'
  | 'vocab'
  | 'seq_len'
  | 'window'
  | 'full_every'
  | 'rope_theta'
  | 'norm_eps'
  | 'init_std';
export type RecipeField =
  | 'peak_lr'
  | 'final_lr_fraction'
  | 'warmup_tokens'
  | 'total_tokens'
  | 'beta1'
  | 'beta2'
  | 'eps'
  | 'weight_decay'
  | 'clip_norm'
  | 'z_loss'
  | 'spike_norm'
  | 'spike_skip_steps'
  | 'spike_halt_events'
  | 'spike_halt_steps'
  | 'dead_tensor_steps';
export type TopologyField = 'replicas' | 'shards' | 'micro_batch';

// ---------------------------------------------------------------- entries of the log

export interface RunRegistration {
  readonly manifest: RunManifest;
  readonly trainerKey: Hex;
  readonly quorum: { readonly operators: number; readonly backends: number; readonly openings: number };
  /** Absent of a segment, which goes on from its parent's chain. */
  readonly genesis?: { readonly parameters: Hex; readonly firstMoment: Hex; readonly secondMoment: Hex; readonly cursor: Hex };
  /** The chain before the run's first step, and that step. */
  readonly firstChain: Hex;
  readonly firstStep: number;
}
export interface PublishedRecord {
  readonly runId: Hex;
  readonly record: StepRecord;
  /** SHA-256 of the 336 bytes: an attestation's subject. */
  readonly digest: Hex;
  /** The chain after the step. */
  readonly chain: Hex;
}
export interface CheckpointFile {
  readonly name: 'first_moment.safetensors' | 'parameters.safetensors' | 'second_moment.safetensors';
  readonly bytes: number;
  readonly sha256: Hex;
}
export interface CheckpointAnnouncement {
  readonly runId: Hex;
  /** The step that goes on from the state. */
  readonly nextStep: number;
  /** The chain before it. */
  readonly chain: Hex;
  /** SHA-256 of checkpoint.json. */
  readonly manifest: Hex;
  readonly files: readonly CheckpointFile[];
}
export type KeyEvent =
  | { readonly event: 'operator'; readonly operatorKey: Hex; readonly revocationKey: Hex; readonly name: string; readonly contact?: string }
  | { readonly event: 'worker'; readonly workerKey: Hex; readonly operatorKey: Hex; readonly hardware: string }
  | { readonly event: 'rotate'; readonly oldKey: Hex; readonly newKey: Hex }
  | { readonly event: 'revoke'; readonly key: Hex; readonly reason: string };
export interface Roots {
  readonly parameters: Hex;
  readonly firstMoment: Hex;
  readonly secondMoment: Hex;
  readonly gradient: Hex;
  readonly windows: Hex;
  readonly transcript: Hex;
  readonly cursor: Hex;
}
export interface Attestation {
  readonly runId: Hex;
  readonly step: number;
  /** SHA-256 of the published record: the statement's subject. */
  readonly record: Hex;
  readonly fromChain: Hex;
  readonly computedChain: Hex;
  readonly roots: Roots;
  readonly verdict: 'match' | 'mismatch';
  readonly leaseId: string;
  readonly nonce: Hex;
  readonly openingsDigest: Hex;
  readonly engine: { readonly name: string; readonly version: string; readonly buildDigest: Hex; readonly numerics: string };
  readonly backend: { readonly class: string; readonly isa: string; readonly cpu: string; readonly threads: number };
  /** As written: 2006-01-02T15:04:05Z, by the worker's clock. */
  readonly replayedAt: string;
  /** Of a mismatch, and only then. */
  readonly computedRecord?: StepRecord;
  readonly firstDifference?: Difference;
}
export interface Opening {
  /** Leaf hash in the log of the attestation's entry. */
  readonly attestation: Hex;
  /** The log key's signature, 64 bytes. */
  readonly challenge: Uint8Array;
  readonly index: number;
  readonly leafBytes: Uint8Array;
  readonly leaf: TranscriptLeaf;
  readonly proof: readonly Hex[];
  readonly commitmentProof: readonly Hex[];
}
export interface Dispute {
  readonly runId: Hex;
  readonly step: number;
  readonly reason: 'mismatch' | 'second-history' | 'bad-opening';
  /** 1 to 16. */
  readonly evidence: readonly ({ readonly entry: Hex } | { readonly envelope: Uint8Array })[];
}

interface EntryOf<Kind extends string, Payload> {
  readonly kind: Kind;
  readonly payload: Payload;
  readonly bytes: Uint8Array;
  readonly envelope: DsseEnvelope;
  /** RFC 6962's, of the bytes: what the entry goes by in the log. */
  readonly leafHash: Hex;
  /** Ids (SHA-256) of the keys that are said to have signed. */
  readonly signerIds: readonly Hex[];
}
export type RunEntry = EntryOf<'run', RunRegistration>;
export type RecordEntry = EntryOf<'record', PublishedRecord>;
export type CheckpointEntry = EntryOf<'checkpoint', CheckpointAnnouncement>;
export type KeyEntry = EntryOf<'key', KeyEvent>;
export type AttestationEntry = EntryOf<'attestation', Attestation>;
export type OpeningEntry = EntryOf<'opening', Opening>;
export type DisputeEntry = EntryOf<'dispute', Dispute>;
export type LogEntry = RunEntry | RecordEntry | CheckpointEntry | KeyEntry | AttestationEntry | OpeningEntry | DisputeEntry;
export type EntryKind = LogEntry['kind'];

// ---------------------------------------------------------------- the log

/** A log's key, written ORIGIN+ID+BASE64. */
export interface LogKey {
  readonly name: string;
  readonly key: Hex;
  readonly text: string;
}
/** A head that the log's key has signed. `note` is the text to keep: openCheckpoint reads it again. */
export interface LogCheckpoint {
  readonly origin: string;
  readonly size: number;
  readonly root: Hex;
  readonly note: string;
}
/** Fetches a file of the log below its base address: "tile/0/x001/234", "tile/entries/000.p/9". Rejects if it is not there. */
export type FetchTile = (path: string, signal?: AbortSignal) => Promise<Uint8Array>;

// ---------------------------------------------------------------- documents

/**
 * Bytes of GET /artifact/<sha256>: all of them without a range, else [begin, end). The answer is checked, whoever gave it. Rejects if
 * there are none (any error; its message is shown).
 */
export type FetchArtifact = (
  sha256: Hex,
  range?: { readonly begin: number; readonly end: number },
  signal?: AbortSignal,
) => Promise<Uint8Array>;

/** A stretch of a document within a window. Tokens are counted within the document; its separator is the last. */
export interface Span {
  /** Within the step, from 0. */
  readonly window: number;
  /** The logical rank that takes the window. */
  readonly rank: number;
  readonly source: string;
  readonly sourceIndex: number;
  readonly shard: number;
  /** In the order of the shard's file. */
  readonly document: number;
  readonly begin: number;
  readonly end: number;
  /** Tokens of the whole document, its separator included. */
  readonly documentTokens: number;
  /** The document's name in its store, any bytes read as UTF-8; null if the names file is larger than is fetched for it. */
  readonly name: string | null;
}

export interface DocumentsProgress {
  readonly phase: 'manifest' | 'cursor' | 'walk' | 'names' | 'tokens';
  /** Of walk: windows; of tokens: bytes; else files. */
  readonly done: number;
  readonly total: number;
}

export interface DocumentsRequest {
  /** parseRunManifest's, or of the run's registration. */
  readonly manifest: RunManifest;
  /** The published record of the step, parsed and checked by the caller (signature, receipt). */
  readonly record: StepRecord;
  /** Announced checkpoints of the run (or of its parent); the nearest usable one before the step is taken, and others tried after it. */
  readonly checkpoints?: readonly { readonly nextStep: number; readonly manifest: Hex; readonly chain?: Hex | undefined }[];
  /** Cursors that are at hand: of stepDocuments before, for a step and the next one. Checked like any other. */
  readonly cursors?: readonly { readonly nextStep: number; readonly cursor: Uint8Array }[];
  readonly fetchArtifact: FetchArtifact;
  /** One for several steps saves fetching and reading the same files again. */
  readonly cache?: DocumentsCache;
  readonly signal?: AbortSignal | undefined;
  readonly onProgress?: (progress: DocumentsProgress) => void;
  readonly limits?: Partial<DocumentsLimits>;
}
export interface DocumentsLimits {
  /** Documents that a walk may draw, by estimate. */
  readonly walkDocuments: number;
  /** Bytes of index files that it may fetch. */
  readonly walkBytes: number;
  /** Bytes of token chunks, and of the step's tokens in memory. */
  readonly tokenBytes: number;
  /** Bytes of one names file; the names of a larger one are left out. */
  readonly namesBytes: number;
  /** Bytes of the corpus manifest. */
  readonly manifestBytes: number;
}

/** What a step read, computed here from public files alone. */
export interface StepDocuments {
  readonly step: number;
  readonly seqLen: number;
  /** Number of the step's first window in the run, and how many windows it has. */
  readonly firstWindow: number;
  readonly windows: number;
  readonly spans: readonly Span[];
  /**
   * Where the walk began: at the stream's beginning, or with the cursor of a checkpoint, or one at hand, before `step`. The walk is
   * computed; that a checkpoint's cursor is right rests on the record of the step before it, as its parameters do.
   */
  readonly from: { readonly kind: 'beginning' | 'checkpoint' | 'cursor'; readonly step: number; readonly windowsWalked: number };
  /** Why checkpoints that are nearer were not used, for people. */
  readonly notes: readonly string[];
  /** SHA-256 of the cursor before and after the step, as computed. */
  readonly cursorBefore: Hex;
  readonly cursorAfter: Hex;
  readonly windowsRoot: Hex;
  /** "cursor" and "windows": computed against the record. Both ok: these are the documents behind the step. */
  readonly checks: readonly Check[];
  readonly bytesFetched: number;
  /** The cursor after the step: for the next step's `cursors`, if both checks are ok. */
  readonly nextCursor: Uint8Array;
  /** The token ids of window m: seqLen + 1. */
  tokens(window: number): Uint32Array;
  /** The token ids of a span of `spans`. */
  spanTokens(span: Span): Uint32Array;
}

/** Token ids to text (docs/tokenizer.md). */
export interface Tokenizer {
  readonly sha256: Hex;
  readonly vocabSize: number;
  /** The id of the end-of-text token: the separator. */
  readonly endOfText: number;
  /** The bytes that a token stands for; of a special token, its name. */
  tokenBytes(id: number): Uint8Array;
  isSpecial(id: number): boolean;
  /** The tokens' bytes one after another, read as UTF-8 (U+FFFD for what is not). Special tokens are left out unless asked for. */
  decode(ids: ArrayLike<number>, options?: { readonly special?: boolean }): string;
}
