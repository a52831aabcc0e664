// SPDX-License-Identifier: Apache-2.0
//
// The worked examples of docs/step_record.md, and what a reader refuses.
import { expect, test } from 'vitest';
import { concat, toHex, utf8 } from './bytes';
import { leafDigest, merkleRoot } from './merkle';
import { chainAfter, compareRecords, decodeStepRecord, decodeTranscriptLeaf, genesisChain, stepRecordDigest } from './step_record';
import { errorOf, hex, Random, refuses } from './testing/tools';

const EXAMPLE = hex(
  '4c4b535201000000080706050403020118171615141312112827262524232221' +
    '3837363534333231' +
    ['a1', 'a2', 'a3', 'a4', 'a5', 'a6', 'a7'].map((byte) => byte.repeat(32)).join('') +
    '0000803f000000c00000807f0000003f02000000444342415453525100000000' +
    '6867666564636261' +
    'a8'.repeat(32),
);

function changed(offset: number, bytes: readonly number[]): Uint8Array {
  const copy = EXAMPLE.slice();
  copy.set(bytes, offset);
  return copy;
}

test('the worked example', () => {
  const record = decodeStepRecord(EXAMPLE);
  expect(record).toMatchObject({
    step: 0x0102030405060708n,
    tokensBefore: 0x1112131415161718n,
    tokens: 0x2122232425262728n,
    updates: 0x3132333435363738n,
    parameters: 'a1'.repeat(32),
    firstMoment: 'a2'.repeat(32),
    secondMoment: 'a3'.repeat(32),
    gradient: 'a4'.repeat(32),
    windows: 'a5'.repeat(32),
    transcript: 'a6'.repeat(32),
    cursor: 'a7'.repeat(32),
    loss: 1,
    zLoss: -2,
    gradientNorm: Infinity,
    learningRate: 0.5,
    outcome: 2,
    skipsLeft: 0x41424344,
    events: 0x51525354,
    eventsSince: 0x6162636465666768n,
    previousChain: 'a8'.repeat(32),
  });
  expect(stepRecordDigest(record)).toBe('bdabc35eb61ccfceb08cb46f63463785a13cc18b08d6a9ab41f1be5f23bed40d');
  expect(chainAfter(record)).toBe('c2cfdb6e9b2b19a19036081dcce43f5731ab12fcc3f40bf532962b5883642ff9');
});

test('a record keeps its bytes, whatever becomes of those that it was read from', () => {
  const bytes = EXAMPLE.slice();
  const record = decodeStepRecord(bytes);
  bytes.fill(0);
  expect(stepRecordDigest(record)).toBe('bdabc35eb61ccfceb08cb46f63463785a13cc18b08d6a9ab41f1be5f23bed40d');
});

test('each rule of the reader', () => {
  for (const bytes of [
    EXAMPLE.subarray(1),
    concat([EXAMPLE, Uint8Array.of(0)]),
    new Uint8Array(),
    changed(0, [0]),
    changed(3, [0]),
    changed(4, [2]),
    changed(7, [1]),
    changed(280, [4]),
    changed(283, [1]),
    changed(292, [1]),
    changed(295, [128]),
  ]) {
    expect(errorOf(() => decodeStepRecord(bytes)).kind).toBe('malformed');
  }
});

test('every byte is in the digest, the chain, and, unless the reader refuses it, the comparison', () => {
  const record = decodeStepRecord(EXAMPLE);
  let compared = 0;
  for (let at = 0; at < EXAMPLE.length; ++at) {
    const bytes = changed(at, [EXAMPLE[at]! ^ 1]);
    if (refuses(() => decodeStepRecord(bytes))) continue;
    const other = decodeStepRecord(bytes);
    expect(chainAfter(other)).not.toBe(chainAfter(record));
    expect(stepRecordDigest(other)).not.toBe(stepRecordDigest(record));
    expect(compareRecords(record, other), String(at)).not.toBeNull();
    ++compared;
  }
  expect(compared).toBe(336 - 8 - 3 - 4); // magic and version, the rest of outcome, zero
  expect(compareRecords(record, decodeStepRecord(EXAMPLE))).toBeNull();
});

test('the first difference in the order of computing, written as audit/verdict.cc writes it', () => {
  const record = decodeStepRecord(EXAMPLE);
  const two = EXAMPLE.slice();
  two[45] = 0; // parameters
  two[170] = 0; // windows
  expect(compareRecords(record, decodeStepRecord(two))).toMatchObject({ field: 'windows', expected: 'a5'.repeat(32) });
  const loss = (bits: readonly number[]): string | undefined => compareRecords(record, decodeStepRecord(changed(264, bits)))?.found;
  expect(compareRecords(record, decodeStepRecord(changed(264, [1])))?.expected).toBe('1 (0x3f800000)');
  expect(loss([1, 0, 0x80, 0x3f])).toBe('1.00000012 (0x3f800001)');
  expect(loss([0, 0, 0, 0x80])).toBe('-0 (0x80000000)');
  expect(loss([0, 0, 0x80, 0xff])).toBe('-inf (0xff800000)');
  expect(loss([1, 0, 0xc0, 0x7f])).toBe('nan (0x7fc00001)');
  expect(loss([0x17, 0xb7, 0xd1, 0x38])).toBe('9.99999975e-05 (0x38d1b717)');
  expect(loss([0x17, 0xb7, 0xd1, 0x58])).toBe('1.84467436e+15 (0x58d1b717)');
  expect(loss([0x28, 0x6b, 0x6e, 0x4e])).toBe('1e+09 (0x4e6e6b28)');
  expect(loss([0xff, 0xff, 0x7f, 0x4b])).toBe('16777215 (0x4b7fffff)');
  expect(loss([1, 0, 0, 0])).toBe('1.40129846e-45 (0x00000001)');
});

test('chains of docs/checkpoint.md and transcript leaves of docs/step_record.md', () => {
  const fill = (byte: string): string => byte.repeat(32);
  expect(
    genesisChain(fill('1d'), {
      parameters: fill('a1'),
      firstMoment: fill('a2'),
      secondMoment: fill('a3'),
      cursor: '46a4eebd20d881ecfc0ecb54f6d8346524fadb143726d256b1a045303fc67717',
    }),
  ).toBe('d2e58deebff0f7e2ad99793dc6a9d1d1e3fd2bb43c087997e57258a109973c6f');
  const leaf = (rank: string, microBatch: string): Uint8Array =>
    hex(rank + microBatch + fill('b1') + fill('b2') + '02000000' + fill('c0') + fill('c1') + fill('d0') + fill('d1'));
  const leaves = [leaf('00000000', '00000000'), leaf('00000000', '01000000'), leaf('01000000', '00000000')];
  expect(toHex(leafDigest(leaves[0]!))).toBe('e1f8730e15b51e924c37db939c0f3fc704f75fe2e238b60e5dd0258e24ce5a92');
  expect(toHex(merkleRoot(leaves.map((bytes) => leafDigest(bytes))))).toBe(
    'f4428015ba9cf225fdef72799dd6c4525b3f604bae88d25277ead98028500d44',
  );
  expect(decodeTranscriptLeaf(leaves[2]!)).toEqual({
    rank: 1,
    microBatch: 0,
    losses: fill('b1'),
    zLosses: fill('b2'),
    residual: [fill('c0'), fill('c1')],
    dresidual: [fill('d0'), fill('d1')],
  });
  const good = leaves[0]!;
  for (const bytes of [good.subarray(1), concat([good, Uint8Array.of(0)]), good.subarray(0, 76), utf8('')]) {
    expect(errorOf(() => decodeTranscriptLeaf(bytes)).kind).toBe('malformed');
  }
  for (const boundaries of [0, 1, 3, 4098, 0xff]) {
    const bytes = good.slice();
    new DataView(bytes.buffer).setUint32(72, boundaries, true);
    expect(errorOf(() => decodeTranscriptLeaf(bytes)).kind, String(boundaries)).toBe('malformed');
  }
});

test("random changes throw nothing but the library's error", () => {
  const random = new Random(5);
  for (let n = 0; n < 2000; ++n) {
    const bytes = random.mutate(EXAMPLE);
    refuses(() => compareRecords(decodeStepRecord(EXAMPLE), decodeStepRecord(bytes)));
    refuses(() => decodeTranscriptLeaf(bytes));
  }
});
