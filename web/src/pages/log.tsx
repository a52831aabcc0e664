// SPDX-License-Identifier: Apache-2.0
//
// The log: its signed head, checked here and held against what this browser saw before; its entries; and receipts, those of the entries shown
// and those that a visitor has kept.
import { useEffect, useState } from 'preact/hooks';
import { useResource } from '../api/resource';
import type { Log, LogEntry } from '../api/types';
import * as checks from '../checks';
import type { Check } from '../checks';
import { bytes, count, time } from '../format/format';
import { CheckList, Field, Mark, PageHead, Readout, Section, Table, Th } from '../parts/layout';
import { Show } from '../parts/loaded';
import { Exports, Paged } from '../parts/paged';
import { Hash, When } from '../parts/text';
import { Link } from '../route/navigate';
import { breathe, failed } from '../verify/attempt';
import { fetchEntry, fetchTile } from '../verify/fetch';
import { browserMemory, verifyHead, type HeadVerification } from '../verify/head';
import { verifyReceipt } from '../verify/receipt';

export function LogPage() {
  const loaded = useResource<Log>('/api/v1/log', (event) => event.event !== 'lease' && event.event !== 'step');
  return (
    <>
      <PageHead title="Log" />
      <p class="lead">
        Every record, attestation, opening, key and dispute, in the order in which they came. It can only grow, and this page checks that it did. Any monitor for C2SP tlog-tiles can read it too:{' '}
        <a href="/checkpoint">the signed head</a>
      </p>
      <Show of={loaded} what="the log">
        {(log) => (
          <>
            <Head log={log} />
            <Entries log={log} />
            <KeptReceipt log={log} />
          </>
        )}
      </Show>
    </>
  );
}

function Head({ log }: { log: Log }) {
  const [found, setFound] = useState<HeadVerification | null>(null);
  useEffect(() => {
    const stop = new AbortController();
    verifyHead(log, browserMemory, fetchTile, Date.now(), stop.signal).then(setFound, () => {
      // A newer head came meanwhile.
    });
    return () => stop.abort();
  }, [log.checkpoint]);
  return (
    <Section title="Signed head">
      <dl class="readouts">
        <Readout label="Entries">{count(log.size)}</Readout>
        <Readout label="Root">
          <Hash hex={log.root} what="the root" />
        </Readout>
        <Readout label="Log">
          <bdi>{log.origin}</bdi>
        </Readout>
      </dl>
      <div class="spaced-little" role="status" data-testid="head" data-good={found === null ? 'unknown' : found.checks.every((check) => check.ok) ? 'yes' : 'no'}>
        {found === null ? <p>Checking the signature …</p> : <CheckList checks={found.checks} />}
        {found !== null && found.before === null && (
          <p class="small soft">This browser sees the log for the first time. It will remember the key and the head, and notice if the log is rewritten.</p>
        )}
        {found?.before && <p class="small soft">This browser first saw the log at {time(found.before.first_ms)}, and its last head at {time(found.before.seen_ms)}.</p>}
      </div>
      <dl class="fields spaced-little">
        <Field label="Key">
          <code>
            <bdi>{log.key}</bdi>
          </code>
        </Field>
      </dl>
      <details>
        <summary>The head as it was signed</summary>
        <pre class="block wrap" tabIndex={0} role="group" aria-label="The signed head">
          <bdi>{log.checkpoint}</bdi>
        </pre>
      </details>
    </Section>
  );
}

function Entries({ log }: { log: Log }) {
  const [begin, setBegin] = useState<number | null>(null);
  return (
    <Section title="Entries, newest first" aside={<Exports path="/api/v1/log/entries" what="the entries" />}>
      <form
        class="form"
        onSubmit={(event) => {
          event.preventDefault();
          const text = String(new FormData(event.currentTarget).get('begin'));
          setBegin(text === '' ? null : Number(text));
        }}
      >
        <label>
          From entry
          <input name="begin" type="number" class="step-input" min={0} max={Math.max(0, log.size - 1)} placeholder={String(Math.max(0, log.size - 1))} />
        </label>
        <button type="submit">Show</button>
      </form>
      <Paged<'entries', LogEntry>
        path="/api/v1/log/entries"
        query={{ begin, newest: 1 }}
        name="entries"
        what="the entries"
        limit={25}
        empty="The log has no entry yet."
        fresh={(event) => begin === null && event.event !== 'lease' && event.event !== 'step'}
      >
        {(entries) => <EntryTable entries={entries} log={log} />}
      </Paged>
    </Section>
  );
}

function EntryTable({ entries, log }: { entries: LogEntry[]; log: Log }) {
  const [results, setResults] = useState<Map<number, Check>>(new Map());
  const [busy, setBusy] = useState(false);
  const check = async () => {
    setBusy(true);
    const found = new Map<number, Check>();
    const never = new AbortController().signal;
    for (const entry of entries) {
      found.set(entry.index, await receiptOf(entry, log.key));
      setResults(new Map(found));
      await breathe(never);
    }
    setBusy(false);
  };
  const checked = entries.filter((entry) => results.has(entry.index)).length;
  const good = entries.filter((entry) => results.get(entry.index)?.ok).length;
  return (
    <>
      <p class="verdict-line">
        <button type="button" onClick={check} disabled={busy}>
          Check the receipts of these {count(entries.length)}
        </button>
        <span role="status" data-testid="receipts">
          {checked > 0 && `${count(good)} of ${count(checked)} receipts hold`}
        </span>
      </p>
      <Table
        label="Entries of the log"
        head={
          <>
            <Th number>Entry</Th>
            <Th>Kind</Th>
            <Th number>Step</Th>
            <Th>Leaf hash</Th>
            <Th number>Size</Th>
            <Th>Came</Th>
            <Th>Receipt</Th>
          </>
        }
      >
        {entries.map((entry) => {
          const result = results.get(entry.index);
          return (
            <tr key={entry.index}>
              <th scope="row" class="number">
                <Link to={{ page: 'entry', index: entry.index }}>{count(entry.index)}</Link>
              </th>
              <td>{entry.kind}</td>
              <td class="number">
                {entry.run !== null && entry.step !== null ? <Link to={{ page: 'step', run: entry.run, step: entry.step }}>{count(entry.step)}</Link> : <span class="soft">–</span>}
              </td>
              <td>
                <Hash hex={entry.leaf_hash} what="the leaf hash" />
              </td>
              <td class="number">{bytes(entry.bytes)}</td>
              <td class="nowrap">
                <When ms={entry.received_ms} />
              </td>
              <td>
                {result === undefined ? (
                  <span class="soft">not checked</span>
                ) : (
                  <span title={result.message}>
                    <Mark ok={result.ok} /> {result.ok ? 'holds' : result.message}
                  </span>
                )}
              </td>
            </tr>
          );
        })}
      </Table>
    </>
  );
}

async function receiptOf(entry: LogEntry, log_key: string): Promise<Check> {
  try {
    const detail = await fetchEntry(entry.index);
    const leaf = checks.leafHash(detail.envelope);
    const found = checks.openReceipt(detail.receipt, leaf, checks.parseLogKey(log_key));
    if (leaf !== entry.leaf_hash || found.index !== entry.index) throw new checks.CheckError('mismatch', 'receipt', 'of another entry');
    return { name: 'receipt', ok: true, message: `under a signed head of ${found.checkpoint.size} entries` };
  } catch (error) {
    return failed('receipt', error);
  }
}

function KeptReceipt({ log }: { log: Log }) {
  const [text, setText] = useState('');
  const [found, setFound] = useState<Check[] | null>(null);
  const check = async (receipt: string) => {
    setFound(null);
    const key = checks.parseLogKey(log.key);
    const result = await verifyReceipt(receipt, key, log.checkpoint, fetchTile, new AbortController().signal).catch((error: unknown) => ({ checks: [failed('receipt', error)] }));
    setFound(result.checks);
  };
  return (
    <Section title="A receipt that you kept">
      <p class="lead">
        Trainers keep receipts in <code>publish/receipts</code>, workers in <code>outbox/receipts</code>. A log that does not hold what it gave a receipt for has been rewritten, and the receipt proves it.
      </p>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          void check(text);
        }}
      >
        <label for="receipt-text">Receipt, as JSON</label>
        <textarea id="receipt-text" rows={4} spellcheck={false} value={text} onInput={(event) => setText(event.currentTarget.value)} />
        <div class="form spaced-little">
          <label>
            or a file
            <input
              type="file"
              onChange={async (event) => {
                const file = event.currentTarget.files?.[0];
                if (file && file.size < 1_000_000) setText(await file.text());
              }}
            />
          </label>
          <button type="submit" disabled={text.trim() === ''}>
            Check it
          </button>
        </div>
      </form>
      <div role="status">{found !== null && <CheckList checks={found} />}</div>
    </Section>
  );
}
