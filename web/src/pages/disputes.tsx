// SPDX-License-Identifier: Apache-2.0
//
// Disputes, each with its evidence: both records side by side, where they part, and the entries that bear it out.
import { useMemo, useState } from 'preact/hooks';
import type { Dispute } from '../api/types';
import * as checks from '../checks';
import { count, float, outcome, shortHex } from '../format/format';
import { PageHead, Section, Table, Th } from '../parts/layout';
import { Exports, Paged } from '../parts/paged';
import { State, When } from '../parts/text';
import { Link } from '../route/navigate';
import { attempt } from '../verify/attempt';

const kReasons: Record<string, { title: string; meaning: string }> = {
  mismatch: { title: 'Mismatch', meaning: 'A worker replayed the step and came to another record than the published one.' },
  'second-history': { title: 'Second history', meaning: 'The trainer has signed two different records for this step. The first one stands.' },
  'bad-opening': { title: 'Wrong opening', meaning: 'A worker opened its transcript to something that it had not committed to: its attestation is void. It says nothing about the step.' },
};

export function DisputesPage() {
  return (
    <>
      <PageHead title="Disputes" />
      <p class="lead">
        Where somebody’s word stands against somebody else’s. Both are kept, signed, for ever; a dispute is never outvoted, and it does not say who is right: whoever
        doubts replays the step.
      </p>
      <DisputeList path="/api/v1/disputes" />
    </>
  );
}

export function DisputeList({ path, run }: { path: string; run?: string }) {
  return (
    <Section title="Newest first" aside={<Exports path={path} what="the disputes" />}>
      <Paged<'disputes', Dispute>
        path={path}
        query={{ newest: 1 }}
        name="disputes"
        what="the disputes"
        limit={20}
        empty="There is no dispute."
        fresh={(event) => event.event === 'dispute' && (run === undefined || event.run === run)}
      >
        {(disputes) => disputes.map((dispute) => <DisputeCard key={dispute.log_index} dispute={dispute} showStep />)}
      </Paged>
    </Section>
  );
}

export function DisputeCard({ dispute, showStep }: { dispute: Dispute; showStep: boolean }) {
  const words = kReasons[dispute.reason] ?? { title: dispute.reason, meaning: '' };
  return (
    <article class="run-card" aria-label={`${words.title}, step ${dispute.step}`}>
      <div class="section-head">
        <h3>{words.title}</h3>
        {showStep && (
          <span>
            <Link to={{ page: 'step', run: dispute.run, step: dispute.step }}>step {count(dispute.step)}</Link> of{' '}
            <Link to={{ page: 'run', run: dispute.run, part: 'overview' }}>
              <code>{shortHex(dispute.run)}</code>
            </Link>
          </span>
        )}
        <span class="actions">
          <span class="soft">the step is now</span> <State state={dispute.state} />
        </span>
      </div>
      <p>{words.meaning}</p>
      {dispute.first_difference && (
        <p>
          First difference: <b>{dispute.first_difference.field}</b>
          {dispute.first_difference.place && (
            <>
              {' '}
              at <bdi>{dispute.first_difference.place}</bdi>
            </>
          )}
          . Published <bdi class="mono">{dispute.first_difference.expected}</bdi>, found <bdi class="mono">{dispute.first_difference.found}</bdi>
        </p>
      )}
      {dispute.published_record && dispute.computed_record && <TwoRecords published={dispute.published_record} computed={dispute.computed_record} />}
      <p class="small soft spaced-little">
        <When ms={dispute.received_ms} />, <Link to={{ page: 'entry', index: dispute.log_index }}>entry {count(dispute.log_index)}</Link>. Evidence:{' '}
        {dispute.evidence.map((piece, n) => (
          <span key={n}>
            {n > 0 && ', '}
            {'log_index' in piece ? (
              <Link to={{ page: 'entry', index: piece.log_index }}>entry {count(piece.log_index)}</Link>
            ) : (
              'an envelope that the log did not take (below)'
            )}
          </span>
        ))}
      </p>
      {dispute.evidence.map((piece, n) => ('envelope' in piece ? <Envelope key={n} text={piece.envelope} /> : null))}
    </article>
  );
}

function Envelope({ text }: { text: string }) {
  return (
    <details>
      <summary>The envelope</summary>
      <pre class="block wrap" tabIndex={0} role="group" aria-label="The envelope">
        <bdi>{text}</bdi>
      </pre>
    </details>
  );
}

type Row = [label: string, published: string, computed: string];

function TwoRecords({ published, computed }: { published: string; computed: string }) {
  const [opened, setOpened] = useState(false);
  return (
    <details onToggle={(event) => setOpened(event.currentTarget.open)}>
      <summary>Both records, field by field</summary>
      {opened && <Fields published={published} computed={computed} />}
    </details>
  );
}

function Fields({ published, computed }: { published: string; computed: string }) {
  const rows = useMemo(() => attempt('record', () => rowsOf(published, computed)), [published, computed]);
  if (rows.check) return <p class="bad">The records cannot be read: {rows.check.message}</p>;
  return (
    <Table
      label="Both records"
      head={
        <>
          <Th>Field</Th>
          <Th>Published</Th>
          <Th>Computed</Th>
        </>
      }
    >
      {rows.value.map(([label, one, other]) => (
        <tr key={label}>
          <th scope="row">
            {label}
            {one !== other && <span class="bad"> differs</span>}
          </th>
          <td class="nowrap">
            <Value text={one} />
          </td>
          <td class="nowrap">
            <Value text={other} />
          </td>
        </tr>
      ))}
    </Table>
  );
}

function Value({ text }: { text: string }) {
  return <code title={text}>{/^[0-9a-f]{64}$/.test(text) ? shortHex(text) : text}</code>;
}

function rowsOf(published: string, computed: string): Row[] {
  const read = (text: string) => checks.decodeStepRecord(Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0)));
  const one = read(published);
  const other = read(computed);
  const real = (value: number, bits: number) => `${Number.isFinite(value) ? float(value, 9) : String(value)} (${bits.toString(16).padStart(8, '0')})`;
  return [
    ['Loss', real(one.loss, one.bits.loss), real(other.loss, other.bits.loss)],
    ['z-loss', real(one.zLoss, one.bits.zLoss), real(other.zLoss, other.bits.zLoss)],
    ['Gradient norm', real(one.gradientNorm, one.bits.gradientNorm), real(other.gradientNorm, other.bits.gradientNorm)],
    ['Learning rate', real(one.learningRate, one.bits.learningRate), real(other.learningRate, other.bits.learningRate)],
    ['Outcome', outcome(one.outcome), outcome(other.outcome)],
    ['Tokens before', String(one.tokensBefore), String(other.tokensBefore)],
    ['Tokens', String(one.tokens), String(other.tokens)],
    ['Windows', one.windows, other.windows],
    ['Stream cursor', one.cursor, other.cursor],
    ['Transcript', one.transcript, other.transcript],
    ['Gradient', one.gradient, other.gradient],
    ['Parameters', one.parameters, other.parameters],
    ['First moment', one.firstMoment, other.firstMoment],
    ['Second moment', one.secondMoment, other.secondMoment],
    ['Chain before', one.previousChain, other.previousChain],
    ['Chain after', checks.chainAfter(one), checks.chainAfter(other)],
  ];
}
