// SPDX-License-Identifier: Apache-2.0
//
// Entries by themselves: the fixture's, which real programs wrote, and every way in which one is none.
import { expect, test } from 'vitest';
import { fromBase64, toBase64, utf8 } from './bytes';
import { keyId } from './ed25519';
import { isSignedBy, leafHash, parseEntry, parseEntryOf } from './entry';
import { checkAttestation } from './evidence';
import { checkOpenings } from './openings';
import { against, fixture, matches, mismatches, recordOf, records, run, stranger, workerOf } from './testing/evidence';
import { canonical, envelope, errorOf, failed, jsonChanges, Random, refuses, TestKey } from './testing/tools';

test('entries are read as they were written', () => {
  for (const [i, entry] of fixture.entries.entries()) {
    const text = fixture.file.entries[i]!;
    expect(Buffer.from(entry.bytes).toString()).toBe(text);
    expect(leafHash(text)).toBe(entry.leafHash);
    expect(parseEntry(utf8(text))).toEqual(entry);
    expect(parseEntryOf(entry.kind, text)).toEqual(entry);
    const wrong = entry.kind === 'run' ? 'key' : 'run';
    expect(errorOf(() => parseEntryOf(wrong, text)).found).toBe(entry.kind);
  }
});

test('what makes an entry none', () => {
  const [first] = fixture.file.entries;
  const key = new TestKey(1);
  const event = canonical({ event: 'revoke', key: stranger.publicKey, reason: 'lost' });
  const type = 'application/vnd.lockstep.key-event.v1+json';
  const good = envelope(type, event, [key]);
  expect(parseEntry(good).signerIds).toEqual([keyId(key.publicKey)]);
  // As the coordinator reads them: key ids in either case, base64 in either alphabet.
  const capitals = good.replace(/(?<="keyid":")[0-9a-f]*/, (id) => id.toUpperCase());
  const urlSafe = good.replace(/(?<="sig":")[^"]*/, (sig) => sig.replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', ''));
  for (const text of [capitals, urlSafe]) {
    expect(text).not.toBe(good);
    expect(parseEntry(text).signerIds).toEqual([keyId(key.publicKey)]);
    expect(isSignedBy(parseEntry(text), key.publicKey)).toBe(true);
  }
  const bad = [
    `${first!}x`,
    envelope('application/json', event, [key]),
    envelope(type, `${event} `, [key]),
    envelope(type, event, [key, key]),
    good.replace(/"keyid":"[0-9a-f]{2}/, '"keyid":"XX'),
    good.replace(/"sig":"[^"]*"/, '"sig":"AAAA"'),
    good.replace(/"keyid":"[^"]*",/, ''),
    `${good.slice(0, -1)},"x":"${'y'.repeat(65535)}"}`,
  ];
  for (const text of bad) expect(errorOf(() => parseEntry(text)).kind, text.slice(0, 200)).toBe('malformed');
  expect(refuses(() => parseEntry(`${good.slice(0, -1)},"x":"y"}`))).toBe(false);
});

/** A payload of each JSON kind, and where free text or a number may as well be another. */
const free = [
  /^\/predicate\/(engine\/(name|version|numerics)|backend\/(isa|cpu)|leaseId|firstDifference\/\w+) becomes "x"$/,
  /^\/predicate\/firstDifference\/place is gone$/,
  /^\/(name|contact|hardware|reason) becomes "x"$/,
  /^\/contact is gone$/,
  /^\/manifest\/name becomes "x"$/,
  /^\/manifest\/(recipe|model)\/\w+ becomes 0.5$/,
  /^\/(proof|commitmentProof) becomes \[\]$/,
];

test('every change of form of every kind of payload is refused', () => {
  const kinds = new Set<string>();
  const signer = new TestKey(4);
  for (const entry of [...fixture.entries, ...mismatches]) {
    if (entry.kind === 'record' || (kinds.has(entry.kind) && entry !== mismatches[0])) continue;
    kinds.add(entry.kind);
    const text = Buffer.from(entry.envelope.payload).toString();
    for (const [what, changed] of jsonChanges(text)) {
      if (free.some((pattern) => pattern.test(what))) continue;
      const error = errorOfOrNull(() => parseEntry(envelope(entry.envelope.payloadType, changed, [signer])));
      expect(error, `${entry.kind}: ${what}`).not.toBeNull();
    }
  }
  expect([...kinds].sort()).toEqual(['attestation', 'checkpoint', 'dispute', 'key', 'opening', 'run']);
});
function errorOfOrNull(run_: () => unknown): Error | null {
  return refuses(run_) ? errorOf(run_) : null;
}

test('attestations: times, classes, names', () => {
  const text = Buffer.from(matches[0]!.envelope.payload).toString();
  const parse = (from: RegExp, to: string): boolean => {
    const changed = text.replace(from, to);
    expect(changed).not.toBe(text);
    return !refuses(() => parseEntry(envelope('application/vnd.in-toto+json', changed, [stranger])));
  };
  for (const time of [
    '2023-11-14T22:13:20+00:00',
    '2023-11-14T22:13:20.5Z',
    '2023-11-14 22:13:20Z',
    '2023-02-30T00:00:00Z',
    '2023-11-14T25:13:20Z',
    '2023-11-14T24:00:00Z',
    '2023-11-14T22:13:60Z',
    'infinite-future-----Z',
    '0x23-11-14T22:13:20Z',
    '0999-11-14T22:13:20Z',
    '2023-11-14T22:13:20',
    '+023-11-14T22:13:20Z',
  ]) {
    expect(parse(/(?<="replayedAt":")[^"]*/, time), time).toBe(false);
  }
  expect(parse(/(?<="replayedAt":")[^"]*/, '2024-02-29T23:59:59Z')).toBe(true);
  for (const name of ['reference', 'x86-avx512', 'arm-neon', 'cuda-sm80', 'cuda-sm100'])
    expect(parse(/(?<="class":")[^"]*/, name), name).toBe(true);
  for (const name of [
    '',
    'x86',
    'X86-AVX2',
    'x86-avx2 ',
    'cuda-sm',
    'cuda-sm9',
    'cuda-sm9a',
    'cuda-sm1000',
    'cuda-sm09',
    'cuda-90',
    'mine',
  ]) {
    expect(parse(/(?<="class":")[^"]*/, name), name).toBe(false);
  }
  for (const [from, to] of [
    [/"match"/, '"inconclusive"'],
    [/"match"/, '"mismatch"'],
    [/step-0\.record/, 'step-1.record'],
    [/step-audit\/v1/, 'step-audit/v2'],
    [/(?<="leaseId":")[^"]*/, 'a b'],
    [/(?<="leaseId":")[^"]*/, ''],
    [/(?<="cpu":")[^"]*/, 'a\\nb'],
    [/(?<="cpu":")[^"]*/, '\u007f'],
  ] as const) {
    expect(parse(from, to), to).toBe(false);
  }
});

test('a mismatch holds together', () => {
  const text = Buffer.from(mismatches[0]!.envelope.payload).toString();
  const refused = (changed: string): boolean => refuses(() => parseEntry(envelope('application/vnd.in-toto+json', changed, [stranger])));
  expect(refused(text)).toBe(false);
  for (const member of ['fromChain', 'computedChain', 'parameters', 'gradient', 'transcript', 'cursor']) {
    expect(refused(text.replace(new RegExp(`(?<="${member}":")..`), 'zz'.replaceAll('z', '0'))), member).toBe(true);
  }
  const published = toBase64(recordOf(mismatches[0]!).payload.record.bytes);
  const computed = toBase64(mismatches[0]!.payload.computedRecord!.bytes);
  expect(refused(text.replace(computed, published))).toBe(true);
  expect(refused(text.replace(computed, 'AAAA'))).toBe(true);
  expect(fromBase64(computed)!.length).toBe(336);
});

test('keys that are refused are refused wherever they stand', () => {
  const weak = '01'.padEnd(64, '0');
  const event = { event: 'worker', workerKey: weak, operatorKey: stranger.publicKey, hardware: 'x' };
  const type = 'application/vnd.lockstep.key-event.v1+json';
  expect(errorOf(() => parseEntry(envelope(type, canonical(event), [stranger]))).message).toContain('small order');
  expect(isSignedBy(matches[0]!, weak)).toBe(false);
  expect(isSignedBy(matches[0]!, 'no key')).toBe(false);
  expect(failed(checkAttestation(matches[0]!, { ...against(matches[0]!), workerKey: weak }))).toEqual(['signature']);
});

test("random changes throw nothing but the library's error, and leave no signature good", () => {
  const random = new Random(19);
  const picks = [
    run,
    records[0]!,
    matches[0]!,
    mismatches[0]!,
    fixture.of('opening')[0]!,
    fixture.of('dispute')[0]!,
    fixture.of('key')[1]!,
  ];
  let read = 0;
  for (let n = 0; n < 700; ++n) {
    const entry = picks[n % picks.length]!;
    const key = entry.kind === 'attestation' || entry.kind === 'opening' ? workerOf(entry) : run.payload.trainerKey;
    const mutated = random.mutate(entry.bytes);
    if (refuses(() => parseEntry(mutated))) continue;
    ++read;
    const changed = parseEntry(mutated);
    const same =
      canonical({ p: toBase64(changed.envelope.payload), t: changed.envelope.payloadType }) ===
      canonical({ p: toBase64(entry.envelope.payload), t: entry.envelope.payloadType });
    if (!same) expect(isSignedBy(changed, key)).toBe(false);
    if (changed.kind === 'attestation') checkAttestation(changed, { record: records[0]!, run, workerKey: key });
    if (changed.kind === 'opening') checkOpenings(matches[0]!, [changed], { ...against(matches[0]!), logKey: fixture.logKey });
  }
  expect(read).toBeGreaterThan(10);
});
