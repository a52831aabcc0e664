// SPDX-License-Identifier: Apache-2.0
//
// Cursors of the data stream: docs/stream.md §4, the form. What one must fit is stream.ts.
import { ByteReader, digestBytes, fromUtf8Lenient, sha256Hex } from '../bytes';
import { CheckError } from '../errors';
import type { Hex } from '../types';

const WHERE = 'stream cursor';
const MAGIC = 'LSCURSR1';
const SOURCES_MAX = 4096;
const HEAD_BYTES = 76;

export interface Cut {
  readonly source: number;
  readonly shard: number;
  readonly document: number;
  readonly token: number;
}
export interface Cursor {
  readonly manifest: Hex;
  readonly seed: number;
  readonly seqLen: number;
  readonly window: number;
  readonly draws: number;
  readonly sources: readonly { readonly epoch: number; readonly documents: number }[];
  readonly cut?: Cut;
}

function count(reader: ByteReader, what: string): number {
  const value = reader.u64();
  if (value > BigInt(Number.MAX_SAFE_INTEGER)) reader.fail(`a ${what} below 2^53 before`, String(value));
  return Number(value);
}

/** Throws "malformed"; counts of 2^53 and above are too. */
export function decodeCursor(bytes: Uint8Array): Cursor {
  const reader = new ByteReader(bytes, WHERE);
  if (fromUtf8Lenient(reader.take(8)) !== MAGIC) reader.fail(`${MAGIC} before`, 'other bytes');
  const head = {
    manifest: reader.digest(),
    seed: count(reader, 'seed'),
    seqLen: count(reader, 'sequence length'),
    window: count(reader, 'window'),
    draws: count(reader, 'number of draws'),
  };
  const sources = reader.u32();
  if (sources > SOURCES_MAX) reader.fail(`at most ${SOURCES_MAX} sources before`, String(sources));
  const positions = Array.from({ length: sources }, () => ({
    epoch: count(reader, 'number of epochs'),
    documents: count(reader, 'number of documents'),
  }));
  const flag = reader.u8();
  if (flag > 1) reader.fail('0 or 1 before', String(flag));
  const cut = flag === 0 ? {} : { cut: { source: reader.u32(), shard: reader.u32(), document: reader.u32(), token: reader.u32() } };
  reader.expectEnd();
  return { ...head, sources: positions, ...cut };
}

export function encodeCursor(cursor: Cursor): Uint8Array {
  const bytes = new Uint8Array(HEAD_BYTES + 16 * cursor.sources.length + (cursor.cut === undefined ? 1 : 17));
  const view = new DataView(bytes.buffer);
  bytes.set(new TextEncoder().encode(MAGIC), 0);
  bytes.set(digestBytes(cursor.manifest), 8);
  [cursor.seed, cursor.seqLen, cursor.window, cursor.draws].forEach((value, i) => view.setBigUint64(40 + 8 * i, BigInt(value), true));
  view.setUint32(72, cursor.sources.length, true);
  let at = HEAD_BYTES;
  for (const { epoch, documents } of cursor.sources) {
    view.setBigUint64(at, BigInt(epoch), true);
    view.setBigUint64(at + 8, BigInt(documents), true);
    at += 16;
  }
  bytes[at] = cursor.cut === undefined ? 0 : 1;
  if (cursor.cut !== undefined) {
    const { source, shard, document, token } = cursor.cut;
    [source, shard, document, token].forEach((value, i) => view.setUint32(at + 1 + 4 * i, value, true));
  }
  return bytes;
}

export function cursorDigest(cursor: Cursor): Hex {
  return sha256Hex(encodeCursor(cursor));
}

export function contradiction(what: string): never {
  throw new CheckError('mismatch', WHERE, `${what}; it is damaged, or parts of two cursors were mixed`);
}
