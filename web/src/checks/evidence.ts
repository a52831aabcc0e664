// SPDX-License-Identifier: Apache-2.0
//
// What an entry says, held against the entries that it speaks of: the rules of audit/ledger/ledger_rules.cc that two or three entries are
// enough for. Whether a key was good at that place of the log, and what counts in the end, needs the whole log: `lockstep verify`.
import { CheckList } from './check_list';
import { isSignedBy } from './entry';
import { compareRecords, rootsOf } from './step_record';
import { windowsOfStep } from './run_manifest';
import type {
  AttestationEntry,
  Check,
  CheckpointEntry,
  Difference,
  Hex,
  KeyEntry,
  LogEntry,
  RecordEntry,
  Roots,
  RunEntry,
  StepRecord,
} from './types';

/** "signature": exactly these keys have signed. */
function checkSigners(list: CheckList, entry: LogEntry, keys: readonly Hex[], who: string): void {
  const ok = entry.signerIds.length === keys.length && keys.every((key) => isSignedBy(entry, key));
  const names = keys.join(' and ');
  list.add(
    'signature',
    ok,
    `signed by ${who}, ${names}`,
    `expected ${keys.length === 1 ? 'one valid signature' : `${keys.length} valid signatures`}, by ${who}, ${names}`,
  );
}

/** "run" (the manifest's digest is `run`), "signature" (the trainer's key, alone). */
export function checkRun(entry: RunEntry, run: Hex): Check[] {
  const list = new CheckList();
  list.equal('run', "the manifest's SHA-256", run, entry.payload.manifest.runId);
  checkSigners(list, entry, [entry.payload.trainerKey], "the trainer's key");
  return list.checks;
}

/**
 * "signature" (the trainer's key; `trainerKey`, if the one of the registration was rotated), "run", "schedule" (tokens before and of the
 * step as the batch schedule says), and "chain" if the chain before the step is known.
 */
export function checkRecord(entry: RecordEntry, run: RunEntry, previousChain?: Hex, trainerKey?: Hex): Check[] {
  const list = new CheckList();
  const { record, runId } = entry.payload;
  checkSigners(list, entry, [trainerKey ?? run.payload.trainerKey], "the trainer's key");
  list.equal('run', 'the run', run.payload.manifest.runId, runId);
  const windows = record.step <= BigInt(Number.MAX_SAFE_INTEGER) ? windowsOfStep(run.payload.manifest, Number(record.step)) : null;
  const expected =
    windows === null ? 'no such step' : `${windows.count * run.payload.manifest.model.seq_len} after ${windows.tokensBefore}`;
  list.equal('schedule', `the tokens of step ${record.step}`, expected, `${record.tokens} after ${record.tokensBefore}`);
  if (previousChain !== undefined) list.equal('chain', 'the chain before the step', previousChain, record.previousChain);
  return list.checks;
}

const ROOT_NAMES: readonly (readonly [keyof Roots, string])[] = [
  ['parameters', 'parameters'],
  ['firstMoment', 'first moments'],
  ['secondMoment', 'second moments'],
  ['gradient', 'gradient'],
  ['windows', 'windows'],
  ['transcript', 'transcript'],
  ['cursor', 'cursor'],
];

/**
 * "signature" (`workerKey`, alone), "run", "step", "subject" (digest of the published record), "from-chain", "numerics"; of a match "chain" and
 * "roots" (the published ones), of a mismatch "chain" (another) and "difference" (the first one it names is where the records part). All ok
 * means that the attestation is what it claims to be, a match or a mismatch.
 */
export function checkAttestation(
  entry: AttestationEntry,
  against: { readonly record: RecordEntry; readonly run: RunEntry; readonly workerKey: Hex },
): Check[] {
  const list = new CheckList();
  const attestation = entry.payload;
  const { record, digest, chain } = against.record.payload;
  const { manifest } = against.run.payload;
  checkSigners(list, entry, [against.workerKey], "the worker's key");
  list.equal('run', 'the run', manifest.runId, attestation.runId);
  list.equal('step', 'the step', String(record.step), String(attestation.step));
  list.equal('subject', 'the record it is about', digest, attestation.record);
  list.equal('from-chain', 'the chain before the step', record.previousChain, attestation.fromChain);
  list.equal('numerics', 'the numerics', manifest.numerics, attestation.engine.numerics);
  if (attestation.verdict === 'match') {
    list.equal('chain', 'the chain after the step, as replayed', chain, attestation.computedChain);
    checkRoots(list, rootsOf(record), attestation.roots);
  } else {
    const other = attestation.computedChain !== chain;
    list.add(
      'chain',
      other,
      `replayed to another chain, ${attestation.computedChain}`,
      'says mismatch, and its chain is the published one',
    );
    checkDifference(list, entry, record);
  }
  return list.checks;
}

function checkRoots(list: CheckList, published: Roots, replayed: Roots): void {
  const wrong = ROOT_NAMES.find(([field]) => published[field] !== replayed[field]);
  if (wrong === undefined) list.add('roots', true, `all ${ROOT_NAMES.length} roots are the published ones`, '');
  else list.equal('roots', `the root of the ${wrong[1]}`, published[wrong[0]], replayed[wrong[0]]);
}

function checkDifference(list: CheckList, entry: AttestationEntry, record: StepRecord): void {
  const text = (difference: Difference | null | undefined): string =>
    difference ? `${difference.field}: ${difference.expected} published, ${difference.found} replayed` : 'none';
  list.equal('difference', 'the first difference', text(firstDifference(entry, record)), text(entry.payload.firstDifference));
}

/** Of a mismatch: where the two records part, computed from both. null for a match. */
export function firstDifference(entry: AttestationEntry, record: StepRecord): Difference | null {
  const { computedRecord } = entry.payload;
  return computedRecord === undefined ? null : compareRecords(record, computedRecord);
}

/** "signature": who must have signed the event; of a revocation, one of the key itself and `operator`'s keys. */
export function checkKeyEvent(entry: KeyEntry, operator?: { readonly operatorKey: Hex; readonly revocationKey: Hex }): Check[] {
  const list = new CheckList();
  const event = entry.payload;
  if (event.event === 'operator') checkSigners(list, entry, [event.operatorKey], "the operator's key");
  else if (event.event === 'worker') checkSigners(list, entry, [event.workerKey, event.operatorKey], "the worker's and the operator's key");
  else if (event.event === 'rotate') checkSigners(list, entry, [event.oldKey, event.newKey], 'the old and the new key');
  else {
    const may = [event.key, ...(operator === undefined ? [] : [operator.operatorKey, operator.revocationKey])];
    const by = entry.signerIds.length === 1 ? may.find((key) => isSignedBy(entry, key)) : undefined;
    list.add('signature', by !== undefined, `signed by ${by}`, `expected one valid signature, by one of ${may.join(', ')}`);
  }
  return list.checks;
}

/** "run", "signature": of the run's trainer, or of `workerKey` if it is given. */
export function checkCheckpointAnnouncement(entry: CheckpointEntry, run: RunEntry, workerKey?: Hex): Check[] {
  const list = new CheckList();
  list.equal('run', 'the run', run.payload.manifest.runId, entry.payload.runId);
  if (workerKey === undefined) checkSigners(list, entry, [run.payload.trainerKey], "the trainer's key");
  else checkSigners(list, entry, [workerKey], "a worker's key");
  return list.checks;
}
