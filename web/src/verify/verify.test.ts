// SPDX-License-Identifier: Apache-2.0
//
// The checks that pages make, over the log of a real network (src/checks/testing/fixture.json.gz), as it is and after somebody changed it.
import { createHash } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { Failure } from '../api/client';
import type { Attestation, Log, LogEntryDetail, RunDetail, StepDetail } from '../api/types';
import { keyId, type Check } from '../checks';
import { Fixture, FIXTURE } from '../checks/testing/fixture';
import { verifyEntry } from './entry';
import { verifyHead, type Memory } from './head';
import { verifyReceipt } from './receipt';
import { verifyStep, type StepSources, type StepVerification } from './step';

const kFixture = new Fixture(FIXTURE);
const kNever = new AbortController().signal;
const kNow = 1_800_000_000_000;

function memory(): Memory & { kept: Map<string, string> } {
  const kept = new Map<string, string>();
  return { kept, get: (name) => kept.get(name) ?? null, set: (name, value) => void kept.set(name, value) };
}

function logOf(note: string): Log {
  const [origin, size, root] = note.split('\n') as [string, string, string];
  return { checkpoint: note, size: Number(size), root: Buffer.from(root, 'base64').toString('hex'), key: kFixture.file.logKey, origin };
}
const kLog = logOf(kFixture.file.checkpoint);
const kEarly = logOf(kFixture.file.earlyCheckpoint);
const failing = (checks: readonly Check[]) => checks.filter((check) => !check.ok).map((check) => check.name);

describe('verifyHead', () => {
  it('remembers what holds, and holds the next head against it', async () => {
    const mine = memory();
    const first = await verifyHead(kEarly, mine, kFixture.fetchTile, kNow, kNever);
    expect([failing(first.checks), first.before]).toEqual([[], null]);
    const second = await verifyHead(kLog, mine, kFixture.fetchTile, kNow + 1, kNever);
    expect(failing(second.checks)).toEqual([]);
    expect(second.checks.map((check) => check.name)).toContain('consistency');
    expect(second.before).toMatchObject({ first_ms: kNow, seen_ms: kNow, key: kLog.key });
  });
  it('notices an older head, and keeps the newer one', async () => {
    const mine = memory();
    await verifyHead(kLog, mine, kFixture.fetchTile, kNow, kNever);
    const kept = [...mine.kept];
    const found = await verifyHead(kEarly, mine, kFixture.fetchTile, kNow, kNever);
    expect(failing(found.checks)).toEqual(['consistency']);
    expect([...mine.kept]).toEqual(kept);
  });
  it('notices another key', async () => {
    const mine = memory();
    await verifyHead(kEarly, mine, kFixture.fetchTile, kNow, kNever);
    const name = [...mine.kept.keys()][0]!;
    mine.set(name, JSON.stringify({ ...JSON.parse(mine.get(name)!), key: 'other+00000000+AQ==' }));
    expect(failing((await verifyHead(kLog, mine, kFixture.fetchTile, kNow, kNever)).checks)).toEqual(['key']);
  });
  it('notices tiles that are not the log’s', async () => {
    const mine = memory();
    await verifyHead(kEarly, mine, kFixture.fetchTile, kNow, kNever);
    const wrong = async (path: string) => (await kFixture.fetchTile(path)).map((byte, n) => (n === 5 ? byte ^ 1 : byte));
    expect(failing((await verifyHead(kLog, mine, wrong, kNow, kNever)).checks)).toEqual(['consistency']);
  });
  it('notices a signature that does not hold, and a page that says something else', async () => {
    const mine = memory();
    const forged = kLog.checkpoint.replace(/^\d+$/m, String(kLog.size + 1));
    expect(failing((await verifyHead({ ...kLog, checkpoint: forged }, mine, kFixture.fetchTile, kNow, kNever)).checks)).toEqual(['signature']);
    expect(failing((await verifyHead({ ...kLog, size: kLog.size + 1 }, mine, kFixture.fetchTile, kNow, kNever)).checks)).toEqual(['shown']);
    expect(mine.kept.size).toBe(0);
  });
  it('takes a memory that is not one for none', async () => {
    const mine = memory();
    mine.set(`lockstep.log.${kLog.origin}`, '{"key":7}');
    expect((await verifyHead(kLog, mine, kFixture.fetchTile, kNow, kNever)).before).toBeNull();
  });
});

const sizeOf = (proof: string) => Number(proof.split('\n\n')[1]!.split('\n')[1]);

describe('verifyReceipt', () => {
  // As worker and trainer keep them: the entry as base64.
  const kept = kFixture.file.receipts.map(({ entry, proof }) => ({ entry: Buffer.from(entry).toString('base64'), proof }));
  const text = JSON.stringify(kept[0]);
  const newest = kept.reduce((one, other) => (sizeOf(other.proof) > sizeOf(one.proof) ? other : one));
  const check = (receipt: string, note = kLog.checkpoint) => verifyReceipt(receipt, kFixture.logKey, note, kFixture.fetchTile, kNever);

  it('finds what was promised', async () => {
    const found = await check(text);
    expect(failing(found.checks)).toEqual([]);
    expect(found.index).toBeGreaterThan(0);
  });
  it('notices a log that is older than its promise', async () => {
    expect(failing((await check(JSON.stringify(newest), kEarly.checkpoint)).checks)).toEqual(['kept']);
  });
  it.each(['', '{', 'null', '[]', '{"entry":1,"proof":2}', '{"entry":"%%%","proof":""}', '{"entry":"AAAA","proof":""}'])('refuses %j with a reason', async (receipt) => {
    const found = await check(receipt);
    expect(failing(found.checks)).toEqual(['receipt']);
    expect(found.checks[0]!.message).not.toBe('');
  });
});

// What the coordinator would answer about the fixture's log.
const kRun = kFixture.of('run')[0]!;
const kLeaves = kFixture.entries.map((entry) => Buffer.from(entry.leafHash, 'hex'));
const kWorkerKeys = new Map(kFixture.of('key').flatMap((entry) => (entry.payload.event === 'worker' ? [[entry.payload.workerKey, entry.payload.operatorKey] as const] : [])));
const indexOf = (entry: { leafHash: string }) => kFixture.entries.findIndex((one) => one.leafHash === entry.leafHash);
const sha256 = (...parts: Uint8Array[]) => createHash('sha256').update(Buffer.concat(parts)).digest();

// RFC 9162, 2.1.1 and 2.1.3.1: root of, and proof within, a stretch of leaves.
function split(count: number): number {
  let half = 1;
  while (2 * half < count) half *= 2;
  return half;
}
function root(begin: number, end: number): Buffer {
  if (end - begin === 1) return kLeaves[begin]!;
  const middle = begin + split(end - begin);
  return sha256(Buffer.from([1]), root(begin, middle), root(middle, end));
}
function proof(index: number, begin: number, end: number): Buffer[] {
  if (end - begin === 1) return [];
  const middle = begin + split(end - begin);
  return index < middle ? [...proof(index, begin, middle), root(middle, end)] : [...proof(index, middle, end), root(begin, middle)];
}

function detailOf(index: number): LogEntryDetail {
  const entry = kFixture.entries[index]!;
  const path = proof(index, 0, kLog.size).map((hash) => `${hash.toString('base64')}\n`);
  return {
    index,
    kind: entry.kind,
    run: null,
    step: null,
    leaf_hash: entry.leafHash,
    bytes: entry.bytes.length,
    received_ms: null,
    envelope: kFixture.file.entries[index]!,
    receipt: `c2sp.org/tlog-proof@v1\nindex ${index}\n${path.join('')}\n${kLog.checkpoint}`,
  };
}

function stepDetail(step: number): StepDetail {
  const entry = kFixture.of('record').find((one) => Number(one.payload.record.step) === step)!;
  const attestations = kFixture.of('attestation').filter((one) => one.payload.step === step);
  return {
    step,
    run: kRun.payload.manifest.runId,
    record: Buffer.from(entry.payload.record.bytes).toString('base64'),
    chain: entry.payload.chain,
    log_index: indexOf(entry),
    record_envelope: kFixture.file.entries[indexOf(entry)],
    attestations: attestations.map((one): Partial<Attestation> => {
      const worker_key = [...kWorkerKeys.keys()].find((key) => one.signerIds.includes(keyId(key)))!;
      const openings = kFixture.of('opening').filter((opening) => opening.payload.attestation === one.leafHash);
      return {
        log_index: indexOf(one),
        step,
        worker_key,
        operator_key: kWorkerKeys.get(worker_key)!,
        verdict: one.payload.verdict,
        openings: openings.map(indexOf),
        openings_needed: 2,
        envelope: kFixture.file.entries[indexOf(one)]!,
      };
    }),
  } as Partial<StepDetail> as StepDetail;
}

async function verified(step: number, change: (sources: StepSources) => void = () => {}): Promise<StepVerification> {
  const sources: StepSources = {
    run: { run: kRun.payload.manifest.runId, registration: kFixture.file.entries[indexOf(kRun)]!, trainer_key: kRun.payload.trainerKey, first_step: 0 } as RunDetail,
    detail: stepDetail(step),
    log_key: kFixture.file.logKey,
    known_log_key: null,
    previous: step === 0 ? null : stepDetail(step - 1),
    entry: async (index) => detailOf(index),
    workerEntry: async (key) => kFixture.entries.findIndex((entry) => entry.kind === 'key' && entry.payload.event === 'worker' && entry.payload.workerKey === key),
  };
  change(sources);
  let last: StepVerification | undefined;
  await verifyStep(sources, (so_far) => (last = so_far), kNever);
  return last!;
}
const allFailing = (found: StepVerification) => [failing(found.record), [...found.attestations.values()].map(failing)];

describe('verifyStep', () => {
  it.each([0, kFixture.file.cheatedStep, kFixture.file.steps - 1])('step %i of the fixture holds', async (step) => {
    const found = await verified(step);
    expect(found.done).toBe(true);
    expect(allFailing(found)).toEqual([[], [[], []]]);
    for (const list of found.attestations.values()) expect(list.map((check) => check.name)).toEqual(expect.arrayContaining(['signature', 'worker', 'receipt']));
    if (step === 0) for (const list of found.attestations.values()) expect(list.map((check) => check.name)).toContain('complete');
  });
  it('a page that shows another record', async () => {
    const found = await verified(1, ({ detail }) => (detail.chain = '00'.repeat(32)));
    expect(failing(found.record)).toEqual(['shown']);
  });
  it('a record of another step', async () => {
    const found = await verified(1, (sources) => {
      const other = stepDetail(2);
      sources.detail.record_envelope = other.record_envelope;
      sources.detail.log_index = other.log_index;
    });
    expect(failing(found.record)).toEqual(expect.arrayContaining(['chain', 'shown']));
    expect([...found.attestations.values()].every((list) => failing(list).includes('subject'))).toBe(true);
  });
  it('an attestation under another worker’s name', async () => {
    const found = await verified(1, ({ detail }) => (detail.attestations[0]!.worker_key = detail.attestations[1]!.worker_key));
    const [first, second] = [...found.attestations.values()];
    expect(failing(first!)).toContain('signature');
    expect(failing(second!)).toEqual([]);
  });
  it('openings that are missing', async () => {
    const found = await verified(1, ({ detail }) => detail.attestations[0]!.openings!.pop());
    expect(failing([...found.attestations.values()][0]!)).toEqual(['complete']);
  });
  it('a receipt for another entry, and one that cannot be had', async () => {
    const other = await verified(1, (sources) => {
      sources.entry = async (index) => (index === sources.detail.log_index ? { ...detailOf(index), receipt: detailOf(index - 1).receipt } : detailOf(index));
    });
    expect(failing(other.record)).toEqual(['receipt']);
    const none = await verified(1, (sources) => {
      sources.entry = async (index) => {
        if (index === sources.detail.log_index) throw new Failure('offline', 'OFFLINE', 'the coordinator cannot be reached');
        return detailOf(index);
      };
    });
    expect(none.record.find((check) => !check.ok)!.message).toContain('could not be fetched');
  });
  it('another log key than before', async () => {
    const found = await verified(1, (sources) => (sources.known_log_key = 'other'));
    expect(failing(found.record)).toEqual(['log key']);
  });
  it('no registration: nothing is said to hold', async () => {
    const found = await verified(1, (sources) => (sources.run = { ...sources.run, registration: null }));
    expect([failing(found.record), found.attestations.size, found.done]).toEqual([['run'], 0, true]);
  });
});

describe('verifyEntry', () => {
  it.each(kFixture.entries.slice(0, 12).map((entry, index) => [index, entry.kind] as const))('entry %i, a %s', (index) => {
    const found = verifyEntry(detailOf(index), kFixture.file.logKey);
    expect(failing(found.checks)).toEqual([]);
    expect(found.checks.length).toBeGreaterThanOrEqual(2);
  });
  it('notices a changed letter', () => {
    const detail = detailOf(3);
    const changed = verifyEntry({ ...detail, envelope: detail.envelope.replace('"sig":"', '"sig": "') }, kFixture.file.logKey);
    expect(failing(changed.checks)).toEqual(['receipt']);
  });
});
