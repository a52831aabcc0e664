// SPDX-License-Identifier: Apache-2.0
//
// The charts of a run: loss with held-out losses, gradient norm, learning rate, z-loss; what was skipped is marked. A range is chosen by dragging
// over a chart or by its numbers, and loaded anew, so that one can go down to single steps.
import type { TargetedSubmitEvent } from 'preact';
import { useMemo, useState } from 'preact/hooks';
import { withQuery } from '../api/client';
import { useResource } from '../api/resource';
import type { Curves } from '../api/types';
import { count, counted, float, outcome } from '../format/format';
import { Empty, Show } from '../parts/loaded';
import { Section, Table, Th } from '../parts/layout';
import { Link } from '../route/navigate';
import { Chart, type Drawn, type Marks } from './chart';
import { banded, heldOutSets, joinPoints, rebucket } from './series';

const kBuckets = 1000;

function bucketsForScreen(): number {
  return Math.max(200, Math.min(kBuckets, Math.round(innerWidth * 0.75)));
}

const kHeldOutLooks = [
  { color: '--chart-other', key: 'key-other' },
  { color: '--chart-third', key: 'key-third' },
];

export function RunCharts({ run, first, end }: { run: string; first: number; end: number }) {
  const [chosen, setChosen] = useState<[number, number] | null>(null);
  const path = withQuery(`/api/v1/runs/${run}/curves`, { begin: chosen?.[0], end: chosen?.[1], buckets: kBuckets });
  const loaded = useResource<Curves>(path, (event) => (event.event === 'records' || event.event === 'evaluation') && event.run === run);
  const [held, setHeld] = useState<Curves | undefined>(undefined);
  // While another range is on its way the one before stays, so that nothing jumps.
  if (loaded.data !== undefined && loaded.data !== held) setHeld(loaded.data);
  const choose = (begin: number, to: number) => {
    const low = Math.max(first, begin);
    const high = Math.min(end, to);
    if (high > low) setChosen([low, high]);
  };
  return (
    <Section
      title="Curves"
      aside={<RangeForm first={first} end={end} chosen={chosen} choose={choose} all={() => setChosen(null)} />}
    >
      <Show of={{ ...loaded, data: loaded.data ?? held }} what="the curves">
        {(curves) =>
          curves.step.length === 0 ? <Empty>No step has been published yet.</Empty> : <Charts run={run} curves={curves} busy={loaded.data === undefined} choose={choose} />
        }
      </Show>
    </Section>
  );
}

function RangeForm({
  first,
  end,
  chosen,
  choose,
  all,
}: {
  first: number;
  end: number;
  chosen: [number, number] | null;
  choose: (begin: number, end: number) => void;
  all: () => void;
}) {
  const submit = (event: TargetedSubmitEvent<HTMLFormElement>) => {
    event.preventDefault();
    const form = new FormData(event.currentTarget);
    choose(Number(form.get('from')), Number(form.get('to')) + 1);
  };
  const last = Math.max(first, end - 1);
  return (
    <form class="range" onSubmit={submit}>
      <label>
        Steps <input name="from" type="number" class="step-input" min={first} max={last} required key={`f${chosen?.[0]}`} defaultValue={String(chosen?.[0] ?? first)} />
      </label>
      <label>
        to <input name="to" type="number" class="step-input" min={first} max={last} required key={`t${chosen?.[1] ?? last}`} defaultValue={String(chosen ? chosen[1] - 1 : last)} />
      </label>
      <button type="submit">Show</button>
      <button type="button" disabled={chosen === null} onClick={all}>
        Whole run
      </button>
    </form>
  );
}

function Charts({ run, curves, busy, choose }: { run: string; curves: Curves; busy: boolean; choose: (begin: number, end: number) => void }) {
  const most = bucketsForScreen();
  const drawn = useMemo(() => {
    const loss = rebucket(banded(curves, 'loss'), most);
    const norm = rebucket(banded(curves, 'gradient_norm'), most);
    const sets = heldOutSets(curves).slice(0, kHeldOutLooks.length);
    const joined = joinPoints(
      loss.step,
      [loss.min, loss.max, loss.mean],
      sets.map((set) => set.points),
    );
    const [min, max, mean] = joined.lines;
    return {
      norm,
      sets,
      loss: { step: joined.step, min: min!, max: max!, mean: mean!, points: joined.points },
    };
  }, [curves, most]);
  const range: [number, number] = [curves.begin, Math.max(curves.begin + 1, curves.end - 1)];
  const spikes = curves.spikes.map((one) => one.step);
  const skipped = curves.skipped.filter((one) => one.outcome !== 2).map((one) => one.step);
  const marks: Marks[] = [
    { label: 'skipped: not finite, or after a spike', steps: skipped, color: '--chart-other', key: 'key-other', shape: 'triangle' },
    { label: `skipped: a spike (${count(curves.spike_count)})`, steps: spikes, color: '--chart-mark', key: 'key-mark', shape: 'diamond' },
  ];
  const line = (label: string, values: (number | null)[]): Drawn => ({ label, values, color: '--chart-line', key: 'key-loss', kind: 'line' });
  const at = `steps ${count(curves.begin)} to ${count(Math.max(curves.begin, curves.end - 1))}`;
  return (
    <>
      <div class={busy ? 'charts refreshing' : 'charts'}>
        <Chart
          title="Loss"
          unit="nats a token"
          summary={`${ends(curves.loss.mean)} over ${at}; ${counted(curves.skipped_count, 'step')} skipped.`}
          step={drawn.loss.step}
          band={{ min: drawn.loss.min, max: drawn.loss.max }}
          drawn={[
            line('mean', drawn.loss.mean),
            ...drawn.sets.map((set, n): Drawn => ({ label: `held out: ${set.set}`, values: drawn.loss.points[n]!, kind: 'points', ...kHeldOutLooks[n]! })),
          ]}
          marks={marks}
          range={range}
          choose={choose}
        />
        <Chart
          title="Gradient norm"
          unit="before the clip, logarithmic"
          summary={`${ends(curves.gradient_norm.mean)} over ${at}.`}
          step={drawn.norm.step}
          band={{ min: drawn.norm.min, max: drawn.norm.max }}
          drawn={[line('mean', drawn.norm.mean)]}
          marks={marks}
          logarithmic={positive(drawn.norm.min)}
          range={range}
          choose={choose}
        />
        <Chart
          title="Learning rate"
          unit="of the last step of each bucket"
          summary={`${ends(curves.learning_rate.last)} over ${at}.`}
          step={curves.step}
          drawn={[line('learning rate', curves.learning_rate.last)]}
          range={range}
          choose={choose}
        />
        <Chart
          title="z-loss"
          unit="mean, before its coefficient"
          summary={`${ends(curves.z_loss.mean)} over ${at}.`}
          step={curves.step}
          drawn={[line('mean', curves.z_loss.mean)]}
          range={range}
          choose={choose}
        />
      </div>
      <CurveTables run={run} curves={curves} />
    </>
  );
}

function positive(line: (number | null)[]): boolean {
  return line.some((value) => value !== null) && line.every((value) => value === null || value > 0);
}

function ends(line: (number | null)[]): string {
  const there = line.filter((value): value is number => value !== null);
  return there.length === 0 ? 'No value' : `From ${float(there[0], 4)} to ${float(there[there.length - 1], 4)}`;
}

const kTableRows = 100;

function CurveTables({ run, curves }: { run: string; curves: Curves }) {
  const [opened, setOpened] = useState(false);
  return (
    <details onToggle={(event) => setOpened(event.currentTarget.open)}>
      <summary>The curves as tables</summary>
      {opened && <OpenTables run={run} curves={curves} />}
    </details>
  );
}

function OpenTables({ run, curves }: { run: string; curves: Curves }) {
  const loss = rebucket(banded(curves, 'loss'), kTableRows);
  const norm = rebucket(banded(curves, 'gradient_norm'), kTableRows);
  const factor = Math.ceil(curves.step.length / kTableRows);
  return (
    <>
      <Table
        label="Curves"
        head={
          <>
            <Th>From step</Th>
            <Th number>Loss, mean</Th>
            <Th number>least</Th>
            <Th number>greatest</Th>
            <Th number>Gradient norm, mean</Th>
            <Th number>least</Th>
            <Th number>greatest</Th>
            <Th number>Learning rate</Th>
          </>
        }
      >
        {loss.step.map((step, n) => (
          <tr key={step}>
            <th scope="row">
              <Link to={{ page: 'step', run, step }}>{count(step)}</Link>
            </th>
            {[loss.mean[n], loss.min[n], loss.max[n], norm.mean[n], norm.min[n], norm.max[n]].map((value, column) => (
              <td key={column} class="number">
                {float(value, 4)}
              </td>
            ))}
            <td class="number">{float(curves.learning_rate.last[Math.min(curves.step.length, (n + 1) * factor) - 1], 4)}</td>
          </tr>
        ))}
      </Table>
      <div class="columns spaced">
        <Section title={`Skipped steps: ${count(curves.skipped_count)}`}>
          {curves.skipped.length === 0 ? (
            <Empty>Every step here made its update.</Empty>
          ) : (
            <Table
              label="Skipped steps"
              head={
                <>
                  <Th>Step</Th>
                  <Th>Why</Th>
                </>
              }
            >
              {curves.skipped.slice(0, kTableRows).map((one) => (
                <tr key={one.step}>
                  <th scope="row">
                    <Link to={{ page: 'step', run, step: one.step }}>{count(one.step)}</Link>
                  </th>
                  <td>{outcome(one.outcome)}</td>
                </tr>
              ))}
            </Table>
          )}
        </Section>
        <Section title="Held-out losses">
          {curves.held_out.length === 0 ? (
            <Empty>None is published for these steps.</Empty>
          ) : (
            <Table
              label="Held-out losses"
              head={
                <>
                  <Th>Step</Th>
                  <Th>Set</Th>
                  <Th number>Nats a token</Th>
                  <Th number>Bits a byte</Th>
                </>
              }
            >
              {curves.held_out.slice(-kTableRows).map((one) => (
                <tr key={`${one.step} ${one.set}`}>
                  <th scope="row">
                    <Link to={{ page: 'step', run, step: one.step }}>{count(one.step)}</Link>
                  </th>
                  <td>
                    <bdi>{one.set}</bdi>
                  </td>
                  <td class="number">{float(one.nats_per_token, 5)}</td>
                  <td class="number">{float(one.bits_per_byte, 5)}</td>
                </tr>
              ))}
            </Table>
          )}
        </Section>
      </div>
    </>
  );
}
