// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import { canvasHeight, clampView, isWhole, makeGrid, moved, offsetAt, panBy, placeOf, showOffset, shown, wholeView, zoomAround, zoomAt, type Grid, type Size } from './view';

const kWidths = [280, 328, 640, 1120, 1800];
const kSteps = [1, 12, 120, 1500, 80_957, 400_000];

describe('the whole run', () => {
  it.each(kSteps.flatMap((steps) => kWidths.map((width) => [steps, width] as const)))('%i steps fit into %i pixels', (steps, width) => {
    const grid = makeGrid(steps, width);
    const size = { width, height: canvasHeight(grid, width) };
    const view = wholeView(grid, size);
    expect(grid.columns * grid.rows).toBeGreaterThanOrEqual(steps);
    expect(grid.rows * view.cell).toBeLessThanOrEqual(size.height + 1);
    const last = placeOf(view, grid, steps - 1);
    expect(last.x + view.cell).toBeLessThanOrEqual(width + 0.01);
    expect(last.y + view.cell).toBeLessThanOrEqual(size.height + 1);
    // Each step can be pointed at.
    for (const offset of [0, Math.floor(steps / 2), steps - 1]) {
      const place = placeOf(view, grid, offset);
      expect(offsetAt(view, grid, place.x + view.cell / 2, place.y + view.cell / 2)).toBe(offset);
    }
  });
  it('has rows of a round number of steps', () => {
    expect(makeGrid(80_957, 1120).columns).toBe(500);
    expect(makeGrid(80_957, 328).columns).toBe(250);
  });
});

describe('zoom', () => {
  const grid: Grid = makeGrid(80_957, 1120);
  const size: Size = { width: 1120, height: canvasHeight(grid, 1120) };
  const whole = wholeView(grid, size);

  it('keeps what is under the pointer there', () => {
    for (const [px, py] of [[10, 10], [600, 200], [1100, 350]] as const) {
      const before = offsetAt(whole, grid, px, py);
      let view = whole;
      for (let n = 0; n < 12; ++n) view = zoomAt(view, 1.5, px, py, grid, size);
      expect(offsetAt(view, grid, px, py)).toBe(before);
      expect(view.cell).toBe(64);
    }
  });
  it.each([0, 502, 40_321, 80_956])('around step %i keeps it in view', (offset) => {
    let view = whole;
    for (let n = 0; n < 20; ++n) {
      view = zoomAround(view, n < 12 ? 1.6 : 0.7, offset, grid, size);
      const place = placeOf(view, grid, offset);
      expect(place.x).toBeGreaterThanOrEqual(-1e-6);
      expect(place.y).toBeGreaterThanOrEqual(-1e-6);
      expect(place.x + view.cell).toBeLessThanOrEqual(size.width + 1e-6);
      expect(place.y + view.cell).toBeLessThanOrEqual(size.height + 1);
    }
  });
  it('goes down to one step and back to the whole run', () => {
    let view = zoomAt(whole, 1000, 300, 100, grid, size);
    expect(view.cell).toBe(64);
    expect(isWhole(view, grid, size)).toBe(false);
    for (let n = 0; n < 20; ++n) view = zoomAt(view, 0.5, 900, 20, grid, size);
    expect(view).toEqual(whole);
    expect(isWhole(view, grid, size)).toBe(true);
  });
  it('never leaves the page', () => {
    let seed = 7;
    const draw = () => (seed = (seed * 48271) % 2147483647) / 2147483647;
    let view = whole;
    for (let n = 0; n < 5_000; ++n) {
      view = draw() < 0.5 ? zoomAt(view, 0.5 + 1.5 * draw(), 1120 * draw(), size.height * draw(), grid, size) : panBy(view, 900 * (draw() - 0.5), 900 * (draw() - 0.5), grid, size);
      expect(view.x).toBeGreaterThanOrEqual(0);
      expect(view.y).toBeGreaterThanOrEqual(0);
      expect(view.x + size.width / view.cell).toBeLessThanOrEqual(grid.columns + 1e-6);
      expect(view.y).toBeLessThanOrEqual(Math.max(0, grid.rows - size.height / view.cell) + 1e-6);
    }
  });
  it('pans with the pointer', () => {
    const near = zoomAt(whole, 8, 560, 160, grid, size);
    const under = offsetAt(near, grid, 500, 150);
    expect(offsetAt(panBy(near, 37, -21, grid, size), grid, 537, 129)).toBe(under);
  });
  it('brings a step into view, and leaves a view that has it', () => {
    const near = zoomAt(whole, 100, 0, 0, grid, size);
    const there = showOffset(near, grid, size, 80_956);
    const place = placeOf(there, grid, 80_956);
    expect(place.x).toBeGreaterThanOrEqual(0);
    expect(place.x + there.cell).toBeLessThanOrEqual(size.width + 1e-6);
    expect(place.y + there.cell).toBeLessThanOrEqual(size.height + 1e-6);
    expect(showOffset(there, grid, size, 80_956)).toEqual(there);
  });
  it('says what it shows', () => {
    expect(shown(whole, grid, size)).toEqual({ first: 0, last: 80_956 });
    const near = clampView({ cell: 64, x: 10, y: 3 }, grid, size);
    expect(shown(near, grid, size)).toEqual({ first: 1_510, last: 500 * Math.floor(3 + size.height / 64 - 1e-9) + 27 });
  });
  it('is nowhere beside the run', () => {
    expect(offsetAt(whole, grid, -1, 10)).toBeNull();
    expect(offsetAt(whole, grid, 1119, size.height - 1)).toBeNull();
  });
});

describe('keys', () => {
  const grid: Grid = { steps: 95, columns: 10, rows: 10 };
  const size: Size = { width: 200, height: 100 };
  const view = { cell: 20, x: 0, y: 0 };
  const after = (from: number, move: Parameters<typeof moved>[1]) => moved(from, move, view, grid, size);
  it('move by a step and by a row', () => {
    expect([after(15, 'left'), after(15, 'right'), after(15, 'up'), after(15, 'down')]).toEqual([14, 16, 5, 25]);
  });
  it('stop at the ends', () => {
    expect([after(0, 'left'), after(94, 'right'), after(4, 'up'), after(89, 'down')]).toEqual([0, 94, 4, 89]);
    expect([after(50, 'first'), after(50, 'last')]).toEqual([0, 94]);
    expect([after(50, 'page_up'), after(10, 'page_up'), after(50, 'page_down'), after(90, 'page_down')]).toEqual([10, 0, 90, 94]);
  });
});
