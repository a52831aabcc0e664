// SPDX-License-Identifier: Apache-2.0
//
// The draws of docs/stream.md §5, and Philox with integers of any length.
import { expect, test } from 'vitest';
import { sha256, utf8 } from '../bytes';
import { Pace } from '../pace';
import { Random } from '../testing/tools';
import { RandomStream } from './random';

const MASK = 0xffffffffn;
const EDU = 'e613bb442bf089c035920266fa19f94a0972c896f212eda804d265c3b3f0e3f9';
const CODE = Buffer.from(sha256(utf8('code'))).toString('hex');

function integer(seed: bigint, name: string, index: bigint): bigint {
  const stream = Buffer.from(sha256(utf8(name))).readBigUInt64LE();
  let c = [index & MASK, index >> 32n, stream & MASK, stream >> 32n];
  let [k0, k1] = [seed & MASK, seed >> 32n];
  for (let round = 0; round < 10; ++round) {
    const [a, b] = [0xd2511f53n * c[0]!, 0xcd9e8d57n * c[2]!];
    c = [(b >> 32n) ^ c[1]! ^ k0, b & MASK, (a >> 32n) ^ c[3]! ^ k1, a & MASK];
    k0 = (k0 + 0x9e3779b9n) & MASK;
    k1 = (k1 + 0xbb67ae85n) & MASK;
  }
  return c[0]! | (c[1]! << 32n);
}
function drawn(stream: RandomStream, index: number): bigint {
  stream.draw(index);
  return BigInt(stream.low) | (BigInt(stream.high) << 32n);
}

test('the draws of the page', () => {
  const mix = new RandomStream(42, 'data/mix');
  expect([0, 1, 2, 3, 4, 5].map((n) => drawn(mix, n))).toEqual([
    0xbef3efdca95629b1n,
    0xbbdd3ec621320e8cn,
    0x5225ef1591f29d82n,
    0x8b69e7bbcb94c97fn,
    0x4b941032013f5c61n,
    0xfc8ea3f48e69daabn,
  ]);
  expect(drawn(new RandomStream(42, `data/${EDU}/epoch.0/shards`), 1)).toBe(0x8b260b1984d25f81n);
});

test('the orders of the page', async () => {
  const order = async (name: string, n: number): Promise<number[]> => [
    ...(await new RandomStream(42, `data/${name}`).permutation(n, new Pace(undefined))),
  ];
  expect(await order(`${EDU}/epoch.0/shards`, 2)).toEqual([0, 1]);
  expect(await order(`${EDU}/epoch.0/shard.0/documents`, 2)).toEqual([0, 1]);
  expect(await order(`${EDU}/epoch.0/shard.1/documents`, 2)).toEqual([1, 0]);
  expect(await order(`${CODE}/epoch.0/shards`, 3)).toEqual([2, 1, 0]);
  expect(await order(`${CODE}/epoch.0/shard.2/documents`, 3)).toEqual([2, 0, 1]);
});

test('draws and bounded draws are those of integers of any length', () => {
  const random = new Random(23);
  const below = (n: number): number => random.below(n);
  for (let n = 0; n < 3000; ++n) {
    const seed = below(2 ** 21) * 2 ** 32 + below(2 ** 32);
    const index = n % 3 === 0 ? below(1000) : below(2 ** 21) * 2 ** 32 + below(2 ** 32);
    const stream = new RandomStream(seed, `stream ${n}`);
    const expected = integer(BigInt(seed), `stream ${n}`, BigInt(index));
    expect(drawn(stream, index)).toBe(expected);
    for (const bound of [1, 2, 3, 2 ** 28, 2 ** 32, 2 ** 32 - 1, 1 + below(2 ** 28)]) {
      expect(stream.below(index, bound)).toBe(Number((expected * BigInt(bound)) >> 64n));
    }
  }
});

test('a permutation has each number once, and ends when the caller says so', async () => {
  const order = await new RandomStream(1, 'x').permutation(100000, new Pace(undefined));
  expect(new Set(order).size).toBe(100000);
  expect(await new RandomStream(1, 'x').permutation(0, new Pace(undefined))).toEqual(new Uint32Array(0));
  expect([...(await new RandomStream(1, 'x').permutation(1, new Pace(undefined)))]).toEqual([0]);
  const abort = new AbortController();
  abort.abort();
  await expect(new RandomStream(1, 'x').permutation(100, new Pace(abort.signal))).rejects.toMatchObject({ kind: 'cancelled' });
});
