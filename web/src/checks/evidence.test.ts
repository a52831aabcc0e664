// SPDX-License-Identifier: Apache-2.0
//
// What entries say of one another, on the log of the fixture, which real programs made: each check holds there, and fails when the one thing
// that it looks at is another.
import { expect, test } from 'vitest';
import { allOk } from './check_list';
import { parseEntryOf } from './entry';
import { checkAttestation, checkCheckpointAnnouncement, checkKeyEvent, checkRecord, checkRun, firstDifference } from './evidence';
import { challengedIndices, checkOpenings } from './openings';
import {
  against,
  attestations,
  fixture,
  forged,
  matches,
  mismatches,
  openingsOf,
  other,
  recordOf,
  records,
  run,
  runId,
  stranger,
  tampered,
  workerOf,
  workers,
} from './testing/evidence';
import { canonical, envelope, failed, TestKey } from './testing/tools';
import type { AttestationEntry, Hex, OpeningEntry } from './types';

test('the fixture has what the tests look at', () => {
  const { steps, cheatedStep } = fixture.file;
  expect(records.length).toBe(steps);
  expect(workers.length).toBe(2);
  expect([matches.length, mismatches.length]).toEqual([2 * (steps - 1), 2]);
  expect(mismatches.map(({ payload }) => payload.step)).toEqual([cheatedStep, cheatedStep]);
  expect(fixture.of('opening').length).toBe(2 * matches.length);
  expect(fixture.of('dispute').length).toBeGreaterThan(0);
  expect(fixture.of('checkpoint').length).toBeGreaterThan(1);
});

test('runs', () => {
  expect(allOk(checkRun(run, runId))).toBe(true);
  expect(failed(checkRun(run, other(runId)))).toEqual(['run']);
  expect(failed(checkRun(tampered(run), runId))).toEqual(['signature']);
  expect(failed(checkRun(forged(run, { trainerKey: stranger.publicKey }), runId))).toEqual(['signature']);
});

test('records, one after another', () => {
  let chain = run.payload.firstChain;
  for (const record of records) {
    expect(failed(checkRecord(record, run, chain))).toEqual([]);
    chain = record.payload.chain;
  }
  const [first, second] = records;
  expect(failed(checkRecord(second!, run, run.payload.firstChain))).toEqual(['chain']);
  expect(checkRecord(second!, run).map(({ name }) => name)).toEqual(['signature', 'run', 'schedule']);
  expect(failed(checkRecord(tampered(first!), run))).toEqual(['signature']);
  expect(failed(checkRecord(first!, run, undefined, stranger.publicKey))).toEqual(['signature']);
  expect(failed(checkRecord(forged(first!, { runId: other(runId) }), run))).toEqual(['run']);
  const { record } = first!.payload;
  for (const change of [{ tokens: record.tokens + 1n }, { tokensBefore: 1n }, { step: 2n ** 60n }, { step: record.step + 1n }]) {
    expect(failed(checkRecord(forged(first!, { record: { ...record, ...change } }), run))).toEqual(['schedule']);
  }
});

test('every attestation is what it claims to be', () => {
  for (const entry of attestations) expect(failed(checkAttestation(entry, against(entry)))).toEqual([]);
  expect(checkAttestation(matches[0]!, against(matches[0]!)).map(({ name }) => name)).toEqual([
    'signature',
    'run',
    'step',
    'subject',
    'from-chain',
    'numerics',
    'chain',
    'roots',
  ]);
});

test('each check of a match fails when its one thing is another', () => {
  const entry = matches[0]!;
  const { payload } = entry;
  const look = (changed: AttestationEntry): string[] => failed(checkAttestation(changed, against(entry)));
  expect(look(tampered(entry))).toEqual(['signature']);
  expect(failed(checkAttestation(entry, { ...against(entry), workerKey: workers.find((key) => key !== workerOf(entry))! }))).toEqual([
    'signature',
  ]);
  expect(look(forged(entry, { runId: other(payload.runId) }))).toEqual(['run']);
  expect(look(forged(entry, { step: payload.step + 1 }))).toEqual(['step']);
  expect(look(forged(entry, { record: other(payload.record) }))).toEqual(['subject']);
  expect(look(forged(entry, { fromChain: other(payload.fromChain) }))).toEqual(['from-chain']);
  expect(look(forged(entry, { engine: { ...payload.engine, numerics: 'x' } }))).toEqual(['numerics']);
  expect(look(forged(entry, { computedChain: other(payload.computedChain) }))).toEqual(['chain']);
  for (const root of Object.keys(payload.roots) as (keyof typeof payload.roots)[]) {
    const roots = { ...payload.roots, [root]: other(payload.roots[root]) };
    expect(look(forged(entry, { roots }))).toEqual(['roots']);
  }
  // Of another step, all that is the step's differs.
  expect(failed(checkAttestation(entry, { ...against(entry), record: records[payload.step + 1]! }))).toEqual([
    'step',
    'subject',
    'from-chain',
    'chain',
    'roots',
  ]);
});

test('mismatches say where the records part', () => {
  for (const entry of mismatches) {
    const difference = firstDifference(entry, recordOf(entry).payload.record);
    expect(difference).toMatchObject({ field: 'windows', expected: recordOf(entry).payload.record.windows });
    expect(entry.payload.firstDifference).toMatchObject(difference!);
    const look = (changed: AttestationEntry): string[] => failed(checkAttestation(changed, against(entry)));
    expect(look(forged(entry, { computedChain: recordOf(entry).payload.chain }))).toEqual(['chain']);
    expect(look(forged(entry, { firstDifference: { ...difference!, field: 'cursor' } }))).toEqual(['difference']);
    expect(look(forged(entry, { firstDifference: { ...difference!, found: 'x' } }))).toEqual(['difference']);
    expect(look(forged(entry, { computedRecord: recordOf(entry).payload.record }))).toEqual(['difference']);
  }
  expect(firstDifference(matches[0]!, records[0]!.payload.record)).toBeNull();
});

test('openings are complete, under both roots, and what the challenge asks for', () => {
  for (const entry of matches) {
    const checks = checkOpenings(entry, openingsOf(entry), { ...against(entry), logKey: fixture.logKey });
    expect(failed(checks)).toEqual([]);
    expect(checks.length).toBe(2 * 6 + 1);
    expect(new Set(openingsOf(entry).map(({ payload }) => payload.index)).size).toBe(2);
  }
  expect(checkOpenings(mismatches[0]!, [], { ...against(mismatches[0]!), logKey: fixture.logKey }).map(({ ok }) => ok)).toEqual([true]);
});

test('each check of an opening fails when its one thing is another', () => {
  const entry = matches[0]!;
  const [first, second] = openingsOf(entry) as [OpeningEntry, OpeningEntry];
  const context = { ...against(entry), logKey: fixture.logKey };
  const look = (changed: OpeningEntry): string[] => failed(checkOpenings(entry, [first, changed], context));
  const { payload } = second;
  expect(look(second)).toEqual([]);
  expect(look(tampered(second))).toEqual(['opening 1: signature', 'complete']);
  expect(look(forged(second, { attestation: other(payload.attestation) }))).toEqual(['opening 1: attestation', 'complete']);
  const challenge = payload.challenge.map((byte, i) => (i === 40 ? byte ^ 1 : byte));
  expect(look(forged(second, { challenge }))).toEqual(['opening 1: challenge', 'opening 1: index', 'complete']);
  expect(look(first)).toEqual(['opening 1: index', 'complete']);
  const leafBytes = payload.leafBytes.map((byte, i) => (i === 100 ? byte ^ 1 : byte));
  expect(look(forged(second, { leafBytes }))).toEqual(['opening 1: proof', 'opening 1: commitment', 'complete']);
  for (let i = 0; i < payload.proof.length; ++i) {
    const at = (hashes: readonly Hex[]): Hex[] => hashes.map((hash, k) => (k === i ? other(hash) : hash));
    expect(look(forged(second, { proof: at(payload.proof) }))).toEqual(['opening 1: proof', 'complete']);
    expect(look(forged(second, { commitmentProof: at(payload.commitmentProof) }))).toEqual(['opening 1: commitment', 'complete']);
  }
  const unasked = [0, 1, 2, 3, 4, 5, 6, 7].find((index) => index !== first.payload.index && index !== payload.index)!;
  expect(look(forged(second, { index: unasked }))).toEqual(['opening 1: index', 'opening 1: proof', 'opening 1: commitment', 'complete']);
  expect(failed(checkOpenings(entry, [first], context))).toEqual(['complete']);
  expect(failed(checkOpenings(entry, [], context))).toEqual(['complete']);
  // Another's opening of the same step, whose published part fits.
  const theirs = matches.find((match) => match.payload.step === entry.payload.step && match !== entry)!;
  expect(failed(checkOpenings(entry, openingsOf(theirs), context))).toContain('opening 0: commitment');
  const wrongLog = { ...context, logKey: { ...fixture.logKey, key: stranger.publicKey } };
  expect(failed(checkOpenings(entry, [first, second], wrongLog))).toEqual(['opening 0: challenge', 'opening 1: challenge', 'complete']);
  // A copyist's nonce.
  expect(failed(checkOpenings(forged(entry, { nonce: other(entry.payload.nonce) }), [first, second], context))).toContain(
    'opening 1: commitment',
  );
});

test('challenges ask for distinct leaves, all there are if there are few, and the first ones stay', () => {
  const challenge = new Uint8Array(64);
  for (let n = 0; n < 50; ++n) {
    challenge[0] = n;
    const three = challengedIndices(challenge, 8, 3);
    expect(new Set(three).size).toBe(3);
    expect(challengedIndices(challenge, 8, 4).slice(0, 3)).toEqual(three);
    expect(three.every((index) => index >= 0 && index < 8)).toBe(true);
  }
  expect(challengedIndices(challenge, 3, 8).length).toBe(3);
  for (const [leaves, count] of [
    [0, 8],
    [8, 0],
    [8, -1],
  ] as const)
    expect(challengedIndices(challenge, leaves, count)).toEqual([]);
});

test('key events: who must sign', () => {
  for (const entry of fixture.of('key')) {
    expect(failed(checkKeyEvent(entry))).toEqual([]);
    expect(failed(checkKeyEvent(tampered(entry)))).toEqual(['signature']);
  }
  const [a, b, c] = [new TestKey(1), new TestKey(2), new TestKey(3)];
  const made = (event: object, keys: readonly TestKey[]) =>
    parseEntryOf('key', envelope('application/vnd.lockstep.key-event.v1+json', canonical(event), keys));
  const rotate = { event: 'rotate', oldKey: a.publicKey, newKey: b.publicKey };
  expect(failed(checkKeyEvent(made(rotate, [a, b])))).toEqual([]);
  expect(failed(checkKeyEvent(made(rotate, [b, a])))).toEqual([]);
  for (const keys of [[a], [b], [a, c], [a, b, c]]) expect(failed(checkKeyEvent(made(rotate, keys)))).toEqual(['signature']);
  const revoke = { event: 'revoke', key: a.publicKey, reason: 'lost' };
  const operator = { operatorKey: b.publicKey, revocationKey: c.publicKey };
  for (const key of [a, b, c]) expect(failed(checkKeyEvent(made(revoke, [key]), operator))).toEqual([]);
  expect(failed(checkKeyEvent(made(revoke, [b])))).toEqual(['signature']);
  expect(failed(checkKeyEvent(made(revoke, [stranger]), operator))).toEqual(['signature']);
  expect(failed(checkKeyEvent(made(revoke, [a, b]), operator))).toEqual(['signature']);
});

test('checkpoints', () => {
  for (const entry of fixture.of('checkpoint')) {
    expect(failed(checkCheckpointAnnouncement(entry, run))).toEqual([]);
    expect(failed(checkCheckpointAnnouncement(entry, run, workers[0]))).toEqual(['signature']);
    expect(failed(checkCheckpointAnnouncement(tampered(entry), run))).toEqual(['signature']);
    expect(failed(checkCheckpointAnnouncement(forged(entry, { runId: other(runId) }), run))).toEqual(['run']);
  }
});
