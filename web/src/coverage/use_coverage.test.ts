// SPDX-License-Identifier: Apache-2.0
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { Failure } from '../api/client';
import { Coverage } from './model';
import { CoverageFeed } from './use_coverage';

const kRun = 'a'.repeat(64);

// Loads that end when the test says so.
function feedWithLoads() {
  const loads: { resolve: (coverage: Coverage) => void; reject: (error: unknown) => void }[] = [];
  const changed = vi.fn();
  const feed = new CoverageFeed(kRun, () => new Promise((resolve, reject) => loads.push({ resolve, reject })), changed);
  return { feed, loads, changed };
}
const bytes = (...states: number[]) => new Coverage(0, Uint8Array.from(states));

describe('CoverageFeed', () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());

  it('applies events to what it has, and to nothing of another run', async () => {
    const { feed, loads, changed } = feedWithLoads();
    const loading = feed.load();
    loads[0]!.resolve(bytes(1, 1));
    await loading;
    changed.mockClear();
    feed.hear({ event: 'step', run: 'b'.repeat(64), step: 0, state: 'disputed' });
    expect(changed).not.toHaveBeenCalled();
    feed.hear({ event: 'step', run: kRun, step: 1, state: 'confirmed' });
    expect(changed).toHaveBeenCalledTimes(1);
    expect(feed.coverage!.counts().confirmed).toBe(1);
  });
  it('does not lose an event that comes while it loads', async () => {
    const { feed, loads } = feedWithLoads();
    const loading = feed.load();
    feed.hear({ event: 'step', run: kRun, step: 1, state: 'provisional' });
    loads[0]!.resolve(bytes(1, 1)); // asked for before the event
    await loading;
    expect(feed.coverage!.state(1)).toBe('provisional');
  });
  it('loads anew on reset, once for many', async () => {
    const { feed, loads } = feedWithLoads();
    const loading = feed.load();
    loads[0]!.resolve(bytes(1));
    await loading;
    feed.hear({ event: 'reset' });
    feed.hear({ event: 'reset' });
    feed.hear({ event: 'reset' });
    expect(loads.length).toBe(2);
    loads[1]!.resolve(bytes(4));
    await vi.advanceTimersByTimeAsync(0);
    expect(feed.coverage!.state(0)).toBe('confirmed');
    // One of them came after that load had begun.
    await vi.advanceTimersByTimeAsync(10_000);
    expect(loads.length).toBe(3);
  });
  it('has a newer version after each load', async () => {
    const { feed, loads } = feedWithLoads();
    const first = feed.load();
    loads[0]!.resolve(bytes(1));
    await first;
    const version = feed.coverage!.version;
    const second = feed.load();
    loads[1]!.resolve(bytes(1));
    await second;
    expect(feed.coverage!.version).toBeGreaterThan(version);
  });
  it('keeps what it has while the coordinator is away, and tries again', async () => {
    const { feed, loads } = feedWithLoads();
    const first = feed.load();
    loads[0]!.resolve(bytes(4));
    await first;
    feed.hear({ event: 'reset' });
    loads[1]!.reject(new Failure('offline', 'OFFLINE', ''));
    await vi.advanceTimersByTimeAsync(0);
    expect(feed.failure!.kind).toBe('offline');
    expect(feed.coverage!.state(0)).toBe('confirmed');
    await vi.advanceTimersByTimeAsync(5_000);
    expect(loads.length).toBe(3);
    loads[2]!.resolve(bytes(5));
    await vi.advanceTimersByTimeAsync(0);
    expect(feed.failure).toBeUndefined();
    expect(feed.coverage!.state(0)).toBe('disputed');
  });
  it('asks for all after records, but not for each', async () => {
    const { feed, loads } = feedWithLoads();
    const first = feed.load();
    loads[0]!.resolve(bytes(4));
    await first;
    for (let end = 2; end < 50; ++end) feed.hear({ event: 'records', run: kRun, end_step: end });
    expect(feed.coverage!.steps).toBe(49);
    expect(loads.length).toBe(1);
    await vi.advanceTimersByTimeAsync(10_000);
    expect(loads.length).toBe(2);
  });
});
