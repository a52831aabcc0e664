// SPDX-License-Identifier: Apache-2.0
//
// The coverage map in words: how many steps of each state there are in each stretch of the run, and where the state changes.
import { useMemo, useState } from 'preact/hooks';
import type { StateName } from '../api/types';
import { count, percent } from '../format/format';
import { Table, Th } from '../parts/layout';
import { State } from '../parts/text';
import { Link } from '../route/navigate';
import { blocks, blockSteps, kStates, type Coverage } from './model';

const kBlocks = 50;
const kRows = 100;

export function CoverageTable({ run, coverage, version }: { run: string; coverage: Coverage; version: number }) {
  const [state, setState] = useState<StateName | ''>('');
  const [rows, setRows] = useState(kRows);
  const size = blockSteps(coverage.steps, kBlocks);
  const stretches = useMemo(() => blocks(coverage, size), [coverage, version, size]);
  const segments = useMemo(() => coverage.segments(), [coverage, version]);
  const chosen = state === '' ? segments : segments.filter((segment) => segment.state === state);
  return (
    <>
      <h3>By stretches of {count(size)} steps</h3>
      <Table
        label="Coverage by stretches of the run"
        head={
          <>
            <Th>Steps</Th>
            {[...kStates].reverse().map((name) => (
              <Th key={name} number>
                {name}
              </Th>
            ))}
          </>
        }
      >
        {stretches.map((stretch) => (
          <tr key={stretch.begin}>
            <th scope="row" class="nowrap">
              <Link to={{ page: 'step', run, step: stretch.begin }}>{count(stretch.begin)}</Link> to {count(stretch.end - 1)}
            </th>
            {[...kStates].reverse().map((name) => (
              <td key={name} class="number">
                {stretch.counts[name] === 0 ? <span class="soft">0</span> : count(stretch.counts[name])}{' '}
                <span class="soft small">{stretch.counts[name] > 0 && percent(stretch.counts[name], stretch.end - stretch.begin)}</span>
              </td>
            ))}
          </tr>
        ))}
      </Table>
      <div class="section-head spaced">
        <h3>Where the state changes</h3>
        <label>
          State{' '}
          <select
            value={state}
            onChange={(event) => {
              setState(event.currentTarget.value as StateName | '');
              setRows(kRows);
            }}
          >
            <option value="">all</option>
            {kStates.map((name) => (
              <option key={name}>{name}</option>
            ))}
          </select>
        </label>
      </div>
      <Table
        label="Stretches of steps in one state"
        head={
          <>
            <Th>From step</Th>
            <Th>To step</Th>
            <Th number>Steps</Th>
            <Th>State</Th>
          </>
        }
      >
        {chosen.slice(0, rows).map((segment) => (
          <tr key={segment.begin}>
            <td>
              <Link to={{ page: 'step', run, step: segment.begin }}>{count(segment.begin)}</Link>
            </td>
            <td>
              <Link to={{ page: 'step', run, step: segment.end - 1 }}>{count(segment.end - 1)}</Link>
            </td>
            <td class="number">{count(segment.end - segment.begin)}</td>
            <td>
              <State state={segment.state} />
            </td>
          </tr>
        ))}
      </Table>
      {chosen.length > rows && (
        <div class="pager">
          <span>
            {count(rows)} of {count(chosen.length)}
          </span>
          <button type="button" onClick={() => setRows(rows + 500)}>
            Show more
          </button>
        </div>
      )}
    </>
  );
}
