// SPDX-License-Identifier: Apache-2.0
//
// Between src/checks, which throws, and pages, which show lists of what holds and what does not.
import { CheckError, type Check } from '../checks';
import { Failure } from '../api/client';

// A check that could not be made is one that does not hold, with the reason, and never silently left out.
export function failed(name: string, error: unknown): Check {
  if (error instanceof CheckError) {
    return { name, ok: false, message: error.message, expected: error.expected, found: error.found };
  }
  if (error instanceof Failure) return { name, ok: false, message: `could not be fetched: ${error.message}` };
  return { name, ok: false, message: error instanceof Error ? error.message : String(error) };
}

export function attempt<T>(name: string, work: () => T): { value: T; check?: undefined } | { value?: undefined; check: Check } {
  try {
    return { value: work() };
  } catch (error) {
    return { check: failed(name, error) };
  }
}

// Lets the page breathe between pieces of work: a signature takes some milliseconds.
export function breathe(signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => setTimeout(() => (signal.aborted ? reject(signal.reason) : resolve()), 0));
}

export function allHold(checks: readonly Check[]): boolean {
  return checks.length > 0 && checks.every((check) => check.ok);
}
