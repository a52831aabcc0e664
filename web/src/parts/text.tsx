// SPDX-License-Identifier: Apache-2.0
//
// Small pieces of text that all pages use: digests, strangers' names, states, times. Strangers' text is a text node, within <bdi>, so that
// it can neither become markup nor turn around what stands beside it.
import { useEffect, useState } from 'preact/hooks';
import type { Counts, Credit, StateName } from '../api/types';
import { kStates } from '../coverage/model';
import { ago, count, percent, shortHex, time, visible } from '../format/format';
import { copyText } from './copy';

const kStateWords: Record<StateName, string> = {
  unaudited: 'published; nobody has replayed it',
  claimed: 'somebody has a lease on it',
  provisional: 'a match counts, and the quorum is not reached',
  confirmed: 'as many operators and backends as the quorum asks for',
  disputed: 'a mismatch, or a second record by the trainer',
};

export function State({ state }: { state: StateName }) {
  return (
    <span class="state" title={kStateWords[state]}>
      <span class={`swatch ${state}`} aria-hidden="true" />
      {state}
    </span>
  );
}

// A stranger's text. What it does not have is said so.
export function Name({ text, none = 'no name' }: { text: string | null | undefined; none?: string }) {
  if (text === null || text === undefined || text === '') return <span class="soft">{none}</span>;
  const shown = visible(text);
  return <bdi title={shown}>{shown}</bdi>;
}

export function CopyButton({ text, what, label }: { text: string; what: string; label?: string }) {
  const [done, setDone] = useState<'copied' | 'failed' | null>(null);
  useEffect(() => {
    if (done === null) return;
    const timer = setTimeout(() => setDone(null), 2_000);
    return () => clearTimeout(timer);
  }, [done]);
  const copy = async () => setDone((await copyText(text)) ? 'copied' : 'failed');
  const said = done === 'copied' ? 'Copied' : done === 'failed' ? 'Could not copy' : '';
  return (
    <button type="button" class={label ? undefined : 'plain'} onClick={copy} aria-label={label ? undefined : `Copy ${what}`} title={`Copy ${what}`}>
      {label ? said || label : <CopyIcon done={done === 'copied'} />}
      <span class="hidden-text" aria-live="polite">
        {label ? '' : said}
      </span>
    </button>
  );
}

function CopyIcon({ done }: { done: boolean }) {
  return (
    <svg width="14" height="14" viewBox="0 0 14 14" fill="none" stroke="currentColor" stroke-width="1.4" aria-hidden="true">
      {done ? (
        <path d="M2.5 7.5l3 3 6-7" stroke-width="1.8" />
      ) : (
        <>
          <rect x="4.7" y="4.7" width="7.6" height="7.6" rx="1" />
          <path d="M9.3 4.5V2.7a1 1 0 0 0-1-1H2.7a1 1 0 0 0-1 1v5.6a1 1 0 0 0 1 1h1.8" />
        </>
      )}
    </svg>
  );
}

// A digest or key: short, with all of it in the title and on the clipboard. `whole` shows all of it.
export function Hash({ hex, what, whole = false }: { hex: string | null | undefined; what: string; whole?: boolean }) {
  if (!hex) return <span class="soft">–</span>;
  return (
    <span class={whole ? 'hash whole' : 'hash'}>
      <code title={hex}>{whole ? hex : shortHex(hex)}</code>
      <CopyButton text={hex} what={what} />
    </span>
  );
}

// A moment, as the time since; all of it in the title.
export function When({ ms }: { ms: number | null | undefined }) {
  const now = useNow();
  if (ms === null || ms === undefined) return <span class="soft">not known</span>;
  return (
    <time dateTime={time(ms).replace(' UTC', 'Z').replace(' ', 'T')} title={time(ms)}>
      {ago(ms, now)}
    </time>
  );
}

function useNow(): number {
  const [now, setNow] = useState(Date.now);
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), 30_000);
    return () => clearInterval(timer);
  }, []);
  return now;
}

export function total(counts: Counts): number {
  return kStates.reduce((sum, state) => sum + counts[state], 0);
}

const kBarOrder: StateName[] = ['confirmed', 'provisional', 'claimed', 'disputed', 'unaudited'];

// Steps by state as one bar. A state that has any steps can be seen.
export function CountsBar({ counts, of }: { counts: Counts; of: number }) {
  const there = kBarOrder.filter((state) => counts[state] > 0);
  const said = there.map((state) => `${state} ${percent(counts[state], of)}`).join(', ');
  return (
    <div class="bar" role="img" aria-label={said === '' ? 'no steps' : said}>
      {there.map((state) => (
        <span key={state} class={`swatch ${state}`} style={{ flexGrow: counts[state] }} />
      ))}
    </div>
  );
}

export function CountsTable({ counts, of }: { counts: Counts; of: number }) {
  return (
    <div class="table" role="group" aria-label="Steps by state" tabIndex={0}>
      <table>
        <thead>
          <tr>
            <th scope="col">State</th>
            <th scope="col" class="number">
              Steps
            </th>
            <th scope="col" class="number">
              Share
            </th>
            <th scope="col" class="wide-only">
              Meaning
            </th>
          </tr>
        </thead>
        <tbody>
          {[...kStates].reverse().map((state) => (
            <tr key={state}>
              <th scope="row">
                <State state={state} />
              </th>
              <td class="number">{count(counts[state])}</td>
              <td class="number">{percent(counts[state], of)}</td>
              <td class="soft wide-only">{kStateWords[state]}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

// Classes of backends, which are the coordinator's words.
export function Backends({ classes }: { classes: string[] }) {
  if (classes.length === 0) return <span class="soft">none yet</span>;
  return (
    <>
      {classes.map((one, n) => (
        <span key={one} class="nowrap">
          {n > 0 && ', '}
          <bdi class="mono">{one}</bdi>
        </span>
      ))}
    </>
  );
}

export function CreditCells({ credit }: { credit: Credit }) {
  return (
    <>
      <td class="number">{count(credit.valid)}</td>
      <td class="number">{count(credit.pending)}</td>
      <td class={credit.rejected > 0 ? 'number bad' : 'number'}>{count(credit.rejected)}</td>
      <td class={credit.mismatches > 0 ? 'number bad' : 'number'}>{count(credit.mismatches)}</td>
    </>
  );
}
