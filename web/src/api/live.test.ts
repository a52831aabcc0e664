// SPDX-License-Identifier: Apache-2.0
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { LiveEvent } from './events';
import { Live, type Source } from './live';

class FakeSource implements Source {
  onopen: ((event: Event) => void) | null = null;
  onerror: ((event: Event) => void) | null = null;
  readyState = 0;
  closed = false;
  private readonly heard = new Map<string, (event: MessageEvent) => void>();
  addEventListener(name: string, heard: (event: MessageEvent) => void) {
    this.heard.set(name, heard);
  }
  close() {
    this.closed = true;
    this.readyState = 2;
  }
  open() {
    this.readyState = 1;
    this.onopen?.({} as Event);
  }
  // As a browser does it: `final` after a refusal, else it comes back by itself.
  fail(final: boolean) {
    this.readyState = final ? 2 : 0;
    this.onerror?.({} as Event);
  }
  send(name: string, data: string) {
    this.heard.get(name)?.({ data } as MessageEvent);
  }
}

describe('Live', () => {
  let sources: FakeSource[];
  let events: LiveEvent[];
  let live: Live;
  beforeEach(() => {
    vi.useFakeTimers();
    sources = [];
    events = [];
    live = new Live(() => {
      sources.push(new FakeSource());
      return sources[sources.length - 1]!;
    });
    live.hear((event) => events.push(event));
    live.start();
  });
  afterEach(() => void vi.useRealTimers());

  it('tells what it hears', () => {
    sources[0]!.open();
    expect(live.state).toBe('live');
    sources[0]!.send('step', '{"run":"a","step":1,"state":"confirmed"}');
    sources[0]!.send('step', 'nonsense');
    expect(events).toEqual([{ event: 'step', run: 'a', step: 1, state: 'confirmed' }]);
  });
  it('lets the browser come back by itself: nothing was missed, unless the server says so', () => {
    sources[0]!.open();
    sources[0]!.fail(false);
    expect(live.state).toBe('lost');
    sources[0]!.open();
    expect(sources.length).toBe(1);
    expect([live.state, events]).toEqual(['live', []]);
    sources[0]!.send('reset', '');
    expect(events).toEqual([{ event: 'reset' }]);
  });
  it('comes back after a refusal, later each time, and then has all loaded anew', () => {
    sources[0]!.open();
    sources[0]!.fail(true);
    for (const wait_ms of [1_000, 2_000, 4_000]) {
      const before = sources.length;
      vi.advanceTimersByTime(wait_ms - 1);
      expect(sources.length).toBe(before);
      vi.advanceTimersByTime(1);
      expect(sources.length).toBe(before + 1);
      sources[before]!.fail(true);
    }
    vi.advanceTimersByTime(8_000);
    sources[4]!.open();
    expect([live.state, events]).toEqual(['live', [{ event: 'reset' }]]);
  });
  it('never waits longer than half a minute', () => {
    for (let n = 0; n < 12; ++n) {
      sources[sources.length - 1]!.fail(true);
      vi.advanceTimersByTime(30_000);
    }
    expect(sources.length).toBe(13);
  });
  it('gives the connection up and takes it again', () => {
    sources[0]!.open();
    live.stop();
    expect(sources[0]!.closed).toBe(true);
    live.start();
    live.start();
    expect(sources.length).toBe(2);
    sources[1]!.open();
    expect(events).toEqual([{ event: 'reset' }]);
  });
});
