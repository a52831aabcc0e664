// SPDX-License-Identifier: Apache-2.0
//
// The log as its readers hold it to its word: heads, receipts, and proofs from tiles that one head goes on from another. docs/log.md.
import { fromStandardBase64, toHex, utf8 } from './bytes';
import { CheckError } from './errors';
import { verifyConsistency, verifyInclusion } from './merkle';
import { parseSignedNote, verifyNote } from './note';
import { type Cancel, TileTree } from './tiles';
import type { FetchTile, Hex, LogCheckpoint, LogKey } from './types';

const RECEIPT_HEAD = 'c2sp.org/tlog-proof@v1';
const RECEIPT_BYTES_MAX = 131072;
const HASHES_MAX = 64;

/** Decimal digits as they are written; null for others, and for 2^53 and above, which no log here reaches. */
function decimal(text: string): number | null {
  const value = /^(?:0|[1-9][0-9]{0,15})$/.test(text) ? Number(text) : NaN;
  return Number.isSafeInteger(value) ? value : null;
}

function hash(text: string): Hex | null {
  const bytes = fromStandardBase64(text);
  return bytes !== null && bytes.length === 32 ? toHex(bytes) : null;
}

/** The text of a head: origin, size, root, a line each; extension lines after them are passed over. Throws "malformed". */
export function parseCheckpointText(text: string): Pick<LogCheckpoint, 'origin' | 'size' | 'root'> {
  const malformed = (message: string): never => {
    throw new CheckError('malformed', 'log checkpoint', message);
  };
  const lines = text.endsWith('\n') ? text.slice(0, -1).split('\n') : [];
  if (lines.length < 3 || lines.includes('')) malformed('expected an origin, a size and a root, a line each');
  const [origin = '', sizeText = '', rootText = ''] = lines;
  const size = decimal(sizeText) ?? malformed('expected a size in decimal digits, below 2^53');
  const root = hash(rootText) ?? malformed('expected a root of 32 bytes as base64');
  return { origin, size, root };
}

/** A signed note: its form, the key's signature, and that it is the head of the key's log. Throws "malformed", "signature". */
export function openCheckpoint(note: string, key: LogKey): LogCheckpoint {
  const parsed = parseSignedNote(note);
  verifyNote(parsed, key);
  const checkpoint = parseCheckpointText(parsed.text);
  if (checkpoint.origin === key.name) return { ...checkpoint, note };
  throw new CheckError('signature', 'log checkpoint', { expected: `the log ${key.name}`, found: checkpoint.origin });
}

interface Receipt {
  readonly index: number;
  readonly hashes: readonly Hex[];
  readonly checkpoint: string;
}

/** A tlog-proof's form. Throws "malformed". */
export function parseReceipt(text: string): Receipt {
  const malformed = (message: string): never => {
    throw new CheckError('malformed', 'receipt', message);
  };
  if (text.length > RECEIPT_BYTES_MAX || utf8(text).length > RECEIPT_BYTES_MAX) malformed(`expected at most ${RECEIPT_BYTES_MAX} bytes`);
  const blank = text.indexOf('\n\n');
  if (blank < 0) malformed('expected an index, hashes, an empty line and a checkpoint');
  const lines = text.slice(0, blank).split('\n');
  if (lines.shift() !== RECEIPT_HEAD) malformed(`expected ${RECEIPT_HEAD}`);
  if (lines[0]?.startsWith('extra ') === true) {
    if (fromStandardBase64(lines.shift()!.slice('extra '.length)) === null) malformed('expected base64 as extra data');
  }
  const line = lines.shift() ?? '';
  const index =
    (line.startsWith('index ') ? decimal(line.slice('index '.length)) : null) ?? malformed('expected an index in decimal digits');
  if (lines.length > HASHES_MAX) malformed(`expected at most ${HASHES_MAX} hashes`);
  const hashes = lines.map((encoded) => hash(encoded) ?? malformed('expected hashes as base64'));
  return { index, hashes, checkpoint: text.slice(blank + 2) };
}

/** A tlog-proof: the entry with this leaf hash is at `index` under the head in it, which the key has signed. Throws. */
export function openReceipt(receipt: string, leaf: Hex, key: LogKey): { readonly index: number; readonly checkpoint: LogCheckpoint } {
  const { index, hashes, checkpoint: note } = parseReceipt(receipt);
  const checkpoint = openCheckpoint(note, key);
  verifyInclusion(leaf, index, checkpoint.size, hashes, checkpoint.root);
  return { index, checkpoint };
}

/**
 * That the log of `newer` begins with that of `older`. Both heads were opened by the caller. The proof is put
 * together from tiles, which need no belief: it leads to the two roots or it does not. Throws "proof" if the log was rewritten: both notes together show that.
 */
export async function checkConsistency(
  older: LogCheckpoint,
  newer: LogCheckpoint,
  fetchTile: FetchTile,
  signal?: AbortSignal,
): Promise<void> {
  const where = `log ${newer.origin}, from size ${older.size} to ${newer.size}`;
  if (older.origin !== newer.origin) {
    throw new CheckError('proof', where, { expected: `heads of one log, ${older.origin}`, found: newer.origin });
  }
  if (newer.size < older.size) {
    throw new CheckError('proof', where, {
      expected: `at least the ${older.size} entries that a head had before`,
      found: String(newer.size),
    });
  }
  if (newer.size === older.size) {
    if (newer.root === older.root) return;
    throw new CheckError('proof', where, { expected: `the root ${older.root}`, found: newer.root });
  }
  if (older.size === 0) return verifyConsistency(0, newer.size, [], older.root, newer.root);
  const proof = await new TileTree(newer.size, fetchTile, cancelOf(signal)).consistencyProof(older.size);
  verifyConsistency(older.size, newer.size, proof, older.root, newer.root);
}

function cancelOf(signal: AbortSignal | undefined): Cancel {
  return signal === undefined ? {} : { signal };
}

/** That the entry is at `index` under the head, from the tiles: for entries without a receipt. Throws "proof". */
export async function checkInclusion(
  leaf: Hex,
  index: number,
  checkpoint: LogCheckpoint,
  fetchTile: FetchTile,
  signal?: AbortSignal,
): Promise<void> {
  if (!Number.isSafeInteger(index) || index < 0 || index >= checkpoint.size) {
    throw new CheckError('proof', `entry ${index} of ${checkpoint.size}`, 'no such entry');
  }
  const proof = await new TileTree(checkpoint.size, fetchTile, cancelOf(signal)).inclusionProof(index);
  verifyInclusion(leaf, index, checkpoint.size, proof, checkpoint.root);
}
