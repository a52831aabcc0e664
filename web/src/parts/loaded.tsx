// SPDX-License-Identifier: Apache-2.0
//
// What a page shows while it loads, when there is nothing, when it was refused, and when the coordinator is out of reach. Every page goes
// through here, so that none is ever just blank.
import type { ComponentChildren, JSX } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import type { Failure } from '../api/client';
import type { Loaded } from '../api/resource';
import { time } from '../format/format';

export function Show<T>({
  of,
  what,
  children,
}: {
  of: Pick<Loaded<T>, 'data' | 'failure' | 'refresh'> & { loaded_ms?: number | undefined };
  what: string; // "the runs": for the messages
  children: (data: T) => ComponentChildren;
}): JSX.Element {
  if (of.data !== undefined) {
    return (
      <>
        {of.failure && <Stale failure={of.failure} what={what} since={of.loaded_ms} refresh={of.refresh} />}
        {children(of.data)}
      </>
    );
  }
  if (of.failure) return <Failed failure={of.failure} what={what} refresh={of.refresh} />;
  return <Loading what={what} />;
}

export function Loading({ what }: { what: string }) {
  // Most answers come at once: no flicker for those.
  const [slow, setSlow] = useState(false);
  useEffect(() => {
    const timer = setTimeout(() => setSlow(true), 150);
    return () => clearTimeout(timer);
  }, []);
  return (
    <div role="status" aria-busy="true">
      <p class="hidden-text">Loading {what}</p>
      {slow && (
        <div class="skeleton" aria-hidden="true">
          <span />
          <span />
          <span />
          <span />
        </div>
      )}
    </div>
  );
}

const kHeads: Record<Failure['kind'], string> = {
  offline: 'The coordinator cannot be reached',
  busy: 'The coordinator cannot answer now',
  absent: 'Not here',
  refused: 'The coordinator refused this',
};

export function Failed({ failure, what, refresh }: { failure: Failure; what: string; refresh: () => void }) {
  const again = failure.kind === 'offline' || failure.kind === 'busy';
  return (
    <div class={failure.kind === 'absent' ? 'message' : 'message bad-news'} role="alert">
      <h2>{kHeads[failure.kind]}</h2>
      <p>
        {again ? `Asked for ${what}; trying again every few seconds.` : <bdi>{failure.message}</bdi>}{' '}
        <span class="soft">({failure.reason})</span>
      </p>
      <button type="button" onClick={refresh}>
        Try again
      </button>
    </div>
  );
}

function Stale({ failure, what, since, refresh }: { failure: Failure; what: string; since: number | undefined; refresh: () => void }) {
  return (
    <div class="message warning" role="status">
      <p>
        {kHeads[failure.kind]}. This is {what} as of {since === undefined ? 'earlier' : time(since)}.{' '}
        <button type="button" onClick={refresh}>
          Try again
        </button>
      </p>
    </div>
  );
}

export function Empty({ children }: { children: ComponentChildren }) {
  return (
    <div class="empty">
      <p>{children}</p>
    </div>
  );
}
