// SPDX-License-Identifier: Apache-2.0
//
// The files of a shard beside its tokens: docs/shards.md §3, §4, §5. Each has been checked by its digest when it comes here.
import { fromUtf8Lenient } from '../bytes';
import { CheckError } from '../errors';
import type { Shard } from './corpus_manifest';

function malformed(where: string, expected: string, found: string): never {
  throw new CheckError('malformed', where, { expected, found });
}

function header(bytes: Uint8Array, where: string, magic: string, documents: number): DataView {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  if (bytes.length < 28 + 4 * documents) malformed(where, `${28 + 4 * documents} bytes or more`, String(bytes.length));
  if (fromUtf8Lenient(bytes.subarray(0, 8)) !== magic) malformed(where, magic, 'other bytes');
  const found = view.getBigUint64(8, true);
  if (found !== BigInt(documents)) malformed(where, `${documents} documents`, String(found));
  return view;
}

/** Where each document begins, and the end of the last: documents + 1 numbers. */
export function parseIndex(bytes: Uint8Array, shard: Shard, where: string): Uint32Array {
  const view = header(bytes, where, 'LSINDEX1', shard.documents);
  const tokens = view.getBigUint64(16, true);
  if (tokens !== BigInt(shard.tokens.count) || bytes.length !== 28 + 4 * shard.documents) {
    malformed(where, `${shard.tokens.count} tokens in ${28 + 4 * shard.documents} bytes`, `${tokens} in ${bytes.length}`);
  }
  const begins = new Uint32Array(shard.documents + 1);
  for (let d = 0; d <= shard.documents; ++d) {
    begins[d] = view.getUint32(24 + 4 * d, true);
    if (d > 0 ? begins[d]! <= begins[d - 1]! : begins[d] !== 0) malformed(where, 'ascending places from 0', `another at document ${d}`);
  }
  if (begins[shard.documents] !== shard.tokens.count) malformed(where, `an end at ${shard.tokens.count}`, String(begins[shard.documents]));
  return begins;
}

/** The name of a document, by its number. */
export function parseNames(bytes: Uint8Array, shard: Shard, where: string): (document: number) => string {
  const view = header(bytes, where, 'LSNAMES1', shard.documents);
  const base = 28 + 4 * shard.documents;
  const size = view.getBigUint64(16, true);
  if (BigInt(bytes.length - base) !== size) malformed(where, `${size} bytes of names`, String(bytes.length - base));
  let before = 0;
  for (let d = 0; d <= shard.documents; ++d) {
    const begin = view.getUint32(24 + 4 * d, true);
    if (d === 0 ? begin !== 0 : begin < before) malformed(where, 'ascending places from 0', `another at document ${d}`);
    before = begin;
  }
  if (BigInt(before) !== size) malformed(where, `an end at ${size}`, String(before));
  const place = (document: number): number => base + view.getUint32(24 + 4 * document, true);
  return (document) => fromUtf8Lenient(bytes.subarray(place(document), place(document + 1)));
}
