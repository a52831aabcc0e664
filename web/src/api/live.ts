// SPDX-License-Identifier: Apache-2.0
//
// The one connection to /events that a page holds, for all its parts. The browser comes back by itself, with the id of the last event,
// after a connection that broke; after a refusal it does not, and this does, each time later. Then something may have been missed, and all
// parts are told "reset". While the page is hidden for long the connection is given up: browsers allow six to a server, for all tabs together.
import { kEventNames, parseEvent, type LiveEvent } from './events';

export type LiveState = 'connecting' | 'live' | 'lost';

// What this needs of an EventSource; tests have their own.
export interface Source {
  onopen: ((event: Event) => void) | null;
  onerror: ((event: Event) => void) | null;
  readonly readyState: number;
  addEventListener(name: string, heard: (event: MessageEvent) => void): void;
  close(): void;
}

const kClosed = 2;
const kRetryMsMin = 1_000;
const kRetryMsMax = 30_000;

export class Live {
  private source: Source | null = null;
  private missed = false; // since the last connection that was open
  private retry_ms = kRetryMsMin;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private readonly hearers = new Set<(event: LiveEvent) => void>();
  private readonly watchers = new Set<(state: LiveState) => void>();
  state: LiveState = 'connecting';

  constructor(private readonly connect: () => Source) {}

  start(): void {
    if (this.source !== null) return;
    clearTimeout(this.timer);
    const source = this.connect();
    this.source = source;
    source.onopen = () => {
      this.retry_ms = kRetryMsMin;
      this.show('live');
      if (this.missed) this.tell({ event: 'reset' });
      this.missed = false;
    };
    source.onerror = () => {
      this.show('lost');
      if (source.readyState !== kClosed) return;
      this.drop();
      this.timer = setTimeout(() => this.start(), this.retry_ms);
      this.retry_ms = Math.min(2 * this.retry_ms, kRetryMsMax);
    };
    for (const name of kEventNames) {
      source.addEventListener(name, (message) => {
        const event = parseEvent(name, String(message.data));
        if (event !== null) this.tell(event);
      });
    }
  }

  // Gives the connection up until start().
  stop(): void {
    clearTimeout(this.timer);
    this.drop();
    this.show('connecting');
  }

  hear(hearer: (event: LiveEvent) => void): () => void {
    this.hearers.add(hearer);
    return () => this.hearers.delete(hearer);
  }

  watch(watcher: (state: LiveState) => void): () => void {
    this.watchers.add(watcher);
    return () => this.watchers.delete(watcher);
  }

  private drop(): void {
    this.source?.close();
    this.source = null;
    this.missed = true;
  }

  private tell(event: LiveEvent): void {
    for (const hearer of [...this.hearers]) hearer(event);
  }

  private show(state: LiveState): void {
    if (state === this.state) return;
    this.state = state;
    for (const watcher of [...this.watchers]) watcher(state);
  }
}

const kHiddenMsMax = 60_000;

export const live = new Live(() => new EventSource('/events'));

// Called once, by main.
export function startLive(): void {
  live.start();
  let hidden: ReturnType<typeof setTimeout> | undefined;
  document.addEventListener('visibilitychange', () => {
    clearTimeout(hidden);
    if (document.hidden) hidden = setTimeout(() => live.stop(), kHiddenMsMax);
    else live.start();
  });
  addEventListener('pagehide', () => live.stop());
  addEventListener('pageshow', () => live.start());
}
