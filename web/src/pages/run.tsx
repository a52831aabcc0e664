// SPDX-License-Identifier: Apache-2.0
//
// One run: what has been checked of it, its map and curves; and as parts of their own its steps, attestations, leases, disputes and
// manifest.
import { useState } from 'preact/hooks';
import type { LiveEvent } from '../api/events';
import { useResource } from '../api/resource';
import type { Attestation, Lease, RunDetail, Step, StateName } from '../api/types';
import { RunCharts } from '../charts/curves';
import { CoverageMap } from '../coverage/map';
import { kStates } from '../coverage/model';
import { CoverageTable } from '../coverage/table';
import { useCoverage } from '../coverage/use_coverage';
import { bytes, count, counted, duration, float, percent, perHour, short, shortHex, timeLeftMs } from '../format/format';
import { AttestationTable } from '../parts/attestations';
import { later } from '../parts/later';
import { Field, PageHead, Readout, Section, Table, Th } from '../parts/layout';
import { kLeaseStates, LeaseTable, LeaseWords } from '../parts/leases';
import { Empty, Show } from '../parts/loaded';
import { Exports, Paged } from '../parts/paged';
import { CountsBar, CountsTable, Hash, Name, State, When } from '../parts/text';
import { Link } from '../route/navigate';
import type { RunPart } from '../route/route';

const DisputeList = later('the disputes', async () => (await import('./disputes')).DisputeList);

export const ofRun =
  (run: string, ...names: LiveEvent['event'][]) =>
  (event: LiveEvent) =>
    names.includes(event.event) && 'run' in event && event.run === run;

const kParts: { part: RunPart; text: string }[] = [
  { part: 'overview', text: 'Overview' },
  { part: 'steps', text: 'Steps' },
  { part: 'attestations', text: 'Attestations' },
  { part: 'leases', text: 'Leases' },
  { part: 'disputes', text: 'Disputes' },
  { part: 'manifest', text: 'Manifest' },
];

export function RunPage({ run, part }: { run: string; part: RunPart }) {
  const loaded = useResource<RunDetail>(`/api/v1/runs/${run}`, ofRun(run, 'records', 'step', 'attestation', 'dispute', 'checkpoint'));
  const name = loaded.data?.name;
  const word = kParts.find((one) => one.part === part)!.text;
  return (
    <>
      <PageHead
        title={part === 'overview' ? (name ?? 'Run') : `${word} of ${name ?? 'a run'}`}
        shown={<Name text={name} none={`Run ${shortHex(run)}`} />}
        crumbs={[{ to: { page: 'runs' }, text: 'Runs' }]}
      >
        <Hash hex={run} what="the run's id" />
      </PageHead>
      <nav aria-label="Parts of the run">
        <ul class="tabs">
          {kParts.map((one) => (
            <li key={one.part}>
              <Link to={{ page: 'run', run, part: one.part }} aria-current={one.part === part ? 'page' : undefined}>
                {one.text}
                {one.part === 'disputes' && loaded.data && loaded.data.disputes > 0 && ` (${count(loaded.data.disputes)})`}
              </Link>
            </li>
          ))}
        </ul>
      </nav>
      <Show of={loaded} what="the run">
        {(detail) => {
          switch (part) {
            case 'overview':
              return <Overview run={detail} />;
            case 'steps':
              return <Steps run={detail} />;
            case 'attestations':
              return <Attestations run={detail} />;
            case 'leases':
              return <Leases run={run} />;
            case 'disputes':
              return <DisputeList path={`/api/v1/runs/${run}/disputes`} run={run} />;
            case 'manifest':
              return <Manifest run={detail} />;
          }
        }}
      </Show>
    </>
  );
}

function timeToGo(run: RunDetail): { value: string; note: string } {
  const left = Math.max(run.steps, run.steps_planned) - run.counts.confirmed;
  if (left <= 0) return { value: 'done', note: 'every step is confirmed' };
  const rate = perHour(run.confirmed_per_hour, run.registered_ms, Date.now());
  const ms = timeLeftMs(left, rate);
  if (ms === null) return { value: 'unknown', note: 'no step was confirmed within the last hour' };
  return { value: duration(ms), note: `at ${counted(rate, 'step')} an hour` };
}

function Overview({ run }: { run: RunDetail }) {
  const planned = Math.max(run.steps, run.steps_planned);
  const left = timeToGo(run);
  const feed = useCoverage(run.run);
  // The bar and the table follow the map, which events keep up to date by the moment.
  const counts = feed.coverage?.counts() ?? run.counts;
  const steps = feed.coverage?.steps ?? run.steps;
  return (
    <>
      <Section title="Coverage" aside={<span class="soft">{quorumWords(run)}</span>}>
        <dl class="readouts" data-testid="readouts">
          <Readout label="Confirmed" note={`${count(counts.confirmed)} of ${counted(steps, 'step')}`}>
            {percent(counts.confirmed, steps)}
          </Readout>
          <Readout label="Provisional" note={counted(counts.provisional, 'step')}>
            {percent(counts.provisional, steps)}
          </Readout>
          <Readout label="Disputed" note={counted(counts.disputed, 'step')}>
            <span class={counts.disputed > 0 ? 'bad' : undefined}>{percent(counts.disputed, steps)}</span>
          </Readout>
          <Readout label="Time to completion" note={left.note}>
            {left.value}
          </Readout>
          <Readout label="Operators" note={counted(run.matches, 'match that counts', 'matches that count')}>
            {count(run.operators)}
          </Readout>
          <Readout label="Published" note={planned > run.steps ? `of ${counted(planned, 'step')}` : `${short(run.tokens)} tokens`}>
            {count(run.steps)}
          </Readout>
        </dl>
        <p class="chain">
          <span class="soft">{planned > run.steps ? 'Chain after the last step' : 'Final chain hash'}</span> <Hash hex={run.chain} what="the chain hash" whole />
        </p>
      </Section>
      <Section title="Every step" aside={<MapKey />}>
        {feed.coverage === undefined ? (
          <Show of={{ data: undefined, failure: feed.failure, refresh: feed.refresh }} what="the coverage">
            {() => null}
          </Show>
        ) : steps === 0 && planned === 0 ? (
          <Empty>No step has been published yet.</Empty>
        ) : (
          <>
            <CoverageMap run={run.run} coverage={feed.coverage} version={feed.version} planned={planned} />
            <TableBehind run={run.run} feed={{ coverage: feed.coverage, version: feed.version }} />
          </>
        )}
      </Section>
      <RunCharts run={run.run} first={run.first_step} end={run.first_step + steps} />
      <div class="columns spaced-wide">
        <Section title="Steps by state">
          <CountsBar counts={counts} of={steps} />
          <div class="spaced-little">
            <CountsTable counts={counts} of={steps} />
          </div>
        </Section>
        <Backends run={run} />
      </div>
      <Section
        title="Newest attestations"
        aside={<Link to={{ page: 'run', run: run.run, part: 'attestations' }}>All {count(run.attestations)}</Link>}
      >
        <Newest run={run.run} />
      </Section>
    </>
  );
}

function quorumWords(run: RunDetail): string {
  const { operators, backends, openings } = run.quorum;
  return `Confirmed means ${counted(operators, 'operator')} on ${counted(backends, 'kind of backend', 'kinds of backends')}, ${counted(openings, 'opening')} each`;
}

function MapKey() {
  return (
    <ul class="legend" aria-label="Key of the map">
      {[...kStates].reverse().map((state) => (
        <li key={state}>
          <State state={state} />
        </li>
      ))}
      <li>
        <span class="state">
          <span class="swatch skipped" aria-hidden="true" />
          update skipped
        </span>
      </li>
    </ul>
  );
}

function TableBehind({ run, feed }: { run: string; feed: { coverage: Parameters<typeof CoverageTable>[0]['coverage']; version: number } }) {
  const [opened, setOpened] = useState(false);
  return (
    <details onToggle={(event) => setOpened(event.currentTarget.open)}>
      <summary>The map as a table</summary>
      {opened && <CoverageTable run={run} coverage={feed.coverage} version={feed.version} />}
    </details>
  );
}

function Backends({ run }: { run: RunDetail }) {
  const all = run.backends.reduce((sum, one) => sum + one.matches, 0);
  return (
    <Section title="Backends">
      {run.backends.length === 0 ? (
        <Empty>No match counts yet.</Empty>
      ) : (
        <Table
          label="Matches that count, by backend"
          head={
            <>
              <Th>Class</Th>
              <Th number>Matches that count</Th>
              <Th number>Share</Th>
            </>
          }
        >
          {run.backends.map((one) => (
            <tr key={one.backend}>
              <th scope="row">
                <bdi class="mono">{one.backend}</bdi>
              </th>
              <td class="number">{count(one.matches)}</td>
              <td class="number">{percent(one.matches, all)}</td>
            </tr>
          ))}
        </Table>
      )}
      <dl class="fields spaced-little">
        <Field label="Trainer's key">
          <Hash hex={run.trainer_key} what="the trainer's key" />
        </Field>
        <Field label="Trainer's operator">
          {run.trainer_operator ? (
            <Link to={{ page: 'operator', key: run.trainer_operator }}>
              <code>{shortHex(run.trainer_operator)}</code>
            </Link>
          ) : (
            <span class="soft">nobody vouches for this key</span>
          )}
        </Field>
        <Field label="Last record">
          <When ms={run.last_record_ms} />
          {run.records_per_hour > 0 && <span class="soft">, {count(run.records_per_hour)} in the last hour</span>}
        </Field>
        <Field label="Registered">
          <When ms={run.registered_ms} /> as <Link to={{ page: 'entry', index: run.log_index }}>entry {count(run.log_index)}</Link>
        </Field>
      </dl>
    </Section>
  );
}

function Newest({ run }: { run: string }) {
  const loaded = useResource<{ attestations: Attestation[] }>(
    `/api/v1/runs/${run}/attestations?limit=10&newest=1`,
    ofRun(run, 'attestation', 'step', 'dispute'),
  );
  return (
    <Show of={loaded} what="the attestations">
      {(answer) => (answer.attestations.length === 0 ? <Empty>Nobody has attested a step yet.</Empty> : <AttestationTable attestations={answer.attestations} />)}
    </Show>
  );
}

function Steps({ run }: { run: RunDetail }) {
  const [state, setState] = useState<StateName | ''>('');
  const [begin, setBegin] = useState<number | null>(null);
  return (
    <Section title="Steps" aside={<Exports path={`/api/v1/runs/${run.run}/steps`} what="the steps" />}>
      <form
        class="form"
        onSubmit={(event) => {
          event.preventDefault();
          const form = new FormData(event.currentTarget);
          setBegin(form.get('begin') === '' ? null : Number(form.get('begin')));
          setState(String(form.get('state')) as StateName | '');
        }}
      >
        <label>
          From step
          <input name="begin" type="number" class="step-input" min={run.first_step} max={run.first_step + Math.max(0, run.steps - 1)} placeholder={String(run.first_step)} />
        </label>
        <label>
          State
          <select name="state">
            <option value="">all</option>
            {kStates.map((name) => (
              <option key={name}>{name}</option>
            ))}
          </select>
        </label>
        <button type="submit">Show</button>
      </form>
      <Paged<'steps', Step>
        path={`/api/v1/runs/${run.run}/steps`}
        query={{ begin, state }}
        name="steps"
        what="the steps"
        empty={state === '' ? 'No step has been published yet.' : `No step is ${state}.`}
        fresh={ofRun(run.run, 'records', 'step', 'attestation')}
      >
        {(steps) => (
          <Table
            label="Steps"
            head={
              <>
                <Th>Step</Th>
                <Th>State</Th>
                <Th number>Matches</Th>
                <Th number>Operators</Th>
                <Th number>Backends</Th>
                <Th number>Loss</Th>
                <Th number>Gradient norm</Th>
                <Th number>Learning rate</Th>
                <Th>Came</Th>
              </>
            }
          >
            {steps.map((step) => (
              <tr key={step.step}>
                <th scope="row">
                  <Link to={{ page: 'step', run: run.run, step: step.step }}>{count(step.step)}</Link>
                </th>
                <td>
                  <State state={step.state} />
                </td>
                <td class="number">
                  {count(step.matches)}
                  {step.mismatches > 0 && <span class="bad"> / {count(step.mismatches)} against</span>}
                </td>
                <td class="number">{count(step.operators)}</td>
                <td class="number">{count(step.backends)}</td>
                <td class="number">{float(step.loss)}</td>
                <td class="number">{float(step.gradient_norm, 4)}</td>
                <td class="number">{step.outcome === 0 ? float(step.learning_rate, 4) : 'skipped'}</td>
                <td class="nowrap">
                  <When ms={step.received_ms} />
                </td>
              </tr>
            ))}
          </Table>
        )}
      </Paged>
    </Section>
  );
}

function Attestations({ run }: { run: RunDetail }) {
  const [verdict, setVerdict] = useState('');
  const [backend, setBackend] = useState('');
  return (
    <Section title="Attestations" aside={<Exports path={`/api/v1/runs/${run.run}/attestations`} what="the attestations" />}>
      <div class="form">
        <label>
          Verdict
          <select value={verdict} onChange={(event) => setVerdict(event.currentTarget.value)}>
            <option value="">both</option>
            <option>match</option>
            <option>mismatch</option>
          </select>
        </label>
        <label>
          Backend
          <select value={backend} onChange={(event) => setBackend(event.currentTarget.value)}>
            <option value="">all</option>
            {run.backends.map((one) => (
              <option key={one.backend}>{one.backend}</option>
            ))}
          </select>
        </label>
      </div>
      <Paged<'attestations', Attestation>
        path={`/api/v1/runs/${run.run}/attestations`}
        query={{ verdict, backend, newest: 1 }}
        name="attestations"
        what="the attestations"
        empty={verdict === '' && backend === '' ? 'Nobody has attested a step yet.' : 'None is of this kind.'}
        fresh={ofRun(run.run, 'attestation', 'step', 'dispute')}
      >
        {(attestations) => <AttestationTable attestations={attestations} />}
      </Paged>
    </Section>
  );
}

const kNoLeases: Record<string, string> = {
  '': 'No lease of this run has ended yet.',
  live: 'Nobody holds a lease of this run now.',
  unfinished: 'Every lease that has ended was finished.',
};

function Leases({ run }: { run: string }) {
  const [state, setState] = useState('');
  return (
    <Section title="Leases" aside={<Exports path={`/api/v1/runs/${run}/leases`} what="the leases" />}>
      <p class="lead">
        What became of the steps that machines took upon them. This is the coordinator’s word, kept for some 30 days: leases are not in the log.
      </p>
      <div class="form">
        <label>
          State
          <select value={state} onChange={(event) => setState(event.currentTarget.value)}>
            <option value="">all that have ended</option>
            <option value="unfinished">not finished</option>
            {kLeaseStates.map((name) => (
              <option key={name} value={name}>
                {name === 'live' ? 'live: held now' : name}
              </option>
            ))}
          </select>
        </label>
      </div>
      <Paged<'leases', Lease>
        path={`/api/v1/runs/${run}/leases`}
        query={{ state }}
        name="leases"
        what="the leases"
        empty={kNoLeases[state] ?? `None is ${state}.`}
        fresh={ofRun(run, 'lease')}
      >
        {(leases) => <LeaseTable leases={leases} />}
      </Paged>
      <LeaseWords states={kLeaseStates.filter((name) => name !== 'live')} />
    </Section>
  );
}

function Manifest({ run }: { run: RunDetail }) {
  return (
    <>
      <Section title="What fixes the run">
        <p class="lead">Model, recipe, data, seed and logical topology. The SHA-256 of exactly this text is the run's id, which is checked on the page of each step.</p>
        <ManifestText text={run.manifest} />
      </Section>
      <Section title={`States to start from: ${count(run.checkpoint_count)}`}>
        {run.checkpoints.length === 0 ? (
          <Empty>No checkpoint has been announced.</Empty>
        ) : (
          <Table
            label="Checkpoints, newest first"
            head={
              <>
                <Th>Before step</Th>
                <Th>By</Th>
                <Th>Manifest</Th>
                <Th>To be had</Th>
                <Th number>Entry</Th>
              </>
            }
          >
            {[...run.checkpoints]
              .reverse()
              .slice(0, 100)
              .map((one) => (
                <tr key={one.log_index}>
                  <th scope="row">{count(one.step)}</th>
                  <td>{one.by === run.trainer_key ? 'the trainer' : <Hash hex={one.by} what="the key" />}</td>
                  <td>
                    <Hash hex={one.manifest} what="the manifest's digest" />
                  </td>
                  <td>{one.available ? 'yes' : <span class="soft">not here</span>}</td>
                  <td class="number">
                    <Link to={{ page: 'entry', index: one.log_index }}>{count(one.log_index)}</Link>
                  </td>
                </tr>
              ))}
          </Table>
        )}
      </Section>
    </>
  );
}

function ManifestText({ text }: { text: string }) {
  let pretty = text;
  try {
    pretty = JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    // Shown as it came.
  }
  return (
    <>
      <pre class="block" tabIndex={0} role="group" aria-label="The manifest, indented">
        <bdi>{pretty}</bdi>
      </pre>
      <p class="small soft spaced-little">
        Indented for reading; {bytes(new TextEncoder().encode(text).length)} as canonical JSON.
      </p>
    </>
  );
}
