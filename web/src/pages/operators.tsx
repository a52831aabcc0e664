// SPDX-License-Identifier: Apache-2.0
//
// Who audits: operators, which are people or groups, and workers, which are their machines; with what each is credited, and why not.
import type { ComponentChildren } from 'preact';
import type { LiveEvent } from '../api/events';
import { useResource } from '../api/resource';
import type { Operator, OperatorDetail, Worker, WorkerDetail } from '../api/types';
import { count, shortHex } from '../format/format';
import { AttestationTable } from '../parts/attestations';
import { Field, PageHead, Readout, Section, Table, Th } from '../parts/layout';
import { UnfinishedLeases } from '../parts/leases';
import { Empty, Show } from '../parts/loaded';
import { Exports, Paged } from '../parts/paged';
import { Backends, CreditCells, Hash, Name, When } from '../parts/text';
import { Link } from '../route/navigate';

const fresh = (event: LiveEvent) => event.event === 'key' || event.event === 'attestation' || event.event === 'dispute';

const kReasons: Record<string, string> = {
  BAD_OPENING: 'an opening was wrong: the attestation is void',
  LEASE_EXPIRED: 'came after its lease had run out',
  LEASE_FOREIGN: 'under another’s lease',
  STEP_OUTSIDE_LEASE: 'of a step that was not in its lease',
  NONCE_WRONG: 'with another nonce than the lease’s',
  FALSE_VERDICT: 'a verdict that contradicts what it contains',
  NOT_THE_PUBLISHED_RECORD: 'about another record than the published one',
  CANARY_MISSED: 'said "match" to a record that was false on purpose',
};

function Tabs({ page }: { page: 'operators' | 'workers' }) {
  return (
    <nav aria-label="Who audits">
      <ul class="tabs">
        <li>
          <Link to={{ page: 'operators' }} aria-current={page === 'operators' ? 'page' : undefined}>
            Operators
          </Link>
        </li>
        <li>
          <Link to={{ page: 'workers' }} aria-current={page === 'workers' ? 'page' : undefined}>
            Workers
          </Link>
        </li>
      </ul>
    </nav>
  );
}

function CreditHead() {
  return (
    <>
      <Th number>Valid</Th>
      <Th number>Pending</Th>
      <Th number>Rejected</Th>
      <Th number>Mismatches</Th>
    </>
  );
}

function CreditWords() {
  return (
    <p class="small soft spaced-little">
      Valid: matches that count. Pending: matches whose openings are awaited. Rejected: attestations made void, and reports that were refused and kept as evidence.
      Mismatches: found another record than the published one.
    </p>
  );
}

export function OperatorsPage() {
  return (
    <>
      <PageHead title="Operators" />
      <p class="lead">
        An operator is a person or a group. Operators are what a quorum counts, however many machines they have; nobody can see in a log that two of them are not one person.
      </p>
      <Tabs page="operators" />
      <Section title="By registration" aside={<Exports path="/api/v1/operators" what="the operators" />}>
        <Paged<'operators', Operator>
          path="/api/v1/operators"
          name="operators"
          what="the operators"
          fresh={fresh}
          empty={
            <>
              Nobody has registered yet. <Link to={{ page: 'join' }}>Be the first</Link>
            </>
          }
        >
          {(operators) => (
            <Table
              label="Operators"
              head={
                <>
                  <Th>Name</Th>
                  <Th>Key</Th>
                  <Th number>Workers</Th>
                  <CreditHead />
                  <Th>Backends</Th>
                  <Th>Last heard</Th>
                </>
              }
            >
              {operators.map((operator) => (
                <tr key={operator.key}>
                  <th scope="row">
                    <Link to={{ page: 'operator', key: operator.key }}>
                      <Name text={operator.name} />
                    </Link>
                    {operator.revoked && <span class="bad"> ended</span>}
                  </th>
                  <td>
                    <Hash hex={operator.key} what="the key" />
                  </td>
                  <td class="number">{count(operator.worker_keys)}</td>
                  <CreditCells credit={operator.credit} />
                  <td>
                    <Backends classes={operator.backends} />
                  </td>
                  <td class="nowrap">
                    <When ms={operator.last_seen_ms} />
                  </td>
                </tr>
              ))}
            </Table>
          )}
        </Paged>
        <CreditWords />
      </Section>
    </>
  );
}

export function WorkersPage() {
  return (
    <>
      <PageHead title="Workers" />
      <p class="lead">A worker is one machine with one key. What its hardware is, is its owner’s word.</p>
      <Tabs page="workers" />
      <Section title="By registration" aside={<Exports path="/api/v1/workers" what="the workers" />}>
        <Paged<'workers', Worker>
          path="/api/v1/workers"
          name="workers"
          what="the workers"
          fresh={fresh}
          empty={
            <>
              No machine has registered yet. <Link to={{ page: 'join' }}>Lend yours</Link>
            </>
          }
        >
          {(workers) => <WorkerTable workers={workers} operators />}
        </Paged>
        <CreditWords />
      </Section>
    </>
  );
}

function WorkerTable({ workers, operators }: { workers: Worker[]; operators: boolean }) {
  return (
    <Table
      label="Workers"
      head={
        <>
          <Th>Hardware</Th>
          {operators && <Th>Operator</Th>}
          <Th>Key</Th>
          <CreditHead />
          <Th number>Right in a row</Th>
          <Th>Backends</Th>
          <Th>Last heard</Th>
        </>
      }
    >
      {workers.map((worker) => (
        <tr key={worker.key}>
          <th scope="row">
            <Link to={{ page: 'worker', key: worker.key }}>
              <Name text={worker.hardware} none="not said" />
            </Link>
            {worker.ended && <span class="soft"> ended</span>}
          </th>
          {operators && (
            <td>
              <Link to={{ page: 'operator', key: worker.operator_key }}>
                <Name text={worker.operator} />
              </Link>
            </td>
          )}
          <td>
            <Hash hex={worker.key} what="the key" />
          </td>
          <CreditCells credit={worker.credit} />
          <td class="number">{count(worker.trust.valid_in_a_row)}</td>
          <td>
            <Backends classes={worker.backends} />
          </td>
          <td class="nowrap">
            <When ms={worker.last_seen_ms} />
          </td>
        </tr>
      ))}
    </Table>
  );
}

function Credit({ of, extra }: { of: Pick<Operator, 'credit' | 'own_run' | 'rejected_why'>; extra?: ComponentChildren }) {
  const { credit } = of;
  return (
    <Section title="Credit">
      <dl class="readouts">
        <Readout label="Valid" note="matches that count">
          {count(credit.valid)}
        </Readout>
        <Readout label="Pending" note="openings awaited">
          {count(credit.pending)}
        </Readout>
        <Readout label="Rejected" note="void or refused">
          <span class={credit.rejected > 0 ? 'bad' : undefined}>{count(credit.rejected)}</span>
        </Readout>
        <Readout label="Mismatches" note="found another record">
          {count(credit.mismatches)}
        </Readout>
        {of.own_run > 0 && (
          <Readout label="Of its own runs" note="which never count">
            {count(of.own_run)}
          </Readout>
        )}
        {extra}
      </dl>
      {of.rejected_why.length > 0 && (
        <div class="spaced-little">
          <Table
            label="Why reports were rejected"
            head={
              <>
                <Th>Rejected because</Th>
                <Th number>Times</Th>
              </>
            }
          >
            {of.rejected_why.map((one) => (
              <tr key={one.reason}>
                <th scope="row">
                  {kReasons[one.reason] ?? <bdi>{one.reason.toLowerCase().replaceAll('_', ' ')}</bdi>}
                </th>
                <td class="number">{count(one.count)}</td>
              </tr>
            ))}
          </Table>
        </div>
      )}
    </Section>
  );
}

// What an operator and a machine have alike: the entry that made the key known, and the key.
function KeyFields({ of }: { of: Pick<Operator & Worker, 'key' | 'received_ms' | 'last_seen_ms' | 'log_index'> }) {
  return (
    <>
      <Field label="Registered">
        <When ms={of.received_ms} /> as <Link to={{ page: 'entry', index: of.log_index }}>entry {count(of.log_index)}</Link>
      </Field>
      <Field label="Last heard">
        <When ms={of.last_seen_ms} />
      </Field>
      <Field label="Key">
        <Hash hex={of.key} what="the key" whole />
      </Field>
    </>
  );
}

export function OperatorPage({ operator }: { operator: string }) {
  const loaded = useResource<OperatorDetail>(`/api/v1/operators/${operator}`, fresh);
  const name = loaded.data?.name;
  return (
    <>
      <PageHead title={name ?? 'Operator'} shown={<Name text={name} none={`Operator ${shortHex(operator)}`} />} crumbs={[{ to: { page: 'operators' }, text: 'Operators' }]}>
        <Hash hex={loaded.data?.key ?? operator} what="the key" />
      </PageHead>
      <Show of={loaded} what="the operator">
        {(found) => (
          <>
            {found.revoked && (
              <div class="message bad-news">
                <p>
                  This operator has ended
                  {found.revoked_log_index !== null && (
                    <>
                      {' '}
                      with <Link to={{ page: 'entry', index: found.revoked_log_index }}>entry {count(found.revoked_log_index)}</Link>
                    </>
                  )}
                  {found.revoked_reason && (
                    <>
                      : <bdi>{found.revoked_reason}</bdi>
                    </>
                  )}
                  . What it signed before stays; nothing later is taken.
                </p>
              </div>
            )}
            <Credit of={found} />
            <Section title={`Workers: ${count(found.workers.length)}`}>
              {found.workers.length === 0 ? <Empty>No machine yet.</Empty> : <WorkerTable workers={found.workers} operators={false} />}
            </Section>
            <Section title="Newest attestations">
              {found.recent.length === 0 ? <Empty>Nothing attested yet.</Empty> : <AttestationTable attestations={found.recent} operators={false} />}
            </Section>
            <Section title="Leases that were not finished">
              <UnfinishedLeases operator={operator} />
            </Section>
            <Section title="Registration">
              <dl class="fields">
                <Field label="Contact">
                  <Name text={found.contact} none="none given" />
                </Field>
                <KeyFields of={found} />
              </dl>
            </Section>
          </>
        )}
      </Show>
    </>
  );
}

export function WorkerPage({ worker }: { worker: string }) {
  const loaded = useResource<WorkerDetail>(`/api/v1/workers/${worker}`, fresh);
  const hardware = loaded.data?.hardware;
  return (
    <>
      <PageHead
        title={hardware ?? 'Worker'}
        shown={<Name text={hardware} none={`Worker ${shortHex(worker)}`} />}
        crumbs={[
          { to: { page: 'operators' }, text: 'Operators' },
          ...(loaded.data ? [{ to: { page: 'operator' as const, key: loaded.data.operator_key }, text: loaded.data.operator || 'Operator' }] : []),
        ]}
      >
        <Hash hex={worker} what="the key" />
      </PageHead>
      <Show of={loaded} what="the worker">
        {(found) => (
          <>
            {found.ended && (
              <div class="message">
                <p>
                  This key has ended
                  {found.ended_log_index !== null && (
                    <>
                      {' '}
                      with <Link to={{ page: 'entry', index: found.ended_log_index }}>entry {count(found.ended_log_index)}</Link>
                    </>
                  )}
                  : rotated, revoked, or its operator has ended. What it signed before stays.
                </p>
              </div>
            )}
            <Credit
              of={found}
              extra={
                <Readout label="Right in a row" note={`${count(found.trust.valid)} right, ${count(found.trust.invalid)} wrong, ${count(found.trust.expired)} run out`}>
                  {count(found.trust.valid_in_a_row)}
                </Readout>
              }
            />
            <Section title="Newest attestations">
              {found.recent.length === 0 ? <Empty>Nothing attested yet.</Empty> : <AttestationTable attestations={found.recent} operators={false} />}
            </Section>
            <Section title="Leases that were not finished">
              <UnfinishedLeases worker={worker} />
            </Section>
            <Section title="Registration">
              <dl class="fields">
                <Field label="Operator">
                  <Link to={{ page: 'operator', key: found.operator_key }}>
                    <Name text={found.operator} />
                  </Link>
                </Field>
                <Field label="Backends">
                  <Backends classes={found.backends} />
                </Field>
                <KeyFields of={found} />
              </dl>
            </Section>
          </>
        )}
      </Show>
    </>
  );
}
