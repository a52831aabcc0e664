// SPDX-License-Identifier: Apache-2.0
//
// Entries of the log: the bytes of an envelope, told apart by payload type, and what they say. Form only, and signatures by a key that
// the caller names; what an entry says about others is evidence.ts. docs/attestation.md, "Entries".
import { parseAttestation } from './attestation';
import { asBytes, isDigest, toHex } from './bytes';
import { dssePae, parseDsse } from './dsse';
import { keyId, verifyEd25519 } from './ed25519';
import { CheckError, quote } from './errors';
import { leafDigest } from './merkle';
import { parseCheckpointAnnouncement, parseDispute, parseKeyEvent, parseOpening, parseRecord, parseRun } from './payloads';
import type { EntryKind, Hex, LogEntry } from './types';

const WHERE = 'log entry';
const BYTES_MAX = 65535;

function parsePayload(type: string, payload: Uint8Array): Pick<LogEntry, 'kind' | 'payload'> {
  switch (type) {
    case 'application/vnd.in-toto+json':
      return { kind: 'attestation', payload: parseAttestation(payload) };
    case 'application/vnd.lockstep.step-record.v1':
      return { kind: 'record', payload: parseRecord(payload) };
    case 'application/vnd.lockstep.opening.v1+json':
      return { kind: 'opening', payload: parseOpening(payload) };
    case 'application/vnd.lockstep.run.v1+json':
      return { kind: 'run', payload: parseRun(payload) };
    case 'application/vnd.lockstep.checkpoint.v1+json':
      return { kind: 'checkpoint', payload: parseCheckpointAnnouncement(payload) };
    case 'application/vnd.lockstep.key-event.v1+json':
      return { kind: 'key', payload: parseKeyEvent(payload) };
    case 'application/vnd.lockstep.dispute.v1+json':
      return { kind: 'dispute', payload: parseDispute(payload) };
    default:
      throw new CheckError('malformed', WHERE, { expected: 'a payload type of the log', found: quote(type) });
  }
}

/** Leaf hash of an entry's bytes: what it goes by in the log. */
export function leafHash(entry: string | Uint8Array): Hex {
  return toHex(leafDigest(asBytes(entry)));
}

/** An entry, by every rule of docs/attestation.md that needs the entry alone. Nothing is verified. Throws "malformed". */
export function parseEntry(input: string | Uint8Array): LogEntry {
  const bytes = asBytes(input);
  if (bytes.length > BYTES_MAX)
    throw new CheckError('malformed', WHERE, { expected: `at most ${BYTES_MAX} bytes`, found: String(bytes.length) });
  const envelope = parseDsse(input);
  const payload = parsePayload(envelope.payloadType, envelope.payload);
  const signerIds = envelope.signatures.map(({ keyId: id, bytes: signature }) => {
    const lower = id.toLowerCase(); // a hint, which the coordinator reads in either case
    if (isDigest(lower) && signature.length === 64) return lower;
    throw new CheckError('malformed', WHERE, {
      expected: 'signatures of 64 bytes with the SHA-256 of their key as keyid',
      found: 'another',
    });
  });
  if (new Set(signerIds).size !== signerIds.length) {
    throw new CheckError('malformed', WHERE, { expected: 'one signature a key', found: 'two' });
  }
  return { ...payload, bytes: bytes.slice(), envelope, leafHash: leafHash(bytes), signerIds } as LogEntry;
}

/** parseEntry, and that it is of this kind. */
export function parseEntryOf<Kind extends EntryKind>(kind: Kind, input: string | Uint8Array): Extract<LogEntry, { kind: Kind }> {
  const entry = parseEntry(input);
  if (entry.kind === kind) return entry as Extract<LogEntry, { kind: Kind }>;
  throw new CheckError('malformed', WHERE, { expected: `an entry of kind ${kind}`, found: entry.kind });
}

/** Whether the envelope has a valid signature of this key. */
export function isSignedBy(entry: LogEntry, key: Hex): boolean {
  if (!isDigest(key)) return false;
  const signature = entry.envelope.signatures[entry.signerIds.indexOf(keyId(key))];
  return signature !== undefined && verifyEd25519(key, dssePae(entry.envelope.payloadType, entry.envelope.payload), signature.bytes);
}
