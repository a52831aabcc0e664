// SPDX-License-Identifier: Apache-2.0
//
// JSON of strangers: a strict reader that keeps members in their order, twice ones among them, and RFC 8785's canonical text. The
// language's own JSON.parse will not do: it takes the last of two members, half surrogate pairs, and any depth.
import { asBytes, fromUtf8 } from './bytes';
import { CheckError } from './errors';

/** A number that is not as ECMAScript prints it: kept as text, and part of no canonical form. */
export class OtherNumber {
  constructor(readonly text: string) {}
}

export class JsonObject {
  constructor(readonly members: readonly (readonly [string, Json])[]) {}
  has(key: string): boolean {
    return this.members.some(([name]) => name === key);
  }
  /** The first member of that name. */
  get(key: string): Json | undefined {
    return this.members.find(([name]) => name === key)?.[1];
  }
}

/** Integers beyond 2^53 - 1 that are written in plain digits are bigints. */
export type Json = null | boolean | number | bigint | string | OtherNumber | readonly Json[] | JsonObject;

export interface JsonOptions {
  readonly where: string;
  readonly depthMax: number;
}

/** Any JSON text. Throws "malformed" with the place. */
export function parseJson(input: string | Uint8Array, options: JsonOptions): Json {
  return parseText(decode(input, options.where), options);
}

/** An object in its canonical form (RFC 8785) and nothing else. `integers` "64": those beyond 2^53 - 1 may stand there too, in digits. */
export function parseCanonicalObject(input: string | Uint8Array, options: JsonOptions, integers: '53' | '64' = '53'): JsonObject {
  const text = decode(input, options.where);
  const json = parseText(text, options);
  if (!(json instanceof JsonObject))
    throw new CheckError('malformed', options.where, { expected: 'a JSON object', found: 'something else' });
  const canonical = print(json, options.where, integers);
  if (canonical === text) return json;
  let at = 0;
  while (canonical[at] === text[at]) ++at;
  throw new CheckError('malformed', options.where, {
    expected: 'canonical JSON (sorted keys, each once, no white space, shortest numbers)',
    found: `another character at ${at}`,
  });
}

/** The canonical text of a value. Throws "malformed" if it has none. */
export function canonicalJson(json: Json, where: string): string {
  return print(json, where, '53');
}

function decode(input: string | Uint8Array, where: string): string {
  const text = fromUtf8(asBytes(input));
  if (text === null || (typeof input === 'string' && text !== input)) {
    throw new CheckError('malformed', where, { expected: 'UTF-8', found: 'bytes that are not' });
  }
  return text;
}

function parseText(text: string, options: JsonOptions): Json {
  return new Parser(text, options).parse();
}

const NUMBER = /-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?/y;
const PLAIN_STRING = /[^"\\\u0000-\u001f]*/y;
const WORDS: readonly (readonly [string, Json])[] = [
  ['true', true],
  ['false', false],
  ['null', null],
];
const ESCAPES = new Map([
  ['"', '"'],
  ['\\', '\\'],
  ['/', '/'],
  ['b', '\b'],
  ['f', '\f'],
  ['n', '\n'],
  ['r', '\r'],
  ['t', '\t'],
]);

class Parser {
  private at = 0;

  constructor(
    private readonly text: string,
    private readonly options: JsonOptions,
  ) {}

  parse(): Json {
    if (this.text.startsWith('\ufeff')) this.at = 1;
    const value = this.value(0);
    this.skipSpace();
    if (this.at < this.text.length) this.fail('the end');
    return value;
  }

  private fail(expected: string): never {
    const found = this.at < this.text.length ? `something else at character ${this.at}` : 'the end';
    throw new CheckError('malformed', this.options.where, { expected: `JSON, with ${expected}`, found });
  }

  private skipSpace(): void {
    for (; ; ++this.at) {
      const code = this.text.charCodeAt(this.at);
      if (code !== 0x20 && code !== 0x0a && code !== 0x0d && code !== 0x09) return;
    }
  }

  /** Whether the next character is this one; then it is taken. */
  private take(character: string): boolean {
    this.skipSpace();
    if (this.text[this.at] !== character) return false;
    ++this.at;
    return true;
  }

  private value(depth: number): Json {
    this.skipSpace();
    const next = this.text[this.at];
    if (next === '{' || next === '[') {
      if (depth === this.options.depthMax) {
        throw new CheckError('malformed', this.options.where, { expected: `JSON at most ${depth} deep`, found: 'deeper' });
      }
      ++this.at;
      return next === '{' ? this.object(depth + 1) : this.array(depth + 1);
    }
    if (next === '"') return this.string();
    for (const [word, value] of WORDS) {
      if (this.text.startsWith(word, this.at)) {
        this.at += word.length;
        return value;
      }
    }
    return this.number();
  }

  private object(depth: number): JsonObject {
    const members: [string, Json][] = [];
    if (this.take('}')) return new JsonObject(members);
    do {
      this.skipSpace();
      const key = this.string();
      if (!this.take(':')) this.fail('a colon');
      members.push([key, this.value(depth)]);
    } while (this.take(','));
    if (!this.take('}')) this.fail('a comma or the end of an object');
    return new JsonObject(members);
  }

  private array(depth: number): Json[] {
    const items: Json[] = [];
    if (this.take(']')) return items;
    do items.push(this.value(depth));
    while (this.take(','));
    if (!this.take(']')) this.fail('a comma or the end of an array');
    return items;
  }

  private number(): Json {
    NUMBER.lastIndex = this.at;
    const text = NUMBER.exec(this.text)?.[0];
    if (text === undefined) this.fail('a value');
    const value = Number(text);
    if (!Number.isFinite(value)) this.fail('a number that a binary64 holds');
    this.at += text.length;
    if (String(value) === text && Math.abs(value) <= Number.MAX_SAFE_INTEGER) return value;
    if (/^[0-9]{1,20}$/.test(text)) return BigInt(text);
    return String(value) === text ? value : new OtherNumber(text);
  }

  private string(): string {
    if (this.text[this.at] !== '"') this.fail('a string');
    ++this.at;
    let result = '';
    for (;;) {
      PLAIN_STRING.lastIndex = this.at;
      const plain = PLAIN_STRING.exec(this.text)?.[0] ?? '';
      this.at += plain.length;
      result += plain;
      const next = this.text[this.at];
      if (next === '"') {
        ++this.at;
        return result;
      }
      if (next !== '\\') this.fail('the end of a string');
      result += this.escape();
    }
  }

  private escape(): string {
    const letter = this.text[this.at + 1] ?? '';
    const simple = ESCAPES.get(letter);
    if (simple !== undefined) {
      this.at += 2;
      return simple;
    }
    const unit = this.unit();
    if (unit >= 0xd800 && unit < 0xdc00) {
      const low = this.text[this.at] === '\\' ? this.unit() : 0;
      if (low >= 0xdc00 && low < 0xe000) return String.fromCharCode(unit, low);
      this.fail('the second half of a surrogate pair');
    }
    if (unit >= 0xdc00 && unit < 0xe000) this.fail('the first half of a surrogate pair');
    return String.fromCharCode(unit);
  }

  private unit(): number {
    const digits = this.text.slice(this.at + 2, this.at + 6);
    if (this.text[this.at + 1] !== 'u' || !/^[0-9a-fA-F]{4}$/.test(digits)) this.fail('an escape');
    this.at += 6;
    return parseInt(digits, 16);
  }
}

function print(json: Json, where: string, integers: '53' | '64'): string {
  if (json === null || typeof json === 'boolean') return String(json);
  if (typeof json === 'string') return JSON.stringify(json);
  if (typeof json === 'number' && Number.isFinite(json)) return String(json);
  if (typeof json === 'bigint' && integers === '64') return String(json);
  if (json instanceof JsonObject) {
    const members = inOrder(json.members) ? json.members : [...json.members].sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0));
    if (!inOrder(members)) throw new CheckError('malformed', where, { expected: 'each member once', found: 'one twice' });
    return `{${members.map(([key, value]) => `${JSON.stringify(key)}:${print(value, where, integers)}`).join(',')}}`;
  }
  if (json instanceof Array) return `[${json.map((item) => print(item, where, integers)).join(',')}]`;
  throw new CheckError('malformed', where, { expected: 'numbers as ECMAScript prints them', found: 'another' });
}

/** Ascending by UTF-16 code units, each once. */
function inOrder(members: JsonObject['members']): boolean {
  return members.every(([key], i) => i === 0 || members[i - 1]![0] < key);
}
