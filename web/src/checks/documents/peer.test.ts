// SPDX-License-Identifier: Apache-2.0
//
// The walk against the program's own, on a corpus that it builds: other seeds, lengths and batches, far steps, many epochs, other shards.
// Needs LOCKSTEP, the program; without it these tests are named as skipped.
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { sha256Hex } from '../bytes';
import { artifactsOf, lockstep, PROGRAM, recordOf, runOver, SAMPLE, serve } from '../testing/corpus';
import { failed } from '../testing/tools';
import { leafDigest, merkleRoot } from '../merkle';
import { toHex } from '../bytes';
import { stepDocuments } from './step_documents';

interface Trace {
  readonly cursor_after: string;
  readonly windows: readonly {
    readonly spans: readonly { readonly source: string; readonly shard: number; readonly document: number }[];
    readonly tokens: readonly number[];
  }[];
}

describe.skipIf(PROGRAM === undefined)('against the program (LOCKSTEP)', () => {
  let folder = '';
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'checks-'));
    const stores = ['web', 'edu', 'code', 'math'].map((name) => join(folder, 'stores', name));
    lockstep('corpus', 'ingest', join(SAMPLE, 'corpus.toml'), '--out', join(folder, 'stores'));
    lockstep('tokenizer', 'train', '--from', ...stores, '--vocab', 512, '--out', join(folder, 'tokenizer'));
    const build = ['corpus', 'build', '--tokenizer', join(folder, 'tokenizer'), '--stores', ...stores];
    lockstep(...build, '--out', join(folder, 'small'), '--shard-tokens', 3000, '--chunk-bytes', 4096);
    lockstep(...build, '--out', join(folder, 'large'));
  });
  afterAll(() => rmSync(folder, { recursive: true }));

  test.each([
    ['small', 42, 64, 16, [0, 1, 7, 500]],
    ['small', 7, 1000, 3, [0, 33, 2000]],
    ['large', 2 ** 53 - 1, 127, 8, [0, 5, 1234]],
    ['large', 0, 1, 2, [0, 999]],
  ] as const)('corpus %s, seed %d, length %d, batch %d', async (name, seed, seqLen, batch, steps) => {
    const artifacts = artifactsOf(join(folder, name), join(folder, 'tokenizer'));
    const [corpus, tokenizer] = [join(folder, name, 'manifest.json'), join(folder, 'tokenizer')].map((path) =>
      sha256Hex(readFileSync(path)),
    );
    const manifest = runOver({ corpus: corpus!, tokenizer: tokenizer!, seqLen, batch, seed });
    for (const step of steps) {
      const words = ['--seed', seed, '--seq-len', seqLen, '--batch', batch, '--step', step, '--json', '--tokens'];
      const trace = JSON.parse(lockstep('corpus', 'trace', join(folder, name), ...words)) as Trace;
      const leaves = trace.windows.map(({ tokens }) => leafDigest(new Uint8Array(Uint32Array.from(tokens).buffer)));
      const record = recordOf(step, sha256Hex(Buffer.from(trace.cursor_after, 'hex')), toHex(merkleRoot(leaves)));
      const found = await stepDocuments({ manifest, record, fetchArtifact: serve(artifacts) });
      expect(failed(found.checks)).toEqual([]);
      expect(found.spans.map(({ source, shard, document }) => [source, shard, document])).toEqual(
        trace.windows.flatMap(({ spans }) => spans.map(({ source, shard, document }) => [source, shard, document])),
      );
      trace.windows.forEach(({ tokens }, window) => expect([...found.tokens(window)]).toEqual(tokens));
    }
  });
});
