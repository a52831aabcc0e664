// SPDX-License-Identifier: Apache-2.0
//
// Merkle trees of RFC 6962 over SHA-256, and the verifiers of RFC 9162 sections 2.1.3.2 and 2.1.4.2 (base/merkle.h). Sizes and indices
// are numbers up to 2^53 - 1, so there are no bitwise operators here: they would cut to 32 bits.
import { digestBytes, sha256, toHex } from './bytes';
import { CheckError } from './errors';
import type { Hex } from './types';

const LEAF = Uint8Array.of(0);
const NODE = Uint8Array.of(1);

/** Of several parts, as if they were one byte string. */
export function leafDigest(...parts: readonly Uint8Array[]): Uint8Array {
  return sha256(LEAF, ...parts);
}
export function nodeDigest(left: Uint8Array, right: Uint8Array): Uint8Array {
  return sha256(NODE, left, right);
}

/** The root over leaves that come one by one: one hash for each complete subtree on the right edge. */
export class MerkleFrontier {
  private readonly peaks: { readonly hash: Uint8Array; readonly height: number }[] = [];

  append(leaf: Uint8Array): void {
    let peak = { hash: leaf, height: 0 };
    for (let last = this.peaks.at(-1); last !== undefined && last.height === peak.height; last = this.peaks.at(-1)) {
      this.peaks.pop();
      peak = { hash: nodeDigest(last.hash, peak.hash), height: peak.height + 1 };
    }
    this.peaks.push(peak);
  }
  root(): Uint8Array {
    const last = this.peaks.at(-1);
    if (last === undefined) return sha256();
    return this.peaks.slice(0, -1).reduceRight((hash, peak) => nodeDigest(peak.hash, hash), last.hash);
  }
}

export function merkleRoot(leaves: Iterable<Uint8Array>): Uint8Array {
  const frontier = new MerkleFrontier();
  for (const leaf of leaves) frontier.append(leaf);
  return frontier.root();
}

/** For each sibling on the way from node `index` up to the root of a level whose last node is `last`: whether it stands on the left. */
function siblings(index: number, last: number): boolean[] {
  const left: boolean[] = [];
  while (last > 0) {
    if (index % 2 === 1) left.push(true);
    else if (index < last) left.push(false);
    index = Math.floor(index / 2);
    last = Math.floor(last / 2);
  }
  return left;
}

function checkSizes(where: string, ...sizes: readonly number[]): void {
  for (const size of sizes) {
    if (!Number.isSafeInteger(size) || size < 0) {
      throw new CheckError('proof', where, { expected: 'sizes from 0 to 2^53 - 1', found: String(size) });
    }
  }
}

function checkLength(where: string, found: number, expected: number): void {
  if (found !== expected) throw new CheckError('proof', where, { expected: `a proof of ${expected} hashes`, found: String(found) });
}

function checkRoot(where: string, which: string, computed: Uint8Array, root: Hex): void {
  if (toHex(computed) !== root) {
    throw new CheckError('proof', where, { expected: `the ${which} ${root}`, found: `that the proof leads to ${toHex(computed)}` });
  }
}

/** That `leaf` (a leaf hash) is leaf `index` of the tree of `size` leaves with this root. Throws "proof". */
export function verifyInclusion(leaf: Hex, index: number, size: number, proof: readonly Hex[], root: Hex): void {
  const where = `inclusion of leaf ${index} in a tree of ${size}`;
  checkSizes(where, index, size);
  if (index >= size) throw new CheckError('proof', where, 'no such leaf');
  const left = siblings(index, size - 1);
  checkLength(where, proof.length, left.length);
  let hash = digestBytes(leaf, where);
  for (const [i, onLeft] of left.entries()) {
    const sibling = digestBytes(proof[i]!, where);
    hash = onLeft ? nodeDigest(sibling, hash) : nodeDigest(hash, sibling);
  }
  checkRoot(where, 'root', hash, root);
}

/** That the tree of `newSize` leaves with `newRoot` begins with the tree of `oldSize` leaves with `oldRoot`. Throws "proof". */
export function verifyConsistency(oldSize: number, newSize: number, proof: readonly Hex[], oldRoot: Hex, newRoot: Hex): void {
  const where = `consistency of trees of ${oldSize} and ${newSize}`;
  checkSizes(where, oldSize, newSize);
  if (oldSize > newSize) throw new CheckError('proof', where, 'the old tree is the larger');
  if (oldSize === 0 || oldSize === newSize) {
    checkLength(where, proof.length, 0);
    if (oldSize === 0) checkRoot(where, 'old root', sha256(), oldRoot);
    else checkRoot(where, 'new root', digestBytes(oldRoot, where), newRoot);
    return;
  }
  // The way up from the largest complete subtree that ends where the old tree does. It heads the proof, unless it is the whole old tree.
  let index = oldSize - 1;
  let last = newSize - 1;
  let height = 0;
  for (; index % 2 === 1; ++height) {
    index = Math.floor(index / 2);
    last = Math.floor(last / 2);
  }
  const head = oldSize === 2 ** height ? 0 : 1;
  const left = siblings(index, last);
  checkLength(where, proof.length, head + left.length);
  let oldHash = digestBytes(head === 0 ? oldRoot : proof[0]!, where);
  let newHash = oldHash;
  for (const [i, onLeft] of left.entries()) {
    const sibling = digestBytes(proof[head + i]!, where);
    if (onLeft) oldHash = nodeDigest(sibling, oldHash);
    newHash = onLeft ? nodeDigest(sibling, newHash) : nodeDigest(newHash, sibling);
  }
  checkRoot(where, 'old root', oldHash, oldRoot);
  checkRoot(where, 'new root', newHash, newRoot);
}
