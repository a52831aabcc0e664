// SPDX-License-Identifier: Apache-2.0
//
// Ed25519 as base/ed25519.h decides: RFC 8032 section 5.1.7 without the cofactor, R compared as bytes, S below the group's order, and
// keys that are small-order points or not encoded canonically refused. The points are @noble/ed25519's; its own verify() multiplies by the
// cofactor and so takes signatures that OpenSSL refuses.
import { Point } from '@noble/ed25519';
import { sha512 } from '@noble/hashes/sha2.js';
import { concat, digestBytes, equalBytes, isDigest, sha256Hex, toHex } from './bytes';
import { CheckError } from './errors';
import type { Hex } from './types';

const ORDER = Point.CURVE().n;

/** y of the points of small order below p, without the sign of x: of orders 4, 1, 2, 8, 8. */
const SMALL_ORDER_Y = new Set([
  '0000000000000000000000000000000000000000000000000000000000000000',
  '0100000000000000000000000000000000000000000000000000000000000000',
  'ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f',
  '26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05',
  'c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a',
]);

function whyRefused(bytes: Uint8Array): string | null {
  const y = bytes.slice();
  y[31]! &= 0x7f;
  const high = y[31] === 0x7f && y.subarray(1, 31).every((byte) => byte === 0xff);
  if (high && y[0]! >= 0xed) return 'its y is not below 2^255 - 19';
  return SMALL_ORDER_Y.has(toHex(y)) ? 'it is a point of small order' : null;
}

/** The key, if it may be registered: 64 lower-case digits, y below 2^255 - 19, no point of small order. Throws "key". */
export function checkPublicKey(key: string): Hex {
  if (!isDigest(key)) {
    throw new CheckError('key', 'public key', {
      expected: '64 lower-case hexadecimal digits of an Ed25519 public key',
      found: 'something else',
    });
  }
  const why = whyRefused(digestBytes(key));
  if (why !== null) throw new CheckError('key', 'public key', `${key} is refused: ${why}`);
  return key;
}

/** What a key goes by: SHA-256 of its bytes. */
export function keyId(key: Hex): Hex {
  return sha256Hex(digestBytes(key, 'public key'));
}

function scalar(bytes: Uint8Array): bigint {
  return BigInt(`0x${toHex(bytes.slice().reverse())}`);
}

/** Whether `signature`, of any length, is the key's over `message`. False for a key that is refused or no point. A few milliseconds. */
export function verifyEd25519(key: Hex, message: Uint8Array, signature: Uint8Array): boolean {
  if (!isDigest(key) || signature.length !== 64) return false;
  const keyBytes = digestBytes(key);
  if (whyRefused(keyBytes) !== null) return false;
  const r = signature.subarray(0, 32);
  const s = scalar(signature.subarray(32));
  if (s >= ORDER) return false;
  let a: Point;
  try {
    a = Point.fromBytes(keyBytes, false);
  } catch {
    return false;
  }
  const k = scalar(sha512(concat([r, keyBytes, message]))) % ORDER;
  // R' = S B - k A, and its bytes are R's: so an R that is not canonical never fits.
  const computed = Point.BASE.multiply(s, false).subtract(a.multiply(k, false));
  return equalBytes(computed.toBytes(), r);
}
