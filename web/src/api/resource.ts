// SPDX-License-Identifier: Apache-2.0
//
// What a page loads, and how it stays fresh: the answer at hand is shown at once and kept while a newer one is on its way or cannot be had.
// Events ask for a newer one, but never more often than every kPauseMs, however many come.
import { useEffect, useRef, useState } from 'preact/hooks';
import { askJson, Failure } from './client';
import type { LiveEvent } from './events';
import { live } from './live';

export interface Loaded<T> {
  data: T | undefined;
  failure: Failure | undefined; // of the last try; data may be there all the same, and old
  loading: boolean;
  loaded_ms: number | undefined; // when data came
  refresh: () => void;
}

const kPauseMs = 1_500;
const kRetryMs = 5_000;
const kKept = 60;

const kept = new Map<string, { data: unknown; loaded_ms: number }>();

function keep(path: string, data: unknown): void {
  kept.delete(path);
  kept.set(path, { data, loaded_ms: Date.now() });
  for (const oldest of kept.keys()) {
    if (kept.size <= kKept) break;
    kept.delete(oldest);
  }
}

export type Asker<T> = (path: string, signal: AbortSignal) => Promise<T>;

// `path` null: nothing to load yet. `fresh` says which events make the answer old; "reset" always does. `asker` is looked at only when the
// path changes.
export function useResource<T>(path: string | null, fresh?: (event: LiveEvent) => boolean, asker: Asker<T> = askJson): Loaded<T> {
  const [, show] = useState(0);
  const now = useRef<{ path: string | null; failure: Failure | undefined; loading: boolean; refresh: () => void }>({
    path: null,
    failure: undefined,
    loading: false,
    refresh: () => {},
  });
  const wanted = useRef(fresh);
  wanted.current = fresh;
  if (now.current.path !== path) now.current = { path, failure: undefined, loading: path !== null, refresh: () => {} };

  useEffect(() => {
    if (path === null) return;
    const mine = now.current;
    const stop = new AbortController();
    let timer: ReturnType<typeof setTimeout> | undefined;
    let busy = false;
    let again = false;
    let last_ms = 0;
    const load = async () => {
      timer = undefined;
      busy = true;
      again = false;
      mine.loading = true;
      show((n) => n + 1);
      try {
        keep(path, await asker(path, stop.signal));
        mine.failure = undefined;
      } catch (error) {
        if (stop.signal.aborted) return;
        mine.failure = error instanceof Failure ? error : new Failure('refused', 'INTERNAL', String(error));
        if (mine.failure.kind === 'offline' || mine.failure.kind === 'busy') timer = setTimeout(load, kRetryMs);
      }
      busy = false;
      last_ms = Date.now();
      mine.loading = false;
      show((n) => n + 1);
      if (again && timer === undefined) later();
    };
    const later = () => {
      if (busy) again = true;
      else if (timer === undefined) timer = setTimeout(load, Math.max(0, last_ms + kPauseMs - Date.now()));
    };
    mine.refresh = () => {
      clearTimeout(timer);
      if (busy) again = true;
      else void load();
    };
    void load();
    const silent = live.hear((event) => {
      if (event.event === 'reset' || wanted.current?.(event)) later();
    });
    return () => {
      stop.abort();
      clearTimeout(timer);
      silent();
    };
  }, [path]);

  const found = path === null ? undefined : kept.get(path);
  return {
    data: found?.data as T | undefined,
    failure: now.current.failure,
    loading: now.current.loading,
    loaded_ms: found?.loaded_ms,
    refresh: () => now.current.refresh(),
  };
}

