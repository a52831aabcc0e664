// SPDX-License-Identifier: Apache-2.0
//
// Where a step is in the picture, and back. Steps lie in rows, like text; a view is the part of that page that the canvas shows. Pure
// functions. Lengths are CSS pixels, places on the page are in cells.

export interface Grid {
  steps: number;
  columns: number;
  rows: number;
}

export interface Size {
  width: number;
  height: number;
}

export interface View {
  cell: number; // width and height of a cell, CSS pixels
  x: number; // the cells that lie left of the canvas, and above it
  y: number;
}

const kHeightMax = 440;
const kHeightMin = 72;
const kCellMax = 24; // of the whole run
const kCellZoomed = 64; // at most
const kColumns = [10, 20, 25, 50, 100, 200, 250, 500, 1000, 2000, 2500, 5000, 10000];

// The widest cells with which the whole run fits; a round number of steps in each row, so that one can count.
export function makeGrid(steps: number, width: number): Grid {
  const rows = (columns: number) => Math.max(1, Math.ceil(steps / columns));
  const fits = (columns: number) => width / columns <= kCellMax && (rows(columns) * width) / columns <= kHeightMax;
  const columns = kColumns.find(fits) ?? kColumns[kColumns.length - 1]!;
  return { steps, columns, rows: rows(columns) };
}

export function canvasHeight(grid: Grid, width: number): number {
  return Math.min(kHeightMax, Math.max(kHeightMin, Math.ceil((grid.rows * width) / grid.columns)));
}

// The whole run. In a canvas that is too low for it (more than 100 million steps), its beginning.
export function wholeView(grid: Grid, size: Size): View {
  return { cell: size.width / grid.columns, x: 0, y: 0 };
}

export function isWhole(view: View, grid: Grid, size: Size): boolean {
  return view.cell <= wholeView(grid, size).cell * 1.0001;
}

// The nearest view that shows no more than the page.
export function clampView(view: View, grid: Grid, size: Size): View {
  const whole = wholeView(grid, size);
  const cell = Math.min(Math.max(view.cell, whole.cell), Math.max(kCellZoomed, whole.cell));
  const limit = (value: number, most: number) => Math.min(Math.max(0, value), Math.max(0, most));
  return {
    cell,
    x: limit(view.x, grid.columns - size.width / cell),
    y: limit(view.y, grid.rows - size.height / cell),
  };
}

// What is under (px, py) stays there.
export function zoomAt(view: View, factor: number, px: number, py: number, grid: Grid, size: Size): View {
  const cell = clampView({ ...view, cell: view.cell * factor }, grid, size).cell;
  return clampView({ cell, x: view.x + px / view.cell - px / cell, y: view.y + py / view.cell - py / cell }, grid, size);
}

// Without a pointer: around the step that is chosen, if it can be seen, which stays in view; else around the middle.
export function zoomAround(view: View, factor: number, offset: number | null, grid: Grid, size: Size): View {
  const place = offset === null ? null : placeOf(view, grid, offset);
  const x = place === null ? -1 : place.x + view.cell / 2;
  const y = place === null ? -1 : place.y + view.cell / 2;
  if (offset === null || x < 0 || y < 0 || x > size.width || y > size.height) {
    return zoomAt(view, factor, size.width / 2, size.height / 2, grid, size);
  }
  return showOffset(zoomAt(view, factor, x, y, grid, size), grid, size, offset);
}

export function panBy(view: View, dx: number, dy: number, grid: Grid, size: Size): View {
  return clampView({ ...view, x: view.x - dx / view.cell, y: view.y - dy / view.cell }, grid, size);
}

// The offset of the step at a place of the canvas, from 0; null beside the run.
export function offsetAt(view: View, grid: Grid, px: number, py: number): number | null {
  const column = Math.floor(view.x + px / view.cell);
  const row = Math.floor(view.y + py / view.cell);
  if (column < 0 || column >= grid.columns || row < 0) return null;
  const offset = row * grid.columns + column;
  return offset < grid.steps ? offset : null;
}

// Top left corner of a step's cell on the canvas.
export function placeOf(view: View, grid: Grid, offset: number): { x: number; y: number } {
  return {
    x: ((offset % grid.columns) - view.x) * view.cell,
    y: (Math.floor(offset / grid.columns) - view.y) * view.cell,
  };
}

// The view moved as little as needed for the step to be in it.
export function showOffset(view: View, grid: Grid, size: Size, offset: number): View {
  const column = offset % grid.columns;
  const row = Math.floor(offset / grid.columns);
  const into = (from: number, cells: number, place: number) => (place < from ? place : place + 1 > from + cells ? place + 1 - cells : from);
  return clampView(
    { cell: view.cell, x: into(view.x, size.width / view.cell, column), y: into(view.y, size.height / view.cell, row) },
    grid,
    size,
  );
}

// The first and last step (offsets) that a view shows a part of.
export function shown(view: View, grid: Grid, size: Size): { first: number; last: number } {
  const row = (y: number) => Math.min(grid.rows - 1, Math.max(0, Math.floor(y)));
  const first_row = row(view.y);
  const last_row = row(view.y + size.height / view.cell - 1e-9);
  const last_column = Math.min(grid.columns - 1, Math.max(0, Math.floor(view.x + size.width / view.cell - 1e-9)));
  return {
    first: Math.min(grid.steps - 1, first_row * grid.columns + Math.min(grid.columns - 1, Math.floor(view.x))),
    last: Math.min(grid.steps - 1, last_row * grid.columns + last_column),
  };
}

export type Move = 'left' | 'right' | 'up' | 'down' | 'page_up' | 'page_down' | 'first' | 'last';

// Where the cursor goes by a key.
export function moved(offset: number, move: Move, view: View, grid: Grid, size: Size): number {
  const page = Math.max(1, Math.floor(size.height / view.cell) - 1) * grid.columns;
  const by: Record<Move, number> = {
    left: -1,
    right: 1,
    up: -grid.columns,
    down: grid.columns,
    page_up: -page,
    page_down: page,
    first: -Infinity,
    last: Infinity,
  };
  const last = Math.max(0, grid.steps - 1);
  const next = offset + by[move];
  if (move === 'up' && next < 0) return offset;
  if (move === 'down' && next > last) return offset;
  return Math.min(last, Math.max(0, next));
}
