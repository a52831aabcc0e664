// SPDX-License-Identifier: Apache-2.0
//
// A coordinator made up, for working on the pages without one: `npm run dev:fixture`. One run of 80,957 steps with everything a page can
// show, hostile names among it, and events as they come. The same every time. No signature in it holds, which the pages say; the tests
// that count run over a real coordinator (tests/).
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Plugin } from 'vite';

const kSteps = 80_957;
const kPlanned = 80_957;
const kRun = 'a3'.repeat(32);
const kSmallRun = 'b7'.repeat(32);
const kNow = Date.now();

// A small generator, so that each start shows the same.
function random(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296;
  };
}

const hex = (seed: number) => {
  const draw = random(seed);
  return Array.from({ length: 64 }, () => Math.floor(draw() * 16).toString(16)).join('');
};

function coverage(): Uint8Array {
  const bytes = new Uint8Array(kSteps).fill(1);
  const draw = random(1);
  for (let step = 0; step < kSteps; ) {
    const length = 20 + Math.floor(draw() * 900);
    const early = step / kSteps;
    const state = draw() < 0.97 - 0.6 * early ? 4 : draw() < 0.5 ? 3 : draw() < 0.25 ? 2 : 1;
    bytes.fill(state, step, Math.min(kSteps, step + length));
    step += length;
  }
  for (const step of [1234, 40_001, 40_002, 66_600]) bytes[step] = 5;
  for (const step of kSpikes) for (let n = 0; n < 6; ++n) bytes[step + n]! |= 0x10;
  return bytes;
}

const kSpikes = [3_010, 11_777, 29_345, 52_052, 71_300];
const states = coverage();
const kNames = ['unaudited', 'claimed', 'provisional', 'confirmed', 'disputed'];
const stateName = (step: number) => kNames[(states[step]! & 15) - 1]!;

function counts() {
  const found = Object.fromEntries(kNames.map((name) => [name, 0]));
  for (const byte of states) ++found[kNames[(byte & 15) - 1]!]!;
  return found;
}

const loss = (step: number) => 2.55 + 8.3 * Math.exp(-step / 900) + 0.9 * Math.exp(-step / 16_000) + 0.05 * Math.sin(step * 12.9898) + (kSpikes.includes(step) ? 3 : 0);
const norm = (step: number) => 0.35 + 2 * Math.exp(-step / 500) + 0.12 * Math.abs(Math.sin(step * 78.233)) + (kSpikes.includes(step) ? 14 : 0);
const rate = (step: number) => (step < 667 ? (4.5e-4 * (step + 1)) / 667 : 4.5e-5 + 2.025e-4 * (1 + Math.cos((Math.PI * step) / kSteps)));

const kOperators = [
  { name: 'Ada Lovelace’s lab', hardware: 'workstation, 64 cores', backend: 'x86-avx512', cpu: 'AMD EPYC 9554' },
  { name: '計算研究室', hardware: 'mini PC, 8 cores', backend: 'x86-avx2', cpu: 'Intel Core i5-8500T' },
  { name: '<img src=x onerror=alert(1)>', hardware: '"><script>alert(2)</script>', backend: 'arm-neon', cpu: 'Neoverse-N1' },
  { name: '\u202Egnp.exe\u202C evil', hardware: 'A'.repeat(128), backend: 'x86-avx2', cpu: 'عربى ١٢٣' },
  { name: 'Bob', hardware: 'laptop, at night', backend: 'x86-avx2', cpu: 'Intel Core i7-1165G7' },
];
const keyOf = (n: number) => hex(100 + n);
const workerOf = (n: number) => hex(200 + n);

function attestation(step: number, n: number, whole: boolean) {
  const who = n % kOperators.length;
  const one = kOperators[who]!;
  const against = stateName(step) === 'disputed' && n === 1;
  const pending = !against && n === 2;
  return {
    log_index: 90_000 + 3 * step + n,
    run: kRun,
    step,
    worker_key: workerOf(who),
    operator_key: keyOf(who),
    operator: one.name,
    hardware: one.hardware,
    backend: one.backend,
    isa: whole ? one.backend.split('-')[1] : null,
    cpu: whole ? one.cpu : null,
    threads: whole ? 8 : null,
    engine: whole ? { name: 'lockstep', version: '0.6.0', build: hex(7), numerics: 'lockstep-1' } : null,
    verdict: against ? 'mismatch' : 'match',
    counts: !against && !pending,
    why_not: against ? 'MISMATCH' : pending ? 'OPENINGS_AWAITED' : '',
    replayed_at: whole ? '2026-11-30T12:00:00Z' : null,
    received_ms: kNow - 60_000 * (n + 1) - 1000 * (kSteps - step),
    openings: whole ? [] : null,
    openings_given: pending ? 0 : 2,
    openings_needed: 2,
    leaf_hash: whole ? hex(step + n) : null,
    envelope: whole ? '{"payload":"e30=","payloadType":"application/vnd.in-toto+json","signatures":[]}' : null,
    ...(against ? { difference: { field: 'gradient', expected: hex(5), found: hex(6), place: 'layers.3.mlp.down, chunk 7' } } : {}),
  };
}

const matchesOf = (step: number) => ({ confirmed: 3, provisional: 1, disputed: 2, claimed: 0, unaudited: 0 })[stateName(step)] ?? 0;

function stepRow(step: number) {
  const matches = matchesOf(step);
  const spike = kSpikes.find((at) => step >= at && step < at + 6);
  return {
    step,
    state: stateName(step),
    outcome: spike === undefined ? 0 : spike === step ? 2 : 3,
    loss: Number(loss(step).toFixed(6)),
    z_loss: 11.2,
    gradient_norm: Number(norm(step).toFixed(6)),
    learning_rate: rate(step),
    tokens: 3_145_728,
    tokens_before: 3_145_728 * step,
    updates: step + 1,
    matches,
    operators: matches,
    backends: Math.min(2, matches),
    awaiting_openings: 0,
    mismatches: stateName(step) === 'disputed' ? 1 : 0,
    voided: 0,
    attestations: matches,
    second_history: false,
    log_index: 10 + step,
    received_ms: kNow - 1000 * (kSteps - step),
  };
}

const kRecord = Buffer.alloc(336, 1).toString('base64');

function dispute(step: number, n: number) {
  return {
    log_index: 400_000 + n,
    run: kRun,
    step,
    reason: n === 3 ? 'bad-opening' : 'mismatch',
    received_ms: kNow - 3_600_000 * (n + 1),
    envelope: '{}',
    evidence: n === 3 ? [{ envelope: '{"payload":"<b>not markup</b>"}' }] : [{ log_index: 90_000 + 3 * step + 1, leaf_hash: hex(step) }],
    ...(n === 3 ? {} : { published_record: kRecord, computed_record: kRecord, first_difference: { field: 'gradient', expected: hex(5), found: hex(6), place: 'layers.3.mlp.down, chunk 7' } }),
    state: stateName(step),
  };
}

function runObject(small: boolean) {
  const all = small ? { unaudited: 120, claimed: 0, provisional: 0, confirmed: 0, disputed: 0 } : counts();
  return {
    run: small ? kSmallRun : kRun,
    name: small ? 'golden <b>run</b>' : 'open-1b, first run',
    trainer_key: hex(1),
    trainer_operator: small ? null : keyOf(0),
    quorum: { operators: 2, backends: 2, openings: 2 },
    steps: small ? 120 : kSteps,
    steps_planned: small ? 400 : kPlanned,
    first_step: 0,
    chain: hex(2),
    counts: all,
    log_index: 5,
    registered_ms: kNow - 86_400_000 * 30,
    parent: small ? kRun : null,
    tokens: 3_145_728 * kSteps,
    last_step: { step: kSteps - 1, loss: 2.5612, gradient_norm: 0.41, learning_rate: 4.5e-5, outcome: 0 },
    operators: small ? 0 : kOperators.length,
    backends: small
      ? []
      : [
          { backend: 'arm-neon', matches: 12_040 },
          { backend: 'cuda-sm90', matches: 30_991 },
          { backend: 'x86-avx2', matches: 61_233 },
          { backend: 'x86-avx512', matches: 70_112 },
        ],
    attestations: small ? 0 : 174_380,
    matches: small ? 0 : 174_376,
    mismatches: small ? 0 : 4,
    confirmed_per_hour: small ? 0 : 412,
    records_per_hour: small ? 30 : 0,
    last_record_ms: kNow - 600_000,
    disputes: small ? 0 : 4,
  };
}

function curves(query: URLSearchParams) {
  const begin = Number(query.get('begin') ?? 0);
  const end = Math.min(kSteps, Number(query.get('end') ?? kSteps));
  const bucket_steps = Math.max(1, Math.ceil((end - begin) / Number(query.get('buckets') ?? 1000)));
  const at: number[] = [];
  for (let step = begin; step < end; step += bucket_steps) at.push(step);
  const over = (value: (step: number) => number) => {
    const found = { min: [] as number[], max: [] as number[], mean: [] as number[] };
    for (const first of at) {
      let [min, max, sum, n] = [Infinity, -Infinity, 0, 0];
      for (let step = first; step < Math.min(end, first + bucket_steps); ++step, ++n) {
        const one = value(step);
        [min, max, sum] = [Math.min(min, one), Math.max(max, one), sum + one];
      }
      found.min.push(min);
      found.max.push(max);
      found.mean.push(sum / n);
    }
    return found;
  };
  const skipped = kSpikes.flatMap((spike) => [0, 1, 2, 3, 4, 5].map((n) => ({ step: spike + n, outcome: n === 0 ? 2 : 3 }))).filter(({ step }) => step >= begin && step < end);
  const held_out = [];
  for (let step = 2_000; step < end; step += 4_000) {
    if (step >= begin) held_out.push({ step, set: 'fineweb-heldout', nats_per_token: loss(step) + 0.06, bits_per_byte: 0.9, log_index: 3 }, { step, set: 'code', nats_per_token: loss(step) - 0.7, bits_per_byte: 0.5, log_index: 3 });
  }
  return {
    begin,
    end,
    bucket_steps,
    step: at,
    loss: over(loss),
    gradient_norm: over(norm),
    learning_rate: { last: at.map((step) => rate(Math.min(end - 1, step + bucket_steps - 1))) },
    z_loss: { mean: at.map((step) => 11 + 3 * Math.exp(-step / 3000)) },
    skipped,
    skipped_count: skipped.length,
    spikes: skipped.filter((one) => one.outcome === 2),
    spike_count: skipped.filter((one) => one.outcome === 2).length,
    held_out,
  };
}

function operator(n: number) {
  const one = kOperators[n]!;
  return {
    key: keyOf(n),
    name: one.name,
    contact: n === 0 ? 'ada@example.com' : '',
    revoked: n === 4,
    revoked_log_index: n === 4 ? 77 : null,
    revoked_reason: n === 4 ? 'key lost' : null,
    log_index: 6 + n,
    received_ms: kNow - 86_400_000 * 20,
    worker_keys: 1,
    credit: { valid: 40_000 - 9_000 * n, pending: n, rejected: n === 3 ? 17 : 0, mismatches: n === 1 ? 4 : 0 },
    own_run: n === 0 ? 120 : 0,
    rejected_why: n === 3 ? [{ reason: 'BAD_OPENING', count: 3 }, { reason: 'CANARY_MISSED', count: 14 }] : [],
    backends: [one.backend],
    last_seen_ms: n === 4 ? null : kNow - 100_000 * n,
  };
}

function worker(n: number) {
  return {
    key: workerOf(n),
    operator_key: keyOf(n),
    operator: kOperators[n]!.name,
    hardware: kOperators[n]!.hardware,
    ended: n === 4,
    ended_log_index: n === 4 ? 77 : null,
    log_index: 20 + n,
    received_ms: kNow - 86_400_000 * 19,
    credit: operator(n).credit,
    own_run: 0,
    rejected_why: operator(n).rejected_why,
    trust: { valid_in_a_row: 120 * (5 - n), valid: 2000, invalid: n, expired: 2 },
    backends: operator(n).backends,
    last_seen_ms: operator(n).last_seen_ms,
  };
}

const kLeaseWords = ['shard 17 has another digest than the manifest says', '</td><script>alert(3)</script> \u202Egnp.exe', 'w'.repeat(1024), 'somebody is at the keyboard', ''];
const kLeaseStates = ['done', 'done', 'inconclusive', 'done', 'canceled', 'expired'];

function lease(n: number, who: number, state: string) {
  const one = kOperators[who]!;
  const ended_ms = kNow - 400_000 * (n + 1);
  return {
    run: kRun,
    state,
    first_step: 50_000 + 8 * n,
    end_step: 50_000 + 8 * n + 1 + (n % 8),
    worker_key: workerOf(who),
    operator_key: keyOf(who),
    operator: one.name,
    hardware: one.hardware,
    backends: who === 4 ? [] : [one.backend],
    granted_ms: ended_ms - 900_000,
    ended_ms: state === 'live' ? null : ended_ms,
    detail: state === 'inconclusive' || state === 'canceled' ? kLeaseWords[n % kLeaseWords.length] : '',
  };
}

// As the coordinator does, a page of a filtered list looks at so many only.
function leases(query: URLSearchParams) {
  const [wanted, who] = [query.get('state'), query.get('worker') ?? query.get('operator')];
  const begin = Number(query.get('page') ?? 0);
  const found = [];
  let n = begin;
  for (; n < 1_000 && n < begin + 60 && found.length < Number(query.get('limit') ?? 100); ++n) {
    const of = n % kOperators.length;
    const state = wanted === 'live' ? 'live' : kLeaseStates[Math.floor(n / 2) % kLeaseStates.length]!;
    const fits = wanted === null || wanted === state || (wanted === 'unfinished' && state !== 'done');
    if (fits && (who === null || who === keyOf(of) || who === workerOf(of))) found.push(lease(n, of, state));
  }
  return { leases: found, next: n < 1_000 && wanted !== 'live' ? String(n) : null };
}

const kLogSize = 400_004;
const kOrigin = 'fixture.example/log';
const kLogKey = `${kOrigin}+00000000+AQ==`;
const kNote = `${kOrigin}\n${kLogSize}\n${Buffer.alloc(32, 7).toString('base64')}\n\n— ${kOrigin} AAAAAAAA\n`;
const kKinds = ['attestation', 'opening', 'attestation', 'record', 'dispute', 'key', 'checkpoint'];
const entry = (index: number) => ({ index, kind: kKinds[index % kKinds.length], run: kRun, step: index % 3 ? index % kSteps : null, leaf_hash: hex(index), bytes: 1_900 + (index % 300), received_ms: kNow - 1000 * (kLogSize - index) });

function answer(path: string, query: URLSearchParams): unknown {
  const limit = Number(query.get('limit') ?? 100);
  const offset = Number(query.get('page') ?? 0);
  const page = <T>(name: string, size: number, make: (n: number) => T, newest = false) => {
    const items: T[] = [];
    for (let n = offset; n < Math.min(size, offset + limit); ++n) items.push(make(newest ? size - 1 - n : n));
    return { [name]: items, next: offset + limit < size ? String(offset + limit) : null };
  };
  const [first, second, third, fourth] = path.split('/');
  if (path === 'server') return { origin: kOrigin, log_key: kLogKey, log_public_key: hex(3), version: '0.6.0', time_ms: Date.now(), artifact_url: 'http://localhost', worker_url: 'http://127.0.0.1:7440', event_epoch: 'f', log_size: kLogSize };
  if (path === 'runs') return page('runs', 2, (n) => runObject(n === 1));
  if (first === 'runs' && (second === kRun || second === kSmallRun)) {
    const small = second === kSmallRun;
    if (third === undefined) {
      const manifest = JSON.stringify({ batch: [], name: 'open-1b', numerics: 'lockstep-1', seed: 42 });
      const checkpoints = [0, 40_000, 80_000].map((step, n) => ({ step, log_index: 30 + n, by: n === 1 ? workerOf(1) : hex(1), manifest: hex(40 + n), available: n !== 1 }));
      return { ...runObject(small), manifest, registration: '{}', checkpoints, checkpoint_count: 3 };
    }
    if (third === 'curves') return curves(query);
    if (third === 'disputes') return small ? page('disputes', 0, () => null) : page('disputes', 4, (n) => dispute([1234, 40_001, 40_002, 66_600][n]!, n), true);
    if (third === 'attestations') return small ? page('attestations', 0, () => null) : page('attestations', 174_380, (n) => attestation(Math.floor(n / 3) % kSteps, n % 3, false), true);
    if (third === 'leases') return small ? page('leases', 0, () => null) : leases(query);
    if (third === 'steps' && fourth === undefined) {
      const begin = Number(query.get('begin') ?? 0);
      const state = query.get('state');
      const chosen = [];
      for (let step = begin; step < kSteps && chosen.length < offset + limit; ++step) if (!state || stateName(step) === state) chosen.push(step);
      return { steps: chosen.slice(offset).map(stepRow), next: chosen.length === offset + limit ? String(offset + limit) : null };
    }
    const step = Number(fourth);
    if (third === 'steps' && step < kSteps) {
      const row = stepRow(step);
      const roots = Object.fromEntries(['parameters', 'first_moment', 'second_moment', 'gradient', 'windows', 'transcript', 'cursor'].map((name, n) => [name, hex(step * 10 + n)]));
      const attestations = Array.from({ length: matchesOf(step) }, (_, n) => attestation(step, n, true));
      const disputes = row.state === 'disputed' ? [dispute(step, 0)] : [];
      const leases = row.state === 'claimed' ? [{ operator: kOperators[2]!.name, operator_key: keyOf(2), backend: 'arm-neon', granted_ms: kNow - 500_000 }] : [];
      return { ...row, run: kRun, record: kRecord, record_digest: hex(step), previous_chain: hex(step + 50), chain: hex(step + 51), roots, record_envelope: '{}', attestation_count: attestations.length, attestations, second_record: null, disputes, leases, openings_needed: 2, transcript_leaves: 192, first_step: 0, last_step: kSteps - 1 };
    }
  }
  if (path === 'disputes') return page('disputes', 4, (n) => dispute([1234, 40_001, 40_002, 66_600][n]!, n), true);
  if (path === 'leases') return leases(query);
  if (path === 'operators') return page('operators', kOperators.length, operator);
  if (path === 'workers') return page('workers', kOperators.length, worker);
  const who = kOperators.findIndex((_, n) => second === keyOf(n) || second === workerOf(n));
  const recent = who < 0 ? [] : Array.from({ length: 12 }, (_, n) => attestation(50_000 + n, who, false));
  if (first === 'operators' && who >= 0) return { ...operator(who), workers: [worker(who)], recent };
  if (first === 'workers' && who >= 0) return { ...worker(who), recent };
  if (path === 'log') return { checkpoint: kNote, size: kLogSize, root: '07'.repeat(32), key: kLogKey, origin: kOrigin };
  if (path === 'log/entries') return page('entries', kLogSize, entry, query.get('newest') === '1');
  if (first === 'log' && second === 'entries' && third !== undefined) return { ...entry(Number(third)), envelope: '{"payload":"eyJhIjoxfQ==","payloadType":"application/vnd.lockstep.key-event.v1+json","signatures":[]}', receipt: `c2sp.org/tlog-proof@v1\nindex ${third}\n\n${kNote}` };
  return null;
}

function events(response: ServerResponse): void {
  response.writeHead(200, { 'Content-Type': 'text/event-stream', 'Cache-Control': 'no-cache' });
  response.write(':\n\n');
  const draw = random(9);
  let number = 0;
  const tell = (event: string, data: unknown) => response.write(`id: f.${++number}\nevent: ${event}\ndata: ${JSON.stringify(data)}\n\n`);
  const timer = setInterval(() => {
    const step = Math.floor(draw() * kSteps);
    if ((states[step]! & 15) === 5) return;
    states[step] = (states[step]! & 0x10) | 4;
    tell('step', { run: kRun, step, state: 'confirmed' });
    tell('attestation', { run: kRun, step, log_index: 1, operator: 'Bob', backend: 'x86-avx2', verdict: 'match' });
  }, 1_000);
  response.on('close', () => clearInterval(timer));
}

function serve(request: IncomingMessage, response: ServerResponse, next: () => void): void {
  const url = new URL(request.url ?? '/', 'http://localhost');
  if (url.pathname === '/events') return events(response);
  if (url.pathname.startsWith('/artifact/') || url.pathname.startsWith('/tile/')) {
    response.writeHead(404).end();
    return;
  }
  if (!url.pathname.startsWith('/api/v1/')) return next();
  const path = url.pathname.slice('/api/v1/'.length);
  if (path === `runs/${kRun}/coverage` || path === `runs/${kSmallRun}/coverage`) {
    response.writeHead(200, { 'Content-Type': 'application/octet-stream', 'Lockstep-First-Step': '0' });
    response.end(path.includes(kSmallRun) ? new Uint8Array(120).fill(1) : states);
    return;
  }
  const body = answer(path, url.searchParams);
  response.writeHead(body === null ? 404 : 200, { 'Content-Type': 'application/json' });
  response.end(JSON.stringify(body ?? { error: { reason: 'NOT_FOUND', message: `nothing at ${url.pathname}` } }));
}

const kPolicy = "default-src 'self'; base-uri 'none'; object-src 'none'; frame-ancestors 'none'; form-action 'none'; img-src 'self' data:";

export function fixture(): Plugin {
  return {
    name: 'lockstep-fixture',
    configureServer: (server) => void server.middlewares.use(serve),
    // What is built is served as the coordinator serves it, its policy included.
    configurePreviewServer: (server) =>
      void server.middlewares.use((request, response, next) => {
        response.setHeader('Content-Security-Policy', kPolicy);
        serve(request, response, next);
      }),
  };
}
