// SPDX-License-Identifier: Apache-2.0
//
// DSSE v1 envelopes: docs/attestation.md, "Entries". As audit/evidence/dsse.h reads them; this file knows no kinds, entry.ts does.
import { concat, fromBase64, utf8 } from './bytes';
import { CheckError } from './errors';
import { type Json, JsonObject, parseJson } from './json';
import type { DsseEnvelope, DsseSignature } from './types';

const WHERE = 'DSSE envelope';
const DEPTH_MAX = 16;
const SIGNATURES_MAX = 16;

function malformed(expected: string, found: string): never {
  throw new CheckError('malformed', WHERE, { expected, found });
}

/** The member, which must not come twice: readers differ about which one counts. Members with other names may. */
function only(object: JsonObject, key: string): Json | undefined {
  const values = object.members.filter(([name]) => name === key);
  if (values.length > 1) malformed(`the member "${key}" once`, 'it twice');
  return values[0]?.[1];
}

function text(object: JsonObject, key: string): string | undefined {
  const value = only(object, key);
  return value === undefined || typeof value === 'string' ? value : malformed(`a string as "${key}"`, 'something else');
}

function bytes(object: JsonObject, key: string): Uint8Array {
  const value = text(object, key) ?? malformed(`"${key}"`, 'none');
  return fromBase64(value) ?? malformed(`base64 as "${key}"`, 'something else');
}

function signature(json: Json): DsseSignature {
  if (!(json instanceof JsonObject)) malformed('objects as signatures', 'something else');
  return { keyId: text(json, 'keyid') ?? '', bytes: bytes(json, 'sig') };
}

/** Any JSON of the form that docs/attestation.md gives. Nothing is verified. */
export function parseDsse(envelope: string | Uint8Array): DsseEnvelope {
  const json = parseJson(envelope, { where: WHERE, depthMax: DEPTH_MAX });
  if (!(json instanceof JsonObject)) malformed('an object', 'something else');
  const payload = bytes(json, 'payload');
  const payloadType = text(json, 'payloadType') ?? malformed('a payload type', 'none');
  if (payloadType === '') malformed('a payload type', 'an empty one');
  const signatures = only(json, 'signatures');
  if (!(signatures instanceof Array)) malformed('an array as "signatures"', signatures === undefined ? 'none' : 'something else');
  if (signatures.length < 1 || signatures.length > SIGNATURES_MAX)
    malformed(`1 to ${SIGNATURES_MAX} signatures`, String(signatures.length));
  return { payload, payloadType, signatures: signatures.map(signature) };
}

/** What is signed: "DSSEv1", and the type and the payload, each after its length. */
export function dssePae(payloadType: string, payload: Uint8Array): Uint8Array {
  const type = utf8(payloadType);
  return concat([utf8(`DSSEv1 ${type.length} `), type, utf8(` ${payload.length} `), payload]);
}
