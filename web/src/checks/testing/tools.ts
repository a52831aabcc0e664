// SPDX-License-Identifier: Apache-2.0
//
// For tests: keys that sign (by OpenSSL, so by another than the library's own), envelopes, changes, seeded random numbers.
import { createPrivateKey, createPublicKey, type KeyObject, sign } from 'node:crypto';
import { fromHex, toBase64, toHex, utf8 } from '../bytes';
import { dssePae } from '../dsse';
import { keyId } from '../ed25519';
import { CheckError } from '../errors';
import { canonicalJson, type Json, JsonObject } from '../json';
import type { Check, Hex } from '../types';

export function hex(text: string): Uint8Array {
  const bytes = fromHex(text);
  if (bytes === null) throw new Error(`not hexadecimal: ${text}`);
  return bytes;
}

export class TestKey {
  readonly publicKey: Hex;
  private readonly key: KeyObject;
  /** From RFC 8032's 32-byte private key, or 32 bytes of this number. */
  constructor(seed: Uint8Array | number) {
    const bytes = typeof seed === 'number' ? new Uint8Array(32).fill(seed) : seed;
    this.key = createPrivateKey({ key: Buffer.concat([hex('302e020100300506032b657004220420'), bytes]), format: 'der', type: 'pkcs8' });
    this.publicKey = toHex(createPublicKey(this.key).export({ format: 'der', type: 'spki' }).subarray(-32));
  }
  sign(message: Uint8Array): Uint8Array {
    return new Uint8Array(sign(null, message, this.key));
  }
}

/** A value as canonical JSON. */
export function canonical(value: unknown): string {
  return canonicalJson(toJson(value), 'test');
}
function toJson(value: unknown): Json {
  if (value instanceof Array) return value.map(toJson);
  if (typeof value === 'object' && value !== null) return new JsonObject(Object.entries(value).map(([key, item]) => [key, toJson(item)]));
  return value as Json;
}

export function envelope(payloadType: string, payload: Uint8Array | string, keys: readonly TestKey[]): string {
  const bytes = typeof payload === 'string' ? utf8(payload) : payload;
  const pae = dssePae(payloadType, bytes);
  const signatures = keys.map((key) => ({ keyid: keyId(key.publicKey), sig: toBase64(key.sign(pae)) }));
  return canonical({ payload: toBase64(bytes), payloadType, signatures });
}

/** What is thrown: the error, which must be the library's own. */
export function errorOf(run: () => unknown): CheckError {
  try {
    run();
  } catch (error) {
    if (error instanceof CheckError) return error;
    throw error;
  }
  throw new Error('expected a CheckError; nothing was thrown');
}
export async function errorOfAsync(run: () => Promise<unknown>): Promise<CheckError> {
  try {
    await run();
  } catch (error) {
    if (error instanceof CheckError) return error;
    throw error;
  }
  throw new Error('expected a CheckError; nothing was thrown');
}
/** Runs it: true if it threw the library's own error, false if nothing. Anything else goes through. */
export function refuses(run: () => unknown): boolean {
  try {
    run();
    return false;
  } catch (error) {
    if (error instanceof CheckError) return true;
    throw error;
  }
}

/** Names of the checks that are not ok. */
export function failed(checks: readonly Check[]): string[] {
  return checks.filter(({ ok }) => !ok).map(({ name }) => name);
}

/** Seeded, so that a failure comes again. */
export class Random {
  constructor(private state: number) {}
  /** 0 to n - 1. */
  below(n: number): number {
    this.state = (Math.imul(this.state, 1664525) + 1013904223) >>> 0;
    let x = this.state;
    x = Math.imul(x ^ (x >>> 16), 0x7feb352d);
    x = Math.imul(x ^ (x >>> 15), 0x846ca68b);
    return ((x ^ (x >>> 16)) >>> 0) % n;
  }
  bytes(length: number): Uint8Array {
    return Uint8Array.from({ length }, () => this.below(256));
  }
  /** One to three changes of bytes: another value, one left out, one more, a stretch doubled. */
  mutate(bytes: Uint8Array): Uint8Array {
    let result = bytes.slice();
    for (let change = 1 + this.below(3); change > 0; --change) {
      const at = this.below(Math.max(result.length, 1));
      const rest = result.subarray(at);
      const head = result.subarray(0, at);
      switch (this.below(5)) {
        case 0:
          result = Uint8Array.from([...head, this.below(256), ...rest.subarray(1)]);
          break;
        case 1:
          result = Uint8Array.from([...head, ...rest.subarray(1)]);
          break;
        case 2:
          result = Uint8Array.from([...head, this.below(256), ...rest]);
          break;
        case 3:
          result = Uint8Array.from([...head, ...rest.subarray(0, this.below(20)), ...rest]);
          break;
        default:
          result = Uint8Array.from([...head, (rest[0] ?? 0) ^ (1 << this.below(8)), ...rest.subarray(1)]);
      }
    }
    return result;
  }
}

/** Every member of a JSON text taken away, or put in another kind's place; one more in each object. What was changed, and the text. */
export function jsonChanges(text: string): [what: string, text: string][] {
  const changes: [string, string][] = [];
  const others: unknown[] = [null, true, -1, 0.5, '', 'x', 1e300, [], {}];
  const visit = (value: unknown, place: string, replaced: (other: unknown) => unknown): void => {
    if (place !== '') {
      for (const other of others) {
        if (JSON.stringify(other) !== JSON.stringify(value))
          changes.push([`${place} becomes ${JSON.stringify(other)}`, canonical(replaced(other))]);
      }
    }
    if (value instanceof Array) {
      value.forEach((item, i) =>
        visit(item, `${place}/${i}`, (other) => replaced(value.map((old, k) => (k === i ? other : (old as unknown))))),
      );
    } else if (typeof value === 'object' && value !== null) {
      changes.push([`${place} has a member more`, canonical(replaced({ ...value, zzz: 1 }))]);
      for (const [key, item] of Object.entries(value)) {
        const less = Object.fromEntries(Object.entries(value).filter(([name]) => name !== key));
        changes.push([`${place}/${key} is gone`, canonical(replaced(less))]);
        visit(item, `${place}/${key}`, (other) => replaced({ ...value, [key]: other }));
      }
    }
  };
  visit(JSON.parse(text), '', (other) => other);
  return changes;
}
