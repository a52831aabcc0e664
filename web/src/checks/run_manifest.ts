// SPDX-License-Identifier: Apache-2.0
//
// Run manifests: text, fields, ranges, and the rules between fields of docs/run_manifest.md; the batch schedule in closed form.
import { asBytes, sha256Hex, utf8 } from './bytes';
import { CheckError, quote } from './errors';
import { type Fields, readObject } from './fields';
import { canonicalJson, type Json, parseCanonicalObject } from './json';
import type { ModelField, RecipeField, RunManifest, TopologyField } from './types';

const WHERE = 'run manifest';
const BYTES_MAX = 65536;
const PHASES_MAX = 64;
const TOKENS_MAX = 1e15;
const PARAMETERS_MAX = 2 ** 40;
const MICRO_BATCH_TOKENS_MAX = 2 ** 24;
const INT8_DEPTH_MAX = 133000;
const NUMERICS = 'lockstep-numerics-1';

type Range = readonly [kind: 'integer' | 'number', least: number, most: number];

const MODEL: Readonly<Record<ModelField, Range>> = {
  layers: ['integer', 1, 4096],
  width: ['integer', 1, 65536],
  query_heads: ['integer', 1, 4096],
  kv_heads: ['integer', 1, 4096],
  head_dim: ['integer', 16, 256],
  ffn_width: ['integer', 1, 262144],
  vocab: ['integer', 2, 16777216],
  seq_len: ['integer', 1, 1048576],
  window: ['integer', 1, 1048576],
  full_every: ['integer', 0, 4096],
  rope_theta: ['number', 1, 1e12],
  norm_eps: ['number', 1e-12, 0.1],
  init_std: ['number', 1e-6, 1],
};
const RECIPE: Readonly<Record<RecipeField, Range>> = {
  peak_lr: ['number', 1e-12, 1],
  final_lr_fraction: ['number', 0, 1],
  warmup_tokens: ['integer', 0, TOKENS_MAX],
  total_tokens: ['integer', 1, TOKENS_MAX],
  beta1: ['number', 0.001, 0.999999],
  beta2: ['number', 0.001, 0.999999],
  eps: ['number', 1e-30, 1],
  weight_decay: ['number', 0, 10],
  clip_norm: ['number', 1e-6, 1e6],
  z_loss: ['number', 0, 1],
  spike_norm: ['number', 1e-6, 1e30],
  spike_skip_steps: ['integer', 1, 1e6],
  spike_halt_events: ['integer', 0, 1e6],
  spike_halt_steps: ['integer', 0, TOKENS_MAX],
  dead_tensor_steps: ['integer', 0, 1e9],
};
const TOPOLOGY: Readonly<Record<TopologyField, Range>> = {
  replicas: ['integer', 1, 4096],
  shards: ['integer', 1, 4096],
  micro_batch: ['integer', 1, 65536],
};

function readRanges<Name extends string>(fields: Fields, ranges: Readonly<Record<Name, Range>>): Record<Name, number> {
  const values = {} as Record<Name, number>;
  for (const name of Object.keys(ranges) as Name[]) {
    const [kind, least, most] = ranges[name];
    values[name] = kind === 'integer' ? fields.integer(name, least, most) : fields.number(name, least, most);
  }
  return values;
}

function expect(holds: boolean, field: string, expected: string, found: number | string): void {
  if (!holds) throw new CheckError('malformed', `${WHERE}.${field}`, { expected, found: String(found) });
}

/** Rules between fields 1, 2, 7 of the page. */
function checkModel(manifest: Omit<RunManifest, 'runId' | 'text'>): void {
  const m = manifest.model;
  const queryWidth = m.query_heads * m.head_dim;
  const qkvWidth = queryWidth + 2 * m.kv_heads * m.head_dim;
  expect(m.query_heads % m.kv_heads === 0, 'model.query_heads', 'a multiple of kv_heads', m.query_heads);
  expect(m.head_dim % 16 === 0, 'model.head_dim', 'a multiple of 16', m.head_dim);
  expect(m.window <= m.seq_len, 'model.window', 'at most seq_len', m.window);
  const parameters = m.width * (2 * m.vocab + 2) + m.layers * (m.width * (qkvWidth + queryWidth + 3 * m.ffn_width + 2));
  expect(parameters <= PARAMETERS_MAX, 'model', `at most ${PARAMETERS_MAX} parameters`, parameters);
  const tokens = manifest.topology.micro_batch * m.seq_len;
  expect(tokens <= MICRO_BATCH_TOKENS_MAX, 'topology.micro_batch', `at most ${MICRO_BATCH_TOKENS_MAX} tokens in a micro-batch`, tokens);
  if (manifest.precision !== 'int8') return;
  for (const depth of [m.width, qkvWidth, 2 * m.ffn_width, tokens]) {
    expect(depth <= INT8_DEPTH_MAX, 'model', `at most ${INT8_DEPTH_MAX} summed in int8`, depth);
  }
}

/** Rules 3 to 5. */
function checkSchedule({ recipe, topology, batch }: Omit<RunManifest, 'runId' | 'text'>): void {
  expect(recipe.warmup_tokens < recipe.total_tokens, 'recipe.warmup_tokens', 'less than total_tokens', recipe.warmup_tokens);
  expect(
    recipe.spike_halt_events > 0 === recipe.spike_halt_steps > 0,
    'recipe.spike_halt_steps',
    '0 if and only if spike_halt_events is',
    recipe.spike_halt_steps,
  );
  expect(batch.length >= 1, 'batch', `1 to ${PHASES_MAX} phases`, batch.length);
  const unit = topology.replicas * topology.shards * topology.micro_batch;
  let before = 0;
  for (const [i, phase] of batch.entries()) {
    const field = `batch[${i}]`;
    expect(phase.windows_per_step % unit === 0, `${field}.windows_per_step`, `a multiple of ${unit}`, phase.windows_per_step);
    expect(phase.until_tokens > before, `${field}.until_tokens`, `more than ${before}`, phase.until_tokens);
    before = phase.until_tokens;
  }
  expect(before <= recipe.total_tokens, 'recipe.total_tokens', `at least ${before}`, recipe.total_tokens);
}

function readParent(fields: Fields): NonNullable<RunManifest['parent']> {
  return {
    chain: fields.digest('chain'),
    runId: fields.digest('run_id'),
    step: fields.integer('step', 1, TOKENS_MAX),
    tokens: fields.integer('tokens', 1, TOKENS_MAX),
  };
}

function readManifest(fields: Fields): Omit<RunManifest, 'runId' | 'text'> {
  fields.word('format', ['lockstep-run']);
  fields.integer('version', 1, 1);
  const name = fields.string('name', 64);
  expect(/^[a-z0-9][a-z0-9._-]*$/.test(name), 'name', "letters, digits, '.', '_' and '-', the first a letter or digit", quote(name));
  const manifest = {
    name,
    numerics: fields.word('numerics', [NUMERICS]),
    precision: fields.word('precision', ['int8', 'bf16']),
    parameterStorage: fields.word('parameter_storage', ['bf16', 'f32']),
    corpus: fields.digest('corpus'),
    tokenizer: fields.digest('tokenizer'),
    checkpointEvery: fields.integer('checkpoint_every', 1, 1e9),
    seed: fields.integer('seed', 0, Number.MAX_SAFE_INTEGER),
    model: fields.object('model', (part) => readRanges(part, MODEL)),
    recipe: fields.object('recipe', (part) => readRanges(part, RECIPE)),
    topology: fields.object('topology', (part) => readRanges(part, TOPOLOGY)),
    batch: fields.array('batch', PHASES_MAX).map((item, i) =>
      readObject(item, `${WHERE}.batch[${i}]`, (part) => ({
        windows_per_step: part.integer('windows_per_step', 1, 1048576),
        until_tokens: part.integer('until_tokens', 1, TOKENS_MAX),
      })),
    ),
    ...(fields.has('parent') ? { parent: fields.object('parent', readParent) } : {}),
  };
  checkModel(manifest);
  checkSchedule(manifest);
  if (manifest.parent !== undefined) {
    expect(manifest.parent.tokens % manifest.model.seq_len === 0, 'parent.tokens', 'a multiple of model.seq_len', manifest.parent.tokens);
  }
  return manifest;
}

/** A manifest's canonical text, as GET /api/v1/runs/{run} has it. Throws "malformed" with the field. */
export function parseRunManifest(input: string | Uint8Array): RunManifest {
  const bytes = asBytes(input);
  expect(bytes.length <= BYTES_MAX, 'length', `at most ${BYTES_MAX} bytes`, bytes.length);
  const json = parseCanonicalObject(input, { where: WHERE, depthMax: 16 });
  return { ...readObject(json, WHERE, readManifest), text: canonicalJson(json, WHERE), runId: sha256Hex(bytes) };
}

/** A manifest as it stands in a canonical text. */
export function runManifestOf(json: Json): RunManifest {
  return parseRunManifest(utf8(canonicalJson(json, WHERE)));
}

/** The step that the run begins with, and the number of its first window in the data stream. */
export function runStart(manifest: RunManifest): { readonly step: number; readonly window: number } {
  if (manifest.parent === undefined) return { step: 0, window: 0 };
  return { step: manifest.parent.step, window: manifest.parent.tokens / manifest.model.seq_len };
}

/** Windows of a step: the batch schedule of docs/stream.md §3 in closed form. null beyond the run's end, and before its first step. */
export function windowsOfStep(
  manifest: RunManifest,
  step: number,
): { readonly first: number; readonly count: number; readonly tokensBefore: number } | null {
  const seqLen = manifest.model.seq_len;
  let { step: phaseStep, window } = runStart(manifest);
  if (!Number.isSafeInteger(step) || step < phaseStep) return null;
  for (const phase of manifest.batch) {
    const left = phase.until_tokens - window * seqLen;
    const steps = left <= 0 ? 0 : Math.floor((left - 1) / (phase.windows_per_step * seqLen)) + 1;
    if (step < phaseStep + steps) {
      const first = window + (step - phaseStep) * phase.windows_per_step;
      return { first, count: phase.windows_per_step, tokensBefore: first * seqLen };
    }
    phaseStep += steps;
    window += steps * phase.windows_per_step;
  }
  return null;
}

/** Leaves of a step's transcript: one for each micro-batch of each rank. 0 beyond the last phase. */
export function transcriptLeavesOf(manifest: RunManifest, tokensBefore: bigint): number {
  const phase = manifest.batch.find(({ until_tokens }) => BigInt(until_tokens) > tokensBefore);
  return phase === undefined ? 0 : phase.windows_per_step / manifest.topology.micro_batch;
}
