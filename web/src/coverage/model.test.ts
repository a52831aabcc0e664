// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import type { StateName } from '../api/types';
import { blocks, blockSteps, codeOf, Coverage, kSkipped, kStates, stateOf } from './model';

const kRun = 'a'.repeat(64);
const make = (first: number, ...states: StateName[]) => new Coverage(first, Uint8Array.from(states.map(codeOf)));

// What the counts should be, by looking at each byte.
function recount(coverage: Coverage) {
  const counts = Object.fromEntries(kStates.map((state) => [state, 0])) as Record<StateName, number>;
  for (const byte of coverage.bytes) {
    const state = stateOf(byte);
    if (state !== null) ++counts[state];
  }
  return counts;
}

describe('Coverage', () => {
  it('has the states of docs/api.md', () => expect(kStates.map(codeOf)).toEqual([1, 2, 3, 4, 5]));
  it('counts', () => {
    const coverage = make(0, 'unaudited', 'confirmed', 'confirmed', 'disputed');
    expect(coverage.counts()).toEqual({ unaudited: 1, claimed: 0, provisional: 0, confirmed: 2, disputed: 1 });
  });
  it('keeps the mark of a skipped step through its states', () => {
    const coverage = new Coverage(10, Uint8Array.from([1 | kSkipped, 1]));
    expect(coverage.apply({ event: 'step', run: kRun, step: 10, state: 'confirmed' })).toBe(true);
    expect(coverage.state(10)).toBe('confirmed');
    expect([coverage.skipped(10), coverage.skipped(11), coverage.skipped(12)]).toEqual([true, false, false]);
  });
  it('says whether anything changed', () => {
    const coverage = make(5, 'unaudited', 'provisional');
    const version = coverage.version;
    expect(coverage.apply({ event: 'step', run: kRun, step: 6, state: 'provisional' })).toBe(false);
    expect(coverage.apply({ event: 'step', run: kRun, step: 4, state: 'confirmed' })).toBe(false);
    expect(coverage.version).toBe(version);
    expect(coverage.apply({ event: 'step', run: kRun, step: 5, state: 'claimed' })).toBe(true);
    expect(coverage.version).toBeGreaterThan(version);
  });
  it('grows by records, and by a step that overtakes its record', () => {
    const coverage = make(100, 'confirmed');
    expect(coverage.apply({ event: 'records', run: kRun, end_step: 104 })).toBe(true);
    expect([coverage.steps, coverage.end_step, coverage.state(103)]).toEqual([4, 104, 'unaudited']);
    expect(coverage.apply({ event: 'records', run: kRun, end_step: 102 })).toBe(false);
    expect(coverage.apply({ event: 'step', run: kRun, step: 105, state: 'provisional' })).toBe(true);
    expect([coverage.steps, coverage.state(104), coverage.state(105)]).toEqual([6, 'unaudited', 'provisional']);
    expect(coverage.counts()).toEqual(recount(coverage));
  });
  it('does not take an event for a reason to fill the memory', () => {
    const coverage = make(0, 'confirmed');
    expect(coverage.apply({ event: 'records', run: kRun, end_step: Number.MAX_SAFE_INTEGER })).toBe(false);
    expect(coverage.steps).toBe(1);
  });
  it('paints leases over unaudited steps only, and takes them off again', () => {
    const coverage = make(0, 'unaudited', 'provisional', 'unaudited', 'confirmed', 'unaudited');
    expect(coverage.apply({ event: 'lease', run: kRun, begin: 0, end: 100, claimed: true })).toBe(true);
    expect(coverage.counts()).toEqual({ unaudited: 0, claimed: 3, provisional: 1, confirmed: 1, disputed: 0 });
    expect(coverage.apply({ event: 'lease', run: kRun, begin: 2, end: 5, claimed: false })).toBe(true);
    expect([0, 1, 2, 3, 4].map((step) => coverage.state(step))).toEqual(['claimed', 'provisional', 'unaudited', 'confirmed', 'unaudited']);
  });
  it('counts right after ten thousand events', () => {
    let seed = 1;
    const draw = (below: number) => (seed = (seed * 48271) % 2147483647) % below;
    const coverage = new Coverage(7, new Uint8Array(300).fill(1));
    for (let n = 0; n < 10_000; ++n) {
      const step = 7 + draw(coverage.steps + 2);
      const kind = draw(10);
      if (kind < 7) coverage.apply({ event: 'step', run: kRun, step, state: kStates[draw(5)]! });
      else if (kind < 9) coverage.apply({ event: 'lease', run: kRun, begin: step, end: step + draw(30), claimed: kind === 7 });
      else if (coverage.steps < 2_000) coverage.apply({ event: 'records', run: kRun, end_step: step + 3 });
    }
    expect(coverage.steps).toBeGreaterThan(400);
    expect(coverage.counts()).toEqual(recount(coverage));
  });
  it('cuts itself into stretches that cover all', () => {
    const coverage = make(50, 'confirmed', 'confirmed', 'disputed', 'unaudited');
    expect(coverage.segments()).toEqual([
      { begin: 50, end: 52, state: 'confirmed' },
      { begin: 52, end: 53, state: 'disputed' },
      { begin: 53, end: 54, state: 'unaudited' },
    ]);
    expect(new Coverage(0, new Uint8Array(0)).segments()).toEqual([]);
    expect(coverage.disputed(9)).toEqual([2]);
  });
});

describe('blocks', () => {
  it('add up', () => {
    const coverage = new Coverage(3, Uint8Array.from({ length: 1003 }, (_, n) => 1 + (n % 5)));
    const rows = blocks(coverage, 100);
    expect(rows.map((row) => row.begin)).toEqual([3, 103, 203, 303, 403, 503, 603, 703, 803, 903, 1003]);
    expect(rows[10]!.end).toBe(1006);
    const sum = rows.reduce((total, row) => total + row.counts.confirmed, 0);
    expect(sum).toBe(coverage.counts().confirmed);
  });
  it('are of a round size', () => expect([10, 50, 51, 80_957, 1_000_000].map((steps) => blockSteps(steps, 50))).toEqual([1, 1, 2, 2000, 20_000]));
});
