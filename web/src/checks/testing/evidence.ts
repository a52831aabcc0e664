// SPDX-License-Identifier: Apache-2.0
//
// For tests: the fixture's log by kinds, and entries of it with one thing changed.
import { keyId } from '../ed25519';
import { Fixture, FIXTURE } from './fixture';
import { TestKey } from './tools';
import type { AttestationEntry, Hex, LogEntry, OpeningEntry, RecordEntry, RunEntry } from '../types';

export const fixture = new Fixture(FIXTURE);
export const run = fixture.of('run')[0]!;
export const { runId } = run.payload.manifest;
export const records = fixture.of('record');
export const attestations = fixture.of('attestation');
export const matches = attestations.filter(({ payload }) => payload.verdict === 'match');
export const mismatches = attestations.filter(({ payload }) => payload.verdict === 'mismatch');
export const workers = fixture.of('key').flatMap(({ payload }) => (payload.event === 'worker' ? [payload.workerKey] : []));
export const stranger = new TestKey(9);

export function workerOf(entry: LogEntry): Hex {
  return workers.find((key) => keyId(key) === entry.signerIds[0])!;
}
export function recordOf(entry: AttestationEntry): RecordEntry {
  return records[entry.payload.step]!;
}
export function openingsOf(entry: AttestationEntry): OpeningEntry[] {
  return fixture.of('opening').filter(({ payload }) => payload.attestation === entry.leafHash);
}
export function against(entry: AttestationEntry): { record: RecordEntry; run: RunEntry; workerKey: Hex } {
  return { record: recordOf(entry), run, workerKey: workerOf(entry) };
}
/** An entry whose payload is another one, with the signatures of before. */
export function forged<Entry extends LogEntry>(entry: Entry, change: Partial<Entry['payload']>): Entry {
  return { ...entry, payload: { ...entry.payload, ...change } };
}
/** With one byte of the payload changed, and no check of form: only the signature can tell. */
export function tampered<Entry extends LogEntry>(entry: Entry): Entry {
  const payload = entry.envelope.payload.map((byte, i) => (i === 9 ? byte ^ 1 : byte));
  return { ...entry, envelope: { ...entry.envelope, payload } };
}
export const other = (digest: Hex): Hex => (digest.startsWith('0') ? `1${digest.slice(1)}` : `0${digest.slice(1)}`);
