// SPDX-License-Identifier: Apache-2.0
//
// Disputes and their evidence: those of the fixture's log, and, for what it lacks, a world of our own keys.
import { expect, test } from 'vitest';
import { concat, digestBytes, toBase64, utf8 } from './bytes';
import { checkDispute, checkDisputeEvidence, type DisputedFacts } from './disputes';
import { dssePae } from './dsse';
import { parseEntryOf } from './entry';
import { logKeyText, parseLogKey } from './note';
import { challengedIndices } from './openings';
import {
  against,
  fixture,
  forged,
  matches,
  mismatches,
  openingsOf,
  other,
  records,
  run,
  runId,
  stranger,
  tampered,
} from './testing/evidence';
import { canonical, envelope, failed, TestKey } from './testing/tools';
import type { DisputeEntry, RecordEntry } from './types';

test('disputes of mismatches are borne out by the mismatch, and by nothing else', () => {
  expect(fixture.of('dispute').length).toBeGreaterThan(0);
  for (const entry of fixture.of('dispute')) {
    const attestation = mismatches.find(({ leafHash: leaf }) =>
      entry.payload.evidence.some((piece) => 'entry' in piece && piece.entry === leaf),
    )!;
    const facts = { ...against(attestation), logKey: fixture.logKey, attestation };
    expect(failed(checkDisputeEvidence(entry, facts))).toEqual([]);
    expect(failed(checkDispute(entry, fixture.logKey))).toEqual([]);
    expect(failed(checkDispute(tampered(entry), fixture.logKey))).toEqual(['signature']);
    expect(failed(checkDispute(entry, { ...fixture.logKey, key: stranger.publicKey }))).toEqual(['signature']);
    expect(failed(checkDisputeEvidence(forged(entry, { step: 0 }), facts))).toEqual(['step']);
    expect(failed(checkDisputeEvidence(forged(entry, { runId: other(runId) }), facts))).toEqual(['step']);
    const { attestation: _, ...without } = facts;
    const elsewhere = mismatches.find((mismatch) => mismatch !== attestation)!;
    for (const wrong of [
      without,
      { ...facts, attestation: elsewhere },
      { ...facts, attestation: forged(attestation, { verdict: 'match' as const }) },
      { ...facts, attestation: tampered(attestation) },
      { ...facts, workerKey: stranger.publicKey },
    ]) {
      expect(failed(checkDisputeEvidence(entry, wrong))).toEqual(['evidence']);
    }
    for (const reason of ['second-history', 'bad-opening'] as const)
      expect(failed(checkDisputeEvidence(forged(entry, { reason }), facts))).toEqual(['evidence']);
  }
});

/** A world of our own keys: the fixture's run, but the trainer, a worker and the log are of these tests. */
const [trainer, worker, log] = [new TestKey(21), new TestKey(22), new TestKey(23)];
const ownRun = forged(run, { trainerKey: trainer.publicKey });
const ownLog = parseLogKey(logKeyText('own.example/log', log.publicKey));
function dispute(reason: string, evidence: readonly object[]): DisputeEntry {
  const payload = canonical({ run: runId, step: 0, reason, evidence });
  return parseEntryOf('dispute', envelope('application/vnd.lockstep.dispute.v1+json', payload, [log]));
}
function ownRecord(bytes: Uint8Array, key: TestKey = trainer): RecordEntry {
  return parseEntryOf('record', envelope('application/vnd.lockstep.step-record.v1', concat([digestBytes(runId), bytes]), [key]));
}

test('disputes of a second history', () => {
  const { bytes } = records[0]!.payload.record;
  const changed = bytes.map((byte, i) => (i === 264 ? byte ^ 1 : byte));
  const [record, secondRecord] = [ownRecord(bytes), ownRecord(changed)];
  const facts = { run: ownRun, record, secondRecord, logKey: ownLog };
  const entry = dispute('second-history', [{ entry: '00'.repeat(32) }, { entry: secondRecord.leafHash }]);
  expect(failed(checkDisputeEvidence(entry, facts))).toEqual([]);
  expect(failed(checkDisputeEvidence(dispute('second-history', [{ entry: '00'.repeat(32) }]), facts))).toEqual(['evidence']);
  const byStranger = ownRecord(changed, stranger);
  const same = ownRecord(bytes);
  const elsewhere = ownRecord(bytes.map((byte, i) => (i === 8 ? byte ^ 1 : byte)));
  for (const second of [byStranger, same, elsewhere]) {
    expect(
      failed(checkDisputeEvidence(dispute('second-history', [{ entry: second.leafHash }]), { ...facts, secondRecord: second })),
    ).toEqual(['evidence']);
  }
  expect(failed(checkDisputeEvidence(entry, { run: ownRun, record, logKey: ownLog }))).toEqual(['evidence']);
});

test('disputes of bad openings', () => {
  const record = ownRecord(records[0]!.payload.record.bytes);
  const statement = Buffer.from(matches[0]!.envelope.payload).toString();
  const attestation = parseEntryOf('attestation', envelope('application/vnd.in-toto+json', statement, [worker]));
  const challenge = log.sign(dssePae('application/vnd.lockstep.challenge.v1', digestBytes(attestation.leafHash)));
  const asked = challengedIndices(challenge, 8, 2);
  const [given] = openingsOf(matches[0]!);
  const opening = (change: object, key: TestKey = worker): { envelope: string } => {
    const payload = { ...(JSON.parse(Buffer.from(given!.envelope.payload).toString()) as object), attestation: attestation.leafHash };
    const own = canonical({ ...payload, challenge: toBase64(challenge), index: asked[0], ...change });
    return { envelope: toBase64(utf8(envelope('application/vnd.lockstep.opening.v1+json', own, [key]))) };
  };
  const facts = { run: ownRun, record, attestation, workerKey: worker.publicKey, logKey: ownLog };
  const look = (evidence: readonly object[], more: Partial<DisputedFacts> = {}): string[] =>
    failed(checkDisputeEvidence(dispute('bad-opening', evidence), { ...facts, ...more }));
  // Another's leaf and commitment, put forward as its own, at an index that was asked for.
  expect(look([opening({})])).toEqual([]);
  expect(look([{ entry: '00'.repeat(32) }, { envelope: toBase64(utf8('{}')) }, opening({})])).toEqual([]);
  const unasked = [0, 1, 2, 3].find((index) => !asked.includes(index))!;
  expect(look([opening({ index: unasked })])).toEqual(['evidence']);
  expect(look([opening({}, stranger)])).toEqual(['evidence']);
  expect(look([opening({ challenge: toBase64(new Uint8Array(64)) })])).toEqual(['evidence']);
  expect(look([opening({ attestation: '00'.repeat(32) })])).toEqual(['evidence']);
  expect(look([{ entry: attestation.leafHash }])).toEqual(['evidence']);
  expect(look([opening({})], { workerKey: stranger.publicKey })).toEqual(['evidence']);
  // An opening that holds: the fixture's worker's own.
  const real = { ...against(matches[0]!), logKey: fixture.logKey, attestation: matches[0]! };
  const entry = forged(dispute('bad-opening', [{ entry: '00'.repeat(32) }]), { evidence: [{ envelope: given!.bytes }] });
  const wrong = checkDisputeEvidence(entry, real).find(({ name }) => name === 'evidence')!;
  expect([wrong.ok, wrong.message.endsWith('holds')]).toEqual([false, true]);
  expect(failed(checkDispute(dispute('bad-opening', [{ entry: '00'.repeat(32) }]), ownLog))).toEqual([]);
});
