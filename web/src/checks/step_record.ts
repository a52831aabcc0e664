// SPDX-License-Identifier: Apache-2.0
//
// Step records, the chain, and transcript leaves: docs/step_record.md.
import { ByteReader, digestBytes, sha256, sha256Hex, toHex, utf8 } from './bytes';
import { CheckError } from './errors';
import type { Difference, Hex, Roots, StepRecord, TranscriptLeaf } from './types';

export const STEP_RECORD_BYTES = 336;
const MAGIC = 'LKSR';
const VERSION = 1;
const BOUNDARIES_MAX = 4097;

/** The 336 bytes. Throws "malformed" with the offset. */
export function decodeStepRecord(bytes: Uint8Array): StepRecord {
  const where = 'step record';
  if (bytes.length !== STEP_RECORD_BYTES) {
    throw new CheckError('malformed', where, { expected: `${STEP_RECORD_BYTES} bytes`, found: String(bytes.length) });
  }
  const copy = bytes.slice();
  const reader = new ByteReader(copy, where);
  if (toHex(reader.take(4)) !== toHex(utf8(MAGIC))) reader.fail(`"${MAGIC}" before`, 'other bytes');
  const version = reader.u32();
  if (version !== VERSION) reader.fail(`version ${VERSION} before`, String(version));
  const record = {
    bytes: copy,
    step: reader.u64(),
    tokensBefore: reader.u64(),
    tokens: reader.u64(),
    updates: reader.u64(),
    parameters: reader.digest(),
    firstMoment: reader.digest(),
    secondMoment: reader.digest(),
    gradient: reader.digest(),
    windows: reader.digest(),
    transcript: reader.digest(),
    cursor: reader.digest(),
    ...floats(copy.subarray(reader.offset, reader.offset + 16)),
  };
  reader.take(16);
  const outcome = reader.u32();
  if (outcome !== 0 && outcome !== 1 && outcome !== 2 && outcome !== 3)
    return reader.fail('an outcome from 0 to 3 before', String(outcome));
  const skipsLeft = reader.u32();
  const events = reader.u32();
  const zero = reader.u32();
  if (zero !== 0) reader.fail('0 before', String(zero));
  return { ...record, outcome, skipsLeft, events, eventsSince: reader.u64(), previousChain: reader.digest() };
}

function floats(bytes: Uint8Array): Pick<StepRecord, 'loss' | 'zLoss' | 'gradientNorm' | 'learningRate' | 'bits'> {
  const values = new ByteReader(bytes, 'step record');
  const bits = new ByteReader(bytes, 'step record');
  return {
    loss: values.f32(),
    zLoss: values.f32(),
    gradientNorm: values.f32(),
    learningRate: values.f32(),
    bits: { loss: bits.u32(), zLoss: bits.u32(), gradientNorm: bits.u32(), learningRate: bits.u32() },
  };
}

/** SHA-256 of the record's bytes: an attestation's subject. */
export function stepRecordDigest(record: StepRecord): Hex {
  return sha256Hex(record.bytes);
}

/** The chain before step 0. */
export function genesisChain(runId: Hex, roots: Pick<Roots, 'parameters' | 'firstMoment' | 'secondMoment' | 'cursor'>): Hex {
  const parts = [runId, roots.parameters, roots.firstMoment, roots.secondMoment, roots.cursor];
  return sha256Hex(utf8('lockstep chain genesis 1'), ...parts.map((part) => digestBytes(part)));
}

/** The chain after the step. */
export function chainAfter(record: StepRecord): Hex {
  return sha256Hex(utf8('lockstep chain 1'), digestBytes(record.previousChain), sha256(record.bytes));
}

export function rootsOf(record: StepRecord): Roots {
  const { parameters, firstMoment, secondMoment, gradient, windows, transcript, cursor } = record;
  return { parameters, firstMoment, secondMoment, gradient, windows, transcript, cursor };
}

/** As C's %.9g and the bits, which is how auditors write them. */
function floatText(value: number, bits: number): string {
  return `${shortText(value, bits)} (0x${bits.toString(16).padStart(8, '0')})`;
}

function shortText(value: number, bits: number): string {
  const sign = bits >= 2 ** 31 ? '-' : '';
  if (Number.isNaN(value)) return `${sign}nan`;
  if (!Number.isFinite(value)) return `${sign}inf`;
  if (value === 0) return `${sign}0`;
  const [digits = '', exponent = '0'] = Math.abs(value).toExponential(8).split('e');
  const power = Number(exponent);
  if (power >= -4 && power < 9) return `${sign}${trim(Math.abs(value).toFixed(8 - power))}`;
  return `${sign}${trim(digits)}e${power < 0 ? '-' : '+'}${String(Math.abs(power)).padStart(2, '0')}`;
}

function trim(digits: string): string {
  return digits.includes('.') ? digits.replace(/\.?0+$/, '') : digits;
}

/** Fields in the order in which a step computes them, under their names in audit/verdict.h. */
function fieldsOf(record: StepRecord): readonly (readonly [string, string])[] {
  return [
    ['step', String(record.step)],
    ['previous_chain', record.previousChain],
    ['tokens_before', String(record.tokensBefore)],
    ['tokens', String(record.tokens)],
    ['windows', record.windows],
    ['cursor', record.cursor],
    ['transcript', record.transcript],
    ['loss', floatText(record.loss, record.bits.loss)],
    ['z_loss', floatText(record.zLoss, record.bits.zLoss)],
    ['gradient_norm', floatText(record.gradientNorm, record.bits.gradientNorm)],
    ['gradient', record.gradient],
    ['outcome', String(record.outcome)],
    ['spike.skips_left', String(record.skipsLeft)],
    ['spike.events', String(record.events)],
    ['spike.events_since', String(record.eventsSince)],
    ['learning_rate', floatText(record.learningRate, record.bits.learningRate)],
    ['updates', String(record.updates)],
    ['parameters', record.parameters],
    ['first_moment', record.firstMoment],
    ['second_moment', record.secondMoment],
  ];
}

/** The first field that differs, in the order in which a step computes them; null if all bits are equal. */
export function compareRecords(published: StepRecord, computed: StepRecord): Difference | null {
  const found = fieldsOf(computed);
  for (const [i, [field, value]] of fieldsOf(published).entries()) {
    if (found[i]![1] !== value) return { field, expected: value, found: found[i]![1] };
  }
  return null;
}

/** Exactly one leaf. Throws "malformed". */
export function decodeTranscriptLeaf(bytes: Uint8Array): TranscriptLeaf {
  const reader = new ByteReader(bytes, 'transcript leaf');
  const head = { rank: reader.u32(), microBatch: reader.u32(), losses: reader.digest(), zLosses: reader.digest() };
  const boundaries = reader.u32();
  if (boundaries < 1 || boundaries > BOUNDARIES_MAX) reader.fail(`1 to ${BOUNDARIES_MAX} boundaries before`, String(boundaries));
  const digests = (): Hex[] => Array.from({ length: boundaries }, () => reader.digest());
  const leaf = { ...head, residual: digests(), dresidual: digests() };
  reader.expectEnd();
  return leaf;
}
