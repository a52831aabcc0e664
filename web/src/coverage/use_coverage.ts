// SPDX-License-Identifier: Apache-2.0
//
// A run's coverage for a page: loaded whole, then kept up to date by events. Events that come while it is loaded are applied again to
// what was loaded: they say what a state is, not how it changed, so that nothing is counted twice.
import { useEffect, useRef, useState } from 'preact/hooks';
import { ask, Failure } from '../api/client';
import type { LiveEvent } from '../api/events';
import { live } from '../api/live';
import { Coverage } from './model';

const kReloadMs = 10_000; // between full loads that events ask for
const kRetryMs = 5_000;

export interface LiveCoverage {
  coverage: Coverage | undefined;
  version: number;
  failure: Failure | undefined;
  refresh: () => void;
}

// Reading and applying, apart from any page.
export class CoverageFeed {
  coverage: Coverage | undefined;
  failure: Failure | undefined;
  private waiting: LiveEvent[] | null = null;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private last_ms = 0;
  private again = false;
  private readonly stop = new AbortController();

  constructor(
    private readonly run: string,
    private readonly fetchCoverage: (run: string, signal: AbortSignal) => Promise<Coverage>,
    private readonly changed: () => void,
  ) {}

  async load(): Promise<void> {
    clearTimeout(this.timer);
    this.timer = undefined;
    if (this.waiting !== null) {
      this.again = true;
      return;
    }
    this.waiting = [];
    try {
      const coverage = await this.fetchCoverage(this.run, this.stop.signal);
      for (const event of this.waiting) coverage.apply(event);
      coverage.version = (this.coverage?.version ?? 0) + 1;
      this.coverage = coverage;
      this.failure = undefined;
    } catch (error) {
      if (this.stop.signal.aborted) return;
      this.failure = error instanceof Failure ? error : new Failure('refused', 'INTERNAL', String(error));
      if (this.failure.kind === 'offline' || this.failure.kind === 'busy') this.later(kRetryMs);
    }
    this.waiting = null;
    this.last_ms = Date.now();
    if (this.again) this.later(kReloadMs);
    this.again = false;
    this.changed();
  }

  hear(event: LiveEvent): void {
    if (event.event === 'reset') {
      void this.load();
      return;
    }
    if (!('run' in event) || event.run !== this.run) return;
    this.waiting?.push(event);
    if (this.coverage?.apply(event)) this.changed();
    // Whether a new step was skipped, and whether another lease goes on, only a full load says.
    if (event.event === 'records' || (event.event === 'lease' && !event.claimed)) this.later(kReloadMs);
  }

  close(): void {
    this.stop.abort();
    clearTimeout(this.timer);
  }

  private later(pause_ms: number): void {
    if (this.timer !== undefined) return;
    this.timer = setTimeout(() => void this.load(), Math.max(0, this.last_ms + pause_ms - Date.now()));
  }
}

async function fetchCoverage(run: string, signal: AbortSignal): Promise<Coverage> {
  const answer = await ask(`/api/v1/runs/${run}/coverage`, signal);
  const first_step = Number(answer.headers.get('Lockstep-First-Step') ?? '0');
  return new Coverage(Number.isSafeInteger(first_step) ? first_step : 0, new Uint8Array(await answer.arrayBuffer()));
}

export function useCoverage(run: string): LiveCoverage {
  const [, show] = useState(0);
  const feed = useRef<CoverageFeed | null>(null);
  useEffect(() => {
    let due = false;
    const changed = () => {
      // However many events come, the page is made anew once a frame.
      if (due) return;
      due = true;
      requestAnimationFrame(() => {
        due = false;
        show((n) => n + 1);
      });
    };
    const mine = new CoverageFeed(run, fetchCoverage, changed);
    feed.current = mine;
    show((n) => n + 1);
    void mine.load();
    const silent = live.hear((event) => mine.hear(event));
    return () => {
      silent();
      mine.close();
    };
  }, [run]);
  return {
    coverage: feed.current?.coverage,
    version: feed.current?.coverage?.version ?? 0,
    failure: feed.current?.failure,
    refresh: () => void feed.current?.load(),
  };
}
