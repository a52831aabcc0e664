// SPDX-License-Identifier: Apache-2.0
//
// What became of leases, as rows: the coordinator's word, since leases are not in the log. Why one came to nothing is said by who held it.
import type { Lease, LeaseState } from '../api/types';
import { duration, shortHex, stepRange } from '../format/format';
import { Link } from '../route/navigate';
import { Table, Th } from './layout';
import { Paged } from './paged';
import { Backends, Name, When } from './text';

const kStates: Record<LeaseState, { sign: string; color: string; meaning: string }> = {
  live: { sign: '…', color: 'soft', meaning: 'held now' },
  done: { sign: '✓', color: 'good', meaning: 'its steps are attested, or its holder was finished with it' },
  canceled: { sign: '–', color: 'soft', meaning: 'the machine’s owner wanted it back' },
  inconclusive: { sign: '?', color: 'bad', meaning: 'something kept the replay from a verdict' },
  expired: { sign: '✗', color: 'bad', meaning: 'it ran out' },
};

export const kLeaseStates = Object.keys(kStates) as LeaseState[];

// What the words mean.
export function LeaseWords({ states }: { states: readonly LeaseState[] }) {
  const words = states.map((state) => `${state[0]!.toUpperCase()}${state.slice(1)}: ${kStates[state].meaning}.`);
  return <p class="small soft spaced-little">{words.join(' ')} What was attested under a lease stays, whatever became of it.</p>;
}

function StateOf({ lease }: { lease: Lease }) {
  const { sign, color, meaning } = kStates[lease.state];
  return (
    <span class={`${color} nowrap`} title={meaning}>
      <span aria-hidden="true">{sign} </span>
      {lease.state}
    </span>
  );
}

// `whose`: with operators and machines; `runs`: with runs.
export function LeaseTable({ leases, whose = true, runs = false }: { leases: Lease[]; whose?: boolean; runs?: boolean }) {
  return (
    <Table
      label="Leases"
      head={
        <>
          <Th>Steps</Th>
          {runs && <Th>Run</Th>}
          <Th>State</Th>
          <Th>In its holder’s words</Th>
          {whose && <Th>Operator</Th>}
          <Th>Hardware</Th>
          {whose && <Th>Backends</Th>}
          <Th>Held</Th>
          <Th>Ended</Th>
        </>
      }
    >
      {leases.map((lease) => (
        <tr key={`${lease.worker_key} ${lease.granted_ms} ${lease.run} ${lease.first_step}`}>
          <th scope="row" class="nowrap">
            <Link to={{ page: 'step', run: lease.run, step: lease.first_step }}>{stepRange(lease.first_step, lease.end_step)}</Link>
          </th>
          {runs && (
            <td>
              <Link to={{ page: 'run', run: lease.run, part: 'leases' }}>
                <code>{shortHex(lease.run)}</code>
              </Link>
            </td>
          )}
          <td>
            <StateOf lease={lease} />
          </td>
          <td class="words">
            <Name text={lease.detail} none={lease.state === 'canceled' || lease.state === 'inconclusive' ? 'nothing said' : '–'} />
          </td>
          {whose && (
            <td>
              <Link to={{ page: 'operator', key: lease.operator_key }}>
                <Name text={lease.operator} />
              </Link>
            </td>
          )}
          <td>
            <Link to={{ page: 'worker', key: lease.worker_key }}>
              <Name text={lease.hardware} none="not said" />
            </Link>
          </td>
          {whose && (
            <td>
              <Backends classes={lease.backends} />
            </td>
          )}
          <td class="nowrap">
            {lease.ended_ms === null ? (
              <>
                since <When ms={lease.granted_ms} />
              </>
            ) : (
              duration(lease.ended_ms - lease.granted_ms)
            )}
          </td>
          <td class="nowrap">{lease.ended_ms === null ? <span class="soft">not yet</span> : <When ms={lease.ended_ms} />}</td>
        </tr>
      ))}
    </Table>
  );
}

// Of one operator or machine: those that came to nothing, and why. No event says whose lease has ended, and looking for one key's among
// everybody's is work for the coordinator: so this is as of when the page was opened.
export function UnfinishedLeases({ operator, worker }: { operator?: string; worker?: string }) {
  return (
    <Paged<'leases', Lease>
      path="/api/v1/leases"
      query={{ operator, worker, state: 'unfinished' }}
      name="leases"
      what="the leases"
      limit={10}
      empty="None that the coordinator remembers: what was taken on was finished."
      fresh={() => false}
    >
      {(leases) => (
        <>
          <LeaseTable leases={leases} whose={false} runs />
          <LeaseWords states={['canceled', 'inconclusive', 'expired']} />
        </>
      )}
    </Paged>
  );
}
