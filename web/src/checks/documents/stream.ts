// SPDX-License-Identifier: Apache-2.0
//
// The walk along a data stream: docs/stream.md, rules 1 to 4 and what a cursor must fit. As engine/data/stream.h walks.
import { sha256Hex, utf8 } from '../bytes';
import type { Pace } from '../pace';
import type { CorpusManifest, Shard } from './corpus_manifest';
import { contradiction, type Cursor, cursorDigest } from './cursor';
import { SourceMix } from './mix';
import { RandomStream } from './random';
import type { Hex } from '../types';
import { CheckError } from '../errors';

/** Draws between looks at the clock. */
const BLOCK = 1 << 13;

/** The places of a shard's documents (parseIndex). */
export type ReadIndex = (source: number, shard: number) => Promise<Uint32Array>;

export interface StreamSpan {
  readonly source: number;
  readonly shard: number;
  readonly document: number;
  /** Within the document. */
  readonly begin: number;
  readonly end: number;
  readonly documentTokens: number;
  /** The span's first token within the shard. */
  readonly shardBegin: number;
}

/** A shard in the order of one epoch. */
interface OpenShard {
  readonly epoch: number;
  readonly shard: number;
  /** Documents and tokens of the epoch that come before it. */
  readonly first: number;
  readonly tokensBefore: number;
  readonly order: Uint32Array;
  readonly begins: Uint32Array;
}

interface Position {
  epoch: number;
  documents: number;
}

export class DataStream {
  private readonly mix: SourceMix;
  private readonly randomNames: readonly string[];
  private readonly positions: Position[];
  private readonly open: (OpenShard | undefined)[];
  private window = 0;
  private draws = 0;
  // The document drawn last, and how much of it is taken.
  private source = 0;
  private shard = 0;
  private document = 0;
  private documentBegin = 0;
  private documentTokens = 0;
  private taken = 0;

  constructor(
    private readonly corpus: CorpusManifest,
    private readonly seed: number,
    private readonly seqLen: number,
    private readonly readIndex: ReadIndex,
    private readonly pace: Pace,
  ) {
    this.mix = new SourceMix(corpus, seed);
    this.randomNames = corpus.sources.map(({ name }) => `data/${sha256Hex(utf8(name))}`);
    this.positions = corpus.sources.map(() => ({ epoch: 0, documents: 0 }));
    this.open = corpus.sources.map(() => undefined);
  }

  cursor(): Cursor {
    const cut = { source: this.source, shard: this.shard, document: this.document, token: this.taken };
    return {
      manifest: this.corpus.sha256,
      seed: this.seed,
      seqLen: this.seqLen,
      window: this.window,
      draws: this.draws,
      sources: this.positions.map((position) => ({ ...position })),
      ...(this.taken < this.documentTokens ? { cut } : {}),
    };
  }
  digest(): Hex {
    return cursorDigest(this.cursor());
  }

  /** To a later window. */
  async walkTo(window: number, progress: (windows: number) => void): Promise<void> {
    const from = this.window;
    const tokens = (window - from) * (this.seqLen + 1);
    await this.advance(tokens, null, (left) => progress(Math.floor((tokens - left) / (this.seqLen + 1))));
    this.window = window;
  }

  /** The spans of the next window. */
  async next(): Promise<StreamSpan[]> {
    const spans: StreamSpan[] = [];
    await this.advance(this.seqLen + 1, spans, () => undefined);
    ++this.window;
    return spans;
  }

  private async advance(tokens: number, spans: StreamSpan[] | null, progress: (left: number) => void): Promise<void> {
    let left = tokens;
    while (left > 0) {
      const wanting = this.takeBlock(left, spans);
      left = this.left;
      if (wanting !== null) this.open[wanting] = await this.load(wanting, this.positions[wanting]!);
      progress(left);
      await this.pace.breathe();
    }
  }

  private left = 0;
  /** Takes tokens until none are `left`, BLOCK documents are drawn, or a shard is wanting, whose source it returns. */
  private takeBlock(tokens: number, spans: StreamSpan[] | null): number | null {
    this.left = tokens;
    for (let drawn = 0; this.left > 0 && drawn < BLOCK;) {
      if (this.taken === this.documentTokens) {
        const wanting = this.draw();
        if (wanting !== null) return wanting;
        ++drawn;
      }
      const count = Math.min(this.left, this.documentTokens - this.taken);
      if (spans !== null) spans.push(this.spanOf(count));
      this.taken += count;
      this.left -= count;
    }
    return null;
  }
  private spanOf(count: number): StreamSpan {
    const { source, shard, document, documentTokens, taken } = this;
    return { source, shard, document, documentTokens, begin: taken, end: taken + count, shardBegin: this.documentBegin + taken };
  }

  /** Rule 1. The next document, or the source whose shard must be loaded first. */
  private draw(): number | null {
    const source = this.mix.sourceOfDraw(this.draws);
    const position = this.positions[source]!;
    const open = this.open[source];
    if (open === undefined || !isIn(open, position)) return source;
    const document = open.order[position.documents - open.first]!;
    this.source = source;
    this.shard = open.shard;
    this.document = document;
    this.documentBegin = open.begins[document]!;
    this.documentTokens = open.begins[document + 1]! - this.documentBegin;
    this.taken = 0;
    ++this.draws;
    if (++position.documents === this.corpus.sources[source]!.documents) {
      ++position.epoch;
      position.documents = 0;
    }
    return null;
  }

  /** Rules 2 and 3. */
  private async load(source: number, position: Readonly<Position>): Promise<OpenShard> {
    const { shards } = this.corpus.sources[source]!;
    const epoch = `${this.randomNames[source]}/epoch.${position.epoch}`;
    const shardOrder = await new RandomStream(this.seed, `${epoch}/shards`).permutation(shards.length, this.pace);
    let first = 0;
    let tokensBefore = 0;
    let at = 0;
    const shardAt = (): Shard => shards[shardOrder[at]!]!;
    while (position.documents - first >= shardAt().documents) {
      first += shardAt().documents;
      tokensBefore += shardAt().tokens.count;
      ++at;
    }
    const shard = shardOrder[at]!;
    const begins = await this.readIndex(source, shard);
    const order = await new RandomStream(this.seed, `${epoch}/shard.${shard}/documents`).permutation(begins.length - 1, this.pace);
    return { epoch: position.epoch, shard, first, tokensBefore, order, begins };
  }

  /** To a cursor, if it is one of this stream (rules 1 to 5 of §4, but for the step). Throws "mismatch". */
  async seek(cursor: Cursor): Promise<void> {
    this.checkKey(cursor);
    this.checkCounts(cursor);
    const open: (OpenShard | undefined)[] = [];
    for (const [i, position] of cursor.sources.entries()) open.push(position.documents === 0 ? undefined : await this.load(i, position));
    const cut = await this.locateCut(cursor, open);
    this.checkTokens(cursor, open, cut === null ? 0 : cut.documentTokens - cut.begin);
    this.window = cursor.window;
    this.draws = cursor.draws;
    cursor.sources.forEach((position, i) => (this.positions[i] = { ...position }));
    open.forEach((shard, i) => (this.open[i] = shard));
    this.source = cut?.source ?? 0;
    this.shard = cut?.shard ?? 0;
    this.document = cut?.document ?? 0;
    this.documentTokens = cut?.documentTokens ?? 0;
    this.documentBegin = cut === null ? 0 : cut.shardBegin - cut.begin;
    this.taken = cut?.begin ?? 0;
  }

  private checkKey(cursor: Cursor): void {
    const expect = (what: string, expected: Hex | number, found: Hex | number): void => {
      if (expected === found) return;
      throw new CheckError('mismatch', `stream cursor: ${what}`, { expected: String(expected), found: String(found) });
    };
    expect('corpus manifest', this.corpus.sha256, cursor.manifest);
    expect('seed', this.seed, cursor.seed);
    expect('sequence length', this.seqLen, cursor.seqLen);
    expect('number of sources', this.corpus.sources.length, cursor.sources.length);
  }

  private checkCounts(cursor: Cursor): void {
    let drawn = 0n;
    for (const [i, { epoch, documents }] of cursor.sources.entries()) {
      const source = this.corpus.sources[i]!;
      const begun = epoch > 0 || documents > 0;
      if (begun && (!this.mix.hasWeight(i) || documents >= source.documents)) {
        contradiction(`source ${source.name}: ${documents} documents of epoch ${epoch}, more than it can have given`);
      }
      drawn += BigInt(epoch) * BigInt(source.documents) + BigInt(documents);
    }
    if (drawn !== BigInt(cursor.draws)) contradiction(`${cursor.draws} draws, but the sources' documents are ${drawn}`);
  }

  /** The rest of the cut document. The last one drawn is the only one that can be cut. */
  private async locateCut(cursor: Cursor, open: readonly (OpenShard | undefined)[]): Promise<StreamSpan | null> {
    if (cursor.cut === undefined) return null;
    const { source, shard, document, token } = cursor.cut;
    if (cursor.draws === 0 || source !== this.mix.sourceOfDraw(cursor.draws - 1)) {
      return contradiction('the document carried over is of another source than the last draw');
    }
    const last = { ...cursor.sources[source]! };
    if (last.documents === 0) {
      if (last.epoch === 0) contradiction('a document is carried over of a source at its start');
      last.epoch -= 1;
      last.documents = this.corpus.sources[source]!.documents;
    }
    last.documents -= 1;
    const known = open[source];
    const at = known !== undefined && isIn(known, last) ? known : await this.load(source, last);
    const expected = at.order[last.documents - at.first]!;
    const begin = at.begins[expected]!;
    const documentTokens = at.begins[expected + 1]! - begin;
    if (shard !== at.shard || document !== expected || token === 0 || token >= documentTokens) {
      contradiction(`carried over: expected document ${expected} of shard ${at.shard} from a token of 1 to ${documentTokens - 1}`);
    }
    return { source, shard, document, begin: token, end: documentTokens, documentTokens, shardBegin: begin + token };
  }

  private checkTokens(cursor: Cursor, open: readonly (OpenShard | undefined)[], rest: number): void {
    let tokens = -BigInt(rest);
    for (const [i, { epoch, documents }] of cursor.sources.entries()) {
      tokens += BigInt(epoch) * BigInt(this.corpus.sources[i]!.tokens);
      const shard = open[i];
      if (shard === undefined) continue;
      tokens += BigInt(shard.tokensBefore);
      let inShard = 0;
      for (let d = 0; d < documents - shard.first; ++d) inShard += shard.begins[shard.order[d]! + 1]! - shard.begins[shard.order[d]!]!;
      tokens += BigInt(inShard);
    }
    if (tokens !== BigInt(cursor.window) * BigInt(this.seqLen + 1)) {
      contradiction(`it stands before window ${cursor.window}, but the documents' tokens are those of another`);
    }
  }
}

function isIn(open: OpenShard, position: Readonly<Position>): boolean {
  const place = position.documents - open.first;
  return open.epoch === position.epoch && place >= 0 && place < open.order.length;
}
