// SPDX-License-Identifier: Apache-2.0
//
// The vectors that base/ed25519_test.cc holds OpenSSL to, and OpenSSL itself (Node's) on random signatures.
import { createPublicKey, verify } from 'node:crypto';
import { expect, test } from 'vitest';
import { concat, sha256Hex, toHex, utf8 } from './bytes';
import { checkPublicKey, keyId, verifyEd25519 } from './ed25519';
import vectors from './testing/ed25519_vectors.json';
import { errorOf, hex, Random, refuses, TestKey } from './testing/tools';

const ORDER = 'edd3f55c1a631258d69cf7a2def9de1400000000000000000000000000000010';

test("RFC 8032's vectors verify, and keys are known by their SHA-256", () => {
  for (const { seed, key, message, signature } of vectors.rfc8032) {
    expect(verifyEd25519(key, hex(message), hex(signature))).toBe(true);
    expect(new TestKey(hex(seed)).publicKey).toBe(key);
    expect(keyId(key)).toBe(sha256Hex(hex(key)));
  }
});

test('every bit of signature, message and key matters', () => {
  const { key, message, signature } = vectors.rfc8032[2]!;
  const parts = [hex(signature), hex(message), hex(key)];
  for (const [which, part] of parts.entries()) {
    for (let bit = 0; bit < part.length * 8; ++bit) {
      const [s, m, k] = parts.map((bytes, i) => {
        const copy = bytes.slice();
        if (i === which) copy[bit >> 3]! ^= 1 << (bit & 7);
        return copy;
      });
      expect(verifyEd25519(toHex(k!), m!, s!), `${which} ${bit}`).toBe(false);
    }
  }
});

test('signatures have one length', () => {
  const { key, message, signature } = vectors.rfc8032[2]!;
  for (let size = 0; size < 64; ++size) expect(verifyEd25519(key, hex(message), hex(signature).subarray(0, size))).toBe(false);
  expect(verifyEd25519(key, hex(message), concat([hex(signature), Uint8Array.of(0)]))).toBe(false);
});

test('S that is not reduced is refused', () => {
  for (const { key, message, signature } of vectors.rfc8032) {
    const bytes = hex(signature);
    let carry = 0;
    for (let i = 0; i < 32; ++i) {
      const sum = bytes[32 + i]! + hex(ORDER)[i]! + carry;
      bytes[32 + i] = sum;
      carry = sum >> 8;
    }
    expect(carry).toBe(0);
    expect(verifyEd25519(key, hex(message), bytes)).toBe(false);
  }
});

test('keys of small order are refused, and verify nothing', () => {
  expect(vectors.smallOrder.length).toBe(14);
  const signature = hex(vectors.smallOrder[4]! + '0'.repeat(64));
  for (const key of vectors.smallOrder) {
    expect(errorOf(() => checkPublicKey(key)).kind).toBe('key');
    for (const message of 'abcdefgh') expect(verifyEd25519(key, utf8(message), signature)).toBe(false);
  }
});

test('every y that is not below 2^255 - 19 is refused', () => {
  for (const sign of ['7f', 'ff']) {
    for (let low = 0xe8; low <= 0xff; ++low) {
      const key = low.toString(16) + 'ff'.repeat(30) + sign;
      expect(
        refuses(() => checkPublicKey(key)),
        key,
      ).toBe(low >= 0xec); // 0xec is p - 1, of order 2
    }
  }
});

test('keys are taken as they are written', () => {
  const { key } = vectors.rfc8032[0]!;
  expect(checkPublicKey(key)).toBe(key);
  for (const text of ['', key.slice(1), `${key}0`, key.toUpperCase(), `0x${key.slice(2)}`, `${key}\n`]) {
    expect(errorOf(() => checkPublicKey(text)).kind, text).toBe('key');
  }
});

test("CCTV's edge cases are decided as OpenSSL decides them", () => {
  expect(vectors.cctv.cases.length).toBe(8);
  for (const { number, text, signature, valid } of vectors.cctv.cases) {
    expect(verifyEd25519(vectors.cctv.key, utf8(text), hex(signature)), String(number)).toBe(valid);
  }
});

test("Wycheproof's cases", () => {
  const { key, valid, otherR, otherS, largestS } = vectors.wycheproof;
  for (const c of valid) expect(verifyEd25519(key, hex(c.message), hex(c.signature)), String(c.number)).toBe(true);
  for (const c of otherR) expect(verifyEd25519(key, hex(c.message), hex(c.signature)), String(c.number)).toBe(false);
  const { message, signature } = valid[2]!;
  for (const s of otherS) expect(verifyEd25519(key, hex(message), hex(signature.slice(0, 64) + s)), s).toBe(false);
  // 10 to 29.
  const zero = '0'.repeat(64);
  const one = `01${'0'.repeat(62)}`;
  const prime = `ed${'f'.repeat(60)}7f`;
  for (const r of [zero, one, ORDER, prime]) {
    for (const s of [zero, one, `ec${ORDER.slice(2)}`, ORDER, prime]) expect(verifyEd25519(key, hex('3f'), hex(r + s)), r + s).toBe(false);
  }
  // 30 to 37: cut off, or with something more.
  const [r, s] = [signature.slice(0, 64), signature.slice(64)];
  for (const other of [
    '',
    r,
    signature.slice(0, 124),
    `${signature}2020`,
    signature + key,
    `00${signature}`,
    `${r}00${s}`,
    `${signature}00`,
  ]) {
    expect(verifyEd25519(key, hex(message), hex(other)), other).toBe(false);
  }
  expect(verifyEd25519(largestS.key, hex(largestS.message), hex(largestS.signature))).toBe(true);
});

test('random signatures and keys are decided as OpenSSL decides them', () => {
  const random = new Random(20240607);
  const counts = { good: 0, bad: 0 };
  for (let n = 0; n < 120; ++n) {
    const key = new TestKey(random.bytes(32));
    const message = random.bytes(random.below(100));
    const signature = key.sign(message);
    if (n % 3 === 1) signature[random.below(64)]! ^= 1 << random.below(8);
    const publicKey = n % 3 === 2 ? toHex(random.bytes(32)) : key.publicKey; // half of them no point
    const opensslKey = { key: Buffer.concat([hex('302a300506032b6570032100'), hex(publicKey)]), format: 'der', type: 'spki' } as const;
    const expected = verify(null, message, createPublicKey(opensslKey), signature);
    expect(verifyEd25519(publicKey, message, signature), `${n}`).toBe(expected);
    ++counts[expected ? 'good' : 'bad'];
  }
  expect(counts).toEqual({ good: 40, bad: 80 });
});
