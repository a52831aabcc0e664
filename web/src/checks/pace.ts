// SPDX-License-Identifier: Apache-2.0
//
// Long work beside a page that must stay alive: giving way to the event loop, ending when the caller says so, and the caller's own
// fetches, whatever they throw.
import { CheckError } from './errors';

const SLICE_MS = 8;

export function throwIfCancelled(signal: AbortSignal | undefined): void {
  if (signal?.aborted === true) throw new CheckError('cancelled', 'check', 'the caller ended it');
}

/** Runs a function of the caller's that fetches `what`; its errors become "unavailable" or "cancelled". */
export async function fetching<T>(what: string, signal: AbortSignal | undefined, fetch: () => Promise<T>): Promise<T> {
  throwIfCancelled(signal);
  try {
    const result = await fetch();
    throwIfCancelled(signal);
    return result;
  } catch (error) {
    throwIfCancelled(signal);
    if (error instanceof CheckError) throw error;
    throw new CheckError('unavailable', what, error instanceof Error ? error.message : String(error));
  }
}

/** A task of its own: messages are not held back as nested timers are. */
function nextTask(): Promise<void> {
  return new Promise((resolve) => {
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = () => {
      port1.close();
      resolve();
    };
    port2.postMessage(null);
  });
}

/** Gives way once a slice of time is used up. */
export class Pace {
  private since = performance.now();
  constructor(private readonly signal: AbortSignal | undefined) {}

  async breathe(): Promise<void> {
    throwIfCancelled(this.signal);
    if (performance.now() - this.since < SLICE_MS) return;
    await nextTask();
    this.since = performance.now();
    throwIfCancelled(this.signal);
  }
}
