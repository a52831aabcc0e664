// SPDX-License-Identifier: Apache-2.0
//
// The log's files (c2sp.org/tlog-tiles): their names, and Merkle proofs put together from tiles of hashes. The tiles are a server's word;
// what is built from them is held against signed roots by the verifiers of merkle.ts.
import { toHex } from './bytes';
import { CheckError } from './errors';
import { merkleRoot, nodeDigest } from './merkle';
import { fetching } from './pace';
import type { FetchTile, Hex } from './types';

const TILE_WIDTH = 256;
const HASH_BYTES = 32;

export interface Cancel {
  readonly signal?: AbortSignal;
}

/** Hashes that a log of `size` has at a level of tiles, or entries (null). */
function countAt(level: number | null, size: number): number {
  return Math.floor(size / TILE_WIDTH ** (level ?? 0));
}

function pathOf(level: number | null, index: number, width: number): string {
  const groups = [];
  for (let rest = index, last = true; last || rest > 0; rest = Math.floor(rest / 1000), last = false) {
    groups.unshift(`${last ? '' : 'x'}${String(rest % 1000).padStart(3, '0')}`);
  }
  const partial = width < TILE_WIDTH ? `.p/${width}` : '';
  return `tile/${level ?? 'entries'}/${groups.join('/')}${partial}`;
}

/** Path of a tile of hashes (level 0 to 7), or of entries (null), as wide as a log of `size` has it; null if it has none there. */
export function tilePath(level: number | null, index: number, size: number): string | null {
  const width = Math.min(TILE_WIDTH, countAt(level, size) - index * TILE_WIDTH);
  return width > 0 ? pathOf(level, index, width) : null;
}

/** The entries of a bundle: `count`, each after its length as u16, big-endian, and nothing after them. Throws "malformed". */
export function parseEntryBundle(bytes: Uint8Array, count: number): Uint8Array[] {
  const entries = [];
  let at = 0;
  for (let i = 0; i < count; ++i) {
    const length = at + 2 <= bytes.length ? bytes[at]! * 256 + bytes[at + 1]! : bytes.length;
    if (at + 2 + length > bytes.length) {
      throw new CheckError('malformed', 'entry bundle', { expected: `${count} entries`, found: `that entry ${i} is cut short` });
    }
    entries.push(bytes.subarray(at + 2, at + 2 + length));
    at += 2 + length;
  }
  if (at < bytes.length)
    throw new CheckError('malformed', 'entry bundle', { expected: 'the end', found: `${bytes.length - at} bytes more` });
  return entries;
}

/** The largest power of two below n, n at least 2. */
function splitOf(n: number): number {
  let k = 1;
  while (k * 2 < n) k *= 2;
  return k;
}

/** A log's tree of `size` leaves, off its tiles; each is fetched once. */
export class TileTree {
  private readonly tiles = new Map<string, Promise<Uint8Array>>();

  constructor(
    private readonly size: number,
    private readonly fetchTile: FetchTile,
    private readonly cancel: Cancel,
  ) {}

  async inclusionProof(index: number): Promise<Hex[]> {
    const proof: Hex[] = [];
    for (let begin = 0, end = this.size; end - begin > 1;) {
      const middle = begin + splitOf(end - begin);
      const [sibling, inside] =
        index < middle
          ? [
              [middle, end],
              [begin, middle],
            ]
          : [
              [begin, middle],
              [middle, end],
            ];
      proof.unshift(await this.range(sibling[0]!, sibling[1]!));
      [begin, end] = [inside[0]!, inside[1]!];
    }
    return proof;
  }

  /** RFC 6962 section 2.1.2, from a tree of `oldSize` leaves, 1 to size - 1. */
  async consistencyProof(oldSize: number): Promise<Hex[]> {
    const proof: Hex[] = [];
    let [begin, end] = [0, this.size];
    while (oldSize !== end) {
      const middle = begin + splitOf(end - begin);
      if (oldSize <= middle) {
        proof.unshift(await this.range(middle, end));
        end = middle;
      } else {
        proof.unshift(await this.range(begin, middle));
        begin = middle;
      }
    }
    if (begin > 0) proof.unshift(await this.range(begin, end));
    return proof;
  }

  /** The root over leaves [begin, end), a range that the definition of the tree makes: `begin` is a multiple of a power of two. */
  private async range(begin: number, end: number): Promise<Hex> {
    return toHex(await this.rangeHash(begin, end));
  }
  private async rangeHash(begin: number, end: number): Promise<Uint8Array> {
    const count = end - begin;
    const k = count === 1 ? 1 : splitOf(count);
    if (count === 1 || count === 2 * k) return this.subtree(begin, count);
    return nodeDigest(await this.subtree(begin, k), await this.rangeHash(begin + k, end));
  }

  /** The root over `count` leaves, a power of two that `begin` is a multiple of: over 1 to 128 hashes of one tile. */
  private async subtree(begin: number, count: number): Promise<Uint8Array> {
    let level = 0;
    let unit = 1;
    for (; count / unit >= TILE_WIDTH; unit *= TILE_WIDTH) ++level;
    const first = begin / unit;
    const tile = await this.tile(level, Math.floor(first / TILE_WIDTH));
    const hashes = Array.from({ length: count / unit }, (_, i) => {
      const at = ((first % TILE_WIDTH) + i) * HASH_BYTES;
      return tile.subarray(at, at + HASH_BYTES);
    });
    return merkleRoot(hashes);
  }

  private tile(level: number, index: number): Promise<Uint8Array> {
    const width = Math.min(TILE_WIDTH, countAt(level, this.size) - index * TILE_WIDTH);
    const path = pathOf(level, index, width);
    const known = this.tiles.get(path) ?? this.fetch(level, index, width);
    this.tiles.set(path, known);
    return known;
  }

  /** A partial tile may be gone once the full one is there, whose first hashes are the same. */
  private async fetch(level: number, index: number, width: number): Promise<Uint8Array> {
    const path = pathOf(level, index, width);
    if (width === TILE_WIDTH) return this.fetchExactly(path, width);
    try {
      return await this.fetchExactly(path, width);
    } catch (error) {
      if (!(error instanceof CheckError) || error.kind !== 'unavailable') throw error;
      try {
        return await this.fetchExactly(pathOf(level, index, TILE_WIDTH), TILE_WIDTH);
      } catch {
        throw error;
      }
    }
  }

  private async fetchExactly(path: string, width: number): Promise<Uint8Array> {
    const bytes = await fetching(path, this.cancel.signal, () => this.fetchTile(path, this.cancel.signal));
    if (bytes.length === width * HASH_BYTES) return bytes;
    throw new CheckError('malformed', path, { expected: `${width * HASH_BYTES} bytes`, found: String(bytes.length) });
  }
}
