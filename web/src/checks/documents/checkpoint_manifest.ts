// SPDX-License-Identifier: Apache-2.0
//
// checkpoint.json: docs/checkpoint.md, rules 1 to 5. Here for its cursor: a place of the data stream to walk on from.
import { fromHex, sha256Hex } from '../bytes';
import { CheckError } from '../errors';
import { readObject, type Fields } from '../fields';
import { parseCanonicalObject } from '../json';
import { readCheckpointFiles } from '../payloads';
import { chainAfter, decodeStepRecord, genesisChain, STEP_RECORD_BYTES } from '../step_record';
import type { Hex, StepRecord } from '../types';

const WHERE = 'checkpoint manifest';
export const CHECKPOINT_BYTES_MAX = 1 << 20;
const CURSOR_BYTES_MAX = 131072;

export interface CheckpointManifest {
  readonly runId: Hex;
  readonly nextStep: bigint;
  readonly chain: Hex;
  readonly cursor: Uint8Array;
}

function readHex(fields: Fields, key: string, bytesMax: number): Uint8Array {
  return fromHex(fields.string(key, 2 * bytesMax)) ?? fields.fail(key, 'lower-case hexadecimal digits, two a byte', 'something else');
}

function readRecord(fields: Fields, cursor: Hex): StepRecord {
  const record = decodeStepRecord(readHex(fields, 'record', STEP_RECORD_BYTES));
  if (record.cursor !== cursor) fields.fail('cursor', `bytes whose SHA-256 is the record's, ${record.cursor}`, cursor);
  return record;
}

/** The chain that follows from the initial roots. */
function readInitial(fields: Fields, runId: Hex, cursor: Hex): Hex {
  const roots = fields.object('initial', (initial) => ({
    parameters: initial.digest('parameters'),
    firstMoment: initial.digest('first_moment'),
    secondMoment: initial.digest('second_moment'),
  }));
  return genesisChain(runId, { ...roots, cursor });
}

/** Throws "malformed". */
export function parseCheckpointManifest(bytes: Uint8Array): CheckpointManifest {
  if (bytes.length > CHECKPOINT_BYTES_MAX) {
    throw new CheckError('malformed', WHERE, { expected: `at most ${CHECKPOINT_BYTES_MAX} bytes`, found: String(bytes.length) });
  }
  return readObject(parseCanonicalObject(bytes, { where: WHERE, depthMax: 16 }), WHERE, (fields) => {
    fields.word('format', ['lockstep-checkpoint']);
    fields.integer('version', 1, 1);
    const runId = fields.digest('run_id');
    const chain = fields.digest('chain');
    const cursor = readHex(fields, 'cursor', CURSOR_BYTES_MAX);
    const digest = sha256Hex(cursor);
    const record = fields.has('initial') ? null : readRecord(fields, digest);
    const expected = record === null ? readInitial(fields, runId, digest) : chainAfter(record);
    if (chain !== expected)
      fields.fail('chain', `what follows from the ${record === null ? 'initial roots' : 'record'}, ${expected}`, chain);
    readCheckpointFiles(fields);
    return { runId, chain, cursor, nextStep: record === null ? 0n : record.step + 1n };
  });
}
