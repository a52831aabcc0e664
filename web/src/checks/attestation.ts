// SPDX-License-Identifier: Apache-2.0
//
// Attestations: in-toto statements about one step record. Members and the rules that hold within one: docs/attestation.md.
import { sha256Hex, toHex } from './bytes';
import { CheckError, quote } from './errors';
import { type Fields, readObject } from './fields';
import { parseCanonicalObject } from './json';
import { chainAfter, decodeStepRecord, rootsOf, STEP_RECORD_BYTES } from './step_record';
import type { Attestation, Difference, Hex, Roots, StepRecord } from './types';

const WHERE = 'attestation';
const TEXT_BYTES_MAX = 256;
const BACKEND_CLASS = /^(?:reference|x86-avx2|x86-avx512|arm-neon|cuda-sm[1-9][0-9]{1,2})$/;

function readRoots(fields: Fields): Roots {
  return {
    parameters: fields.digest('parameters'),
    firstMoment: fields.digest('firstMoment'),
    secondMoment: fields.digest('secondMoment'),
    gradient: fields.digest('gradient'),
    windows: fields.digest('windows'),
    transcript: fields.digest('transcript'),
    cursor: fields.digest('cursor'),
  };
}

function readEngine(fields: Fields): Attestation['engine'] {
  return {
    name: fields.line('name', 64),
    version: fields.line('version', 64),
    buildDigest: fields.digest('buildDigest'),
    numerics: fields.line('numerics', 64),
  };
}

function readBackend(fields: Fields): Attestation['backend'] {
  const name = fields.string('class', 32);
  if (!BACKEND_CLASS.test(name)) fields.fail('class', 'a known class of backends', quote(name));
  return {
    class: name,
    isa: fields.line('isa', 64),
    cpu: fields.line('cpu', TEXT_BYTES_MAX),
    threads: fields.integer('threads', 1, 2 ** 20),
  };
}

/** 2006-01-02T15:04:05Z, a time that there is: no leap second, four digits of a year that begin with none of 0. */
function readTime(fields: Fields, key: string): string {
  const text = fields.string(key, 32);
  const time = /^[1-9][0-9]{3}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z$/.test(text) ? new Date(text) : null;
  if (time !== null && !Number.isNaN(time.getTime()) && time.toISOString() === text.replace('Z', '.000Z')) return text;
  return fields.fail(key, 'a time as 2006-01-02T15:04:05Z', quote(text));
}

function readLeaseId(fields: Fields): string {
  const id = fields.string('leaseId', 64);
  return /^[A-Za-z0-9_-]+$/.test(id) ? id : fields.fail('leaseId', "letters, digits, '-' and '_'", 'something else');
}

function readDifference(fields: Fields): Difference {
  return {
    field: fields.line('field', 64),
    expected: fields.line('expected', TEXT_BYTES_MAX),
    found: fields.line('found', TEXT_BYTES_MAX),
    ...(fields.has('place') ? { place: fields.line('place', TEXT_BYTES_MAX) } : {}),
  };
}

/** The replayed record, which says what the rest of the predicate says. */
function readComputedRecord(fields: Fields, claims: Claims): StepRecord {
  const bytes = fields.base64('computedRecord', STEP_RECORD_BYTES);
  const record = decodeStepRecord(bytes);
  const same =
    record.step === BigInt(claims.step) &&
    record.previousChain === claims.fromChain &&
    chainAfter(record) === claims.computedChain &&
    JSON.stringify(rootsOf(record)) === JSON.stringify(rootsInOrder(claims.roots));
  return same ? record : fields.fail('computedRecord', 'the record of step, fromChain, roots and computedChain', 'another one');
}

interface Claims {
  readonly step: number;
  readonly fromChain: Hex;
  readonly computedChain: Hex;
  readonly roots: Roots;
}

/** With the members in the order of rootsOf. */
function rootsInOrder({ parameters, firstMoment, secondMoment, gradient, windows, transcript, cursor }: Roots): Roots {
  return { parameters, firstMoment, secondMoment, gradient, windows, transcript, cursor };
}

function readPredicate(fields: Fields): Omit<Attestation, 'record'> {
  const claims = {
    runId: fields.digest('runId'),
    step: fields.step('step'),
    fromChain: fields.digest('fromChain'),
    computedChain: fields.digest('computedChain'),
    roots: fields.object('roots', readRoots),
    verdict: fields.word('verdict', ['match', 'mismatch']),
    leaseId: readLeaseId(fields),
    nonce: fields.digest('nonce'),
    openingsDigest: fields.digest('openingsDigest'),
    engine: fields.object('engine', readEngine),
    backend: fields.object('backend', readBackend),
    replayedAt: readTime(fields, 'replayedAt'),
  };
  if (claims.verdict === 'match') return claims;
  return {
    ...claims,
    firstDifference: fields.object('firstDifference', readDifference),
    computedRecord: readComputedRecord(fields, claims),
  };
}

function readSubject(fields: Fields, step: number): Hex {
  const subjects = fields.array('subject', 1);
  if (subjects.length !== 1) fields.fail('subject', 'one subject', 'none');
  return readObject(subjects[0]!, `${WHERE}.subject[0]`, (subject) => {
    subject.word('name', [`step-${step}.record`]);
    return subject.object('digest', (digest) => digest.digest('sha256'));
  });
}

export function parseAttestation(payload: Uint8Array): Attestation {
  const attestation = readObject(parseCanonicalObject(payload, { where: WHERE, depthMax: 16 }), WHERE, (fields) => {
    fields.word('_type', ['https://in-toto.io/Statement/v1']);
    fields.word('predicateType', ['https://lockstep.dev/lockstep/step-audit/v1']);
    const predicate = fields.object('predicate', readPredicate);
    return { ...predicate, record: readSubject(fields, predicate.step) };
  });
  if (attestation.computedRecord !== undefined && sha256Hex(attestation.computedRecord.bytes) === attestation.record) {
    throw new CheckError('malformed', `${WHERE}.predicate.computedRecord`, {
      expected: 'a record other than the subject',
      found: toHex(attestation.computedRecord.bytes.subarray(0, 16)),
    });
  }
  return attestation;
}
