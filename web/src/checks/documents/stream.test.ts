// SPDX-License-Identifier: Apache-2.0
//
// Corpus, mix, walk and cursor: the example of docs/stream.md §5, whose corpus the fixture has; cursors that do not fit; manifests and
// shard files that are none.
import { expect, test } from 'vitest';
import { sha256Hex, toHex, utf8 } from '../bytes';
import { Pace } from '../pace';
import { Fixture, FIXTURE } from '../testing/fixture';
import { errorOf, errorOfAsync, hex, jsonChanges, Random, refuses } from '../testing/tools';
import { meanDocumentTokens, mixWeights, parseCorpusManifest } from './corpus_manifest';
import { type Cursor, cursorDigest, decodeCursor, encodeCursor } from './cursor';
import { SourceMix } from './mix';
import { parseIndex, parseNames } from './shard_files';
import { DataStream } from './stream';

const fixture = new Fixture(FIXTURE);
const DIGEST = '539fd4575c16604c58b223db60806d2771a18903f61810eaefacd60b5a7f42ac';
const MANIFEST = fixture.artifacts.get(DIGEST)!;
const corpus = parseCorpusManifest(MANIFEST);
const CURSOR = hex(
  '4c53435552535231539fd4575c16604c58b223db60806d2771a18903f61810eaefacd60b5a7f42ac2a00000000000000ff030000000000000300000000000000' +
    '0500000000000000020000000000000000000000030000000000000000000000000000000200000000000000' +
    '0100000000020000000100000012000000',
);
const noted = (): void => undefined;

function streamOf(seqLen = 1023, seed = 42): DataStream {
  const read = (source: number, shard: number): Promise<Uint32Array> => {
    const entry = corpus.sources[source]!.shards[shard]!;
    return Promise.resolve(parseIndex(fixture.artifacts.get(entry.index.sha256)!, entry, 'index'));
  };
  return new DataStream(corpus, seed, seqLen, read, new Pace(undefined));
}

test('the corpus of the page', () => {
  expect(corpus.sha256).toBe(DIGEST);
  expect(corpus.sources.map(({ name, tokens, documents, shards }) => [name, tokens, documents, shards.length])).toEqual([
    ['code', 5279, 8, 3],
    ['edu', 4564, 4, 2],
  ]);
  expect(mixWeights(corpus)).toEqual([7496390967676339n, 3748195483838169n]);
  expect(meanDocumentTokens(corpus)).toBeCloseTo(((2 * 5279) / 8 + 4564 / 4) / 3, 6);
});

test('the mix of the page', () => {
  const mix = new SourceMix(corpus, 42);
  expect([0, 1, 2, 3, 4, 5].map((n) => mix.sourceOfDraw(n))).toEqual([1, 1, 0, 0, 0, 1]);
});

test('mixes with many sources, some without weight, agree with rule 1', () => {
  const random = new Random(31);
  for (let n = 0; n < 40; ++n) {
    const sources = Array.from({ length: 1 + random.below(12) }, () => ({
      ...corpus.sources[0]!,
      documents: random.below(3) === 0 ? 0 : 1 + random.below(1000),
      tokens: 1000 + random.below(100000),
      share: random.below(4) === 0 ? 0n : BigInt(random.below(2 ** 32)) << BigInt(random.below(24)),
    }));
    const many = { ...corpus, sources };
    const weights = mixWeights(many);
    const total = weights.reduce((sum, weight) => sum + weight, 0n);
    if (total === 0n) {
      expect(errorOf(() => new SourceMix(many, n)).message).toContain('no stream');
      continue;
    }
    const mix = new SourceMix(many, n);
    const draws = new SourceMix({ ...corpus, sources: [corpus.sources[0]!] }, n)['random'];
    for (let draw = 0; draw < 50; ++draw) {
      draws.draw(draw);
      let u = ((BigInt(draws.low) | (BigInt(draws.high) << 32n)) * total) >> 64n;
      const expected = weights.findIndex((weight) => (u -= weight) < 0n);
      expect(mix.sourceOfDraw(draw)).toBe(expected);
      expect(mix.hasWeight(expected)).toBe(true);
    }
  }
});

test('the windows of the page', async () => {
  const stream = streamOf();
  const windows = [await stream.next(), await stream.next(), await stream.next(), await stream.next()];
  const rows = windows.flatMap((spans, window) =>
    spans.map(({ source, shard, document, begin, end }) => {
      const entry = corpus.sources[source]!.shards[shard]!;
      const name = parseNames(fixture.artifacts.get(entry.names.sha256)!, entry, 'names')(document);
      return `${window} ${corpus.sources[source]!.name}/${shard} ${document} ${begin}-${end} ${name}`;
    }),
  );
  expect(rows).toEqual([
    '0 edu/0 0 0-866 edu/bread.md',
    '0 edu/0 1 0-158 edu/numbers.md',
    '1 edu/0 1 158-1182 edu/numbers.md',
    '2 edu/0 1 1182-1384 edu/numbers.md',
    '2 code/2 2 0-252 code/words.sh',
    '2 code/2 0 0-552 code/sql_notes.sql',
    '2 code/2 1 0-18 code/windows.py',
    '3 code/2 1 18-122 code/windows.py',
    '3 edu/1 1 0-920 edu/tides.md',
  ]);
});

test('the cursor of the page, by walking and by reading', async () => {
  const stream = streamOf();
  await stream.walkTo(3, noted);
  expect(toHex(encodeCursor(stream.cursor()))).toBe(toHex(CURSOR));
  expect(stream.digest()).toBe('6201720ef6752144f1228909ab4a3b1f1e0f163e6805e1c3508e7030f5b489c1');
  const cursor = decodeCursor(CURSOR);
  expect(cursor.cut).toEqual({ source: 0, shard: 2, document: 1, token: 18 });
  expect(encodeCursor(cursor)).toEqual(CURSOR);
});

test('walking on from a cursor is walking from the beginning, through many epochs', async () => {
  const whole = streamOf(64);
  const digests: string[] = [];
  const cursors: Cursor[] = [];
  for (let window = 0; window <= 1500; window += 50) {
    await whole.walkTo(window, noted);
    digests.push(whole.digest());
    cursors.push(whole.cursor());
  }
  expect(cursors.at(-1)!.sources[0]!.epoch).toBeGreaterThan(5);
  for (const [i, cursor] of cursors.entries()) {
    const stream = streamOf(64);
    await stream.seek(decodeCursor(encodeCursor(cursor)));
    expect(stream.digest()).toBe(digests[i]);
    for (let window = 0; window < 50 && i + 1 < digests.length; ++window) await stream.next();
    if (i + 1 < digests.length) expect(stream.digest()).toBe(digests[i + 1]);
  }
});

test('cursors that do not fit are refused', async () => {
  const stream = streamOf(64);
  await stream.walkTo(777, noted);
  const good = stream.cursor();
  const refusesCursor = async (change: Partial<Cursor>): Promise<string> => {
    return (await errorOfAsync(() => streamOf(64).seek({ ...good, ...change }))).message;
  };
  const [a, b] = good.sources as [Cursor['sources'][0], Cursor['sources'][0]];
  expect(await refusesCursor({ manifest: '00'.repeat(32) })).toContain('corpus manifest');
  expect(await refusesCursor({ seed: 43 })).toContain('seed');
  expect(await refusesCursor({ seqLen: 65 })).toContain('sequence length');
  expect(await refusesCursor({ sources: [a] })).toContain('number of sources');
  expect(await refusesCursor({ draws: good.draws + 1 })).toContain('draws');
  expect(await refusesCursor({ window: good.window + 1 })).toContain('window');
  expect(await refusesCursor({ sources: [{ ...a, documents: 8 }, b] })).toContain('more than it can');
  expect(await refusesCursor({ sources: [{ ...a, documents: a.documents + 1 }, b], draws: good.draws + 1 })).toContain('cursor');
  const cut = good.cut!;
  for (const other of [
    { source: 1 - cut.source },
    { shard: cut.shard + 1 },
    { document: cut.document + 1 },
    { token: 0 },
    { token: cut.token + 1 },
    { token: 2 ** 31 },
  ]) {
    expect(await refusesCursor({ cut: { ...cut, ...other } }), JSON.stringify(other)).toContain('cursor');
  }
  const { cut: _, ...uncut } = good;
  expect((await errorOfAsync(() => streamOf(64).seek(uncut))).kind).toBe('mismatch');
  expect(
    (
      await errorOfAsync(() =>
        streamOf(64).seek({
          ...uncut,
          draws: 0,
          sources: [
            { epoch: 0, documents: 0 },
            { epoch: 0, documents: 0 },
          ],
          cut,
        }),
      )
    ).kind,
  ).toBe('mismatch');
});

test('every byte of a cursor is in its digest, and what is no cursor is refused', async () => {
  const digest = cursorDigest(decodeCursor(CURSOR));
  for (let at = 0; at < CURSOR.length; ++at) {
    const bytes = CURSOR.slice();
    bytes[at]! ^= 1;
    if (refuses(() => decodeCursor(bytes))) continue;
    expect(cursorDigest(decodeCursor(bytes))).not.toBe(digest);
    // No byte of it can be another and still fit the stream.
    expect((await errorOfAsync(() => streamOf().seek(decodeCursor(bytes)))).kind, String(at)).toBe('mismatch');
  }
  for (let size = 0; size < CURSOR.length; ++size) expect(errorOf(() => decodeCursor(CURSOR.subarray(0, size))).kind).toBe('malformed');
  const random = new Random(37);
  for (let n = 0; n < 500; ++n) refuses(() => decodeCursor(random.mutate(CURSOR)));
});

test("every change of a corpus manifest's form is refused", () => {
  const text = Buffer.from(MANIFEST).toString();
  const free = /^\/sources\/\d\/(licence becomes|text_bytes becomes|share becomes)|^\/sources becomes \[\]|^\/sources\/1\/name becomes "x"/;
  for (const [what, changed] of jsonChanges(text)) {
    if (free.test(what) && !refuses(() => parseCorpusManifest(utf8(changed)))) continue;
    expect(
      refuses(() => parseCorpusManifest(utf8(changed))),
      what,
    ).toBe(true);
  }
  const bad: readonly (readonly [string, string])[] = [
    ['"documents":8', '"documents":9'],
    ['"chunk_bytes":4096', '"chunk_bytes":4097'],
    ['"chunk_bytes":4096', '"chunk_bytes":8192'],
    ['"token_bytes":2', '"token_bytes":4'],
    ['"separator":256', '"separator":257'],
    ['"vocab_size":257', '"vocab_size":65537'],
    ['"name":"code"', '"name":".code"'],
    ['"name":"code"', '"name":"a/b"'],
    ['"name":"code"', '"name":"manifest.json"'],
    ['"name":"code"', '"name":"edu"'],
    ['"name":"code"', '"name":"zzz"'],
    ['"share":5279', '"share":72057594037927937'],
    ['"share":5279', '"share":5279.0'],
    ['"share":5279', '"share":-1'],
    ['"share":5279', '"share":"5279"'],
    ['{', '{ '],
  ];
  for (const [from, to] of bad) {
    expect(text).toContain(from);
    expect(
      refuses(() => parseCorpusManifest(utf8(text.replace(from, to)))),
      to,
    ).toBe(true);
  }
  expect(parseCorpusManifest(utf8(text.replace('"share":5279', '"share":72057594037927936'))).sources[0]!.share).toBe(2n ** 56n);
  const random = new Random(41);
  for (let n = 0; n < 300; ++n) refuses(() => parseCorpusManifest(random.mutate(MANIFEST)));
});

test('shard files: docs/shards.md §9, and what is none', () => {
  const index = hex('4c53494e444558310200000000000000050000000000000000000000' + '03000000' + '05000000');
  const names = Uint8Array.from([
    ...utf8('LSNAMES1'),
    ...hex('0200000000000000' + '0300000000000000' + '00000000' + '01000000' + '03000000'),
    ...utf8('abc'),
  ]);
  const shard = { ...corpus.sources[0]!.shards[0]!, documents: 2, tokens: { ...corpus.sources[0]!.shards[0]!.tokens, count: 5 } };
  expect([...parseIndex(index, shard, 'index')]).toEqual([0, 3, 5]);
  expect([0, 1].map(parseNames(names, shard, 'names'))).toEqual(['a', 'bc']);
  for (const [bytes, parse] of [
    [index, parseIndex],
    [names, parseNames],
  ] as const) {
    for (let size = 0; size < bytes.length; ++size) expect(refuses(() => parse(bytes.subarray(0, size), shard, 'x'))).toBe(true);
    expect(refuses(() => parse(Uint8Array.from([...bytes, 0]), shard, 'x'))).toBe(true);
    const end = bytes === index ? bytes.length : 36; // the names' own bytes may be any
    for (let at = 0; at < end; ++at) {
      const changed = bytes.slice();
      changed[at]! ^= 0x80;
      expect(
        refuses(() => parse(changed, shard, 'x')),
        String(at),
      ).toBe(true);
    }
  }
  expect(sha256Hex(hex('00480069000001210000' + '01'))).toBe(sha256Hex(Uint8Array.of(0), hex('48006900000121000001')));
});
