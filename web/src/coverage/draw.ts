// SPDX-License-Identifier: Apache-2.0
//
// The map's pixels. Each pixel of the canvas is computed from the step that lies there: one pass over the pixels, the same work for 100
// steps and for 80,957. States differ by colour and by pattern; the pattern lies still on the canvas, so that it shows at any zoom.
import type { Grid, View } from './view';

// Patterns repeat every 8 pixels (times the device's ratio).
const kTile = 8;
const kTilePixels = kTile * kTile;
// Byte of a step → kind: its state, 0 for a step that is not there yet, and 8 more for one whose update was skipped.
const kKinds = 16;

export type Rgb = readonly [number, number, number];

export interface Colors {
  ground: Rgb; // between cells, and beside the run
  none: Rgb; // steps to come
  unaudited: Rgb;
  claimed: Rgb;
  claimed_ink: Rgb;
  provisional: Rgb;
  provisional_ink: Rgb;
  confirmed: Rgb;
  disputed: Rgb;
  disputed_ink: Rgb;
  skipped_ink: Rgb;
}

export interface Palette {
  ground: number;
  tiles: Uint32Array; // [kKinds, kTile, kTile]
}


// As ImageData has it on the little-endian machines that browsers run on.
function pixel([red, green, blue]: Rgb): number {
  return ((255 << 24) | (blue << 16) | (green << 8) | red) >>> 0;
}

type Pattern = (x: number, y: number) => boolean;
const kPlain: Pattern = () => false;
const kDots: Pattern = (x, y) => x % 4 === 1 && y % 4 === 1;
const kHatch: Pattern = (x, y) => (x + y) % 4 === 0;
const kCross: Pattern = (x, y) => (x + y) % 4 === 0 || (x - y + kTile) % 4 === 0;
const kStripes: Pattern = (_, y) => y % 4 === 3;

export function makePalette(colors: Colors): Palette {
  const kinds: [Rgb, Rgb, Pattern][] = [
    [colors.none, colors.none, kPlain],
    [colors.unaudited, colors.unaudited, kPlain],
    [colors.claimed, colors.claimed_ink, kDots],
    [colors.provisional, colors.provisional_ink, kHatch],
    [colors.confirmed, colors.confirmed, kPlain],
    [colors.disputed, colors.disputed_ink, kCross],
    [colors.none, colors.none, kPlain],
    [colors.none, colors.none, kPlain],
  ];
  const tiles = new Uint32Array(kKinds * kTilePixels);
  for (let kind = 0; kind < kKinds; ++kind) {
    const [base, ink, pattern] = kinds[kind & 7]!;
    for (let y = 0; y < kTile; ++y) {
      for (let x = 0; x < kTile; ++x) {
        const color = kind >= 8 && kStripes(x, y) ? colors.skipped_ink : pattern(x, y) ? ink : base;
        tiles[kind * kTilePixels + y * kTile + x] = pixel(color);
      }
    }
  }
  return { ground: pixel(colors.ground), tiles };
}

const kGapCell = 6; // CSS pixels, from which on cells have a gap between them

// For each pixel of a line the cell that it is in; -1: in none, or in a gap. `ratio` device pixels are a CSS pixel.
function lineCells(pixels: number, ratio: number, from: number, cell: number, cells: number): Int32Array {
  const line = new Int32Array(pixels);
  const gap = cell >= kGapCell ? (cell >= 24 ? 2 : 1) / cell : 0;
  for (let n = 0; n < pixels; ++n) {
    const place = from + (n + 0.5) / ratio / cell;
    const index = Math.floor(place);
    line[n] = index < 0 || index >= cells || place - index > 1 - gap ? -1 : index;
  }
  return line;
}

// Fills `out`, [height, width] device pixels. `bytes` has a byte for each step that is there; the grid may have more.
export function draw(
  out: Uint32Array,
  width: number,
  height: number,
  ratio: number,
  view: View,
  grid: Grid,
  bytes: Uint8Array,
  palette: Palette,
): void {
  const columns = lineCells(width, ratio, view.x, view.cell, grid.columns);
  const rows = lineCells(height, ratio, view.y, view.cell, grid.rows);
  const step = Math.max(1, Math.round(ratio));
  const across = new Uint8Array(width);
  for (let x = 0; x < width; ++x) across[x] = Math.floor(x / step) % kTile;
  const { ground, tiles } = palette;
  for (let y = 0; y < height; ++y) {
    const row = rows[y]!;
    const line = y * width;
    if (row < 0) {
      out.fill(ground, line, line + width);
      continue;
    }
    const first = row * grid.columns;
    const down = (Math.floor(y / step) % kTile) * kTile;
    for (let x = 0; x < width; ++x) {
      const column = columns[x]!;
      const offset = first + column;
      if (column < 0 || offset >= grid.steps) {
        out[line + x] = ground;
      } else {
        const byte = offset < bytes.length ? bytes[offset]! : 0;
        out[line + x] = tiles[((byte & 7) | ((byte & 0x10) >> 1)) * kTilePixels + down + across[x]!]!;
      }
    }
  }
}
