// SPDX-License-Identifier: Apache-2.0
//
// Whether a dispute's evidence bears it out: docs/attestation.md, "Disputes". The log's signature alone moves nothing.
import { sha256Hex } from './bytes';
import { CheckList } from './check_list';
import { isSignedBy, leafHash, parseEntry } from './entry';
import { CheckError } from './errors';
import { checkAttestation, checkRecord } from './evidence';
import { checkOpenings } from './openings';
import type { AttestationEntry, Check, DisputeEntry, Hex, LogKey, OpeningEntry, RecordEntry, RunEntry } from './types';

/** What the dispute speaks of, as the caller has it from the log. */
export interface DisputedFacts {
  readonly run: RunEntry;
  /** The published record of the step: the first one. */
  readonly record: RecordEntry;
  readonly logKey: LogKey;
  /** For "mismatch" and "bad-opening": the attestation, and the key of its worker. */
  readonly attestation?: AttestationEntry;
  readonly workerKey?: Hex;
  /** For "second-history": the trainer's other record. */
  readonly secondRecord?: RecordEntry;
}

/** "signature" (the log's key). It moves nothing by itself: checkDisputeEvidence. */
export function checkDispute(entry: DisputeEntry, logKey: LogKey): Check[] {
  const list = new CheckList();
  const ok = entry.signerIds.length === 1 && isSignedBy(entry, logKey.key);
  list.add('signature', ok, `signed by the log's key, ${logKey.key}`, `expected one valid signature, by the log's key, ${logKey.key}`);
  return list.checks;
}

/**
 * "step" (run and step are the record's), and "evidence": one piece is what the reason says. Of a mismatch, an attestation of the log that is
 * one in all of checkAttestation; of a second history, another record of the step that the trainer signed; of a bad opening, an opening that
 * the worker signed, that was asked for, and that does not hold.
 */
export function checkDisputeEvidence(entry: DisputeEntry, facts: DisputedFacts): Check[] {
  const list = new CheckList();
  const { runId, record } = facts.record.payload;
  list.equal('step', 'run and step', `${runId}, ${record.step}`, `${entry.payload.runId}, ${entry.payload.step}`);
  const why = whyNot(entry, facts);
  list.add(
    'evidence',
    why === null,
    `there is a ${entry.payload.reason.replace('-', ' ')}, as it says`,
    `the evidence does not bear it out: ${why}`,
  );
  return list.checks;
}

/** Why the evidence is none; null if it is. */
function whyNot(entry: DisputeEntry, facts: DisputedFacts): string | null {
  switch (entry.payload.reason) {
    case 'mismatch':
      return whyNoMismatch(entry, facts);
    case 'second-history':
      return whyNoSecondHistory(entry, facts);
    case 'bad-opening':
      return whyNoBadOpening(entry, facts);
  }
}

function names(entry: DisputeEntry, leaf: Hex): boolean {
  return entry.payload.evidence.some((piece) => 'entry' in piece && piece.entry === leaf);
}

function firstFailed(checks: readonly Check[]): string | null {
  return checks.find(({ ok }) => !ok)?.message ?? null;
}

function whyNoMismatch(entry: DisputeEntry, { attestation, workerKey, record, run }: DisputedFacts): string | null {
  if (attestation === undefined || workerKey === undefined || !names(entry, attestation.leafHash))
    return 'the attestation that it names is not at hand';
  if (attestation.payload.verdict !== 'mismatch') return 'the attestation is a match';
  return firstFailed(checkAttestation(attestation, { record, run, workerKey }));
}

function whyNoSecondHistory(entry: DisputeEntry, { secondRecord, record, run }: DisputedFacts): string | null {
  if (secondRecord === undefined || !names(entry, secondRecord.leafHash)) return 'the record that it names is not at hand';
  const [first, second] = [record.payload, secondRecord.payload];
  if (second.record.step !== first.record.step) return 'the record that it names is of another step';
  if (sha256Hex(second.record.bytes) === first.digest) return 'the record that it names is the published one';
  // The second one need not fit the schedule: that the trainer signed it is enough.
  return firstFailed(checkRecord(secondRecord, run).filter(({ name }) => name === 'signature' || name === 'run'));
}

function whyNoBadOpening(entry: DisputeEntry, facts: DisputedFacts): string | null {
  const { attestation, workerKey, record, run, logKey } = facts;
  if (attestation === undefined || workerKey === undefined) return 'the attestation of the opening is not at hand';
  const context = { record, run, workerKey, logKey };
  const about = firstFailed(checkAttestation(attestation, context));
  if (about !== null || attestation.payload.verdict !== 'match') return about ?? 'the attestation is a mismatch, which opens nothing';
  let why = 'no envelope in it is an opening of the attestation';
  for (const piece of entry.payload.evidence) {
    const opening = 'envelope' in piece ? openingIn(piece.envelope) : null;
    if (opening === null || opening.payload.attestation !== attestation.leafHash) continue;
    const checks = checkOpenings(attestation, [opening], context);
    const holds = (word: string): boolean => checks.some(({ name, ok }) => ok && name === `opening 0: ${word}`);
    const asked = ['signature', 'attestation', 'challenge', 'index'].every(holds);
    if (asked && !(holds('proof') && holds('commitment'))) return null;
    why = asked
      ? `the opening ${leafHash(opening.bytes)} holds`
      : `the opening ${leafHash(opening.bytes)} is not one that the worker signed and was asked for`;
  }
  return why;
}

function openingIn(envelope: Uint8Array): OpeningEntry | null {
  try {
    const entry = parseEntry(envelope);
    return entry.kind === 'opening' ? entry : null;
  } catch (error) {
    if (error instanceof CheckError) return null;
    throw error;
  }
}
