// SPDX-License-Identifier: Apache-2.0
//
// The coverage map: every step of a run at once, down to a single one. Mouse: drag, Ctrl and wheel, click goes to the step. Touch: two
// fingers zoom, one pans once zoomed, a tap shows the step. Keyboard: arrows move a cursor that is read out, + and - zoom, Enter goes to the
// step. Drawn once a frame at most, and only after something changed.
import type { TargetedKeyboardEvent, TargetedSubmitEvent } from 'preact';
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks';
import { count } from '../format/format';
import { cssRgb, useThemeVersion } from '../parts/theme';
import { Link, go } from '../route/navigate';
import { draw, makePalette, type Palette } from './draw';
import type { Coverage } from './model';
import {
  canvasHeight,
  clampView,
  isWhole,
  makeGrid,
  moved,
  offsetAt,
  panBy,
  placeOf,
  showOffset,
  shown,
  wholeView,
  zoomAround,
  zoomAt,
  type Grid,
  type Move,
  type Size,
  type View,
} from './view';

const kZoomKey = 1.6;
const kLegibleCell = 12; // CSS pixels of a cell that can be hit by a finger's middle
const kRings = 300; // disputed steps that are ringed where cells are small

function themePalette(): Palette {
  return makePalette({
    ground: cssRgb('--surface'),
    none: cssRgb('--state-none'),
    unaudited: cssRgb('--state-unaudited'),
    claimed: cssRgb('--state-claimed'),
    claimed_ink: cssRgb('--state-claimed-ink'),
    provisional: cssRgb('--state-provisional'),
    provisional_ink: cssRgb('--state-provisional-ink'),
    confirmed: cssRgb('--state-confirmed'),
    disputed: cssRgb('--state-disputed'),
    disputed_ink: cssRgb('--state-disputed-ink'),
    skipped_ink: cssRgb('--skipped-ink'),
  });
}

// Draws into a canvas; keeps its pixels from frame to frame.
class Painter {
  private image: ImageData | null = null;
  private pixels: Uint32Array = new Uint32Array(0);

  paint(canvas: HTMLCanvasElement, size: Size, view: View, grid: Grid, coverage: Coverage, palette: Palette): void {
    const ratio = Math.min(devicePixelRatio || 1, 3);
    const width = Math.max(1, Math.round(size.width * ratio));
    const height = Math.max(1, Math.round(size.height * ratio));
    if (canvas.width !== width || canvas.height !== height || this.image === null) {
      canvas.width = width;
      canvas.height = height;
      this.image = new ImageData(width, height);
      this.pixels = new Uint32Array(this.image.data.buffer);
    }
    const context = canvas.getContext('2d', { alpha: false });
    if (context === null) return;
    draw(this.pixels, width, height, ratio, view, grid, coverage.bytes, palette);
    context.putImageData(this.image, 0, 0);
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    this.ring(context, size, view, grid, coverage);
    this.number(context, size, view, grid, coverage);
  }

  // One disputed step among 80,957 is a pixel or two: a ring makes it seen.
  private ring(context: CanvasRenderingContext2D, size: Size, view: View, grid: Grid, coverage: Coverage): void {
    if (view.cell >= kLegibleCell) return;
    const color = cssRgb('--bad');
    const halo = cssRgb('--surface');
    for (const offset of coverage.disputed(kRings)) {
      const { x, y } = placeOf(view, grid, offset);
      if (x < -8 || y < -8 || x > size.width + 8 || y > size.height + 8) continue;
      for (const [width, rgb] of [
        [4, halo],
        [2, color],
      ] as const) {
        context.beginPath();
        context.arc(x + view.cell / 2, y + view.cell / 2, Math.max(5, view.cell), 0, 2 * Math.PI);
        context.lineWidth = width;
        context.strokeStyle = `rgb(${rgb.join(' ')})`;
        context.stroke();
      }
    }
  }

  // Numbers of steps, once there is room for them.
  private number(context: CanvasRenderingContext2D, size: Size, view: View, grid: Grid, coverage: Coverage): void {
    if (view.cell < 44) return;
    const { first, last } = shown(view, grid, size);
    context.font = `11px ${getComputedStyle(document.documentElement).getPropertyValue('--text')}`;
    context.textAlign = 'center';
    context.textBaseline = 'middle';
    for (let offset = first; offset <= last; ++offset) {
      const { x, y } = placeOf(view, grid, offset);
      if (x + view.cell < 0 || x > size.width) continue;
      const text = count(coverage.first_step + offset);
      const width = context.measureText(text).width + 6;
      context.fillStyle = `rgb(${cssRgb('--surface').join(' ')})`;
      context.fillRect(x + view.cell / 2 - width / 2, y + view.cell / 2 - 8, width, 16);
      context.fillStyle = `rgb(${cssRgb('--ink').join(' ')})`;
      context.fillText(text, x + view.cell / 2, y + view.cell / 2 + 1);
    }
  }
}

const kMoves: Record<string, Move> = {
  ArrowLeft: 'left',
  ArrowRight: 'right',
  ArrowUp: 'up',
  ArrowDown: 'down',
  PageUp: 'page_up',
  PageDown: 'page_down',
  Home: 'first',
  End: 'last',
};

export function CoverageMap({
  run,
  coverage,
  version,
  planned,
}: {
  run: string;
  coverage: Coverage;
  version: number;
  planned: number; // steps of the whole run, if known: those to come have their places already
}) {
  const frame = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const painter = useRef(new Painter());
  const [width, setWidth] = useState(0);
  const [view, setView] = useState<View | null>(null);
  const [cursor, setCursor] = useState<number | null>(null);
  const [focused, setFocused] = useState(false);
  const [hint, setHint] = useState(false);
  const [dragging, setDragging] = useState(false);
  const theme = useThemeVersion();
  const palette = useMemo(themePalette, [theme]);

  const grid = useMemo(() => makeGrid(Math.max(planned, coverage.steps), Math.max(width, 1)), [planned, coverage.steps, width]);
  const size: Size = { width, height: canvasHeight(grid, width) };
  const now = view === null ? wholeView(grid, size) : clampView(view, grid, size);
  const whole = isWhole(now, grid, size);
  // What event handlers see: the newest of each render.
  const at = useRef({ now, grid, size, cursor });
  at.current = { now, grid, size, cursor };

  useLayoutEffect(() => {
    const element = frame.current!;
    const measure = () => setWidth(element.clientWidth);
    measure();
    const observer = new ResizeObserver(measure);
    observer.observe(element);
    return () => observer.disconnect();
  }, []);

  useEffect(() => {
    if (width === 0) return;
    const request = requestAnimationFrame(() => painter.current.paint(canvas.current!, size, now, grid, coverage, palette));
    return () => cancelAnimationFrame(request);
  }, [width, size.height, now.cell, now.x, now.y, grid, coverage, version, palette]);

  const stepOf = (offset: number) => coverage.first_step + offset;
  const open = (offset: number) => {
    if (offset < coverage.steps) go({ page: 'step', run, step: stepOf(offset) });
  };
  const zoom = (factor: number, px?: number, py?: number) => {
    const { now, grid, size, cursor } = at.current;
    setView(px === undefined || py === undefined ? zoomAround(now, factor, cursor, grid, size) : zoomAt(now, factor, px, py, grid, size));
  };

  usePointers(frame, at, setView, setDragging, {
    point: (offset) => setCursor(offset),
    click: open,
    hint: setHint,
  });

  const key = (event: TargetedKeyboardEvent<HTMLDivElement>) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const move = kMoves[event.key];
    if (move !== undefined) {
      const from = cursor ?? shown(now, grid, size).first;
      const to = cursor === null ? from : moved(from, move, now, grid, size);
      setCursor(to);
      setView(showOffset(now, grid, size, to));
    } else if (event.key === '+' || event.key === '=') zoom(kZoomKey);
    else if (event.key === '-' || event.key === '_') zoom(1 / kZoomKey);
    else if (event.key === '0') setView(null);
    else if (event.key === 'Enter' && cursor !== null) open(cursor);
    else return;
    event.preventDefault();
  };

  const goTo = (step: number) => {
    const offset = step - coverage.first_step;
    if (offset < 0 || offset >= grid.steps) return;
    setCursor(offset);
    const near = now.cell >= kLegibleCell ? now : zoomAt(now, 24 / now.cell, 0, 0, grid, size);
    const place = placeOf(near, grid, offset);
    setView(panBy(near, size.width / 2 - place.x, size.height / 2 - place.y, grid, size));
  };

  const place = cursor === null ? null : placeOf(now, grid, cursor);
  const ring = Math.max(now.cell, 8);
  const seen = grid.steps > 0 ? shown(now, grid, size) : { first: 0, last: 0 };
  return (
    <div>
      <div
        ref={frame}
        class={`map-frame${whole ? '' : ' zoomed'}${dragging ? ' dragging' : ''}`}
        role="application"
        aria-roledescription="coverage map"
        aria-label={`Coverage of ${count(coverage.steps)} steps. Arrow keys move from step to step, plus and minus zoom, Enter opens the step, 0 shows the whole run.`}
        tabIndex={0}
        onKeyDown={key}
        onFocus={() => setFocused(true)}
        onBlur={() => setFocused(false)}
        data-testid="map"
      >
        <canvas ref={canvas} style={{ width: `${size.width}px`, height: `${size.height}px` }} />
        {place !== null && (focused || now.cell >= kLegibleCell) && (
          <div
            class="map-cursor"
            style={{
              width: `${ring}px`,
              height: `${ring}px`,
              transform: `translate(${place.x + (now.cell - ring) / 2}px, ${place.y + (now.cell - ring) / 2}px)`,
            }}
          />
        )}
        {hint && <div class="map-hint">Ctrl and wheel zooms</div>}
      </div>
      <div class="map-readout">
        <span aria-live="polite">{cursor === null ? 'No step chosen' : <Told run={run} coverage={coverage} offset={cursor} />}</span>
        <span class="right">
          {count(stepOf(seen.first))} to {count(stepOf(seen.last))}; {count(grid.columns)} steps a row
        </span>
      </div>
      <Tools zoom={zoom} whole={whole} showAll={() => setView(null)} goTo={goTo} first={coverage.first_step} last={coverage.end_step - 1} />
    </div>
  );
}

function Told({ run, coverage, offset }: { run: string; coverage: Coverage; offset: number }) {
  const step = coverage.first_step + offset;
  const state = coverage.state(step);
  if (state === null) return <>Step {count(step)}: still to come</>;
  return (
    <>
      <Link to={{ page: 'step', run, step }}>Step {count(step)}</Link>: {state}
      {coverage.skipped(step) && ', its update was skipped'}
    </>
  );
}

function Tools({
  zoom,
  whole,
  showAll,
  goTo,
  first,
  last,
}: {
  zoom: (factor: number) => void;
  whole: boolean;
  showAll: () => void;
  goTo: (step: number) => void;
  first: number;
  last: number;
}) {
  const submit = (event: TargetedSubmitEvent<HTMLFormElement>) => {
    event.preventDefault();
    goTo(Number(new FormData(event.currentTarget).get('step')));
  };
  return (
    <div class="map-tools">
      <button type="button" class="square" onClick={() => zoom(2)} aria-label="Zoom in">
        +
      </button>
      <button type="button" class="square" onClick={() => zoom(0.5)} aria-label="Zoom out" disabled={whole}>
        −
      </button>
      <button type="button" onClick={showAll} disabled={whole}>
        Whole run
      </button>
      <form onSubmit={submit}>
        <label for="map-step">Step</label>
        <input id="map-step" name="step" type="number" class="step-input" min={first} max={Math.max(first, last)} step={1} required />
        <button type="submit">Find</button>
      </form>
    </div>
  );
}

// Mouse, pen and fingers.
function usePointers(
  frame: { readonly current: HTMLDivElement | null },
  at: { readonly current: { now: View; grid: Grid; size: Size } },
  setView: (view: View) => void,
  setDragging: (dragging: boolean) => void,
  told: { point: (offset: number | null) => void; click: (offset: number) => void; hint: (shown: boolean) => void },
): void {
  const tell = useRef(told);
  tell.current = told;
  useEffect(() => {
    const element = frame.current!;
    const down = new Map<number, { x: number; y: number }>();
    let view: View | null = null; // while pointers are down: ahead of what is rendered
    let start = { x: 0, y: 0 };
    let travelled = false;
    let hint_timer: ReturnType<typeof setTimeout> | undefined;
    const placeIn = (event: { clientX: number; clientY: number }) => {
      const box = element.getBoundingClientRect();
      return { x: event.clientX - box.left - element.clientLeft, y: event.clientY - box.top - element.clientTop };
    };
    const change = (next: View) => {
      view = next;
      setView(next);
    };
    const pressed = (event: PointerEvent) => {
      if (event.button !== 0) return;
      const place = placeIn(event);
      if (down.size === 0) {
        view = at.current.now;
        start = place;
        travelled = false;
      }
      down.set(event.pointerId, place);
    };
    const movedTo = (event: PointerEvent) => {
      const { grid, size, now } = at.current;
      const place = placeIn(event);
      const before = down.get(event.pointerId);
      if (before === undefined) {
        if (event.pointerType !== 'touch') tell.current.point(offsetAt(now, grid, place.x, place.y));
        return;
      }
      const from = view ?? now;
      if (down.size === 1) {
        if (!travelled && Math.hypot(place.x - start.x, place.y - start.y) < 5) return;
        if (!travelled) element.setPointerCapture(event.pointerId);
        travelled = true;
        setDragging(true);
        change(panBy(from, place.x - before.x, place.y - before.y, grid, size));
      } else if (down.size === 2) {
        travelled = true;
        const other = [...down].find(([id]) => id !== event.pointerId)![1];
        const was = Math.hypot(before.x - other.x, before.y - other.y);
        const is = Math.hypot(place.x - other.x, place.y - other.y);
        const middle = { x: (place.x + other.x) / 2, y: (place.y + other.y) / 2 };
        const moved_by = { x: (place.x - before.x) / 2, y: (place.y - before.y) / 2 };
        const zoomed = was > 0 ? zoomAt(from, is / was, middle.x, middle.y, grid, size) : from;
        change(panBy(zoomed, moved_by.x, moved_by.y, grid, size));
      }
      down.set(event.pointerId, place);
    };
    const released = (event: PointerEvent) => {
      if (!down.delete(event.pointerId)) return;
      if (down.size > 0) return;
      setDragging(false);
      view = null;
      if (travelled || event.type === 'pointercancel') return;
      const { grid, now } = at.current;
      const place = placeIn(event);
      const offset = offsetAt(now, grid, place.x, place.y);
      tell.current.point(offset);
      if (offset !== null && event.pointerType !== 'touch') tell.current.click(offset);
    };
    const left = (event: PointerEvent) => {
      // A finger leaves as it is lifted: what it tapped stays.
      if (event.pointerType !== 'touch' && document.activeElement !== element && down.size === 0) tell.current.point(null);
    };
    const wheel = (event: WheelEvent) => {
      if (!event.ctrlKey && !event.metaKey) {
        tell.current.hint(true);
        clearTimeout(hint_timer);
        hint_timer = setTimeout(() => tell.current.hint(false), 1_200);
        return;
      }
      event.preventDefault();
      const { grid, size, now } = at.current;
      const place = placeIn(event);
      const lines = event.deltaMode === 1 ? 33 * event.deltaY : event.deltaY;
      setView(zoomAt(now, Math.exp(-Math.max(-240, Math.min(240, lines)) / 240), place.x, place.y, grid, size));
    };
    element.addEventListener('pointerdown', pressed);
    element.addEventListener('pointermove', movedTo);
    element.addEventListener('pointerup', released);
    element.addEventListener('pointercancel', released);
    element.addEventListener('pointerleave', left);
    element.addEventListener('wheel', wheel, { passive: false });
    return () => {
      clearTimeout(hint_timer);
      element.removeEventListener('pointerdown', pressed);
      element.removeEventListener('pointermove', movedTo);
      element.removeEventListener('pointerup', released);
      element.removeEventListener('pointercancel', released);
      element.removeEventListener('pointerleave', left);
      element.removeEventListener('wheel', wheel);
    };
  }, []);
}
