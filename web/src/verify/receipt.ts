// SPDX-License-Identifier: Apache-2.0
//
// A receipt that somebody kept: the file of a trainer or worker, {"entry":BASE64,"proof":TEXT} (docs/log.md). Whether it is the log's promise,
// and whether the log of today has kept it.
import * as checks from '../checks';
import type { Check, FetchTile, LogKey } from '../checks';
import { failed } from './attempt';

interface Kept {
  entry: Uint8Array;
  proof: string;
}

function readReceipt(text: string): Kept {
  const malformed = (what: string) => new checks.CheckError('malformed', 'receipt file', what);
  let body: unknown;
  try {
    body = JSON.parse(text);
  } catch {
    throw malformed('expected JSON with "entry" and "proof", as in the receipts folder of a trainer or worker');
  }
  const { entry, proof } = (body ?? {}) as { entry?: unknown; proof?: unknown };
  if (typeof entry !== 'string' || typeof proof !== 'string') throw malformed('expected the members "entry" and "proof"');
  try {
    return { entry: Uint8Array.from(atob(entry), (letter) => letter.charCodeAt(0)), proof };
  } catch {
    throw malformed('expected "entry" to be base64');
  }
}

export async function verifyReceipt(text: string, key: LogKey, head_note: string, fetchTile: FetchTile, signal: AbortSignal): Promise<{ checks: Check[]; index: number | null }> {
  const list: Check[] = [];
  let index: number | null = null;
  try {
    const kept = readReceipt(text);
    const entry = checks.parseEntry(kept.entry);
    list.push({ name: 'entry', ok: true, message: `the entry is well formed: ${entry.kind}, leaf hash ${entry.leafHash}` });
    const promise = checks.openReceipt(kept.proof, entry.leafHash, key);
    index = promise.index;
    list.push({ name: 'receipt', ok: true, message: `the log’s key has promised to hold it as entry ${index}, in a head of ${promise.checkpoint.size} entries` });
    const head = checks.openCheckpoint(head_note, key);
    if (promise.checkpoint.size > head.size) {
      list.push({ name: 'kept', ok: false, message: `the log shown here has ${head.size} entries only: an older copy, or one that was cut` });
    } else {
      await checks.checkInclusion(entry.leafHash, index, head, fetchTile, signal);
      await checks.checkConsistency(promise.checkpoint, head, fetchTile, signal);
      list.push({ name: 'kept', ok: true, message: `the log of today, ${head.size} entries, holds it there and goes on from that head` });
    }
  } catch (error) {
    if (signal.aborted) throw error;
    list.push(failed('receipt', error));
  }
  return { checks: list, index };
}
