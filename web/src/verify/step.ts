// SPDX-License-Identifier: Apache-2.0
//
// A step held against what was signed: the run's registration, the trainer's record, each attestation with its openings and its worker's
// registration, and the log's receipts. Done here, in the browser; the coordinator's part is to hand over the bytes.
import type { Attestation, LogEntryDetail, RunDetail, StepDetail } from '../api/types';
import * as checks from '../checks';
import type { Check, LogKey, RecordEntry, RunEntry } from '../checks';
import { attempt, breathe, failed } from './attempt';

export interface StepVerification {
  record: Check[];
  attestations: Map<number, Check[]>; // by log index
  done: boolean;
}

export interface StepSources {
  run: RunDetail;
  detail: StepDetail;
  log_key: string; // NAME+ID+BASE64
  known_log_key: string | null; // the one that this browser saw before
  previous: StepDetail | null; // the step before, if there is one
  entry: (index: number) => Promise<LogEntryDetail>;
  workerEntry: (key: string) => Promise<number>; // log index of a worker's registration
}

function base64Bytes(text: string): Uint8Array {
  return Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
}

function equalBytes(a: Uint8Array, b: Uint8Array): boolean {
  return a.length === b.length && a.every((byte, n) => byte === b[n]);
}

async function inLog(sources: StepSources, index: number, leaf: string, key: LogKey): Promise<Check> {
  const name = 'receipt';
  try {
    const { receipt } = await sources.entry(index);
    const found = checks.openReceipt(receipt, leaf, key);
    if (found.index !== index) throw new checks.CheckError('mismatch', 'receipt', { expected: `entry ${index}`, found: `entry ${found.index}` });
    return { name, ok: true, message: `in the log: entry ${index}, under a head of ${found.checkpoint.size} entries that the log's key has signed` };
  } catch (error) {
    return failed(name, error);
  }
}

// What was checked so far is told to `show` after each piece. Rejects only if `signal` says so.
export async function verifyStep(sources: StepSources, show: (so_far: StepVerification) => void, signal: AbortSignal): Promise<void> {
  const so_far: StepVerification = { record: [], attestations: new Map(), done: false };
  const tell = () => show({ ...so_far, record: [...so_far.record], attestations: new Map(so_far.attestations) });
  const key = attempt('log key', () => checks.parseLogKey(sources.log_key));
  if (key.check) so_far.record.push(key.check);
  if (sources.known_log_key !== null && sources.known_log_key !== sources.log_key) {
    const message = 'the log has another key than when this browser saw it before';
    so_far.record.push({ name: 'log key', ok: false, message, expected: sources.known_log_key, found: sources.log_key });
  }

  const run = runEntry(sources, so_far.record);
  await breathe(signal);
  const record = run && recordEntry(sources, run, so_far.record);
  if (record && key.value) so_far.record.push(await inLog(sources, sources.detail.log_index, record.leafHash, key.value));
  tell();
  if (run && record && key.value) {
    for (const one of sources.detail.attestations) {
      await breathe(signal);
      so_far.attestations.set(one.log_index, await attestationChecks(sources, one, run, record, key.value));
      tell();
    }
  }
  so_far.done = true;
  tell();
}

function runEntry(sources: StepSources, into: Check[]): RunEntry | null {
  const { registration, run } = sources.run;
  if (registration === null) {
    into.push({ name: 'run', ok: false, message: 'the registration of the run is not to be had yet' });
    return null;
  }
  const entry = attempt('run', () => checks.parseEntryOf('run', registration));
  if (entry.check) {
    into.push(entry.check);
    return null;
  }
  into.push(...checks.checkRun(entry.value, run));
  return entry.value;
}

function recordEntry(sources: StepSources, run: RunEntry, into: Check[]): RecordEntry | null {
  const { detail, previous } = sources;
  if (detail.record_envelope === null) {
    into.push({ name: 'record', ok: false, message: 'the signed record is not on the disk yet' });
    return null;
  }
  const envelope = detail.record_envelope;
  const entry = attempt('record', () => checks.parseEntryOf('record', envelope));
  if (entry.check) {
    into.push(entry.check);
    return null;
  }
  const before = previous && attempt('chain', () => checks.chainAfter(checks.decodeStepRecord(base64Bytes(previous.record))));
  if (before?.check) into.push(before.check);
  into.push(...recordChecks(entry.value, run, before?.value, sources.run.trainer_key));
  const { record, chain } = entry.value.payload;
  const shown = attempt('shown', () => base64Bytes(detail.record));
  const same =
    shown.value !== undefined && equalBytes(shown.value, record.bytes) && chain === detail.chain && Number(record.step) === detail.step;
  into.push({
    name: 'shown',
    ok: same,
    message: same ? 'the fields and the chain hash on this page are those of the signed record' : 'this page shows something else than the signed record',
  });
  return entry.value;
}

// A trainer may have rotated its key since it registered the run: then its key of today will do, and that is said.
function recordChecks(entry: RecordEntry, run: RunEntry, previous_chain: string | undefined, key_now: string): Check[] {
  const list = checks.checkRecord(entry, run, previous_chain);
  const signature = list.findIndex((check) => check.name === 'signature');
  if (list[signature]?.ok !== false || key_now === run.payload.trainerKey || !checks.isSignedBy(entry, key_now)) return list;
  const message = `signed by ${key_now}, which the coordinator says took the place of the trainer’s first key: see its rotation in the log`;
  return list.map((check, n) => (n === signature ? { name: check.name, ok: true, message } : check));
}

async function attestationChecks(sources: StepSources, one: Attestation, run: RunEntry, record: RecordEntry, log: LogKey): Promise<Check[]> {
  const envelope = one.envelope;
  if (envelope === null) return [{ name: 'envelope', ok: false, message: 'the signed attestation is not on the disk yet' }];
  const entry = attempt('envelope', () => checks.parseEntryOf('attestation', envelope));
  if (entry.check) return [entry.check];
  const against = { record, run, workerKey: one.worker_key, logKey: log };
  const list: Check[] = [];
  const said = attempt('attestation', () => checks.checkAttestation(entry.value, against));
  list.push(...(said.value ?? [said.check]));
  list.push(await workerCheck(sources, one));
  if (one.verdict === 'match' && one.openings_needed > 0 && one.openings !== null && one.openings.length > 0) {
    list.push(...(await openingChecks(sources, one, entry.value, against)));
  }
  list.push(await inLog(sources, one.log_index, entry.value.leafHash, log));
  return list;
}

async function openingChecks(
  sources: StepSources,
  one: Attestation,
  entry: checks.AttestationEntry,
  against: Parameters<typeof checks.checkOpenings>[2],
): Promise<Check[]> {
  try {
    const details = await Promise.all((one.openings ?? []).map(sources.entry));
    return checks.checkOpenings(
      entry,
      details.map((detail) => checks.parseEntryOf('opening', detail.envelope)),
      against,
    );
  } catch (error) {
    return [failed('openings', error)];
  }
}

// That the operator has signed for the worker's key. A key that came by rotation is signed for by the key before it, which is not followed here.
async function workerCheck(sources: StepSources, one: Attestation): Promise<Check> {
  const name = 'worker';
  try {
    const entry = checks.parseEntryOf('key', (await sources.entry(await sources.workerEntry(one.worker_key))).envelope);
    const event = entry.payload;
    const wrong = checks.checkKeyEvent(entry).find((check) => !check.ok);
    if (wrong) return { ...wrong, name };
    if (event.event === 'rotate' && event.newKey === one.worker_key) {
      return { name, ok: true, message: 'the key took the place of an earlier one, which signed for it' };
    }
    if (event.event !== 'worker' || event.workerKey !== one.worker_key) {
      throw new checks.CheckError('mismatch', 'worker key', { expected: 'the registration of this key', found: `a "${event.event}" event` });
    }
    if (event.operatorKey === one.operator_key) return { name, ok: true, message: 'the operator has signed for the worker’s key' };
    return { name, ok: true, message: 'an operator’s key, since rotated, has signed for the worker’s key' };
  } catch (error) {
    return failed(name, error);
  }
}
