// SPDX-License-Identifier: Apache-2.0
//
// For tests: the `lockstep` program, if LOCKSTEP names it, and corpora in folders, as artifacts.
import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { sha256Hex, utf8 } from '../bytes';
import { chainAfter, decodeStepRecord } from '../step_record';
import { parseRunManifest } from '../run_manifest';
import { canonical, hex } from './tools';
import type { FetchArtifact, Hex, RunManifest, StepRecord } from '../types';

export const ROOT = fileURLToPath(new URL('../../../../', import.meta.url));
export const SAMPLE = join(ROOT, 'tests', 'data', 'sample');
export const PROGRAM = process.env['LOCKSTEP'];

export function lockstep(...words: readonly (string | number)[]): string {
  return execFileSync(PROGRAM!, words.map(String), { encoding: 'utf8', maxBuffer: 2 ** 28, stdio: ['ignore', 'pipe', 'pipe'] });
}

/** All files below a folder, by their digests. */
export function artifactsOf(...folders: readonly string[]): Map<Hex, Uint8Array> {
  const artifacts = new Map<Hex, Uint8Array>();
  const visit = (path: string): void => {
    if (statSync(path).isDirectory()) {
      for (const name of readdirSync(path)) visit(join(path, name));
    } else {
      const bytes = new Uint8Array(readFileSync(path));
      artifacts.set(sha256Hex(bytes), bytes);
    }
  };
  folders.forEach(visit);
  return artifacts;
}

export function serve(artifacts: ReadonlyMap<Hex, Uint8Array>): FetchArtifact {
  return (sha256, range) => {
    const bytes = artifacts.get(sha256);
    if (bytes === undefined) return Promise.reject(new Error(`404 ${sha256}`));
    return Promise.resolve(range === undefined ? bytes : bytes.subarray(range.begin, range.end));
  };
}

export interface RunShape {
  readonly corpus: Hex;
  readonly tokenizer: Hex;
  readonly seqLen: number;
  readonly batch: number;
  readonly seed?: number;
  readonly steps?: number;
  readonly parent?: { readonly step: number; readonly tokens: number };
}

/** A run's manifest over a corpus: the example of docs/run_manifest.md with other data and batches. */
export function runOver(shape: RunShape): RunManifest {
  const page = readFileSync(join(ROOT, 'docs', 'run_manifest.md'), 'utf8');
  const manifest = JSON.parse(/```json\n(\{.*\})\n```/.exec(page)![1]!) as Record<string, unknown>;
  const until = shape.batch * shape.seqLen * (shape.steps ?? 1_000_000) + (shape.parent?.tokens ?? 0);
  Object.assign(manifest, {
    corpus: shape.corpus,
    tokenizer: shape.tokenizer,
    seed: shape.seed ?? 42,
    batch: [{ until_tokens: until, windows_per_step: shape.batch }],
    topology: { micro_batch: 1, replicas: 1, shards: 1 },
    ...(shape.parent === undefined ? {} : { parent: { chain: 'c1'.repeat(32), run_id: 'c2'.repeat(32), ...shape.parent } }),
  });
  Object.assign(manifest['model'] as object, { seq_len: shape.seqLen, window: 1 });
  Object.assign(manifest['recipe'] as object, { total_tokens: until, warmup_tokens: 0 });
  return parseRunManifest(canonical(manifest));
}

/** A record of a step that commits to this cursor and these windows, and to nothing else. */
export function recordOf(step: number, cursor: Hex, windows: Hex, previousChain: Hex = '00'.repeat(32)): StepRecord {
  const bytes = new Uint8Array(336);
  bytes.set(utf8('LKSR'));
  bytes[4] = 1;
  new DataView(bytes.buffer).setBigUint64(8, BigInt(step), true);
  bytes.set(hex(windows), 168);
  bytes.set(hex(cursor), 232);
  bytes.set(hex(previousChain), 304);
  return decodeStepRecord(bytes);
}

/** checkpoint.json of the state after a step, with the cursor there. */
export function checkpointOf(manifest: RunManifest, record: StepRecord, cursor: Uint8Array): Uint8Array {
  const files = ['first_moment', 'parameters', 'second_moment'].map((name) => ({
    bytes: 1,
    name: `${name}.safetensors`,
    sha256: 'f1'.repeat(32),
  }));
  return utf8(
    canonical({
      format: 'lockstep-checkpoint',
      version: 1,
      run_id: manifest.runId,
      chain: chainAfter(record),
      record: Buffer.from(record.bytes).toString('hex'),
      cursor: Buffer.from(cursor).toString('hex'),
      files,
    }),
  );
}
