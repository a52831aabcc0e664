// SPDX-License-Identifier: Apache-2.0
//
// The draws of docs/stream.md §1: Philox4x32-10 by (seed, stream, index), bounded integers and permutations, without a 64-bit type:
// numbers are pairs of 32-bit halves, and products are put together from 16-bit ones.
import { sha256, utf8 } from '../bytes';
import type { Pace } from '../pace';

const TWO_32 = 2 ** 32;
const M0 = 0xd2511f53;
const M1 = 0xcd9e8d57;
const M0_LOW = M0 & 0xffff;
const M0_HIGH = M0 >>> 16;
const M1_LOW = M1 & 0xffff;
const M1_HIGH = M1 >>> 16;
const ROUNDS = 10;
/** Exchanges between looks at the clock. */
const BLOCK = 1 << 14;

/** The draws of one stream of one seed. */
export class RandomStream {
  /** The halves of the integer drawn last. */
  low = 0;
  high = 0;
  private readonly seedLow: number;
  private readonly seedHigh: number;
  private readonly streamLow: number;
  private readonly streamHigh: number;

  /** seed: 0 to 2^53 - 1. */
  constructor(seed: number, name: string) {
    this.seedLow = seed >>> 0;
    this.seedHigh = Math.floor(seed / TWO_32);
    const hash = sha256(utf8(name));
    const view = new DataView(hash.buffer, hash.byteOffset);
    this.streamLow = view.getUint32(0, true);
    this.streamHigh = view.getUint32(4, true);
  }

  /** Draws Integer(seed, stream, index); index: 0 to 2^53 - 1. */
  draw(index: number): void {
    let c0 = index >>> 0;
    let c1 = Math.floor(index / TWO_32) >>> 0;
    let c2 = this.streamLow;
    let c3 = this.streamHigh;
    let k0 = this.seedLow;
    let k1 = this.seedHigh;
    for (let round = 0; round < ROUNDS; ++round) {
      const low0 = c0 & 0xffff;
      const high0 = c0 >>> 16;
      const a0 = (Math.imul(high0, M0_LOW) >>> 0) + (Math.imul(low0, M0_LOW) >>> 16);
      const b0 = (Math.imul(low0, M0_HIGH) >>> 0) + (a0 & 0xffff);
      const top0 = Math.imul(high0, M0_HIGH) + (a0 >>> 16) + (b0 >>> 16);
      const low2 = c2 & 0xffff;
      const high2 = c2 >>> 16;
      const a2 = (Math.imul(high2, M1_LOW) >>> 0) + (Math.imul(low2, M1_LOW) >>> 16);
      const b2 = (Math.imul(low2, M1_HIGH) >>> 0) + (a2 & 0xffff);
      const top2 = Math.imul(high2, M1_HIGH) + (a2 >>> 16) + (b2 >>> 16);
      const next1 = Math.imul(c2, M1);
      const next3 = Math.imul(c0, M0);
      c0 = top2 ^ c1 ^ k0;
      c1 = next1;
      c2 = top0 ^ c3 ^ k1;
      c3 = next3;
      k0 = (k0 + 0x9e3779b9) | 0;
      k1 = (k1 + 0xbb67ae85) | 0;
    }
    this.low = c0 >>> 0;
    this.high = c1 >>> 0;
  }

  /** Below(seed, stream, index, n) for n from 1 to 2^32. Products stay below 2^53: 16 bits of the draw at a time. */
  below(index: number, n: number): number {
    this.draw(index);
    const carry = Math.floor(((this.low >>> 16) * n + Math.floor(((this.low & 0xffff) * n) / 65536)) / 65536);
    return Math.floor(((this.high >>> 16) * n + Math.floor(((this.high & 0xffff) * n + carry) / 65536)) / 65536);
  }

  /** Permutation(seed, stream, n), n up to 2^28. Gives way meanwhile. */
  async permutation(n: number, pace: Pace): Promise<Uint32Array> {
    const order = new Uint32Array(n);
    for (let k = 0; k < n; ++k) order[k] = k;
    for (let from = n - 1; from >= 1; from -= BLOCK) {
      this.exchange(order, from, Math.max(1, from - BLOCK + 1));
      await pace.breathe();
    }
    return order;
  }
  private exchange(order: Uint32Array, from: number, to: number): void {
    for (let k = from; k >= to; --k) {
      const other = this.below(k, k + 1);
      const entry = order[k]!;
      order[k] = order[other]!;
      order[other] = entry;
    }
  }
}
