// SPDX-License-Identifier: Apache-2.0
//
// The one kind of error that web/src/checks throws. Its words are for people and may quote strangers: show them as text.

/**
 * - `malformed`: bytes that are not of the form that they should have;
 * - `key`: a public key that is refused (small order, not canonical);
 * - `signature`: a signature that is missing or does not verify;
 * - `proof`: a Merkle proof, receipt or consistency check that shows something else;
 * - `mismatch`: two things that should say the same do not;
 * - `unavailable`: something that could not be fetched;
 * - `too_large`: what a browser is not asked to do here, with the size;
 * - `cancelled`: the caller's signal.
 */
export type CheckErrorKind = 'malformed' | 'key' | 'signature' | 'proof' | 'mismatch' | 'unavailable' | 'too_large' | 'cancelled';

export interface CheckErrorDetails {
  readonly expected?: string;
  readonly found?: string;
}

export class CheckError extends Error {
  readonly kind: CheckErrorKind;
  /** What was looked at: "attestation.predicate.step", "code/00002.tokens, chunk 17". */
  readonly where: string;
  readonly expected: string | undefined;
  readonly found: string | undefined;

  constructor(kind: CheckErrorKind, where: string, what: string | CheckErrorDetails) {
    super(`${where}: ${typeof what === 'string' ? what : sentence(what)}`);
    this.name = 'CheckError';
    this.kind = kind;
    this.where = where;
    this.expected = typeof what === 'string' ? undefined : what.expected;
    this.found = typeof what === 'string' ? undefined : what.found;
  }
}

function sentence(details: CheckErrorDetails): string {
  const expected = details.expected === undefined ? '' : `expected ${details.expected}`;
  const found = details.found === undefined ? '' : `found ${details.found}`;
  return [expected, found].filter((part) => part !== '').join('; ');
}

/** Strangers' text within a message, cut to a length that a message can have. */
export function quote(text: string): string {
  return text.length > 120 ? `"${text.slice(0, 120)}…"` : `"${text}"`;
}
