// SPDX-License-Identifier: Apache-2.0
//
// The documents behind a step, computed from the run's manifest, its published record and public files alone: the nearest cursor, the walk
// from there (docs/stream.md), the tokens of the step's windows (docs/shards.md), and whether cursor and windows are the record's.
import { sha256Hex, toHex } from '../bytes';
import { CheckList } from '../check_list';
import { CheckError } from '../errors';
import { leafDigest, MerkleFrontier } from '../merkle';
import { Pace } from '../pace';
import { runStart, windowsOfStep } from '../run_manifest';
import type { DocumentsLimits, DocumentsProgress, DocumentsRequest, Hex, RunManifest, Span, StepDocuments } from '../types';
import { Artifacts } from './artifacts';
import { DocumentsCache } from './cache';
import { CHECKPOINT_BYTES_MAX, parseCheckpointManifest } from './checkpoint_manifest';
import { type CorpusManifest, meanDocumentTokens, parseCorpusManifest, shardFile } from './corpus_manifest';
import { decodeCursor, encodeCursor } from './cursor';
import { parseIndex, parseNames } from './shard_files';
import { DataStream, type StreamSpan } from './stream';
import { type PlacedSpan, readTokens } from './tokens';

const MIB = 2 ** 20;
export const DEFAULT_LIMITS: DocumentsLimits = {
  walkDocuments: 50_000_000,
  walkBytes: 256 * MIB,
  tokenBytes: 256 * MIB,
  namesBytes: 32 * MIB,
  manifestBytes: 64 * MIB,
};
/** Cursors that are tried before the walk begins at the beginning. */
const CURSORS_MAX = 4;

interface StepWindows {
  readonly first: number;
  readonly count: number;
}
interface Start {
  readonly kind: 'beginning' | 'checkpoint' | 'cursor';
  readonly step: number;
  readonly window: number;
}

/**
 * The documents behind a step. Everything fetched is checked by its digest before it is looked at; gives way to the event loop every few
 * milliseconds; memory is the step's tokens, the indices in use and the cache. Throws "too_large" (with what it would take), "unavailable",
 * "malformed", "mismatch" (files that contradict each other) or "cancelled". That the computed cursor or windows are not the record's is
 * no error but a check that is not ok.
 */
export async function stepDocuments(request: DocumentsRequest): Promise<StepDocuments> {
  return new Finder(request).find();
}

class Finder {
  private readonly artifacts: Artifacts;
  private readonly pace: Pace;
  private readonly limits: DocumentsLimits;
  private readonly manifest: RunManifest;
  private readonly cache: DocumentsCache;
  private readonly notes: string[] = [];
  private indexBytes = 0;

  constructor(private readonly request: DocumentsRequest) {
    this.artifacts = new Artifacts(request.fetchArtifact, request.signal);
    this.pace = new Pace(request.signal);
    this.limits = { ...DEFAULT_LIMITS, ...request.limits };
    this.manifest = request.manifest;
    this.cache = request.cache ?? new DocumentsCache();
  }

  async find(): Promise<StepDocuments> {
    const step = this.request.record.step;
    const windows = step <= BigInt(Number.MAX_SAFE_INTEGER) ? windowsOfStep(this.manifest, Number(step)) : null;
    if (windows === null) throw new CheckError('mismatch', `step ${step}`, { expected: 'a step of the run', found: 'one outside it' });
    const memory = windows.count * (this.manifest.model.seq_len + 1) * 4;
    if (memory > this.limits.tokenBytes) {
      throw new CheckError('too_large', `step ${step}`, {
        expected: `at most ${this.limits.tokenBytes} bytes of tokens here`,
        found: String(memory),
      });
    }
    const corpus = await this.fetchCorpus();
    const stream = this.openStream(corpus);
    const start = await this.seekNearest(stream, Number(step), windows.first);
    await this.walk(stream, corpus, start, windows.first);
    const cursorBefore = stream.digest();
    const spans: StreamSpan[][] = [];
    for (let m = 0; m < windows.count; ++m) spans.push(await stream.next());
    const nextCursor = encodeCursor(stream.cursor());
    const from = { kind: start.kind, step: start.step, windowsWalked: windows.first - start.window };
    return this.finish(corpus, windows, spans, { step: Number(step), cursorBefore, nextCursor, from });
  }

  private progress(phase: DocumentsProgress['phase'], done: number, total: number): void {
    this.request.onProgress?.({ phase, done, total });
  }

  private async fetchCorpus(): Promise<CorpusManifest> {
    this.progress('manifest', 0, 1);
    const corpus = await this.cache.get(`corpus ${this.manifest.corpus}`, async () => {
      const bytes = await this.artifacts.whole(this.manifest.corpus, { what: 'corpus manifest', bytesMax: this.limits.manifestBytes });
      return { value: parseCorpusManifest(bytes), bytes: bytes.length };
    });
    if (corpus.tokenizer !== this.manifest.tokenizer) {
      throw new CheckError('mismatch', 'corpus manifest', {
        expected: `the run's tokenizer, ${this.manifest.tokenizer}`,
        found: corpus.tokenizer,
      });
    }
    return corpus;
  }

  private openStream(corpus: CorpusManifest): DataStream {
    const readIndex = (source: number, number: number): Promise<Uint32Array> =>
      this.cache.get(`${corpus.sha256} index ${source} ${number}`, () => this.fetchIndex(corpus, source, number));
    return new DataStream(corpus, this.manifest.seed, this.manifest.model.seq_len, readIndex, this.pace);
  }

  private async fetchIndex(corpus: CorpusManifest, source: number, number: number): Promise<{ value: Uint32Array; bytes: number }> {
    const shard = corpus.sources[source]!.shards[number]!;
    const what = shardFile(corpus, source, number, 'index');
    this.indexBytes += shard.index.bytes;
    if (this.indexBytes > this.limits.walkBytes) {
      throw new CheckError('too_large', what, {
        expected: `at most ${this.limits.walkBytes} bytes of index files here`,
        found: String(this.indexBytes),
      });
    }
    const bytes = await this.artifacts.whole(shard.index.sha256, { what, bytes: shard.index.bytes, bytesMax: shard.index.bytes });
    return { value: parseIndex(bytes, shard, what), bytes: bytes.length };
  }

  /** Leaves the stream at the nearest cursor before `window` that can be had and is good; else at its beginning. */
  private async seekNearest(stream: DataStream, step: number, window: number): Promise<Start> {
    const candidates = [
      ...(this.request.cursors ?? []).map((at) => ({ kind: 'cursor' as const, ...at })),
      ...(this.request.checkpoints ?? []).map((at) => ({ kind: 'checkpoint' as const, ...at })),
    ].filter(({ nextStep }) => nextStep <= step && nextStep > 0);
    candidates.sort((a, b) => b.nextStep - a.nextStep);
    for (const [i, candidate] of candidates.slice(0, CURSORS_MAX).entries()) {
      this.progress('cursor', i, Math.min(candidates.length, CURSORS_MAX));
      try {
        const bytes = candidate.kind === 'cursor' ? candidate.cursor : await this.fetchCursor(candidate, step);
        const cursor = decodeCursor(bytes);
        this.expectWindow(candidate.nextStep, cursor.window, window);
        await stream.seek(cursor);
        return { kind: candidate.kind, step: candidate.nextStep, window: cursor.window };
      } catch (error) {
        if (!(error instanceof CheckError) || error.kind === 'cancelled') throw error;
        this.notes.push(`the ${candidate.kind} before step ${candidate.nextStep} was not used: ${error.message}`);
      }
    }
    return { kind: 'beginning', step: 0, window: 0 };
  }

  private expectWindow(nextStep: number, found: number, before: number): void {
    const own = nextStep === runStart(this.manifest).step ? runStart(this.manifest).window : windowsOfStep(this.manifest, nextStep)?.first;
    if (own === undefined ? found > before : found !== own) {
      throw new CheckError('mismatch', 'stream cursor', { expected: `one before window ${own ?? before}`, found: String(found) });
    }
  }

  private async fetchCursor(at: { nextStep: number; manifest: Hex; chain?: Hex | undefined }, step: number): Promise<Uint8Array> {
    const bytes = await this.artifacts.whole(at.manifest, { what: 'checkpoint.json', bytesMax: CHECKPOINT_BYTES_MAX });
    const checkpoint = parseCheckpointManifest(bytes);
    const expect = (what: string, expected: string, found: string): void => {
      if (expected !== found) throw new CheckError('mismatch', `checkpoint.json: ${what}`, { expected, found });
    };
    const runs = [this.manifest.runId, this.manifest.parent?.runId];
    expect('run_id', runs.includes(checkpoint.runId) ? checkpoint.runId : this.manifest.runId, checkpoint.runId);
    expect('its step', String(at.nextStep), String(checkpoint.nextStep));
    if (at.chain !== undefined) expect('chain', at.chain, checkpoint.chain);
    if (at.nextStep === step) expect('chain', this.request.record.previousChain, checkpoint.chain);
    return checkpoint.cursor;
  }

  private async walk(stream: DataStream, corpus: CorpusManifest, start: Start, window: number): Promise<void> {
    const windows = window - start.window;
    const documents = Math.round((windows * (this.manifest.model.seq_len + 1)) / meanDocumentTokens(corpus));
    if (documents > this.limits.walkDocuments) {
      throw new CheckError('too_large', `the walk to window ${window}`, {
        expected: `at most ${this.limits.walkDocuments} documents to draw here`,
        found: `about ${documents} from window ${start.window}, the nearest cursor; a checkpoint nearer to the step would do`,
      });
    }
    await stream.walkTo(window, (done) => this.progress('walk', done, windows));
  }

  private async finish(
    corpus: CorpusManifest,
    windows: StepWindows,
    spans: readonly (readonly StreamSpan[])[],
    walked: { step: number; cursorBefore: Hex; nextCursor: Uint8Array; from: StepDocuments['from'] },
  ): Promise<StepDocuments> {
    const seqLen = this.manifest.model.seq_len;
    const tokens = new Uint32Array(windows.count * (seqLen + 1));
    await readTokens(placed(spans, seqLen + 1), tokens, {
      corpus,
      artifacts: this.artifacts,
      pace: this.pace,
      bytesMax: this.limits.tokenBytes,
      progress: (done, total) => this.progress('tokens', done, total),
    });
    const windowsRoot = await this.windowsRoot(tokens, seqLen + 1);
    const cursorAfter = sha256Hex(walked.nextCursor);
    const list = new CheckList();
    list.equal('cursor', 'the cursor after the step', this.request.record.cursor, cursorAfter);
    list.equal('windows', "the root over the step's windows", this.request.record.windows, windowsRoot);
    const named = await this.nameSpans(corpus, spans);
    return new Documents({
      ...walked,
      seqLen,
      firstWindow: windows.first,
      windows: windows.count,
      spans: named,
      notes: this.notes,
      cursorAfter,
      windowsRoot,
      checks: list.checks,
      bytesFetched: this.artifacts.bytesFetched,
      allTokens: tokens,
    });
  }

  /** docs/step_record.md, "Windows": a leaf each, its token ids as u32, little-endian. */
  private async windowsRoot(tokens: Uint32Array, windowTokens: number): Promise<Hex> {
    const frontier = new MerkleFrontier();
    const bytes = new Uint8Array(4 * windowTokens);
    const view = new DataView(bytes.buffer);
    for (let at = 0; at < tokens.length; at += windowTokens) {
      for (let i = 0; i < windowTokens; ++i) view.setUint32(4 * i, tokens[at + i]!, true);
      frontier.append(leafDigest(bytes));
      await this.pace.breathe();
    }
    return toHex(frontier.root());
  }

  private async nameSpans(corpus: CorpusManifest, spans: readonly (readonly StreamSpan[])[]): Promise<Span[]> {
    const ranks = this.manifest.topology.replicas * this.manifest.topology.shards;
    const names = await this.readNames(corpus, spans);
    return spans.flatMap((ofWindow, window) =>
      ofWindow.map(({ source, shard, document, begin, end, documentTokens }) => ({
        window,
        rank: window % ranks,
        source: corpus.sources[source]!.name,
        sourceIndex: source,
        shard,
        document,
        begin,
        end,
        documentTokens,
        name: names.get(`${source}/${shard}`)?.(document) ?? null,
      })),
    );
  }

  private async readNames(
    corpus: CorpusManifest,
    spans: readonly (readonly StreamSpan[])[],
  ): Promise<ReadonlyMap<string, (document: number) => string>> {
    const shards = new Map(spans.flat().map(({ source, shard }) => [`${source}/${shard}`, { source, shard }]));
    const names = new Map<string, (document: number) => string>();
    for (const [key, { source, shard }] of shards) {
      this.progress('names', names.size, shards.size);
      const entry = corpus.sources[source]!.shards[shard]!;
      const what = shardFile(corpus, source, shard, 'names');
      try {
        const read = await this.cache.get(`${corpus.sha256} names ${source} ${shard}`, async () => {
          const bytes = await this.artifacts.whole(entry.names.sha256, {
            what,
            bytes: entry.names.bytes,
            bytesMax: this.limits.namesBytes,
          });
          return { value: parseNames(bytes, entry, what), bytes: bytes.length };
        });
        names.set(key, read);
      } catch (error) {
        // Names are for people: without them the documents still have their numbers.
        if (!(error instanceof CheckError) || error.kind === 'cancelled') throw error;
        this.notes.push(`no names of documents: ${error.message}`);
      }
    }
    return names;
  }
}

/** Spans with the places of their tokens, windows one after another. */
function placed(spans: readonly (readonly StreamSpan[])[], windowTokens: number): PlacedSpan[] {
  return spans.flatMap((ofWindow, window) => {
    let place = window * windowTokens;
    return ofWindow.map((span) => {
      const here = { ...span, place };
      place += span.end - span.begin;
      return here;
    });
  });
}

class Documents implements StepDocuments {
  readonly step!: number;
  readonly seqLen!: number;
  readonly firstWindow!: number;
  readonly windows!: number;
  readonly spans!: readonly Span[];
  readonly from!: StepDocuments['from'];
  readonly notes!: readonly string[];
  readonly cursorBefore!: Hex;
  readonly cursorAfter!: Hex;
  readonly windowsRoot!: Hex;
  readonly checks!: StepDocuments['checks'];
  readonly bytesFetched!: number;
  readonly nextCursor!: Uint8Array;
  private readonly allTokens!: Uint32Array;
  private readonly places = new Map<Span, number>();

  constructor(facts: Omit<StepDocuments, 'tokens' | 'spanTokens'> & { readonly allTokens: Uint32Array }) {
    Object.assign(this, facts);
    let place = 0;
    for (const span of this.spans) {
      this.places.set(span, place);
      place += span.end - span.begin;
    }
  }

  tokens(window: number): Uint32Array {
    const tokens = this.seqLen + 1;
    if (!Number.isInteger(window) || window < 0 || window >= this.windows) {
      throw new CheckError('malformed', 'window', { expected: `0 to ${this.windows - 1}`, found: String(window) });
    }
    return this.allTokens.subarray(window * tokens, (window + 1) * tokens);
  }
  spanTokens(span: Span): Uint32Array {
    const place = this.places.get(span);
    if (place !== undefined) return this.allTokens.subarray(place, place + span.end - span.begin);
    throw new CheckError('malformed', 'span', "expected one of this step's spans; found another");
  }
}
