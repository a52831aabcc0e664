// SPDX-License-Identifier: Apache-2.0
//
// All runs of this coordinator, each with how far it has been checked.
import type { Run } from '../api/types';
import { count, counted, float, percent, shortHex } from '../format/format';
import { PageHead } from '../parts/layout';
import { Paged } from '../parts/paged';
import { CountsBar, Name } from '../parts/text';
import { Link } from '../route/navigate';

export function RunsPage() {
  return (
    <>
      <PageHead title="Runs" />
      <p class="lead">
        Training runs that anybody can recompute, step by step and bit for bit, and how much of each has been.{' '}
        <Link to={{ page: 'proof' }}>What that proves, and what it does not</Link>
      </p>
      <Paged<'runs', Run>
        path="/api/v1/runs"
        name="runs"
        what="the runs"
        limit={20}
        empty={
          <>
            No run has been published here yet. A trainer publishes one with <code>lockstep train RUN --coordinator …</code>
          </>
        }
        fresh={(event) => ['run', 'records', 'step', 'attestation', 'dispute'].includes(event.event)}
      >
        {(runs) => runs.map((run) => <RunCard key={run.run} run={run} />)}
      </Paged>
    </>
  );
}

function RunCard({ run }: { run: Run }) {
  const whole = Math.max(run.steps, run.steps_planned);
  return (
    <article class="run-card" aria-label={run.name}>
      <div class="section-head">
        <h2>
          <Link to={{ page: 'run', run: run.run, part: 'overview' }}>
            <Name text={run.name} none={shortHex(run.run)} />
          </Link>
        </h2>
        <code class="soft" title={run.run}>
          {shortHex(run.run)}
        </code>
      </div>
      <CountsBar counts={run.counts} of={run.steps} />
      <div class="facts">
        <span>
          <b>{percent(run.counts.confirmed, run.steps)}</b> confirmed
        </span>
        <span>
          <b>{count(run.steps)}</b> {whole > run.steps ? `of ${count(whole)} ` : ''}steps published
        </span>
        {run.counts.disputed > 0 && (
          <span class="bad">
            <b class="bad">{count(run.counts.disputed)}</b> disputed
          </span>
        )}
        <span>
          <b>{count(run.operators)}</b> {run.operators === 1 ? 'operator' : 'operators'}
        </span>
        <span>
          <b>{count(run.backends.length)}</b> {run.backends.length === 1 ? 'backend' : 'backends'}
        </span>
        {run.last_step && (
          <span>
            loss <b>{float(run.last_step.loss, 4)}</b>
          </span>
        )}
        {run.parent && (
          <span>
            goes on from{' '}
            <Link to={{ page: 'run', run: run.parent, part: 'overview' }}>
              <code>{shortHex(run.parent)}</code>
            </Link>
          </span>
        )}
      </div>
      <span class="hidden-text">{counted(run.attestations, 'attestation')}</span>
    </article>
  );
}
