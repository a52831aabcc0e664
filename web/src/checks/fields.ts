// SPDX-License-Identifier: Apache-2.0
//
// Members of a JSON object, read one by one: each that is asked for must be there and of its kind, and no other may be. The kinds are
// those of docs/attestation.md and run_manifest.md.
import { fromStandardBase64, isDigest, utf8 } from './bytes';
import { checkPublicKey } from './ed25519';
import { CheckError, quote } from './errors';
import { type Json, JsonObject } from './json';
import type { Hex } from './types';

/** Steps, from 0; far more than any run has. */
export const STEP_MAX = 2 ** 48;

export class Fields {
  private readonly json: JsonObject;
  private readonly asked = new Set<string>();

  constructor(
    json: Json,
    readonly where: string,
  ) {
    if (!(json instanceof JsonObject)) throw new CheckError('malformed', where, { expected: 'an object', found: kindOf(json) });
    this.json = json;
  }

  /** For members that may be absent. */
  has(key: string): boolean {
    return this.json.has(key);
  }

  integer(key: string, least: number, most: number): number {
    const expected = `an integer from ${least} to ${most}`;
    const value = this.find(key, expected);
    if (typeof value === 'number' && Number.isInteger(value) && value >= least && value <= most) return value;
    return this.fail(key, expected, typeof value === 'number' || typeof value === 'bigint' ? String(value) : kindOf(value));
  }
  step(key: string): number {
    return this.integer(key, 0, STEP_MAX);
  }
  number(key: string, least: number, most: number): number {
    const expected = `a number from ${least} to ${most}`;
    const value = this.find(key, expected);
    if (typeof value === 'number' && value >= least && value <= most) return value;
    return this.fail(key, expected, typeof value === 'number' ? String(value) : kindOf(value));
  }

  string(key: string, bytesMax: number): string {
    const expected = `a string of at most ${bytesMax} bytes`;
    const value = this.find(key, expected);
    if (typeof value !== 'string') return this.fail(key, expected, kindOf(value));
    if (value.length * 3 <= bytesMax || (value.length <= bytesMax && utf8(value).length <= bytesMax)) return value;
    return this.fail(key, expected, 'a longer one');
  }
  /** Text for people, of a stranger: 1 to bytesMax bytes without control characters. */
  line(key: string, bytesMax: number): string {
    const text = this.string(key, bytesMax);
    if (text !== '' && !/[\u0000-\u001f\u007f]/.test(text)) return text;
    return this.fail(key, 'text without control characters', text === '' ? 'none' : 'some');
  }
  word<Word extends string>(key: string, words: readonly Word[]): Word {
    const text = this.string(key, 256);
    const word = words.find((candidate) => candidate === text);
    return word ?? this.fail(key, words.map((candidate) => `"${candidate}"`).join(' or '), quote(text));
  }
  digest(key: string): Hex {
    const expected = '64 lower-case hexadecimal digits';
    const text = this.find(key, expected);
    return typeof text === 'string' && isDigest(text) ? text : this.fail(key, expected, 'something else');
  }
  publicKey(key: string): Hex {
    const text = this.string(key, 64);
    try {
      return checkPublicKey(text);
    } catch (error) {
      return this.fail(key, 'an Ed25519 public key', error instanceof Error ? error.message : 'another');
    }
  }
  /** Standard base64, padded. */
  base64(key: string, bytesMax: number): Uint8Array {
    const bytes = fromStandardBase64(this.string(key, Math.floor((bytesMax + 2) / 3) * 4));
    return bytes !== null && bytes.length <= bytesMax ? bytes : this.fail(key, 'standard base64, padded', 'something else');
  }

  array(key: string, itemsMax: number): readonly Json[] {
    const expected = `an array of at most ${itemsMax} items`;
    const value = this.find(key, expected);
    if (value instanceof Array && value.length <= itemsMax) return value as readonly Json[];
    return this.fail(key, expected, value instanceof Array ? `${value.length} items` : kindOf(value));
  }
  digests(key: string, itemsMax: number): Hex[] {
    return this.array(key, itemsMax).map((item) =>
      typeof item === 'string' && isDigest(item) ? item : this.fail(key, '64 lower-case hexadecimal digits each', 'something else'),
    );
  }
  object<T>(key: string, read: (fields: Fields) => T): T {
    return readObject(this.find(key, 'an object'), `${this.where}.${key}`, read);
  }
  /** A value as it stands. */
  value(key: string): Json {
    return this.find(key, 'a value');
  }

  fail(key: string, expected: string, found: string): never {
    throw new CheckError('malformed', `${this.where}.${key}`, { expected, found });
  }
  /** That no member is there that nobody asked for. */
  finish(): void {
    for (const [key] of this.json.members) {
      if (!this.asked.has(key)) this.fail(quote(key), 'no such member', 'one');
    }
  }

  private find(key: string, expected: string): Json {
    this.asked.add(key);
    return this.json.get(key) ?? (this.json.has(key) ? null : this.fail(key, expected, 'nothing'));
  }
}

/** Reads an object whole. */
export function readObject<T>(json: Json, where: string, read: (fields: Fields) => T): T {
  const fields = new Fields(json, where);
  const result = read(fields);
  fields.finish();
  return result;
}

function kindOf(json: Json): string {
  if (json === null) return 'null';
  if (json instanceof JsonObject) return 'an object';
  if (json instanceof Array) return 'an array';
  return typeof json === 'object' || typeof json === 'bigint' ? 'a number' : `a ${typeof json}`;
}
