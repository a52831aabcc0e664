// SPDX-License-Identifier: Apache-2.0
//
// From the API's curves to what a chart draws. Pure functions. The coordinator puts steps into buckets and keeps each bucket's least and
// greatest value; rebucket() does the same once more for narrow screens, so that a spike of one step is on any of them.
import type { Curves } from '../api/types';

export type Line = (number | null)[];

export interface Banded {
  step: number[];
  min: Line;
  max: Line;
  mean: Line;
}

function least(a: number | null, b: number | null): number | null {
  return a === null ? b : b === null ? a : Math.min(a, b);
}
function greatest(a: number | null, b: number | null): number | null {
  return a === null ? b : b === null ? a : Math.max(a, b);
}

// At most `most` points: `factor` neighbours become one. A mean of means: all buckets but the last have as many steps.
export function rebucket(from: Banded, most: number): Banded {
  const factor = Math.ceil(from.step.length / Math.max(1, most));
  if (factor <= 1) return from;
  const to: Banded = { step: [], min: [], max: [], mean: [] };
  for (let begin = 0; begin < from.step.length; begin += factor) {
    const end = Math.min(begin + factor, from.step.length);
    let min: number | null = null;
    let max: number | null = null;
    let sum = 0;
    let there = 0;
    for (let n = begin; n < end; ++n) {
      min = least(min, from.min[n] ?? null);
      max = greatest(max, from.max[n] ?? null);
      const mean = from.mean[n] ?? null;
      if (mean !== null) {
        sum += mean;
        ++there;
      }
    }
    to.step.push(from.step[begin]!);
    to.min.push(min);
    to.max.push(max);
    to.mean.push(there === 0 ? null : sum / there);
  }
  return to;
}

export function banded(curves: Curves, name: 'loss' | 'gradient_norm'): Banded {
  return { step: curves.step, min: curves[name].min, max: curves[name].max, mean: curves[name].mean };
}

// Points at steps of their own, laid into a line's steps: uPlot wants one ascending list of x for all. The line is null where only a point
// is, and the points where only the line is.
export function joinPoints(step: number[], lines: Line[], points: { step: number; value: number }[][]): { step: number[]; lines: Line[]; points: Line[] } {
  const all = [...new Set([...step, ...points.flat().map((point) => point.step)])].sort((a, b) => a - b);
  if (all.length === step.length && points.every((set) => set.length === 0)) {
    return { step, lines, points: points.map(() => step.map(() => null)) };
  }
  const place = new Map(all.map((value, index) => [value, index]));
  const lay = (at: number[], values: (number | null)[]) => {
    const line: Line = all.map(() => null);
    at.forEach((value, n) => (line[place.get(value)!] = values[n] ?? null));
    return line;
  };
  return {
    step: all,
    lines: lines.map((line) => lay(step, line)),
    points: points.map((set) =>
      lay(
        set.map((point) => point.step),
        set.map((point) => point.value),
      ),
    ),
  };
}

// Held-out losses by the set that they were measured on, in the order in which the sets come.
export function heldOutSets(curves: Curves): { set: string; points: { step: number; value: number }[] }[] {
  const sets = new Map<string, { step: number; value: number }[]>();
  for (const { step, set, nats_per_token } of curves.held_out) {
    if (!Number.isFinite(nats_per_token)) continue;
    sets.set(set, [...(sets.get(set) ?? []), { step, value: nats_per_token }]);
  }
  return [...sets].map(([set, points]) => ({ set, points }));
}

// The range that a chart's axis spans: all values, with a margin; never of no height.
export function spanOf(lines: Line[]): [number, number] | null {
  let min: number | null = null;
  let max: number | null = null;
  for (const line of lines) {
    for (const value of line) {
      min = least(min, value);
      max = greatest(max, value);
    }
  }
  if (min === null || max === null) return null;
  const margin = max > min ? 0.06 * (max - min) : Math.max(Math.abs(max) * 0.05, 1e-6);
  return [min - margin, max + margin];
}

