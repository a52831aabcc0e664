// SPDX-License-Identifier: Apache-2.0
//
// Tokenizer files: the sample of tests/data, whose ids other programs gave, the example of docs/tokenizer.md, and each rule.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { sha256Hex, toBase64, utf8 } from '../bytes';
import { ROOT } from '../testing/corpus';
import { errorOf, errorOfAsync, Random, refuses } from '../testing/tools';
import { fetchTokenizer, parseTokenizer } from './tokenizer';

const DATA = join(ROOT, 'tests', 'data', 'tokenizer');
const SAMPLE = new Uint8Array(readFileSync(join(DATA, 'sample.tokenizer')));

function file(
  tokens: readonly string[],
  special = ['<end>'],
  head: Partial<Record<'version' | 'split' | 'tokens' | 'special' | 'end', string>> = {},
): Uint8Array {
  const entry = (text: string): string => toBase64(Uint8Array.from(Buffer.from(text, 'latin1')));
  return utf8(
    [
      `lockstep-tokenizer ${head.version ?? '1'}`,
      `split ${head.split ?? 'llama3-unicode14'}`,
      `tokens ${head.tokens ?? tokens.length}`,
      `special ${head.special ?? special.length}`,
      `end-of-text ${head.end ?? tokens.length}`,
      ...tokens.map(entry),
      ...special.map(entry),
      '',
    ].join('\n'),
  );
}
const BYTES = Array.from({ length: 256 }, (_, byte) => String.fromCharCode(byte));

test('the example of the page', () => {
  const bytes = file([...BYTES, 'es', 'est', 'lo', 'low', ' n', ' low'], ['<end>']);
  expect(bytes.length).toBeGreaterThan(1300);
  const tokenizer = parseTokenizer(bytes);
  expect([tokenizer.vocabSize, tokenizer.endOfText]).toEqual([263, 262]);
  expect(tokenizer.decode([259, 257, 260, 101, 119, 101, 114])).toBe('lowest newer');
  expect(tokenizer.decode([259, 262, 257])).toBe('lowest');
  expect(tokenizer.decode([259, 262, 257], { special: true })).toBe('low<end>est');
});

test('ids that other tokenizers gave are read back as the text', () => {
  const tokenizer = parseTokenizer(SAMPLE);
  expect(tokenizer.sha256).toBe(sha256Hex(SAMPLE));
  const { cases } = JSON.parse(readFileSync(join(DATA, 'peer_ids.json'), 'utf8')) as { cases: { text: string; ids: number[] }[] };
  expect(cases.length).toBeGreaterThan(20);
  for (const { text, ids } of cases) expect(tokenizer.decode(ids)).toBe(text);
  expect(tokenizer.decode([72, 649, 111, 44, 854, 437, 33])).toBe('Hello, world!');
  expect(tokenizer.decode([0xff, 0x41])).toBe('\ufffdA');
});

test('ids beyond the vocabulary are an error; bytes are copies', () => {
  const tokenizer = parseTokenizer(SAMPLE);
  for (const id of [1024, -1, 0.5]) expect(errorOf(() => tokenizer.decode([id])).kind).toBe('malformed');
  tokenizer.tokenBytes(65).fill(0);
  expect(tokenizer.decode([65])).toBe('A');
  expect([tokenizer.isSpecial(1021), tokenizer.isSpecial(1022), tokenizer.isSpecial(1024)]).toEqual([false, true, false]);
});

test('each rule of the file', () => {
  expect(refuses(() => parseTokenizer(file(BYTES)))).toBe(false);
  expect(refuses(() => parseTokenizer(file([...BYTES].reverse())))).toBe(false);
  const bad: readonly Uint8Array[] = [
    new Uint8Array(),
    file(BYTES).slice(0, -1),
    Uint8Array.from([...file(BYTES), 10]),
    file(BYTES, ['<end>'], { version: '2' }),
    file(BYTES, ['<end>'], { split: 'llama3-unicode15' }),
    file(BYTES, ['<end>'], { tokens: '0256' }),
    file(BYTES, ['<end>'], { tokens: '255' }),
    file(BYTES, ['<end>'], { tokens: '257' }),
    file(BYTES, ['<end>'], { tokens: '-1' }),
    file(BYTES, ['<end>'], { special: '0' }),
    file(BYTES, ['<end>'], { special: '2' }),
    file(BYTES, ['<end>'], { end: '255' }),
    file(BYTES, ['<end>'], { end: '257' }),
    file(BYTES, ['<end>'], { tokens: '1048576' }),
    file(BYTES.slice(1)),
    file([...BYTES.slice(1), 'ab', '\0']),
    file([...BYTES, 'a']),
    file([...BYTES, 'ab', 'ab']),
    file([...BYTES, 'ab'], ['ab']),
    file([...BYTES, '']),
    file([...BYTES, 'x'.repeat(1025)]),
    file(BYTES, ['\xff']),
    utf8(Buffer.from(file(BYTES)).toString().replaceAll('\n', '\r\n')),
    utf8(Buffer.from(file(BYTES)).toString().replace('AQ==', 'AQ')),
  ];
  for (const [i, bytes] of bad.entries()) expect(errorOf(() => parseTokenizer(bytes)).kind, String(i)).toBe('malformed');
  expect(refuses(() => parseTokenizer(file([...BYTES, 'x'.repeat(1024)], ['\xc3\xa9'])))).toBe(false);
});

test('a tokenizer is fetched by its digest', async () => {
  const bytes = file(BYTES);
  expect((await fetchTokenizer(sha256Hex(bytes), () => Promise.resolve(bytes))).vocabSize).toBe(257);
  for (let at = 0; at < bytes.length; at += 97) {
    const changed = bytes.map((byte, i) => (i === at ? byte ^ 1 : byte));
    expect((await errorOfAsync(() => fetchTokenizer(sha256Hex(bytes), () => Promise.resolve(changed)))).kind).toBe('mismatch');
  }
  expect((await errorOfAsync(() => fetchTokenizer('00'.repeat(32), () => Promise.reject(new Error('404'))))).kind).toBe('unavailable');
});

test("random changes throw nothing but the library's error", () => {
  const random = new Random(29);
  const good = file(BYTES);
  for (let n = 0; n < 500; ++n) refuses(() => parseTokenizer(random.mutate(good)));
});
