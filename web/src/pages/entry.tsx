// SPDX-License-Identifier: Apache-2.0
//
// One entry of the log: its bytes, what they say, and that they are there.
import { useMemo } from 'preact/hooks';
import { useResource } from '../api/resource';
import type { LogEntryDetail, Server } from '../api/types';
import type { LogEntry } from '../checks';
import { bytes, count } from '../format/format';
import { CheckList, Field, PageHead, Section } from '../parts/layout';
import { Show } from '../parts/loaded';
import { CopyButton, Hash, When } from '../parts/text';
import { Link } from '../route/navigate';
import { verifyEntry } from '../verify/entry';

export function EntryPage({ index }: { index: number }) {
  const loaded = useResource<LogEntryDetail>(`/api/v1/log/entries/${index}`);
  const server = useResource<Server>('/api/v1/server');
  return (
    <>
      <PageHead title={`Entry ${index}`} shown={`Entry ${count(index)}`} crumbs={[{ to: { page: 'log' }, text: 'Log' }]} />
      <Show of={loaded} what="the entry">
        {(detail) => <Show of={server} what="the log's key">{(found) => <Whole detail={detail} log_key={found.log_key} />}</Show>}
      </Show>
    </>
  );
}

function payloadText(envelope: string): string | null {
  try {
    const { payload, payloadType } = JSON.parse(envelope) as { payload: string; payloadType: string };
    if (!payloadType.endsWith('json')) return null;
    const text = new TextDecoder().decode(Uint8Array.from(atob(payload), (letter) => letter.charCodeAt(0)));
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return null;
  }
}

function Whole({ detail, log_key }: { detail: LogEntryDetail; log_key: string }) {
  const verified = useMemo(() => verifyEntry(detail, log_key), [detail, log_key]);
  const payload = useMemo(() => payloadText(detail.envelope), [detail.envelope]);
  return (
    <>
      <Section title="Checked in this browser">
        <div data-testid="entry" data-good={verified.checks.every((check) => check.ok) ? 'yes' : 'no'}>
          <CheckList checks={verified.checks} />
          {detail.step !== null && <p class="soft small">Who signed it, and whether it fits the others of its step, is checked on the page of the step.</p>}
        </div>
      </Section>
      <Section title="What it is">
        <dl class="fields">
          <Field label="Kind">{detail.kind}</Field>
          {verified.entry && <Said entry={verified.entry} />}
          {detail.run !== null && (
            <Field label="Run">
              <Link to={{ page: 'run', run: detail.run, part: 'overview' }}>
                <code>{detail.run}</code>
              </Link>
            </Field>
          )}
          {detail.run !== null && detail.step !== null && (
            <Field label="Step">
              <Link to={{ page: 'step', run: detail.run, step: detail.step }}>{count(detail.step)}</Link>
            </Field>
          )}
          <Field label="Leaf hash">
            <Hash hex={detail.leaf_hash} what="the leaf hash" whole />
          </Field>
          <Field label="Came">
            <When ms={detail.received_ms} />
          </Field>
          <Field label="Size">{bytes(detail.bytes)}</Field>
        </dl>
      </Section>
      {payload !== null && (
        <Section title="What was signed">
          <pre class="block" tabIndex={0} role="group" aria-label="The payload">
            <bdi>{payload}</bdi>
          </pre>
        </Section>
      )}
      <Section title="Envelope and receipt" aside={<CopyButton text={JSON.stringify({ entry: toBase64(detail.envelope), proof: detail.receipt })} what="entry and receipt, as lockstep verify --receipt reads them" label="Copy as a receipt file" />}>
        <details>
          <summary>The envelope, byte for byte</summary>
          <pre class="block wrap" tabIndex={0} role="group" aria-label="The envelope">
            <bdi>{detail.envelope}</bdi>
          </pre>
        </details>
        <details>
          <summary>The receipt</summary>
          <pre class="block wrap" tabIndex={0} role="group" aria-label="The receipt">
            <bdi>{detail.receipt}</bdi>
          </pre>
        </details>
      </Section>
    </>
  );
}

function toBase64(text: string): string {
  let letters = '';
  for (const byte of new TextEncoder().encode(text)) letters += String.fromCharCode(byte);
  return btoa(letters);
}

function Said({ entry }: { entry: LogEntry }) {
  if (entry.kind !== 'key') return null;
  const event = entry.payload;
  switch (event.event) {
    case 'operator':
      return (
        <Field label="Operator">
          <Link to={{ page: 'operator', key: event.operatorKey }}>
            <bdi>{event.name}</bdi>
          </Link>
        </Field>
      );
    case 'worker':
      return (
        <Field label="Worker">
          <Link to={{ page: 'worker', key: event.workerKey }}>
            <bdi>{event.hardware}</bdi>
          </Link>
        </Field>
      );
    case 'rotate':
      return (
        <Field label="Rotation">
          <Hash hex={event.oldKey} what="the old key" /> to <Hash hex={event.newKey} what="the new key" />
        </Field>
      );
    case 'revoke':
      return (
        <Field label="Revoked">
          <Hash hex={event.key} what="the key" />: <bdi>{event.reason}</bdi>
        </Field>
      );
  }
}
