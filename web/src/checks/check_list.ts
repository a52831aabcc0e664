// SPDX-License-Identifier: Apache-2.0
//
// Lists of checks, each with a tick or a cross: what is held is a line of it, and one that fails does not keep the others from being made.
import { CheckError } from './errors';
import type { Check } from './types';

export class CheckList {
  readonly checks: Check[] = [];
  constructor(private readonly prefix = '') {}

  add(name: string, ok: boolean, holds: string, otherwise: string): boolean {
    this.checks.push({ name: this.prefix + name, ok, message: ok ? holds : otherwise });
    return ok;
  }
  equal(name: string, what: string, expected: string, found: string): boolean {
    const ok = expected === found;
    const message = ok ? `${what} is ${found}` : `${what}: expected ${expected}; found ${found}`;
    this.checks.push({ name: this.prefix + name, ok, message, ...(ok ? {} : { expected, found }) });
    return ok;
  }
  /** Something that throws a CheckError where it does not hold. */
  holds(name: string, what: string, prove: () => void): boolean {
    try {
      prove();
    } catch (error) {
      if (!(error instanceof CheckError)) throw error;
      const { expected, found } = error;
      this.checks.push({
        name: this.prefix + name,
        ok: false,
        message: error.message,
        ...(expected === undefined ? {} : { expected }),
        ...(found === undefined ? {} : { found }),
      });
      return false;
    }
    return this.add(name, true, what, '');
  }
}

/** Whether all are ok; an empty list is not. */
export function allOk(checks: readonly Check[]): boolean {
  return checks.length > 0 && checks.every(({ ok }) => ok);
}
