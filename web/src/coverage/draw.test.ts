// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import { draw, makePalette, type Colors, type Rgb } from './draw';
import { codeOf, kSkipped } from './model';

const kColors: Colors = {
  ground: [1, 1, 1],
  none: [2, 2, 2],
  unaudited: [10, 0, 0],
  claimed: [20, 0, 0],
  claimed_ink: [21, 0, 0],
  provisional: [30, 0, 0],
  provisional_ink: [31, 0, 0],
  confirmed: [40, 0, 0],
  disputed: [50, 0, 0],
  disputed_ink: [51, 0, 0],
  skipped_ink: [60, 0, 0],
};
const kPalette = makePalette(kColors);
const pixel = ([r, g, b]: Rgb) => ((255 << 24) | (b << 16) | (g << 8) | r) >>> 0;

function paint(bytes: number[], steps: number, columns: number, cell: number, width: number, height: number, ratio = 1) {
  const out = new Uint32Array(width * height).fill(0xdeadbeef);
  const grid = { steps, columns, rows: Math.ceil(steps / columns) };
  draw(out, width, height, ratio, { cell, x: 0, y: 0 }, grid, Uint8Array.from(bytes), kPalette);
  return { at: (x: number, y: number) => out[y * width + x]!, all: out };
}

describe('draw', () => {
  it('gives each step its pixels, of one color where a state has no pattern', () => {
    const { at } = paint([4, 1, 4, 1], 4, 2, 4, 8, 8);
    expect([at(0, 0), at(3, 3), at(4, 0), at(7, 3), at(0, 4), at(7, 7)]).toEqual([40, 40, 10, 10, 40, 10].map((red) => pixel([red, 0, 0])));
  });
  it('tells all states apart without color: by what is in an eight by eight patch', () => {
    const patches = new Set<string>();
    for (const byte of [1, 2, 3, 5, 1 | kSkipped]) {
      const { all } = paint([byte], 1, 1, 8 / 1, 5, 5);
      const first = Math.min(...all);
      patches.add([...all].map((one) => (one === first ? '.' : '#')).join(''));
    }
    // Unaudited is plain; the others each have their own pattern. Confirmed is plain too, and the darkest or lightest by far.
    expect(patches.size).toBe(5);
  });
  it('leaves gaps between large cells, and beside the run', () => {
    const { at } = paint([4, 4, 4], 3, 2, 10, 20, 20);
    expect(at(8, 5)).toBe(pixel([40, 0, 0]));
    expect(at(9, 5)).toBe(pixel(kColors.ground));
    expect(at(15, 15)).toBe(pixel(kColors.ground)); // a fourth cell that no step has
  });
  it('shows steps to come as such', () => {
    const { at } = paint([4], 2, 2, 4, 8, 4);
    expect(at(6, 2)).toBe(pixel(kColors.none));
  });
  it('writes every pixel, at any ratio', () => {
    for (const ratio of [1, 1.5, 2, 3]) {
      const { all } = paint(Array.from({ length: 50 }, (_, n) => 1 + (n % 5)), 60, 10, 3.7, 61, 43, ratio);
      expect(all.includes(0xdeadbeef)).toBe(false);
    }
  });
  it('shows every one of 80,957 steps', () => {
    // Two pixels a cell: exactly one confirmed step among unaudited ones is four pixels, wherever it is.
    for (const step of [0, 499, 500, 40_321, 80_956]) {
      const bytes = new Uint8Array(80_957).fill(codeOf('unaudited'));
      bytes[step] = codeOf('confirmed');
      const out = new Uint32Array(1000 * 324);
      draw(out, 1000, 324, 1, { cell: 2, x: 0, y: 0 }, { steps: 80_957, columns: 500, rows: 162 }, bytes, kPalette);
      const found = out.reduce((sum, one) => sum + (one === pixel([40, 0, 0]) ? 1 : 0), 0);
      expect(found).toBe(4);
    }
  });
});
