// SPDX-License-Identifier: Apache-2.0
//
// Openings: what tells an auditor who replayed a step from one who copied its published roots. docs/attestation.md, "Openings".
import { digestBytes, equalBytes, sha256, toHex, u64Bytes, utf8 } from './bytes';
import { CheckList } from './check_list';
import { dssePae } from './dsse';
import { verifyEd25519 } from './ed25519';
import { isSignedBy } from './entry';
import { leafDigest, verifyInclusion } from './merkle';
import { transcriptLeavesOf } from './run_manifest';
import type { AttestationEntry, Check, Hex, LogKey, OpeningEntry, RecordEntry, RunEntry } from './types';

const CHALLENGE_TYPE = 'application/vnd.lockstep.challenge.v1';
const INDEX_TAG = utf8('lockstep opening index 1');

/** The leaves that a challenge asks for: the first `count` different draws, or all of `leaves` if there are fewer. */
export function challengedIndices(challenge: Uint8Array, leaves: number, count: number): number[] {
  const indices = new Set<number>();
  const wanted = Math.min(leaves, Math.max(count, 0));
  for (let draw = 0n; indices.size < wanted; ++draw) {
    const hash = sha256(INDEX_TAG, challenge, u64Bytes(draw));
    const bits = new DataView(hash.buffer, hash.byteOffset).getBigUint64(0, true);
    indices.add(Number(bits % BigInt(leaves)));
  }
  return [...indices];
}

/** Whether the challenge is the log key's signature over the attestation's leaf hash. */
export function verifyChallenge(logKey: Hex, attestation: Hex, challenge: Uint8Array): boolean {
  return verifyEd25519(logKey, dssePae(CHALLENGE_TYPE, digestBytes(attestation)), challenge);
}

export interface OpeningsContext {
  readonly record: RecordEntry;
  readonly run: RunEntry;
  readonly workerKey: Hex;
  readonly logKey: LogKey;
}

/**
 * The openings of one attestation. For each, by its place N in `openings`: "opening N: signature" (the worker's, alone), "attestation" (its
 * leaf hash), "challenge" (the log key's, and the same in all), "index" (asked for, and not opened by one before), "proof" (the leaf is under
 * the record's transcript root), "commitment" (and under the attestation's openingsDigest). Then "complete": those that are good are all that
 * the run's quorum asks for; "found" says how many there are.
 */
export function checkOpenings(attestation: AttestationEntry, openings: readonly OpeningEntry[], context: OpeningsContext): Check[] {
  const { manifest, quorum } = context.run.payload;
  const leaves = transcriptLeavesOf(manifest, context.record.payload.record.tokensBefore);
  const needed = attestation.payload.verdict === 'match' ? Math.min(quorum.openings, leaves) : 0;
  const challenge = openings[0]?.payload.challenge;
  const asked = challenge === undefined ? [] : challengedIndices(challenge, leaves, needed);
  const opened = new Set<number>();
  const checks: Check[] = [];
  for (const [n, opening] of openings.entries()) {
    const list = new CheckList(`opening ${n}: `);
    checkClaim(list, opening, attestation, context);
    const same = challenge !== undefined && equalBytes(opening.payload.challenge, challenge);
    list.add(
      'index',
      same && asked.includes(opening.payload.index) && !opened.has(opening.payload.index),
      `the challenge asks for leaf ${opening.payload.index} of ${leaves}`,
      `expected a leaf that the first challenge asks for, ${asked.join(', ') || 'none'}, each once; found ${opening.payload.index}`,
    );
    checkProofs(list, opening, attestation, context, leaves);
    checks.push(...list.checks);
    if (list.checks.every(({ ok }) => ok)) opened.add(opening.payload.index);
  }
  const ok = opened.size === needed;
  const message = `${opened.size} of ${needed} transcript leaves are opened`;
  checks.push({ name: 'complete', ok, message, ...(ok ? {} : { expected: String(needed), found: String(opened.size) }) });
  return checks;
}

/** Who opens, what, and by whose challenge. */
function checkClaim(list: CheckList, opening: OpeningEntry, attestation: AttestationEntry, context: OpeningsContext): void {
  const { workerKey, logKey } = context;
  const signed = opening.signerIds.length === 1 && isSignedBy(opening, workerKey);
  list.add('signature', signed, `signed by the worker's key ${workerKey}`, `expected one signature, by the worker's key ${workerKey}`);
  list.equal('attestation', "the attestation's leaf hash", attestation.leafHash, opening.payload.attestation);
  const challenged = verifyChallenge(logKey.key, attestation.leafHash, opening.payload.challenge);
  list.add('challenge', challenged, "the challenge is signed by the log's key", "the challenge is not the log's for this attestation");
}

/** The leaf under both roots. */
function checkProofs(
  list: CheckList,
  opening: OpeningEntry,
  attestation: AttestationEntry,
  context: OpeningsContext,
  leaves: number,
): void {
  const { index, leafBytes, proof, commitmentProof } = opening.payload;
  const { nonce, openingsDigest } = attestation.payload;
  list.holds('proof', 'the leaf is under the published transcript root', () =>
    verifyInclusion(toHex(leafDigest(leafBytes)), index, leaves, proof, context.record.payload.record.transcript),
  );
  list.holds('commitment', 'the leaf is what the worker had committed to', () =>
    verifyInclusion(
      toHex(leafDigest(digestBytes(nonce), digestBytes(context.workerKey), leafBytes)),
      index,
      leaves,
      commitmentProof,
      openingsDigest,
    ),
  );
}
