// SPDX-License-Identifier: Apache-2.0
//
// Bytes and the texts that stand for them: hexadecimal, base64, UTF-8; SHA-256; little-endian numbers. As base/encoding.h and
// base/coding.h decide, so that both take and refuse the same.
import { sha256 as nobleSha256 } from '@noble/hashes/sha2.js';
import { CheckError } from './errors';
import type { Hex } from './types';

const HEX_DIGITS = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, '0'));

export function toHex(bytes: Uint8Array): Hex {
  let text = '';
  for (const byte of bytes) text += HEX_DIGITS[byte];
  return text;
}

export function isDigest(text: string): boolean {
  return /^[0-9a-f]{64}$/.test(text);
}

/** Lower-case digits, two a byte; null for anything else. */
export function fromHex(text: string): Uint8Array | null {
  if (text.length % 2 !== 0 || !/^[0-9a-f]*$/.test(text)) return null;
  const bytes = new Uint8Array(text.length / 2);
  for (let i = 0; i < bytes.length; ++i) bytes[i] = parseInt(text.slice(2 * i, 2 * i + 2), 16);
  return bytes;
}

/** The 32 bytes of a digest or key. Throws "malformed". */
export function digestBytes(text: Hex, where = 'digest'): Uint8Array {
  const bytes = isDigest(text) ? fromHex(text) : null;
  if (bytes !== null) return bytes;
  throw new CheckError('malformed', where, { expected: '64 lower-case hexadecimal digits', found: 'something else' });
}

const BASE64_DIGITS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/';
const BASE64_VALUES = new Int8Array(128).fill(-1);
for (let i = 0; i < 64; ++i) BASE64_VALUES[BASE64_DIGITS.charCodeAt(i)] = i;
BASE64_VALUES['-'.charCodeAt(0)] = 62;
BASE64_VALUES['_'.charCodeAt(0)] = 63;

/** Standard, padded. */
export function toBase64(bytes: Uint8Array): string {
  let text = '';
  for (let i = 0; i < bytes.length; i += 3) {
    const group = (bytes[i]! << 16) | ((bytes[i + 1] ?? 0) << 8) | (bytes[i + 2] ?? 0);
    text += BASE64_DIGITS[group >> 18]! + BASE64_DIGITS[(group >> 12) & 63]!;
    text += i + 1 < bytes.length ? BASE64_DIGITS[(group >> 6) & 63]! : '=';
    text += i + 2 < bytes.length ? BASE64_DIGITS[group & 63]! : '=';
  }
  return text;
}

/** Either alphabet but not both, padded or not, no bits past the last byte; null for anything else. */
export function fromBase64(text: string): Uint8Array | null {
  let length = text.length;
  if (length % 4 === 0) for (let i = 0; i < 2 && length > 0 && text[length - 1] === '='; ++i) --length;
  if (length % 4 === 1) return null;
  const bytes = new Uint8Array(Math.floor((length * 3) / 4));
  let buffer = 0;
  let bits = 0;
  let at = 0;
  let alphabets = 0;
  for (let i = 0; i < length; ++i) {
    const code = text.charCodeAt(i);
    const value = code < 128 ? BASE64_VALUES[code]! : -1;
    if (value < 0) return null;
    if (code === 43 || code === 47) alphabets |= 1;
    if (code === 45 || code === 95) alphabets |= 2;
    buffer = (buffer << 6) | value;
    bits += 6;
    if (bits >= 8) {
      bits -= 8;
      bytes[at++] = buffer >> bits;
      buffer &= (1 << bits) - 1;
    }
  }
  return buffer !== 0 || alphabets === 3 ? null : bytes;
}

/** Standard and padded, as toBase64 writes it; null for anything else. */
export function fromStandardBase64(text: string): Uint8Array | null {
  const bytes = fromBase64(text);
  return bytes !== null && toBase64(bytes) === text ? bytes : null;
}

const encoder = new TextEncoder();
const strictDecoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
const lenientDecoder = new TextDecoder('utf-8', { ignoreBOM: true });

/** UTF-8 of a text; lone surrogates become U+FFFD. */
export function utf8(text: string): Uint8Array {
  return encoder.encode(text);
}

/** null if the bytes are not UTF-8. */
export function fromUtf8(bytes: Uint8Array): string | null {
  try {
    return strictDecoder.decode(bytes);
  } catch {
    return null;
  }
}

/** With U+FFFD for what is not UTF-8. */
export function fromUtf8Lenient(bytes: Uint8Array): string {
  return lenientDecoder.decode(bytes);
}

/** Bytes as they are, or the UTF-8 of a text. */
export function asBytes(input: string | Uint8Array): Uint8Array {
  return typeof input === 'string' ? utf8(input) : input;
}

export function equalBytes(a: Uint8Array, b: Uint8Array): boolean {
  return a.length === b.length && a.every((byte, i) => byte === b[i]);
}

export function concat(parts: readonly Uint8Array[]): Uint8Array {
  const bytes = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    bytes.set(part, at);
    at += part.length;
  }
  return bytes;
}

export function sha256(...parts: readonly Uint8Array[]): Uint8Array {
  if (parts.length === 1) return nobleSha256(parts[0]!);
  const hash = nobleSha256.create();
  for (const part of parts) hash.update(part);
  return hash.digest();
}

export function sha256Hex(...parts: readonly Uint8Array[]): Hex {
  return toHex(sha256(...parts));
}

/** Eight bytes, little-endian. */
export function u64Bytes(value: bigint): Uint8Array {
  const bytes = new Uint8Array(8);
  new DataView(bytes.buffer).setBigUint64(0, value, true);
  return bytes;
}

/** Little-endian fields one after another. Throws "malformed" beyond the end. */
export class ByteReader {
  private readonly view: DataView;
  private at = 0;

  constructor(
    private readonly bytes: Uint8Array,
    private readonly where: string,
  ) {
    this.view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  }

  get offset(): number {
    return this.at;
  }
  get remaining(): number {
    return this.bytes.length - this.at;
  }

  take(length: number): Uint8Array {
    const begin = this.advance(length);
    return this.bytes.subarray(begin, begin + length);
  }
  digest(): Hex {
    return toHex(this.take(32));
  }
  u8(): number {
    return this.view.getUint8(this.advance(1));
  }
  u32(): number {
    return this.view.getUint32(this.advance(4), true);
  }
  u64(): bigint {
    return this.view.getBigUint64(this.advance(8), true);
  }
  f32(): number {
    return this.view.getFloat32(this.advance(4), true);
  }

  fail(expected: string, found: string): never {
    throw new CheckError('malformed', this.where, { expected: `${expected} at offset ${this.at}`, found });
  }
  expectEnd(): void {
    if (this.remaining > 0) this.fail('the end', `${this.remaining} bytes more`);
  }

  private advance(length: number): number {
    if (length > this.remaining) this.fail(`${length} bytes`, `${this.remaining}`);
    const begin = this.at;
    this.at += length;
    return begin;
  }
}
