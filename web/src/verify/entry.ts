// SPDX-License-Identifier: Apache-2.0
//
// One entry of the log by itself: its form, its receipt, and, where the entry says enough, whose signature is on it.
import type { LogEntryDetail } from '../api/types';
import * as checks from '../checks';
import type { Check, LogEntry, LogKey } from '../checks';
import { attempt, failed } from './attempt';

export function verifyEntry(detail: LogEntryDetail, log_key: string): { checks: Check[]; entry: LogEntry | null } {
  const list: Check[] = [];
  const read = attempt('form', () => checks.parseEntry(detail.envelope));
  if (read.check) return { checks: [read.check], entry: null };
  const entry = read.value;
  list.push({ name: 'form', ok: true, message: `by its form it is a ${entry.kind} entry, and keeps to every rule for one` });
  const key = attempt('log key', () => checks.parseLogKey(log_key));
  if (key.check) return { checks: [...list, key.check], entry };
  const signed = attempt('signature', () => signatureChecks(entry, key.value));
  list.push(...(signed.value ?? [signed.check]));
  try {
    const found = checks.openReceipt(detail.receipt, entry.leafHash, key.value);
    const right = found.index === detail.index;
    list.push({
      name: 'receipt',
      ok: right,
      message: right ? `the log’s key has signed a head of ${found.checkpoint.size} entries that holds it as entry ${found.index}` : `the receipt is for entry ${found.index}`,
    });
  } catch (error) {
    list.push(failed('receipt', error));
  }
  return { checks: list, entry };
}

// Those that can be checked by the entry alone; records, attestations and openings are checked on the page of their step.
function signatureChecks(entry: LogEntry, key: LogKey): Check[] {
  switch (entry.kind) {
    case 'run':
      return checks.checkRun(entry, entry.payload.manifest.runId);
    case 'key':
      return entry.payload.event === 'revoke' ? [] : checks.checkKeyEvent(entry);
    case 'dispute':
      return checks.checkDispute(entry, key);
    default:
      return [];
  }
}
