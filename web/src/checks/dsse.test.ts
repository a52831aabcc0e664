// SPDX-License-Identifier: Apache-2.0
//
// The vectors of the DSSE repository (protocol.md; testvectors/vectors.json with the keys of RFC 8032's tests 1 and 2), and every way that
// an envelope can be wrong: those of audit/evidence/dsse_test.cc.
import { expect, test } from 'vitest';
import { toHex, utf8 } from './bytes';
import { dssePae, parseDsse } from './dsse';
import { verifyEd25519 } from './ed25519';
import vectors from './testing/ed25519_vectors.json';
import { envelope, errorOf, hex, Random, refuses, TestKey } from './testing/tools';

const [A, B] = vectors.rfc8032;
const STATEMENT = 'eyJfdHlwZSI6Imh0dHBzOi8vaW4tdG90by5pby9TdGF0ZW1lbnQvdjEifQ==';
const STATEMENT_SIGNATURE = '2WAfaHm5jluo0w+0rk8uVkluELJYWjSmU9x7EUzx+AyteDGJ4/nqyJXfmAUVFIAoQafWm7AxBZNw5M9ixNHiCA==';

test('PAE of protocol.md', () => {
  const pae = (type: string, payload: string): string => Buffer.from(dssePae(type, utf8(payload))).toString();
  expect(pae('http://example.com/HelloWorld', 'hello world')).toBe('DSSEv1 29 http://example.com/HelloWorld 11 hello world');
  expect(pae('', '')).toBe('DSSEv1 0  0 ');
  expect(pae('\u00e9', '\u00e9\u00e9')).toBe('DSSEv1 2 \u00e9 4 \u00e9\u00e9');
});

test('reads the envelope of protocol.md', () => {
  const read = parseDsse(`{"payload": "aGVsbG8gd29ybGQ=",
 "payloadType": "http://example.com/HelloWorld",
 "signatures": [{"sig": "A3JqsQGtVsJ2O2xqrI5IcnXip5GToJ3F+FnZ+O88SjtR6rDAajabZKciJTfUiHqJPcIAriEGAHTVeCUjW2JIZA=="}]}`);
  expect(Buffer.from(read.payload).toString()).toBe('hello world');
  expect(read.payloadType).toBe('http://example.com/HelloWorld');
  expect(read.signatures.map(({ keyId, bytes }) => [keyId, bytes.length])).toEqual([['', 64]]);
});

test.each([
  ['single-signature', STATEMENT, 'application/vnd.in-toto+json', STATEMENT_SIGNATURE, true],
  [
    'url-safe-base64',
    '-_-_Pj8=',
    'application/vnd.in-toto+json',
    'P-_KHICeR7tI6S_YyejJTRtrXhcQyQ2LYPaL8h90KjC9qN8HU_svOQ6TuDOT1HIrsGW886DbWNWcCmX5twLrAw==',
    true,
  ],
  ['payload-type-swapped', STATEMENT, 'application/vnd.example.other+json', STATEMENT_SIGNATURE, false],
  [
    'non-ascii-payload-type',
    STATEMENT,
    'application/vnd.ex\u00e4mple+json',
    'xmSk/ug66ysT7ayhkCIjhAq42zgZXSsEWuzUaNL7w2eGAdF/NU6/fRXPtmfN+5DNSAs5/i2lUnHjbbjPsu0tAw==',
    true,
  ],
  [
    'empty-payload',
    '',
    'application/vnd.in-toto+json',
    'gSggCAaTLTYyRH6FIDBem6meyIynsYy8RTHVzwx9tnTb7Bg/1jMWnuVgI/gffqmbsC2VX5/jHfkkDqsj7CDbDg==',
    true,
  ],
])('vector %s', (_, payload, type, sig, valid) => {
  const read = parseDsse(JSON.stringify({ payload, payloadType: type, signatures: [{ sig, keyid: 'A' }] }));
  expect(read.signatures[0]!.keyId).toBe('A');
  const pae = dssePae(read.payloadType, read.payload);
  expect(verifyEd25519(A!.key, pae, read.signatures[0]!.bytes)).toBe(valid);
  expect(verifyEd25519(B!.key, pae, read.signatures[0]!.bytes)).toBe(false);
});

test("an envelope of the tests' own tools is the vector's", () => {
  const made = envelope('application/vnd.in-toto+json', '{"_type":"https://in-toto.io/Statement/v1"}', [new TestKey(hex(A!.seed))]);
  expect(made).toContain(`"payload":"${STATEMENT}"`);
  expect(made).toContain(`"sig":"${STATEMENT_SIGNATURE}"`);
});

test('passes over what it does not know', () => {
  const read = parseDsse(` {"x":{"payload":"no","signatures":[{"sig":"bm8="}]},"payload":"AQ","y":[["sig",1],{"sig":2}],
      "signatures":[{"keyid":"k","sig":"Ag==","cert":{"sig":"no","keyid":[]},"z":[{"sig":"no"}]}],
      "payloadType":"t","w":null,"w":1} `);
  expect([read.payloadType, toHex(read.payload)]).toEqual(['t', '01']);
  expect(read.signatures).toEqual([{ keyId: 'k', bytes: Uint8Array.of(2) }]);
});

test('refuses other forms', () => {
  const with_ = (signatures: string): string => `{"payload":"AQ==","payloadType":"t","signatures":${signatures}}`;
  const deep = '['.repeat(40) + ']'.repeat(40);
  const many = `[${Array.from({ length: 17 }, () => '{"sig":"Ag=="}').join(',')}]`;
  const bad = [
    '',
    'null',
    '1',
    '"payload"',
    '[]',
    '{}',
    '{"payload":',
    `[${with_('[{"sig":"Ag=="}]')}]`,
    with_('[]'),
    with_('[{}]'),
    with_('{"sig":"Ag=="}'),
    with_('["Ag=="]'),
    with_('[["sig"]]'),
    with_('[[{"sig":"Ag=="}]]'),
    with_('[1]'),
    with_('1'),
    with_('[{"sig":1}]'),
    with_('[{"sig":["Ag=="]}]'),
    with_('[{"sig":"Ag==","keyid":1}]'),
    with_('[{"sig":"A"}]'),
    with_(many),
    `${with_('[{"sig":"Ag=="}]')} x`,
    '{"payload":"A!==","payloadType":"t","signatures":[{"sig":"Ag=="}]}',
    '{"payload":1,"payloadType":"t","signatures":[{"sig":"Ag=="}]}',
    '{"payload":{"x":"AQ=="},"payloadType":"t","signatures":[{"sig":"Ag=="}]}',
    '{"payload":"AQ==","payloadType":null,"signatures":[{"sig":"Ag=="}]}',
    '{"payload":"AQ==","payloadType":"","signatures":[{"sig":"Ag=="}]}',
    '{"payload":"AQ==","signatures":[{"sig":"Ag=="}]}',
    '{"payloadType":"t","signatures":[{"sig":"Ag=="}]}',
    '{"payload":"AQ==","payloadType":"t"}',
    '{"payload":"AQ==","payload":"Ag==","payloadType":"t","signatures":[{"sig":"Ag=="}]}',
    '{"payload":"AQ==","payloadType":"t","payloadType":"t","signatures":[{"sig":"Ag=="}]}',
    '{"payload":"AQ==","payloadType":"t","signatures":[{"sig":"Ag=="}],"signatures":[]}',
    with_('[{"sig":"Ag==","sig":"Ag=="}]'),
    `{"x":${deep},"payload":"AQ==","payloadType":"t","signatures":[{"sig":"Ag=="}]}`,
  ];
  expect(refuses(() => parseDsse(with_('[{"sig":"Ag=="}]')))).toBe(false);
  for (const json of bad) expect(errorOf(() => parseDsse(json)).kind, json).toBe('malformed');
});

test("random changes throw nothing but the library's error", () => {
  const random = new Random(3);
  const good = utf8(envelope('t', 'payload', [new TestKey(1), new TestKey(2)]));
  for (let n = 0; n < 2000; ++n) refuses(() => parseDsse(random.mutate(good)));
});
