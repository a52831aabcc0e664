// SPDX-License-Identifier: Apache-2.0
//
// One step: the record, what was found by replaying it, who is at it now, and the documents behind it. All signatures are checked here.
import { useEffect, useMemo, useState } from 'preact/hooks';
import { askJson } from '../api/client';
import { useResource } from '../api/resource';
import type { Attestation, Dispute, RootName, RunDetail, Server, StepDetail, Worker } from '../api/types';
import { count, counted, float, outcome, time } from '../format/format';
import { Verdict, whyNot } from '../parts/attestations';
import { CheckList, Field, Mark, PageHead, Readout, Section } from '../parts/layout';
import { Empty, Show } from '../parts/loaded';
import { Hash, Name, State, When } from '../parts/text';
import { Link, go } from '../route/navigate';
import { allHold } from '../verify/attempt';
import { fetchEntry } from '../verify/fetch';
import { browserMemory, recall } from '../verify/head';
import { verifyStep, type StepVerification } from '../verify/step';
import { DisputeCard } from './disputes';
import { Documents } from './documents';

const kRoots: Record<RootName, string> = {
  parameters: 'Parameters',
  first_moment: 'First moment',
  second_moment: 'Second moment',
  gradient: 'Gradient',
  windows: 'Windows',
  transcript: 'Transcript',
  cursor: 'Stream cursor',
};

export function StepPage({ run, step }: { run: string; step: number }) {
  const loaded = useResource<StepDetail>(
    `/api/v1/runs/${run}/steps/${step}`,
    (event) =>
      ('run' in event && event.run === run && 'step' in event && event.step === step) ||
      (event.event === 'lease' && event.run === run && event.begin <= step && step < event.end),
  );
  const of = useResource<RunDetail>(`/api/v1/runs/${run}`);
  return (
    <>
      <PageHead
        title={`Step ${step}`}
        shown={`Step ${count(step)}`}
        crumbs={[
          { to: { page: 'runs' }, text: 'Runs' },
          { to: { page: 'run', run, part: 'overview' }, text: of.data?.name || 'Run' },
          { to: { page: 'run', run, part: 'steps' }, text: 'Steps' },
        ]}
      >
        {loaded.data && <Neighbours detail={loaded.data} />}
      </PageHead>
      <Show of={loaded} what="the step">
        {(detail) => <Show of={of} what="the run">{(found) => <Whole detail={detail} run={found} />}</Show>}
      </Show>
    </>
  );
}

function Neighbours({ detail }: { detail: StepDetail }) {
  const { run, step, first_step, last_step } = detail;
  const to = (other: number) => () => go({ page: 'step', run, step: other });
  return (
    <>
      <button type="button" disabled={step <= first_step} onClick={to(step - 1)}>
        ← Before
      </button>
      <button type="button" disabled={step >= last_step} onClick={to(step + 1)}>
        After →
      </button>
    </>
  );
}

function useVerification(detail: StepDetail, run: RunDetail): StepVerification | null {
  const server = useResource<Server>('/api/v1/server');
  const [found, setFound] = useState<{ of: StepDetail; verification: StepVerification } | null>(null);
  const log_key = server.data?.log_key;
  const origin = server.data?.origin;
  useEffect(() => {
    if (log_key === undefined || origin === undefined) return;
    const stop = new AbortController();
    const work = async () => {
      const previous =
        detail.step > run.first_step ? await askJson<StepDetail>(`/api/v1/runs/${run.run}/steps/${detail.step - 1}`, stop.signal).catch(() => null) : null;
      const workerEntry = async (key: string) => (await askJson<Worker>(`/api/v1/workers/${key}`, stop.signal)).log_index;
      const known_log_key = recall(browserMemory, origin)?.key ?? null;
      await verifyStep({ run, detail, log_key, known_log_key, previous, entry: fetchEntry, workerEntry }, (verification) => setFound({ of: detail, verification }), stop.signal);
    };
    work().catch(() => {
      // Another page was asked for meanwhile.
    });
    return () => stop.abort();
  }, [detail, run.registration, log_key]);
  return found === null || found.of.step !== detail.step ? null : found.verification;
}

function Whole({ detail, run }: { detail: StepDetail; run: RunDetail }) {
  const verification = useVerification(detail, run);
  return (
    <>
      <Section title="State">
        <dl class="readouts">
          <Readout label="State" note={`${counted(detail.matches, 'match that counts', 'matches that count')}`}>
            <State state={detail.state} />
          </Readout>
          <Readout label="Operators" note={`${count(run.quorum.operators)} asked for`}>
            {count(detail.operators)}
          </Readout>
          <Readout label="Backends" note={`${count(run.quorum.backends)} asked for`}>
            {count(detail.backends)}
          </Readout>
          <Readout label="Mismatches" note={detail.second_history ? 'and a second record by the trainer' : undefined}>
            <span class={detail.mismatches > 0 ? 'bad' : undefined}>{count(detail.mismatches)}</span>
          </Readout>
          <Readout label="Loss" note="nats a token">
            {float(detail.loss, 6)}
          </Readout>
          <Readout label="Gradient norm" note="before the clip">
            {float(detail.gradient_norm, 5)}
          </Readout>
        </dl>
      </Section>
      <Section title="Checked in this browser" aside={<span class="soft">the coordinator’s word is not taken for any of this</span>}>
        <Checked verification={verification} attestations={detail.attestations} />
      </Section>
      {detail.disputes.length > 0 && (
        <Section title="Disputes">
          {detail.disputes.map((dispute: Dispute) => (
            <DisputeCard key={dispute.log_index} dispute={dispute} showStep={false} />
          ))}
        </Section>
      )}
      <Section title={`Attestations: ${count(detail.attestation_count)}`}>
        {detail.attestations.length === 0 ? (
          <Empty>Nobody has attested this step yet.</Empty>
        ) : (
          detail.attestations.map((one) => <AttestationCard key={one.log_index} one={one} checks={verification?.attestations.get(one.log_index)} over={verification?.done === true} />)
        )}
        {detail.attestation_count > detail.attestations.length && <p class="soft">The first {count(detail.attestations.length)} are shown.</p>}
      </Section>
      <Record detail={detail} />
      <Work detail={detail} />
      <Documents run={run} detail={detail} />
    </>
  );
}

function Checked({ verification, attestations }: { verification: StepVerification | null; attestations: Attestation[] }) {
  if (verification === null) return <p role="status">Checking …</p>;
  const good = attestations.filter((one) => allHold(verification.attestations.get(one.log_index) ?? [])).length;
  const looked = verification.attestations.size;
  const record = allHold(verification.record);
  return (
    <div data-testid="checked" data-done={verification.done ? 'yes' : 'no'}>
      <div role="status" class="verdict-line">
        <span>
          <Mark ok={record} />
          {record ? 'The record is the trainer’s, in its place in the chain and in the log' : 'Something about the record does not hold'}
        </span>
        {attestations.length > 0 && (
          <span>
            <Mark ok={verification.done ? good === attestations.length : null} />
            {verification.done ? `${count(good)} of ${counted(attestations.length, 'attestation')} hold` : `attestations: ${count(looked)} of ${count(attestations.length)} checked`}
          </span>
        )}
      </div>
      <details>
        <summary>Each check of the record</summary>
        <CheckList checks={verification.record} />
      </details>
    </div>
  );
}

function AttestationCard({ one, checks, over }: { one: Attestation; checks: Parameters<typeof CheckList>[0]['checks'] | undefined; over: boolean }) {
  return (
    <article class="run-card" aria-label={`Attestation by ${one.operator}`}>
      <div class="verdict-line">
        <Verdict verdict={one.verdict} />
        <span>
          <Link to={{ page: 'operator', key: one.operator_key }}>
            <Name text={one.operator} />
          </Link>
        </span>
        <span class="soft">{one.counts ? 'counts' : whyNot(one) !== '' ? <>does not count: <bdi>{whyNot(one)}</bdi></> : one.verdict === 'match' ? 'does not count' : ''}</span>
        <span class={checks === undefined ? 'soft' : undefined}>
          {checks === undefined ? (
            over ? 'not checked: the record does not hold' : 'checking …'
          ) : (
            <>
              <Mark ok={allHold(checks)} />
              {allHold(checks) ? 'checked: signature, record, roots, chain, receipt' : 'does not hold, see below'}
            </>
          )}
        </span>
      </div>
      <dl class="fields">
        <Field label="Backend">
          <bdi class="mono">{one.backend}</bdi>
          {one.cpu && (
            <>
              , <bdi>{one.cpu}</bdi>
            </>
          )}
          {one.isa && (
            <>
              {' '}
              (<bdi>{one.isa}</bdi>)
            </>
          )}
          {one.threads !== null && `, ${counted(one.threads, 'thread')}`}
        </Field>
        <Field label="Machine">
          <Link to={{ page: 'worker', key: one.worker_key }}>
            <Name text={one.hardware} none="not said" />
          </Link>
        </Field>
        {one.engine && (
          <Field label="Engine">
            <bdi>{one.engine.name}</bdi> <bdi>{one.engine.version}</bdi> <Hash hex={one.engine.build} what="the program's digest" />
          </Field>
        )}
        <Field label="Time">
          replayed {one.replayed_at ? <bdi>{one.replayed_at.replace('T', ' ').replace('Z', ' UTC')}</bdi> : 'at a time not known'} by the worker’s clock, came{' '}
          <When ms={one.received_ms} />
        </Field>
        <Field label="Openings">
          {one.verdict === 'match' ? `${count(one.openings_given)} of ${count(one.openings_needed)}` : 'not asked of a mismatch'}
        </Field>
        <Field label="Entry">
          <Link to={{ page: 'entry', index: one.log_index }}>{count(one.log_index)}</Link>
        </Field>
        {one.difference && (
          <Field label="First difference">
            <bdi>{one.difference.field}</bdi>: expected <bdi class="mono">{one.difference.expected}</bdi>, found <bdi class="mono">{one.difference.found}</bdi>
            {one.difference.place && (
              <>
                {' '}
                at <bdi>{one.difference.place}</bdi>
              </>
            )}
          </Field>
        )}
      </dl>
      {checks !== undefined && (
        <details open={!allHold(checks)}>
          <summary>
            Each check<span class="hidden-text"> of the attestation by {one.operator}</span>
          </summary>
          <CheckList checks={checks} />
        </details>
      )}
    </article>
  );
}

function Record({ detail }: { detail: StepDetail }) {
  const roots = useMemo(() => Object.entries(kRoots) as [RootName, string][], []);
  return (
    <div class="columns spaced-wide">
      <Section title="Record">
        <dl class="fields">
          <Field label="Outcome">{outcome(detail.outcome)}</Field>
          <Field label="Loss">
            <span class="mono">{float(detail.loss, 9)}</span>
          </Field>
          <Field label="z-loss">
            <span class="mono">{float(detail.z_loss, 9)}</span>
          </Field>
          <Field label="Gradient norm">
            <span class="mono">{float(detail.gradient_norm, 9)}</span>
          </Field>
          <Field label="Learning rate">
            <span class="mono">{float(detail.learning_rate, 9)}</span>
          </Field>
          <Field label="Tokens">
            {count(detail.tokens)}, after {count(detail.tokens_before)}
          </Field>
          <Field label="Updates so far">{count(detail.updates)}</Field>
          <Field label="Transcript">{counted(detail.transcript_leaves, 'leaf', 'leaves')}</Field>
          <Field label="Published">
            {detail.received_ms === null ? 'at a time not known' : time(detail.received_ms)} as{' '}
            <Link to={{ page: 'entry', index: detail.log_index }}>entry {count(detail.log_index)}</Link>
          </Field>
        </dl>
      </Section>
      <Section title="Roots and chain">
        <dl class="fields">
          {roots.map(([name, label]) => (
            <Field key={name} label={label}>
              <Hash hex={detail.roots[name]} what={`the root: ${label}`} />
            </Field>
          ))}
          <Field label="Record">
            <Hash hex={detail.record_digest} what="the record's digest" />
          </Field>
          <Field label="Chain before">
            <Hash hex={detail.previous_chain} what="the chain before the step" />
          </Field>
          <Field label="Chain after">
            <Hash hex={detail.chain} what="the chain after the step" />
          </Field>
        </dl>
      </Section>
    </div>
  );
}

function Work({ detail }: { detail: StepDetail }) {
  if (detail.leases.length === 0) return null;
  return (
    <Section title="At work on it now">
      <ul>
        {detail.leases.map((lease, n) => (
          <li key={n}>
            <Link to={{ page: 'operator', key: lease.operator_key }}>
              <Name text={lease.operator} />
            </Link>
            {lease.backend && (
              <>
                {' '}
                on <bdi class="mono">{lease.backend}</bdi>
              </>
            )}
            , since <When ms={lease.granted_ms} />
          </li>
        ))}
      </ul>
    </Section>
  );
}
