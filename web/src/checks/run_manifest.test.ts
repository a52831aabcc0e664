// SPDX-License-Identifier: Apache-2.0
//
// The example of docs/run_manifest.md, every change of form, the rules between fields, and the batch schedule of docs/stream.md §3.
import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { parseRunManifest, transcriptLeavesOf, windowsOfStep } from './run_manifest';
import { canonical, errorOf, jsonChanges, Random, refuses } from './testing/tools';
import { utf8 } from './bytes';
import type { RunManifest } from './types';

const PAGE = readFileSync(new URL('../../../docs/run_manifest.md', import.meta.url), 'utf8');
const EXAMPLE = /```json\n(\{.*\})\n```/.exec(PAGE)![1]!;

function changed(change: (manifest: Record<string, unknown>) => void): string {
  const manifest = JSON.parse(EXAMPLE) as Record<string, unknown>;
  change(manifest);
  return canonical(manifest);
}
function with_(path: string, value: unknown): string {
  return changed((manifest) => {
    const keys = path.split('.');
    let at: Record<string, unknown> = manifest;
    for (const key of keys.slice(0, -1)) at = at[key] as Record<string, unknown>;
    at[keys.at(-1)!] = value;
  });
}

test('the example of the page', () => {
  const manifest = parseRunManifest(EXAMPLE);
  expect(manifest.runId).toBe('30a022c00675469a5be309a245152bab393e321ab3ab0bde8b981a126342fa51');
  expect(manifest.text).toBe(EXAMPLE);
  expect(manifest.model.seq_len).toBe(64);
  expect(manifest.recipe.eps).toBe(1e-8);
  expect(manifest.parent).toBeUndefined();
});

test('ranges are those of the page', () => {
  const parts: readonly (readonly [string, string])[] = [
    ['### `model`', 'model'],
    ['### `recipe`', 'recipe'],
    ['### `topology`', 'topology'],
  ];
  let fields = 0;
  for (const [title, part] of parts) {
    const table = PAGE.split(title)[1]!.split('\n#')[0]!;
    for (const [, name, least, most, kind] of table.matchAll(/^\| `(\w+)` \| (\S+) … (\S+) \| (integer|number) \|/gm)) {
      const below = kind === 'integer' ? Number(least) - 1 : Number(least) - Math.max(Math.abs(Number(least)) / 8, 1e-30);
      const above = kind === 'integer' ? Number(most) + 1 : Number(most) * 1.125;
      for (const value of [below, above]) {
        const error = errorOf(() => parseRunManifest(with_(`${part}.${name!}`, value)));
        expect(error.where, `${value}`).toBe(`run manifest.${part}.${name!}`);
        expect(error.expected).toBe(`${kind === 'integer' ? 'an integer' : 'a number'} from ${Number(least)} to ${Number(most)}`);
      }
      ++fields;
    }
  }
  expect(fields).toBe(13 + 15 + 3);
});

test('every change of form is refused', () => {
  const segment = with_('parent', { chain: 'c1'.repeat(32), run_id: 'c2'.repeat(32), step: 3, tokens: 64 });
  for (const text of [EXAMPLE, segment]) {
    expect(refuses(() => parseRunManifest(text))).toBe(false);
    for (const [what, other] of jsonChanges(text)) {
      // Values that a manifest may as well have.
      if (what === '/name becomes "x"' || what.startsWith('/parent is gone') || what === '/recipe/final_lr_fraction becomes 0.5') continue;
      if (/^\/recipe\/(beta1|beta2|clip_norm|eps|peak_lr|spike_norm|weight_decay|z_loss) becomes 0.5$/.test(what)) continue;
      if (what === '/model/init_std becomes 0.5') continue;
      expect(errorOf(() => parseRunManifest(other)).kind, what).toBe('malformed');
    }
  }
  expect(refuses(() => parseRunManifest(`${EXAMPLE}\n`))).toBe(true);
  expect(refuses(() => parseRunManifest('x'.repeat(70000)))).toBe(true);
});

test('rules between fields', () => {
  const bad: readonly (readonly [string, unknown])[] = [
    ['model.query_heads', 3],
    ['model.head_dim', 24],
    ['model.window', 65],
    ['recipe.warmup_tokens', 143360],
    ['recipe.total_tokens', 143359],
    ['recipe.spike_halt_events', 1],
    ['recipe.spike_halt_steps', 1],
    ['batch', []],
    ['batch', [{ until_tokens: 81920, windows_per_step: 12 }]],
    [
      'batch',
      [
        { until_tokens: 81920, windows_per_step: 16 },
        { until_tokens: 81920, windows_per_step: 24 },
      ],
    ],
    ['topology.micro_batch', 65536],
    ['name', 'Example'],
    ['name', ''],
    ['name', 'a/b'],
    ['numerics', 'lockstep-numerics-2'],
    ['parent', { chain: 'c1'.repeat(32), run_id: 'c2'.repeat(32), step: 3, tokens: 65 }],
  ];
  for (const [path, value] of bad) {
    expect(errorOf(() => parseRunManifest(with_(path, value))).kind, `${path} ${JSON.stringify(value)}`).toBe('malformed');
  }
  const large = changed((m) => Object.assign(m['model'] as object, { layers: 4096, width: 65536, ffn_width: 65536 }));
  expect(errorOf(() => parseRunManifest(large)).message).toContain('parameters');
  const wide = changed((m) => Object.assign(m['model'] as object, { ffn_width: 66501 }));
  expect(errorOf(() => parseRunManifest(wide)).message).toContain('int8');
  expect(refuses(() => parseRunManifest(wide.replace('"int8"', '"bf16"')))).toBe(false);
});

test('steps and windows', () => {
  const manifest = parseRunManifest(EXAMPLE);
  // 16 windows of 64 until 81,920: 80 steps; then 24 until 143,360: 40.
  expect(windowsOfStep(manifest, 0)).toEqual({ first: 0, count: 16, tokensBefore: 0 });
  expect(windowsOfStep(manifest, 79)).toEqual({ first: 1264, count: 16, tokensBefore: 80896 });
  expect(windowsOfStep(manifest, 80)).toEqual({ first: 1280, count: 24, tokensBefore: 81920 });
  expect(windowsOfStep(manifest, 119)).toEqual({ first: 2216, count: 24, tokensBefore: 141824 });
  for (const step of [-1, 120, 0.5, NaN, 2 ** 53]) expect(windowsOfStep(manifest, step)).toBeNull();
  expect([0n, 81919n, 81920n, 143359n, 143360n].map((tokens) => transcriptLeavesOf(manifest, tokens))).toEqual([8, 8, 12, 12, 0]);
});

test('the schedule of the paper', () => {
  const table = paper();
  const firsts = [0, 1271, 1272, 76717, 76718, 80956].map((step) => windowsOfStep(table, step)!.first);
  expect(firsts).toEqual([0, 1271 * 768, 976896, 976896 + 75445 * 1152, 87890688, 87890688 + 4238 * 2304]);
  expect(windowsOfStep(table, 80957)).toBeNull();
});

function paper(): RunManifest {
  const manifest = parseRunManifest(EXAMPLE);
  return {
    ...manifest,
    model: { ...manifest.model, seq_len: 4096 },
    batch: [
      { windows_per_step: 768, until_tokens: 4e9 },
      { windows_per_step: 1152, until_tokens: 360e9 },
      { windows_per_step: 2304, until_tokens: 400e9 },
    ],
  };
}

test('a segment begins where its parent stood', () => {
  const text = with_('parent', { chain: 'c1'.repeat(32), run_id: 'c2'.repeat(32), step: 90, tokens: 81920 + 1536 });
  const manifest = parseRunManifest(text);
  expect(windowsOfStep(manifest, 89)).toBeNull();
  expect(windowsOfStep(manifest, 90)).toEqual({ first: 1304, count: 24, tokensBefore: 83456 });
  expect(windowsOfStep(manifest, 128)).toEqual({ first: 1304 + 38 * 24, count: 24, tokensBefore: 83456 + 38 * 1536 });
  expect(windowsOfStep(manifest, 129)).toBeNull();
});

test("random changes throw nothing but the library's error", () => {
  const random = new Random(13);
  for (let n = 0; n < 1500; ++n) refuses(() => parseRunManifest(random.mutate(utf8(EXAMPLE))));
});
