// SPDX-License-Identifier: Apache-2.0
//
// Tokens of spans, read from shards chunk by chunk: docs/shards.md §7. No byte is looked at before its chunk's digest is checked, and the
// digests before their tree has the manifest's root.
import { equalBytes, toHex } from '../bytes';
import { CheckError } from '../errors';
import { leafDigest, merkleRoot } from '../merkle';
import type { Pace } from '../pace';
import type { Artifacts } from './artifacts';
import { type CorpusManifest, type Shard, shardFile } from './corpus_manifest';
import type { StreamSpan } from './stream';

const PART_BYTES_MAX = 1 << 20;
const FETCHES_AT_ONCE = 6;
const DIGEST_BYTES = 32;

/** A span, and where its tokens go. */
export interface PlacedSpan extends StreamSpan {
  readonly place: number;
}

/** Neighbouring chunks of one shard, [begin, end), to fetch in one go. */
interface Part {
  readonly begin: number;
  readonly end: number;
}

interface ShardJob {
  readonly entry: Shard;
  readonly name: string;
  readonly chunksName: string;
  readonly spans: readonly PlacedSpan[];
  readonly parts: readonly Part[];
}

export interface TokensOptions {
  readonly corpus: CorpusManifest;
  readonly artifacts: Artifacts;
  readonly pace: Pace;
  readonly bytesMax: number;
  readonly progress: (done: number, total: number) => void;
}

/** Fills `out` at the places of the spans. */
export async function readTokens(spans: readonly PlacedSpan[], out: Uint32Array, options: TokensOptions): Promise<void> {
  const jobs = jobsOf(spans, options.corpus);
  const total = jobs.reduce((sum, job) => sum + bytesOf(job, options.corpus), 0);
  if (total > options.bytesMax) {
    throw new CheckError('too_large', 'tokens of the step', {
      expected: `at most ${options.bytesMax} bytes to fetch here`,
      found: String(total),
    });
  }
  const progress = { done: 0, total };
  for (const job of jobs) await readShard(job, out, options, progress);
}

/** What is to be fetched of each shard. */
function jobsOf(spans: readonly PlacedSpan[], corpus: CorpusManifest): ShardJob[] {
  const byShard = new Map<string, PlacedSpan[]>();
  for (const span of spans) {
    const key = `${span.source}/${span.shard}`;
    const group = byShard.get(key);
    if (group === undefined) byShard.set(key, [span]);
    else group.push(span);
  }
  return [...byShard.values()].map((group) => {
    const { source, shard } = group[0]!;
    const sorted = group.sort((a, b) => a.shardBegin - b.shardBegin);
    return {
      entry: corpus.sources[source]!.shards[shard]!,
      name: shardFile(corpus, source, shard, 'tokens'),
      chunksName: shardFile(corpus, source, shard, 'chunks'),
      spans: sorted,
      parts: partsOf(sorted, corpus),
    };
  });
}

/** The chunks that the spans touch, neighbours together. The spans are sorted. */
function partsOf(spans: readonly PlacedSpan[], corpus: CorpusManifest): Part[] {
  const parts: { begin: number; end: number }[] = [];
  const chunksMax = Math.max(1, PART_BYTES_MAX / corpus.chunkBytes);
  for (const span of spans) {
    const endByte = (span.shardBegin + span.end - span.begin) * corpus.tokenBytes;
    let begin = Math.floor((span.shardBegin * corpus.tokenBytes) / corpus.chunkBytes);
    const end = Math.ceil(endByte / corpus.chunkBytes);
    for (let last = parts.at(-1); begin < end; last = parts.at(-1)) {
      if (last !== undefined && begin < last.end) begin = last.end;
      else if (last !== undefined && begin === last.end && last.end - last.begin < chunksMax) last.end = ++begin;
      else parts.push({ begin, end: ++begin });
    }
  }
  return parts;
}

function byteRange(part: Part, job: ShardJob, corpus: CorpusManifest): { readonly begin: number; readonly end: number } {
  return { begin: part.begin * corpus.chunkBytes, end: Math.min(part.end * corpus.chunkBytes, job.entry.tokens.bytes) };
}

function bytesOf(job: ShardJob, corpus: CorpusManifest): number {
  const parts = job.parts.map((part) => byteRange(part, job, corpus));
  return job.entry.chunks.bytes + parts.reduce((sum, { begin, end }) => sum + end - begin, 0);
}

async function readShard(
  job: ShardJob,
  out: Uint32Array,
  options: TokensOptions,
  progress: { done: number; readonly total: number },
): Promise<void> {
  const advance = (bytes: number): void => options.progress((progress.done += bytes), progress.total);
  const digests = await readDigests(job, options);
  advance(digests.length);
  let next = 0;
  const fetchParts = async (): Promise<void> => {
    for (let part = job.parts[next++]; part !== undefined; part = job.parts[next++]) {
      const { begin, end } = byteRange(part, job, options.corpus);
      const bytes = await options.artifacts.part(job.entry.tokens.sha256, job.name, begin, end);
      await checkChunks(bytes, part, digests, job, options);
      copyTokens(bytes, begin, job, out, options.corpus.tokenBytes);
      advance(bytes.length);
    }
  };
  try {
    await Promise.all(Array.from({ length: FETCHES_AT_ONCE }, fetchParts));
  } finally {
    next = job.parts.length; // after a failure, the others fetch nothing more
  }
}

async function readDigests(job: ShardJob, { artifacts, pace }: TokensOptions): Promise<Uint8Array> {
  const { chunks, tokens } = job.entry;
  const what = job.chunksName;
  const digests = await artifacts.whole(chunks.sha256, { what, bytes: chunks.bytes, bytesMax: chunks.bytes });
  if (digests.length !== chunks.bytes)
    throw new CheckError('malformed', what, { expected: `${chunks.bytes} bytes`, found: String(digests.length) });
  const leaves = Array.from({ length: digests.length / DIGEST_BYTES }, (_, i) => digestAt(digests, i));
  await pace.breathe();
  const root = toHex(merkleRoot(leaves));
  if (root !== tokens.root) throw new CheckError('mismatch', what, { expected: `digests under the root ${tokens.root}`, found: root });
  return digests;
}

function digestAt(digests: Uint8Array, chunk: number): Uint8Array {
  return digests.subarray(chunk * DIGEST_BYTES, (chunk + 1) * DIGEST_BYTES);
}

async function checkChunks(bytes: Uint8Array, part: Part, digests: Uint8Array, job: ShardJob, options: TokensOptions): Promise<void> {
  const { chunkBytes } = options.corpus;
  for (let chunk = part.begin; chunk < part.end; ++chunk) {
    const begin = (chunk - part.begin) * chunkBytes;
    const found = leafDigest(bytes.subarray(begin, begin + chunkBytes));
    const expected = digestAt(digests, chunk);
    if (!equalBytes(found, expected)) {
      throw new CheckError('mismatch', `${job.name}, chunk ${chunk}`, { expected: `digest ${toHex(expected)}`, found: toHex(found) });
    }
    await options.pace.breathe();
  }
}

/** The tokens of all spans that lie in bytes from `begin` on. */
function copyTokens(bytes: Uint8Array, begin: number, job: ShardJob, out: Uint32Array, width: 2 | 4): void {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const first = begin / width;
  const last = first + bytes.length / width;
  for (const span of job.spans) {
    if (span.shardBegin >= last) break;
    const from = Math.max(span.shardBegin, first);
    const to = Math.min(span.shardBegin + span.end - span.begin, last);
    for (let token = from; token < to; ++token) {
      const at = (token - first) * width;
      out[span.place + token - span.shardBegin] = width === 2 ? view.getUint16(at, true) : view.getUint32(at, true);
    }
  }
}
