// SPDX-License-Identifier: Apache-2.0
//
// The documents behind the steps of the fixture's run, against what `lockstep corpus trace` said of them and the texts in the tree; the step
// whose window was tampered with; and everything that can be wrong on the way.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { sha256Hex } from '../bytes';
import { parseRunManifest } from '../run_manifest';
import { chainAfter } from '../step_record';
import { checkpointOf, recordOf, runOver, SAMPLE, serve } from '../testing/corpus';
import { Fixture, FIXTURE } from '../testing/fixture';
import { canonical, errorOfAsync, failed, Random } from '../testing/tools';
import { DocumentsCache } from './cache';
import { parseCheckpointManifest } from './checkpoint_manifest';
import { DEFAULT_LIMITS, stepDocuments } from './step_documents';
import { fetchTokenizer } from './tokenizer';
import { CheckError } from '../errors';
import type { DocumentsLimits, DocumentsProgress, DocumentsRequest, StepDocuments } from '../types';

const fixture = new Fixture(FIXTURE);
const { manifest } = fixture.of('run')[0]!.payload;
const records = fixture.of('record').map(({ payload }) => payload.record);
const checkpoints = fixture.of('checkpoint').map(({ payload }) => payload);
const { cheatedStep } = fixture.file;

function documents(step: number, more: Partial<DocumentsRequest> = {}): Promise<StepDocuments> {
  return stepDocuments({ manifest, record: records[step]!, fetchArtifact: fixture.fetchArtifact, ...more });
}

test("the documents are those that the program names, and cursor and windows the record's", async () => {
  for (const [step, trace] of fixture.file.traces.entries()) {
    const found = await documents(step);
    expect(failed(found.checks)).toEqual(step === cheatedStep ? ['windows'] : []);
    expect(found.from).toEqual({ kind: 'beginning', step: 0, windowsWalked: 16 * step });
    expect([found.step, found.firstWindow, found.windows, found.seqLen]).toEqual([step, 16 * step, 16, 64]);
    expect(Buffer.from(found.nextCursor).toString('hex')).toBe((trace as unknown as { cursor_after: string }).cursor_after);
    const spans = trace.windows.flatMap(({ spans: ofWindow, window }) =>
      ofWindow.map((span) => [window - 16 * step, span.source, span.shard, span.document, span.begin, span.end, span.name]),
    );
    expect(found.spans.map((span) => [span.window, span.source, span.shard, span.document, span.begin, span.end, span.name])).toEqual(
      spans,
    );
    expect(found.spans.every(({ window, rank }) => rank === window % 4)).toBe(true);
  }
});

test('the text of the spans is that of the files', async () => {
  const tokenizer = await fetchTokenizer(manifest.tokenizer, fixture.fetchArtifact);
  let characters = 0;
  for (let step = 0; step < records.length; ++step) {
    const found = await documents(step);
    for (const span of found.spans) {
      const text = readFileSync(join(SAMPLE, span.name!));
      const ids = found.spanTokens(span);
      expect(ids.length).toBe(span.end - span.begin);
      const expected = Buffer.concat([text, Buffer.from('\xff')]).subarray(span.begin, span.end);
      expect(span.documentTokens).toBe(text.length + 1);
      const bytes = [...ids].filter((id) => !tokenizer.isSpecial(id)).flatMap((id) => [...tokenizer.tokenBytes(id)]);
      expect(Buffer.from(bytes).equals(span.end === span.documentTokens ? expected.subarray(0, -1 - 0) : expected)).toBe(true);
      characters += tokenizer.decode(ids).length;
    }
    for (let window = 0; window < found.windows; ++window) expect(found.tokens(window).length).toBe(65);
  }
  expect(characters).toBeGreaterThan(5000);
});

test('walks begin at the nearest checkpoint, or at a cursor at hand', async () => {
  expect(checkpoints.map(({ nextStep }) => nextStep)).toContain(3);
  for (let step = 0; step < records.length; ++step) {
    const nearest = Math.max(0, ...checkpoints.map(({ nextStep }) => nextStep).filter((next) => next <= step));
    const found = await documents(step, { checkpoints });
    expect(found.notes).toEqual([]);
    expect(found.from).toEqual({ kind: nearest > 0 ? 'checkpoint' : 'beginning', step: nearest, windowsWalked: 16 * (step - nearest) });
    expect(failed(found.checks)).toEqual(step === cheatedStep ? ['windows'] : []);
    if (step + 1 === records.length) continue;
    const next = await documents(step + 1, { cursors: [{ nextStep: step + 1, cursor: found.nextCursor }] });
    expect(next.from).toEqual({ kind: 'cursor', step: step + 1, windowsWalked: 0 });
    expect(next.cursorBefore).toBe(found.cursorAfter);
  }
});

test('a record that commits to another cursor or other windows is found out', async () => {
  const { cursor, windows } = records[0]!;
  const other = '00'.repeat(32);
  const look = async (record: DocumentsRequest['record']): Promise<string[]> => failed((await documents(0, { record })).checks);
  expect(await look(recordOf(0, cursor, windows))).toEqual([]);
  expect(await look(recordOf(0, other, windows))).toEqual(['cursor']);
  expect(await look(recordOf(0, cursor, other))).toEqual(['windows']);
  expect(await look(recordOf(1, cursor, windows))).toEqual(['cursor', 'windows']);
  // Another seed is another stream.
  const seeded = parseRunManifest(manifest.text.replace('"seed":42', '"seed":43'));
  expect(failed((await documents(0, { manifest: seeded })).checks)).toEqual(['cursor', 'windows']);
});

test('a changed byte of any file is found out, whatever it is', async () => {
  const random = new Random(43);
  fixture.fetched.length = 0;
  const good = await documents(4, { checkpoints });
  const used = new Set(fixture.fetched.map((name) => name.slice(0, 64)));
  expect(used.size).toBeGreaterThan(8);
  let refused = 0;
  for (const sha256 of used) {
    for (let n = 0; n < 12; ++n) {
      const artifacts = new Map(fixture.artifacts);
      const bytes = artifacts.get(sha256)!.slice();
      bytes[random.below(bytes.length)]! ^= 1 << random.below(8);
      artifacts.set(sha256, bytes);
      try {
        const found = await documents(4, { checkpoints, fetchArtifact: serve(artifacts) });
        // A token that the step does not read; a checkpoint that was not used; names that are left out. Never another answer.
        expect(failed(found.checks)).toEqual([]);
        expect(found.spans.map(({ name: _, ...rest }) => rest)).toEqual(good.spans.map(({ name: _, ...rest }) => rest));
        expect(found.spans.every(({ name }, i) => name === null || name === good.spans[i]!.name)).toBe(true);
      } catch (error) {
        expect(error).toBeInstanceOf(CheckError);
        expect((error as CheckError).kind).toBe('mismatch');
        ++refused;
      }
    }
  }
  expect(refused).toBeGreaterThan(30);
});

test("a checkpoint that is another's is not used, and the answer is the same", async () => {
  const plain = await documents(4);
  const made = (bytes: Uint8Array, nextStep = 4, chain?: string): Promise<StepDocuments> => {
    const sha256 = sha256Hex(bytes);
    const fetchArtifact = serve(new Map([...fixture.artifacts, [sha256, bytes]]));
    return documents(4, { checkpoints: [{ nextStep, manifest: sha256, chain }], fetchArtifact });
  };
  const cursor = (await documents(3)).nextCursor;
  const record = records[3]!;
  const good = checkpointOf(manifest, record, cursor);
  const used = await made(good, 4, chainAfter(record));
  expect([used.from.kind, used.notes]).toEqual(['checkpoint', []]);
  expect(used.spans).toEqual(plain.spans);
  const before = (await documents(2)).nextCursor;
  const wrongs: readonly (readonly [Promise<StepDocuments>, string])[] = [
    [made(good, 3), 'its step'],
    [made(good, 4, '00'.repeat(32)), 'chain'],
    [made(checkpointOf(manifest, recordOf(3, record.cursor, record.windows), cursor)), 'chain'],
    [made(checkpointOf({ ...manifest, runId: '00'.repeat(32) }, record, cursor)), 'run_id'],
    [made(checkpointOf(manifest, record, before)), 'cursor'],
    [made(good.subarray(1)), 'JSON'],
    [documents(4, { checkpoints: [{ nextStep: 4, manifest: '00'.repeat(32) }] }), '404'],
    [documents(4, { cursors: [{ nextStep: 4, cursor: before }] }), 'window'],
    [documents(4, { cursors: [{ nextStep: 4, cursor: cursor.subarray(1) }] }), 'cursor'],
  ];
  for (const [answer, why] of wrongs) {
    const found = await answer;
    expect(found.from.kind).toBe('beginning');
    expect(found.notes.length).toBe(1);
    expect(found.notes[0]).toContain(why);
    expect(found.spans).toEqual(plain.spans);
  }
});

test('checkpoint.json: the example of docs/checkpoint.md, and each claim', () => {
  const page = readFileSync(join(SAMPLE, '..', '..', '..', 'docs', 'checkpoint.md'), 'utf8');
  const text = /```json\n(\{.*\})\n```/.exec(page)![1]!;
  const read = parseCheckpointManifest(new TextEncoder().encode(text));
  expect([read.chain, Buffer.from(read.cursor).toString(), read.nextStep]).toEqual([
    'd2e58deebff0f7e2ad99793dc6a9d1d1e3fd2bb43c087997e57258a109973c6f',
    'cursor',
    0n,
  ]);
  for (let at = 0; at < text.length; ++at) {
    if (/"files".*/.exec(text)!.index < at && at < text.indexOf('"format"')) continue; // the files are the announcement's to name
    const changed = text.slice(0, at) + String.fromCharCode(text.charCodeAt(at) ^ 1) + text.slice(at + 1);
    expect(() => parseCheckpointManifest(new TextEncoder().encode(changed)), changed).toThrow(CheckError);
  }
});

test('what is too large is said, with the size', async () => {
  const refuse = async (limits: Partial<DocumentsLimits>, step = 5): Promise<CheckError> => {
    const error = await errorOfAsync(() => documents(step, { limits }));
    expect(error.kind).toBe('too_large');
    return error;
  };
  expect((await refuse({ walkDocuments: 2 })).message).toContain('checkpoint nearer');
  expect((await refuse({ walkBytes: 100 })).message).toContain('index');
  expect((await refuse({ tokenBytes: 4159 })).message).toContain('4160');
  expect((await refuse({ tokenBytes: 4160 }, 3)).message).toContain('tokens of the step');
  expect((await refuse({ manifestBytes: 100 })).message).toContain('corpus manifest');
  const unnamed = await documents(5, { limits: { namesBytes: 10 } });
  expect(unnamed.spans.every(({ name }) => name === null)).toBe(true);
  expect(unnamed.notes.length).toBeGreaterThan(0);
  expect(failed(unnamed.checks)).toEqual([]);
  // The paper's run, from its beginning, is not for a browser; with a cursor near it would be.
  const paper = runOver({ corpus: manifest.corpus, tokenizer: manifest.tokenizer, seqLen: 4096, batch: 1152 });
  const error = await errorOfAsync(() => documents(0, { manifest: paper, record: recordOf(80000, '00'.repeat(32), '00'.repeat(32)) }));
  expect(error.kind).toBe('too_large');
  expect(DEFAULT_LIMITS.walkDocuments).toBeGreaterThan(1e7);
});

test('steps outside the run, other tokenizers, answers of another length', async () => {
  const outside = recordOf(10 ** 6, '00'.repeat(32), '00'.repeat(32));
  expect((await errorOfAsync(() => documents(0, { record: outside }))).kind).toBe('mismatch');
  const huge = { ...outside, step: 2n ** 63n };
  expect((await errorOfAsync(() => documents(0, { record: huge }))).kind).toBe('mismatch');
  const other = parseRunManifest(manifest.text.replace(`"tokenizer":"${manifest.tokenizer}"`, `"tokenizer":"${'77'.repeat(32)}"`));
  expect((await errorOfAsync(() => documents(0, { manifest: other }))).message).toContain('tokenizer');
  const long: DocumentsRequest['fetchArtifact'] = async (sha256, range) => {
    const bytes = await fixture.fetchArtifact(sha256, range);
    return range === undefined ? bytes : Uint8Array.from([...bytes, 0]);
  };
  expect((await errorOfAsync(() => documents(0, { fetchArtifact: long }))).kind).toBe('mismatch');
});

test("the caller's errors are unavailable, whatever was thrown", async () => {
  for (const thrown of [new Error('404'), 'a text', undefined, new TypeError('Failed to fetch')]) {
    const error = await errorOfAsync(() => documents(0, { fetchArtifact: () => Promise.reject(thrown as Error) }));
    expect(error.kind).toBe('unavailable');
  }
  const sync = await errorOfAsync(() =>
    documents(0, {
      fetchArtifact: () => {
        throw new Error('at once');
      },
    }),
  );
  expect([sync.kind, sync.message]).toEqual(['unavailable', 'corpus manifest: at once']);
});

test('ends when the caller says so, wherever it is', async () => {
  const counting = { fetches: 0 };
  const count: DocumentsRequest['fetchArtifact'] = (sha256, range) => {
    ++counting.fetches;
    return fixture.fetchArtifact(sha256, range);
  };
  await documents(5, { fetchArtifact: count, checkpoints });
  const total = counting.fetches;
  for (let end = 0; end < total; ++end) {
    const abort = new AbortController();
    let left = end;
    const fetchArtifact: DocumentsRequest['fetchArtifact'] = (sha256, range, signal) => {
      expect(signal).toBe(abort.signal);
      if (left-- === 0) abort.abort();
      return fixture.fetchArtifact(sha256, range);
    };
    const error = await errorOfAsync(() => documents(5, { fetchArtifact, checkpoints, signal: abort.signal }));
    expect(error.kind, `${end} of ${total}`).toBe('cancelled');
  }
});

test('a cache saves fetching, forgets what does not fit, and changes no answer', async () => {
  const plain = await documents(4);
  const cache = new DocumentsCache();
  await documents(4, { cache });
  fixture.fetched.length = 0;
  const again = await documents(4, { cache });
  expect(again.spans).toEqual(plain.spans);
  expect(failed(again.checks)).toEqual([]);
  expect(again.bytesFetched).toBeLessThan(plain.bytesFetched);
  expect(fixture.fetched).not.toContain(manifest.corpus);
  const small = new DocumentsCache(100);
  const first = await documents(4, { cache: small });
  const second = await documents(4, { cache: small });
  expect(second.spans).toEqual(plain.spans);
  expect(second.bytesFetched).toBeGreaterThan(first.bytesFetched / 2);
});

test('progress is told', async () => {
  const told: DocumentsProgress[] = [];
  await documents(5, { checkpoints, onProgress: (progress) => told.push(progress) });
  expect(new Set(told.map(({ phase }) => phase))).toEqual(new Set(['manifest', 'cursor', 'walk', 'tokens', 'names']));
  for (const phase of ['walk', 'tokens'] as const) {
    const last = told.filter((progress) => progress.phase === phase).at(-1)!;
    expect(last.done).toBe(last.total);
    expect(last.total).toBeGreaterThan(0);
  }
});

test("a segment goes on with its parent's stream, and from its checkpoint", async () => {
  const parent = { chain: chainAfter(records[2]!), run_id: manifest.runId, step: 3, tokens: 3 * 1024 };
  const segment = parseRunManifest(canonical({ ...(JSON.parse(manifest.text) as object), parent }));
  const found = await documents(4, { manifest: segment });
  expect(failed(found.checks)).toEqual([]);
  expect(found.from.windowsWalked).toBe(64);
  const cursor = (await documents(2)).nextCursor;
  const bytes = checkpointOf(manifest, records[2]!, cursor);
  const from = await documents(4, {
    manifest: segment,
    checkpoints: [{ nextStep: 3, manifest: sha256Hex(bytes), chain: parent.chain }],
    fetchArtifact: serve(new Map([...fixture.artifacts, [sha256Hex(bytes), bytes]])),
  });
  expect([from.from.kind, from.from.windowsWalked, from.notes]).toEqual(['checkpoint', 16, []]);
  expect(failed(from.checks)).toEqual([]);
  expect((await errorOfAsync(() => documents(2, { manifest: segment }))).kind).toBe('mismatch');
});

test("spans and windows that are not the step's are an error", async () => {
  const found = await documents(0);
  for (const window of [-1, 16, 0.5]) expect(() => found.tokens(window)).toThrow(CheckError);
  expect(() => found.spanTokens({ ...found.spans[0]! })).toThrow(CheckError);
});
