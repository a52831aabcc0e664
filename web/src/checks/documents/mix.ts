// SPDX-License-Identifier: Apache-2.0
//
// Rule 1 of docs/stream.md: which source a draw of the mix names.
import { CheckError } from '../errors';
import { type CorpusManifest, mixWeights } from './corpus_manifest';
import { RandomStream } from './random';

const TWO_32 = 2n ** 32n;
const TWO_64 = 2n ** 64n;

export class SourceMix {
  private readonly random: RandomStream;
  private readonly weights: readonly bigint[];
  /** The draw's halves below which the source is one of 0 to i; for i up to the last source but one that can come. */
  private readonly high: Uint32Array;
  private readonly low: Uint32Array;

  constructor(corpus: CorpusManifest, seed: number) {
    this.random = new RandomStream(seed, 'data/mix');
    this.weights = mixWeights(corpus);
    const total = this.weights.reduce((sum, weight) => sum + weight, 0n);
    if (total === 0n)
      throw new CheckError('malformed', 'corpus manifest', 'no source has documents and a share above 0, so there is no stream');
    // u = floor(I total / 2^64) is below an end e if and only if I is below ceil(e 2^64 / total): no product a draw.
    const ends: bigint[] = [];
    let end = 0n;
    for (const weight of this.weights) {
      end += weight;
      if (end === total) break;
      ends.push((end * TWO_64 + total - 1n) / total);
    }
    this.high = Uint32Array.from(ends, (bound) => Number(bound / TWO_32));
    this.low = Uint32Array.from(ends, (bound) => Number(bound % TWO_32));
  }

  hasWeight(source: number): boolean {
    return this.weights[source] !== 0n;
  }

  /** The source of the n-th document drawn in all. */
  sourceOfDraw(n: number): number {
    this.random.draw(n);
    const { high, low } = this.random;
    let least = 0;
    let most = this.high.length;
    while (least < most) {
      const middle = (least + most) >>> 1;
      const bound = this.high[middle]!;
      if (high < bound || (high === bound && low < this.low[middle]!)) most = middle;
      else least = middle + 1;
    }
    return least;
  }
}
