// SPDX-License-Identifier: Apache-2.0
//
// Attestations as rows. What a row says is the coordinator's word; the page of the step checks the signatures.
import type { Attestation } from '../api/types';
import { count } from '../format/format';
import { Link } from '../route/navigate';
import { Table, Th } from './layout';
import { Name, When } from './text';

const kWhyNot: Record<string, string> = {
  OPENINGS_AWAITED: 'openings awaited',
  VOID: 'void: an opening was wrong',
  OWN_RUN: "the trainer's own operator",
};

export function whyNot(attestation: Attestation): string {
  if (attestation.counts || attestation.verdict === 'mismatch') return '';
  return kWhyNot[attestation.why_not] ?? attestation.why_not;
}

export function Verdict({ verdict }: { verdict: Attestation['verdict'] }) {
  return verdict === 'match' ? <span class="good nowrap">✓ match</span> : <span class="bad nowrap">✗ mismatch</span>;
}

export function AttestationTable({ attestations, operators = true }: { attestations: Attestation[]; operators?: boolean }) {
  return (
    <Table
      label="Attestations"
      head={
        <>
          <Th>Step</Th>
          <Th>Verdict</Th>
          {operators && <Th>Operator</Th>}
          <Th>Hardware</Th>
          <Th>Backend</Th>
          <Th number>Openings</Th>
          <Th>Counts</Th>
          <Th>Came</Th>
          <Th number>Entry</Th>
        </>
      }
    >
      {attestations.map((one) => (
        <tr key={one.log_index}>
          <th scope="row">
            <Link to={{ page: 'step', run: one.run, step: one.step }}>{count(one.step)}</Link>
          </th>
          <td>
            <Verdict verdict={one.verdict} />
          </td>
          {operators && (
            <td>
              <Link to={{ page: 'operator', key: one.operator_key }}>
                <Name text={one.operator} />
              </Link>
            </td>
          )}
          <td>
            <Link to={{ page: 'worker', key: one.worker_key }}>
              <Name text={one.hardware} none="not said" />
            </Link>
          </td>
          <td class="nowrap">
            <bdi class="mono">{one.backend}</bdi>
          </td>
          <td class="number">
            {one.verdict === 'match' ? `${count(one.openings_given)} of ${count(one.openings_needed)}` : <span class="soft">–</span>}
          </td>
          <td>{one.counts ? 'yes' : <bdi class="soft">{whyNot(one) || 'no'}</bdi>}</td>
          <td class="nowrap">
            <When ms={one.received_ms} />
          </td>
          <td class="number">
            <Link to={{ page: 'entry', index: one.log_index }}>{count(one.log_index)}</Link>
          </td>
        </tr>
      ))}
    </Table>
  );
}
