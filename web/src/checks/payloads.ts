// SPDX-License-Identifier: Apache-2.0
//
// Payloads of entries other than attestations: runs, records, checkpoints, keys, openings, disputes. Members and forms:
// docs/attestation.md.
import { toHex } from './bytes';
import { CheckError } from './errors';
import { type Fields, readObject } from './fields';
import { parseCanonicalObject } from './json';
import { runManifestOf, runStart } from './run_manifest';
import { chainAfter, decodeStepRecord, decodeTranscriptLeaf, genesisChain, STEP_RECORD_BYTES, stepRecordDigest } from './step_record';
import type { CheckpointAnnouncement, CheckpointFile, Dispute, KeyEvent, Opening, PublishedRecord, RunRegistration } from './types';

const ENVELOPE_BYTES_MAX = 65535;
const PROOF_MAX = 64;

function readPayload<T>(payload: Uint8Array, where: string, read: (fields: Fields) => T): T {
  return readObject(parseCanonicalObject(payload, { where, depthMax: 16 }), where, read);
}

export function parseRun(payload: Uint8Array): RunRegistration {
  return readPayload(payload, 'run registration', (fields) => {
    const manifest = runManifestOf(fields.value('manifest'));
    const registration = {
      manifest,
      trainerKey: fields.publicKey('trainerKey'),
      quorum: fields.object('quorum', (quorum) => ({
        operators: quorum.integer('operators', 1, 100),
        backends: quorum.integer('backends', 1, 8),
        openings: quorum.integer('openings', 0, 8),
      })),
      firstStep: runStart(manifest).step,
    };
    if (manifest.parent !== undefined) return { ...registration, firstChain: manifest.parent.chain };
    const genesis = fields.object('genesis', (part) => ({
      parameters: part.digest('parameters'),
      firstMoment: part.digest('firstMoment'),
      secondMoment: part.digest('secondMoment'),
      cursor: part.digest('cursor'),
    }));
    return { ...registration, genesis, firstChain: genesisChain(manifest.runId, genesis) };
  });
}

export function parseRecord(payload: Uint8Array): PublishedRecord {
  const bytes = 32 + STEP_RECORD_BYTES;
  if (payload.length !== bytes) {
    throw new CheckError('malformed', 'published record', { expected: `${bytes} bytes`, found: String(payload.length) });
  }
  const record = decodeStepRecord(payload.subarray(32));
  return { runId: toHex(payload.subarray(0, 32)), record, digest: stepRecordDigest(record), chain: chainAfter(record) };
}

const CHECKPOINT_FILES = ['first_moment.safetensors', 'parameters.safetensors', 'second_moment.safetensors'] as const;

/** The three files, as an announcement and checkpoint.json list them. */
export function readCheckpointFiles(fields: Fields): CheckpointFile[] {
  const items = fields.array('files', CHECKPOINT_FILES.length);
  if (items.length !== CHECKPOINT_FILES.length) fields.fail('files', `${CHECKPOINT_FILES.length} files`, String(items.length));
  return CHECKPOINT_FILES.map((name, i) =>
    readObject(items[i]!, `${fields.where}.files[${i}]`, (file) => ({
      name: file.word('name', [name]),
      bytes: file.integer('bytes', 1, 2 ** 50),
      sha256: file.digest('sha256'),
    })),
  );
}

export function parseCheckpointAnnouncement(payload: Uint8Array): CheckpointAnnouncement {
  return readPayload(payload, 'checkpoint announcement', (fields) => ({
    runId: fields.digest('run'),
    nextStep: fields.step('nextStep'),
    chain: fields.digest('chain'),
    manifest: fields.digest('manifest'),
    files: readCheckpointFiles(fields),
  }));
}

/** Two keys of an event are not the same. */
function expectOther(fields: Fields, key: string, a: string, b: string): void {
  if (a === b) fields.fail(key, "a key other than the event's first", 'the same');
}

export function parseKeyEvent(payload: Uint8Array): KeyEvent {
  return readPayload(payload, 'key event', (fields): KeyEvent => {
    const event = fields.word('event', ['operator', 'worker', 'rotate', 'revoke']);
    if (event === 'operator') {
      const name = fields.line('name', 64);
      const contact = fields.has('contact') ? { contact: fields.line('contact', 256) } : {};
      const keys = { operatorKey: fields.publicKey('operatorKey'), revocationKey: fields.publicKey('revocationKey') };
      expectOther(fields, 'revocationKey', keys.operatorKey, keys.revocationKey);
      return { event, name, ...contact, ...keys };
    }
    if (event === 'worker') {
      const keys = { operatorKey: fields.publicKey('operatorKey'), workerKey: fields.publicKey('workerKey') };
      expectOther(fields, 'workerKey', keys.operatorKey, keys.workerKey);
      return { event, hardware: fields.line('hardware', 128), ...keys };
    }
    if (event === 'rotate') {
      const keys = { oldKey: fields.publicKey('oldKey'), newKey: fields.publicKey('newKey') };
      expectOther(fields, 'newKey', keys.oldKey, keys.newKey);
      return { event, ...keys };
    }
    return { event, key: fields.publicKey('key'), reason: fields.line('reason', 256) };
  });
}

export function parseOpening(payload: Uint8Array): Opening {
  return readPayload(payload, 'opening', (fields) => {
    const challenge = fields.base64('challenge', 64);
    if (challenge.length !== 64) fields.fail('challenge', '64 bytes', String(challenge.length));
    const leafBytes = fields.base64('leaf', 65535);
    return {
      attestation: fields.digest('attestation'),
      challenge,
      commitmentProof: fields.digests('commitmentProof', PROOF_MAX),
      index: fields.integer('index', 0, 2 ** 40),
      leafBytes,
      leaf: decodeTranscriptLeaf(leafBytes),
      proof: fields.digests('proof', PROOF_MAX),
    };
  });
}

export function parseDispute(payload: Uint8Array): Dispute {
  return readPayload(payload, 'dispute', (fields) => {
    const items = fields.array('evidence', 16);
    if (items.length === 0) fields.fail('evidence', 'some', 'none');
    return {
      runId: fields.digest('run'),
      step: fields.step('step'),
      reason: fields.word('reason', ['mismatch', 'second-history', 'bad-opening']),
      evidence: items.map((item, i) =>
        readObject(item, `dispute.evidence[${i}]`, (one) =>
          one.has('envelope') ? { envelope: one.base64('envelope', ENVELOPE_BYTES_MAX) } : { entry: one.digest('entry') },
        ),
      ),
    };
  });
}
