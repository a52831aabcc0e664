// SPDX-License-Identifier: Apache-2.0
//
// What this browser remembers of a log: its key and the newest head it has seen. A log that was rewritten since, or that has another key all
// of a sudden, is noticed, without anybody's help.
import * as checks from '../checks';
import type { Check, FetchTile, LogCheckpoint } from '../checks';
import type { Log } from '../api/types';
import { attempt, failed } from './attempt';

export interface Memory {
  get(name: string): string | null;
  set(name: string, value: string): void;
}

export interface Remembered {
  key: string;
  note: string;
  first_ms: number; // when this browser first saw the log
  seen_ms: number; // when it saw the head
}

const nameOf = (origin: string) => `lockstep.log.${origin}`;

export function recall(memory: Memory, origin: string): Remembered | null {
  try {
    const value: unknown = JSON.parse(memory.get(nameOf(origin)) ?? 'null');
    if (typeof value !== 'object' || value === null) return null;
    const { key, note, first_ms, seen_ms } = value as Partial<Remembered>;
    if (typeof key !== 'string' || typeof note !== 'string' || typeof first_ms !== 'number' || typeof seen_ms !== 'number') return null;
    return { key, note, first_ms, seen_ms };
  } catch {
    return null;
  }
}

export interface HeadVerification {
  checks: Check[];
  head: LogCheckpoint | null;
  before: Remembered | null;
}

// The head is remembered only if all holds, so that what was seen before a break stays to show it.
export async function verifyHead(log: Log, memory: Memory, fetchTile: FetchTile, now_ms: number, signal: AbortSignal): Promise<HeadVerification> {
  const list: Check[] = [];
  const before = recall(memory, log.origin);
  const opened = attempt('signature', () => checks.openCheckpoint(log.checkpoint, checks.parseLogKey(log.key)));
  if (opened.check) return { checks: [opened.check], head: null, before };
  const head = opened.value;
  list.push({ name: 'signature', ok: true, message: `the log’s key has signed this head of ${head.origin}: ${head.size} entries, and their root` });
  const shown = head.size === log.size && head.root === log.root;
  list.push({ name: 'shown', ok: shown, message: shown ? 'size and root on this page are those of the signed head' : 'this page shows another size or root than the head' });
  if (before !== null) {
    const same = before.key === log.key;
    list.push({ name: 'key', ok: same, message: same ? 'the key is the one that this browser saw before' : 'the log has another key than when this browser saw it before' });
    if (same) list.push(await goesOn(before.note, head, log.key, fetchTile, signal));
  }
  if (list.every((check) => check.ok)) {
    memory.set(nameOf(log.origin), JSON.stringify({ key: log.key, note: head.note, first_ms: before?.first_ms ?? now_ms, seen_ms: now_ms }));
  }
  return { checks: list, head, before };
}

async function goesOn(note: string, head: LogCheckpoint, key: string, fetchTile: FetchTile, signal: AbortSignal): Promise<Check> {
  const name = 'consistency';
  try {
    const older = checks.openCheckpoint(note, checks.parseLogKey(key));
    if (older.size > head.size) {
      return { name, ok: false, message: `this browser has seen a signed head of ${older.size} entries: this one, of ${head.size}, is older` };
    }
    await checks.checkConsistency(older, head, fetchTile, signal);
    return { name, ok: true, message: `the log begins with all ${older.size} entries that this browser saw a head of before: nothing was rewritten` };
  } catch (error) {
    if (signal.aborted) throw error;
    return failed(name, error);
  }
}

export const browserMemory: Memory = {
  get: (name) => {
    try {
      return localStorage.getItem(name);
    } catch {
      return null;
    }
  },
  set: (name, value) => {
    try {
      localStorage.setItem(name, value);
    } catch {
      // Storage is off or full: the next visit begins anew.
    }
  },
};
