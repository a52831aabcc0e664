// SPDX-License-Identifier: Apache-2.0
import { expect, test } from 'vitest';
import { fromBase64, fromStandardBase64, toBase64, utf8 } from './bytes';
import { canonicalJson, JsonObject, OtherNumber, parseCanonicalObject, parseJson } from './json';
import { canonical, errorOf, Random, refuses } from './testing/tools';

const OPTIONS = { where: 'test', depthMax: 16 };

test('reads what JSON.parse reads', () => {
  const text = ' {"a": [1, -2.5e3, true, null, "\\u00e9\\n\\ud83d\\ude00\\/"], "b": {"c": {}}, "d": [] }\r\n\t';
  expect(plain(parseJson(text, OPTIONS))).toEqual(JSON.parse(text));
});

function plain(json: unknown): unknown {
  if (json instanceof JsonObject) return Object.fromEntries(json.members.map(([key, value]) => [key, plain(value)]));
  if (json instanceof OtherNumber) return Number(json.text);
  return json instanceof Array ? json.map(plain) : json;
}

test('keeps members that come twice', () => {
  const json = parseJson('{"a":1,"a":2}', OPTIONS) as JsonObject;
  expect(json.members).toEqual([
    ['a', 1],
    ['a', 2],
  ]);
});

test('refuses what is no JSON, and what readers take differently', () => {
  const bad = [
    '',
    ' ',
    '{',
    '[1',
    '[1,]',
    '{"a"}',
    '{"a":}',
    '{a:1}',
    '{"a":1,}',
    '01',
    '1.',
    '.5',
    '+1',
    '--1',
    '1e',
    '0x1',
    'NaN',
    'Infinity',
    '1e400',
    'tru',
    'nulll',
    '"',
    '"\\x"',
    '"\\u12"',
    '"\\u12g4"',
    '"a\nb"',
    '"\u0000"',
    '"\\ud800"',
    '"\\ud800\\u0041"',
    '"\\udc00"',
    '1 2',
    '{} x',
    '{}\u0000',
    "'a'",
    '[1 2]',
    '// x\n1',
    '\u00a01',
  ];
  for (const text of bad) expect(errorOf(() => parseJson(text, OPTIONS)).kind, text).toBe('malformed');
  expect(errorOf(() => parseJson(Uint8Array.of(0x22, 0xff, 0x22), OPTIONS)).message).toContain('UTF-8');
  expect(errorOf(() => parseJson('"\ud800"', OPTIONS)).message).toContain('UTF-8');
});

test('goes so deep and no deeper', () => {
  expect(refuses(() => parseJson('['.repeat(16) + ']'.repeat(16), OPTIONS))).toBe(false);
  expect(errorOf(() => parseJson('['.repeat(17) + ']'.repeat(17), OPTIONS)).message).toContain('16 deep');
  expect(errorOf(() => parseJson('['.repeat(100000), OPTIONS)).kind).toBe('malformed');
});

test('canonical form: the examples of RFC 8785 and of base/canonical_json_test.cc', () => {
  // RFC 8785 section 3.2.3: names by UTF-16 code units.
  const names = { '\u20ac': 1, '\r': 2, '\ufb33': 3, '1': 4, '\ud83d\ude00': 5, '\u0080': 6, '\u00f6': 7 };
  const text = canonical(names);
  expect(Object.keys(JSON.parse(text.replaceAll('"1"', '"one"')) as object)).toEqual([
    '\r',
    'one',
    '\u0080',
    '\u00f6',
    '\u20ac',
    '\ud83d\ude00',
    '\ufb33',
  ]);
  expect(canonical({ numbers: [333333333.33333329, 1e30, 4.5, 2e-3, 0.000000000000000000000000001] })).toBe(
    '{"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27]}',
  );
  expect(refuses(() => parseCanonicalObject(text, OPTIONS))).toBe(false);
});

test('takes the canonical form and nothing else', () => {
  const good = '{"a":1e-7,"b":["\\n",0.5,{"c":null}]}';
  expect(refuses(() => parseCanonicalObject(good, OPTIONS))).toBe(false);
  const bad = [
    '[]',
    '1',
    'null',
    `${good} `,
    ` ${good}`,
    `\ufeff${good}`,
    '{"b":1,"a":1}',
    '{"a":1,"a":1}',
    '{"a": 1}',
    '{"a":1.0}',
    '{"a":1e2}',
    '{"a":-0}',
    '{"a":0.50}',
    '{"a":9007199254740993}',
    '{"a":18446744073709551615}',
    '{"a":"\\u0041"}',
    '{"a":"\\/"}',
    '{"a":"\\u000a"}',
    '{"a":"\\u001F"}',
    '{"a":1E-7}',
  ];
  for (const text of bad) expect(errorOf(() => parseCanonicalObject(text, OPTIONS)).kind, text).toBe('malformed');
  expect(refuses(() => parseCanonicalObject('{"a":"\\u001f\u007f\u2028"}', OPTIONS))).toBe(false);
});

test('64-bit integers only where they are allowed', () => {
  const text = '{"a":72057594037927936}';
  expect(errorOf(() => parseCanonicalObject(text, OPTIONS)).kind).toBe('malformed');
  expect(parseCanonicalObject(text, OPTIONS, '64').get('a')).toBe(2n ** 56n);
  for (const other of [
    '{"a":072057594037927936}',
    '{"a":7205759403792793600000}',
    '{"a":-72057594037927937}',
    '{"a":72057594037927936.0}',
  ]) {
    expect(
      refuses(() => parseCanonicalObject(other, OPTIONS, '64')),
      other,
    ).toBe(true);
  }
});

test('what cannot be printed is an error', () => {
  expect(refuses(() => canonicalJson(new OtherNumber('1.0'), 'test'))).toBe(true);
  expect(refuses(() => canonicalJson(2n ** 60n, 'test'))).toBe(true);
});

test('base64 as base/encoding.h reads it', () => {
  const random = new Random(7);
  for (let n = 0; n < 200; ++n) {
    const bytes = random.bytes(n);
    const text = Buffer.from(bytes).toString('base64');
    expect(toBase64(bytes)).toBe(text);
    for (const form of [text, text.replace(/=+$/, ''), text.replaceAll('+', '-').replaceAll('/', '_')])
      expect(fromBase64(form)).toEqual(bytes);
    expect(fromStandardBase64(text)).toEqual(bytes);
  }
  for (const bad of [
    'A',
    'AAAAA',
    '=',
    '====',
    'A===',
    'AB==',
    'AAB=',
    'A!==',
    'AA=A',
    '+-==',
    'AAA==',
    'AA==AA==',
    'AQ=',
    'é===',
    'AA\n=',
  ]) {
    expect(fromBase64(bad), bad).toBeNull();
  }
  expect(fromStandardBase64('AQ')).toBeNull();
  expect(fromStandardBase64('-_-_')).toBeNull();
});

test("random changes throw nothing but the library's error", () => {
  const random = new Random(11);
  const text = utf8('{"a":[1,2.5,"x\\n",{"b":null,"c":true}],"d":"\u00e9\ud83d\ude00"}');
  let refused = 0;
  for (let n = 0; n < 3000; ++n) {
    const mutated = random.mutate(text);
    if (refuses(() => parseJson(mutated, OPTIONS))) ++refused;
    refuses(() => parseCanonicalObject(mutated, OPTIONS));
  }
  expect(refused).toBeGreaterThan(1000);
});
