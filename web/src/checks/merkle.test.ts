// SPDX-License-Identifier: Apache-2.0
//
// The vectors of the Certificate Transparency reference code (as in base/merkle_test.cc), the recursive definitions of RFC 6962 written
// out, and every single-step forgery of every proof of small trees.
import { expect, test } from 'vitest';
import { toHex, utf8 } from './bytes';
import { leafDigest, MerkleFrontier, merkleRoot, nodeDigest, verifyConsistency, verifyInclusion } from './merkle';
import { errorOf, hex, refuses } from './testing/tools';
import type { Hex } from './types';

const LEAVES = ['', '00', '10', '2021', '3031', '40414243', '5051525354555657', '606162636465666768696a6b6c6d6e6f'].map((leaf) =>
  leafDigest(hex(leaf)),
);
const ROOTS = [
  '6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d',
  'fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125',
  'aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77',
  'd37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7',
  '4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4',
  '76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef',
  'ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c',
  '5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328',
];
const EMPTY = 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855';
const FIRST = [
  '96a296d224f285c67bee93c30f8a309157f0daa35dc5b87e410b78630a09cfc7',
  '5f083f0a1a33ca076a95279832580db3e0ef4584bdff1f54c8a360f50de3031e',
  '6b47aaf29ee3c2af9af889bc1fb9254dabd31177f16232dd6aab035ca39bf6e4',
];
const FIFTH = [
  'bc1a0643b12e4d2d7c77918f44e0f4f79a838b6cf9ec5b5c283e1f4d88599e6b',
  'ca854ea128ed050b41b35ffc1b87b8eb2bde461e9e3b5596ece6b9d5975a0ae0',
  'd37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7',
];
const SIX_TO_EIGHT = [
  '0ebc5d3437fbe2db158b9f126a1d118e308181031d0a949f8dededebc558ef6a',
  'ca854ea128ed050b41b35ffc1b87b8eb2bde461e9e3b5596ece6b9d5975a0ae0',
  'd37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7',
];

type Hashes = readonly Uint8Array[];

// RFC 6962 sections 2.1, 2.1.1 and 2.1.2, word for word.
function split(n: number): number {
  let k = 1;
  while (2 * k < n) k *= 2;
  return k;
}
function root(d: Hashes): Uint8Array {
  if (d.length <= 1) return d[0] ?? merkleRoot([]);
  const k = split(d.length);
  return nodeDigest(root(d.slice(0, k)), root(d.slice(k)));
}
function path(m: number, d: Hashes): Hex[] {
  if (d.length === 1) return [];
  const k = split(d.length);
  return m < k ? [...path(m, d.slice(0, k)), toHex(root(d.slice(k)))] : [...path(m - k, d.slice(k)), toHex(root(d.slice(0, k)))];
}
function subproof(m: number, d: Hashes, known: boolean): Hex[] {
  if (m === d.length) return known ? [] : [toHex(root(d))];
  const k = split(d.length);
  if (m <= k) return [...subproof(m, d.slice(0, k), known), toHex(root(d.slice(k)))];
  return [...subproof(m - k, d.slice(k), false), toHex(root(d.slice(0, k)))];
}
const many: Hashes = Array.from({ length: 33 }, (_, i) => leafDigest(utf8(String(i))));

function flip(hash: Hex, bit: number): Hex {
  const bytes = hex(hash);
  bytes[bit >> 3]! ^= 1 << (bit & 7);
  return toHex(bytes);
}
/** A bit flipped, two hashes swapped, one left out, doubled, or added at either end. */
function forgeries(proof: readonly Hex[]): Hex[][] {
  const result = [
    [...proof, EMPTY],
    [EMPTY, ...proof],
  ];
  for (const [i, hash] of proof.entries()) {
    for (const bit of [0, 100, 255]) result.push(proof.map((other, k) => (k === i ? flip(other, bit) : other)));
    result.push(
      proof.filter((_, k) => k !== i),
      [...proof.slice(0, i), hash, ...proof.slice(i)],
    );
    if (i > 0 && proof[i - 1] !== hash) result.push([...proof.slice(0, i - 1), hash, proof[i - 1]!, ...proof.slice(i + 1)]);
  }
  return result;
}

test('published roots and proofs', () => {
  expect(toHex(merkleRoot([]))).toBe(EMPTY);
  const frontier = new MerkleFrontier();
  for (const [i, leaf] of LEAVES.entries()) {
    frontier.append(leaf);
    expect(toHex(frontier.root())).toBe(ROOTS[i]);
    expect(toHex(root(LEAVES.slice(0, i + 1)))).toBe(ROOTS[i]);
  }
  verifyInclusion(toHex(LEAVES[0]!), 0, 8, FIRST, ROOTS[7]!);
  verifyInclusion(toHex(LEAVES[5]!), 5, 8, FIFTH, ROOTS[7]!);
  verifyConsistency(1, 8, FIRST, ROOTS[0]!, ROOTS[7]!);
  verifyConsistency(6, 8, SIX_TO_EIGHT, ROOTS[5]!, ROOTS[7]!);
});

test('proofs of the definition hold, and no forgery does', () => {
  for (let size = 1; size <= 17; ++size) {
    const tree = many.slice(0, size);
    const top = toHex(root(tree));
    expect(toHex(merkleRoot(tree))).toBe(top);
    for (let index = 0; index < size; ++index) {
      const proof = path(index, tree);
      const leaf = toHex(tree[index]!);
      verifyInclusion(leaf, index, size, proof, top);
      for (const forged of forgeries(proof)) expect(errorOf(() => verifyInclusion(leaf, index, size, forged, top)).kind).toBe('proof');
      expect(errorOf(() => verifyInclusion(flip(leaf, 3), index, size, proof, top)).kind).toBe('proof');
      expect(errorOf(() => verifyInclusion(leaf, index, size, proof, flip(top, 3))).kind).toBe('proof');
      for (let other = 0; other < size; ++other) {
        if (other !== index) expect(refuses(() => verifyInclusion(leaf, other, size, proof, top))).toBe(true);
      }
    }
  }
});

test('consistency of the definition holds, and no forgery does', () => {
  for (let size = 1; size <= 17; ++size) {
    const top = toHex(root(many.slice(0, size)));
    for (let old = 1; old <= size; ++old) {
      const before = toHex(root(many.slice(0, old)));
      const proof = subproof(old, many.slice(0, size), true);
      verifyConsistency(old, size, proof, before, top);
      for (const forged of forgeries(proof)) expect(refuses(() => verifyConsistency(old, size, forged, before, top))).toBe(true);
      expect(refuses(() => verifyConsistency(old, size, proof, flip(before, 9), top))).toBe(true);
      expect(refuses(() => verifyConsistency(old, size, proof, before, flip(top, 9)))).toBe(true);
      expect(refuses(() => verifyConsistency(size + 1, size, proof, before, top))).toBe(true);
    }
    verifyConsistency(0, size, [], EMPTY, top);
    expect(refuses(() => verifyConsistency(0, size, [], top, top))).toBe(true);
    expect(refuses(() => verifyConsistency(0, size, [EMPTY], EMPTY, top))).toBe(true);
  }
});

test('sizes beyond 32 bits, and those that are none', () => {
  // The path of the last leaf of 2^40 + 1 is the one hash on its left.
  const [a, b] = [leafDigest(utf8('a')), leafDigest(utf8('b'))];
  verifyInclusion(toHex(b), 2 ** 40, 2 ** 40 + 1, [toHex(a)], toHex(nodeDigest(a, b)));
  verifyConsistency(2 ** 40, 2 ** 40 + 1, [toHex(b)], toHex(a), toHex(nodeDigest(a, b)));
  for (const bad of [-1, 0.5, NaN, 2 ** 53]) {
    expect(errorOf(() => verifyInclusion(toHex(a), bad, 8, [], toHex(a))).kind).toBe('proof');
    expect(errorOf(() => verifyInclusion(toHex(a), 0, bad, [], toHex(a))).kind).toBe('proof');
    expect(errorOf(() => verifyConsistency(bad, 8, [], toHex(a), toHex(a))).kind).toBe('proof');
  }
  expect(errorOf(() => verifyInclusion('x', 0, 1, [], toHex(a))).kind).toBe('malformed');
  expect(errorOf(() => verifyInclusion(toHex(a), 0, 2, ['X'.repeat(64)], toHex(a))).kind).toBe('malformed');
});
