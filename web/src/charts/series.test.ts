// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import type { Curves } from '../api/types';
import { heldOutSets, joinPoints, rebucket, spanOf, type Banded } from './series';

function flat(length: number): Banded {
  return { step: Array.from({ length }, (_, n) => 10 * n), min: new Array(length).fill(1), max: new Array(length).fill(2), mean: new Array(length).fill(1.5) };
}

describe('rebucket', () => {
  it('leaves what is narrow enough alone', () => {
    const line = flat(100);
    expect(rebucket(line, 100)).toBe(line);
  });
  it('keeps a spike wherever it is', () => {
    for (let at = 0; at < 1000; at += 37) {
      const line = flat(1000);
      line.max[at] = 99;
      line.min[(at + 500) % 1000] = -99;
      const narrow = rebucket(line, 300);
      expect(narrow.step.length).toBeLessThanOrEqual(300);
      expect(Math.max(...(narrow.max as number[]))).toBe(99);
      expect(Math.min(...(narrow.min as number[]))).toBe(-99);
    }
  });
  it('passes over what is not finite, which comes as null', () => {
    const line: Banded = { step: [0, 1, 2, 3], min: [null, 1, null, null], max: [null, 3, null, null], mean: [null, 2, null, null] };
    expect(rebucket(line, 2)).toEqual({ step: [0, 2], min: [1, null], max: [3, null], mean: [2, null] });
  });
});

describe('joinPoints', () => {
  it('keeps every point at its own step', () => {
    const joined = joinPoints([0, 10, 20], [[1, 2, 3]], [[{ step: 10, value: 7 }, { step: 15, value: 8 }], []]);
    expect(joined.step).toEqual([0, 10, 15, 20]);
    expect(joined.lines).toEqual([[1, 2, null, 3]]);
    expect(joined.points).toEqual([[null, 7, 8, null], [null, null, null, null]]);
  });
  it('is the line itself without points', () => {
    const line = [1, 2];
    expect(joinPoints([0, 1], [line], []).lines[0]).toBe(line);
  });
});

describe('heldOutSets', () => {
  it('sorts by set', () => {
    const one = (step: number, set: string, nats_per_token: number) => ({ step, set, nats_per_token, bits_per_byte: 1, log_index: 0 });
    const curves = { held_out: [one(1, 'a', 3), one(1, 'b', 4), one(2, 'a', 2), one(3, 'a', NaN)] } as unknown as Curves;
    expect(heldOutSets(curves)).toEqual([
      { set: 'a', points: [{ step: 1, value: 3 }, { step: 2, value: 2 }] },
      { set: 'b', points: [{ step: 1, value: 4 }] },
    ]);
  });
});

describe('spanOf', () => {
  it('holds all values, with a margin', () => {
    const [low, high] = spanOf([[1, null, 5], [3, 2, null]])!;
    expect(low).toBeLessThan(1);
    expect(high).toBeGreaterThan(5);
  });
  it('is never of no height', () => {
    const [low, high] = spanOf([[3, 3]])!;
    expect(high).toBeGreaterThan(low);
    const zero = spanOf([[0]])!;
    expect(zero[1]).toBeGreaterThan(zero[0]);
  });
  it('is none of nothing', () => expect(spanOf([[null], []])).toBeNull());
});
