// SPDX-License-Identifier: Apache-2.0
//
// One chart over steps: a line, a band between the least and the greatest of each bucket, points, and marks on the upper edge. uPlot draws;
// dragging over it chooses a range. What the pointer is on is written below; the table beside the charts has it for who cannot see them.
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import uPlot from 'uplot';
import { count, float, short } from '../format/format';
import { cssColor, useThemeVersion } from '../parts/theme';
import { spanOf, type Line } from './series';

export interface Drawn {
  label: string;
  values: Line;
  color: string; // a custom property of theme.css
  key: string; // the class of its sign in the key
  kind: 'line' | 'points';
}

export interface Marks {
  label: string;
  steps: number[];
  color: string;
  key: string;
  shape: 'triangle' | 'diamond';
}

export interface ChartProps {
  title: string;
  unit: string;
  summary: string; // what it shows, in a sentence
  step: number[];
  band?: { min: Line; max: Line };
  drawn: Drawn[];
  marks?: Marks[];
  logarithmic?: boolean;
  range: [number, number]; // steps on the axis
  choose: (begin: number, end: number) => void;
}

const kHeight = 210;
const kMark = 5; // half a mark's width, CSS pixels

function mark(context: CanvasRenderingContext2D, shape: Marks['shape'], x: number, y: number, half: number): void {
  context.beginPath();
  if (shape === 'triangle') {
    context.moveTo(x - half, y);
    context.lineTo(x + half, y);
    context.lineTo(x, y + 1.7 * half);
  } else {
    context.moveTo(x, y);
    context.lineTo(x + half, y + half);
    context.lineTo(x, y + 2 * half);
    context.lineTo(x - half, y + half);
  }
  context.fill();
}

function linesOf({ band, drawn }: ChartProps): Line[] {
  return [...(band ? [band.min, band.max] : []), ...drawn.map((one) => one.values)];
}

function logarithmicSpan(props: ChartProps): [number, number] {
  const span = spanOf(linesOf(props).map((line) => line.map((value) => (value === null ? null : Math.log10(value)))));
  return span === null ? [0.1, 1] : [10 ** span[0], 10 ** span[1]];
}

const powersOfTen: uPlot.Axis.Filter = (_, ticks) => ticks.map((tick) => (Number.isInteger(Math.round(1e6 * Math.log10(tick)) / 1e6) ? tick : null));

export function Chart(props: ChartProps) {
  const { title, unit, summary, step, band, drawn, marks = [], logarithmic = false, range } = props;
  const place = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const latest = useRef(props);
  latest.current = props;
  const theme = useThemeVersion();
  const [index, setIndex] = useState<number | null>(null);

  const data = useMemo(() => {
    const lines = [...(band ? [band.max, band.min] : []), ...drawn.map((one) => one.values)];
    return [step, ...lines] as uPlot.AlignedData;
  }, [step, band?.min, band?.max, ...drawn.map((one) => one.values)]);
  const form = `${drawn.map((one) => `${one.label} ${one.color} ${one.kind}`).join()} ${band !== undefined} ${logarithmic}`;

  useEffect(() => {
    const element = place.current!;
    const ink = cssColor('--ink-soft');
    const rule = cssColor('--rule');
    const font = `12px ${cssColor('--text')}`;
    const series: uPlot.Series[] = [{}];
    const edge: uPlot.Series = { stroke: cssColor('--chart-edge'), width: 1, points: { show: false }, spanGaps: true };
    if (band) series.push({ ...edge }, { ...edge });
    for (const one of drawn) {
      const color = cssColor(one.color);
      series.push(
        one.kind === 'line'
          ? { stroke: color, width: 1.5, spanGaps: true, points: { show: false } }
          : { stroke: color, width: 1, spanGaps: true, points: { show: true, size: 7, fill: color, stroke: cssColor('--surface') } },
      );
    }
    const axis: uPlot.Axis = { stroke: ink, font, grid: { stroke: rule, width: 1 }, ticks: { stroke: rule, width: 1, size: 4 } };
    const made = new uPlot(
      {
        width: Math.max(element.clientWidth, 80),
        height: kHeight,
        legend: { show: false },
        padding: [12, 10, 0, 0],
        scales: {
          x: { time: false, range: () => latest.current.range },
          y: logarithmic
            ? { distr: 3, log: 10, range: () => logarithmicSpan(latest.current) }
            : { range: () => spanOf(linesOf(latest.current)) ?? [0, 1] },
        },
        axes: [
          { ...axis, space: 70, size: 30, values: (_, ticks) => ticks.map((tick) => (Number.isInteger(tick) ? short(tick) : '')) },
          { ...axis, size: 56, grid: logarithmic ? { ...axis.grid, filter: powersOfTen } : axis.grid, values: (_, ticks) => ticks.map((tick) => (tick === null ? '' : float(tick, 3))) },
        ],
        series,
        bands: band ? [{ series: [1, 2], fill: cssColor('--chart-band') }] : [],
        cursor: { sync: { key: 'steps' }, drag: { x: true, y: false, setScale: false }, points: { show: false } },
        hooks: {
          setCursor: [(self) => setIndex(self.cursor.idx ?? null)],
          setSelect: [
            (self) => {
              if (self.select.width < 4) return;
              const begin = Math.max(0, Math.floor(self.posToVal(self.select.left, 'x')));
              const end = Math.ceil(self.posToVal(self.select.left + self.select.width, 'x'));
              self.setSelect({ left: 0, width: 0, top: 0, height: 0 }, false);
              latest.current.choose(begin, Math.max(begin + 1, end));
            },
          ],
          draw: [
            (self) => {
              const ratio = devicePixelRatio || 1;
              for (const one of latest.current.marks ?? []) {
                self.ctx.fillStyle = cssColor(one.color);
                for (const at of one.steps) {
                  const [begin, end] = latest.current.range;
                  if (at < begin || at > end) continue;
                  mark(self.ctx, one.shape, self.valToPos(at, 'x', true), self.bbox.top - 6 * ratio, kMark * ratio);
                }
              }
            },
          ],
        },
      },
      data,
      element,
    );
    plot.current = made;
    const observer = new ResizeObserver(() => made.setSize({ width: Math.max(element.clientWidth, 80), height: kHeight }));
    observer.observe(element);
    return () => {
      observer.disconnect();
      made.destroy();
      plot.current = null;
    };
  }, [theme, form]);

  const marked = marks.map((one) => one.steps.length).join();
  useEffect(() => {
    plot.current?.setData(data);
  }, [data, range[0], range[1], marked]);

  const value = (line: Line | undefined) => (index === null ? null : (line?.[index] ?? null));
  const least = value(band?.min);
  const most = value(band?.max);
  return (
    <figure class="chart">
      <figcaption>
        <h3>{title}</h3>
        <span class="soft small">{unit}</span>
        <span class="hidden-text">{summary}</span>
      </figcaption>
      <div ref={place} class="chart-plot" role="img" aria-label={`${title}. ${summary}`} />
      <ul class="chart-key">
        {index !== null && step[index] !== undefined && (
          <li aria-hidden="true">
            <b>step {count(step[index])}</b>
          </li>
        )}
        {drawn.map((one) => (
          <li key={one.label}>
            <span class={`${one.kind === 'line' ? 'key-line' : 'key-dot'} ${one.key}`} aria-hidden="true" />
            <bdi>{one.label}</bdi>
            {value(one.values) !== null && <b aria-hidden="true">{float(value(one.values), 4)}</b>}
          </li>
        ))}
        {band && (
          <li>
            <span class="key-band key-loss-band" aria-hidden="true" />
            least to greatest
            {least !== null && most !== null && (
              <b aria-hidden="true">
                {float(least, 4)} to {float(most, 4)}
              </b>
            )}
          </li>
        )}
        {marks
          .filter((one) => one.steps.length > 0)
          .map((one) => (
            <li key={one.label}>
              <span class={`${one.shape === 'triangle' ? 'key-tick' : 'key-diamond'} ${one.key}`} aria-hidden="true" />
              {one.label}
            </li>
          ))}
      </ul>
    </figure>
  );
}
