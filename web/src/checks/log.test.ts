// SPDX-License-Identifier: Apache-2.0
//
// Notes, heads, receipts and tiles: the examples of golang.org/x/mod/sumdb/note and of the C2SP pages, as in audit/log/*_test.cc, and the
// log that the real coordinator of the fixture signed.
import { expect, test } from 'vitest';
import { fromBase64, toBase64, toHex, utf8 } from './bytes';
import { leafHash } from './entry';
import { checkConsistency, checkInclusion, openCheckpoint, openReceipt, parseCheckpointText, parseReceipt } from './log';
import { leafDigest, MerkleFrontier, merkleRoot, nodeDigest } from './merkle';
import { logKeyText, parseLogKey, parseSignedNote, verifyNote } from './note';
import { Fixture, FIXTURE } from './testing/fixture';
import { errorOf, errorOfAsync, hex, Random, refuses, TestKey } from './testing/tools';
import { parseEntryBundle, tilePath } from './tiles';
import type { FetchTile, LogCheckpoint } from './types';

const PETER = 'PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW';
const TEXT = "If you think cryptography is the answer to your problem,\nthen you don't know what your problem is.\n";
const LINE = '\u2014 PeterNeumann x08go/ZJkuBS9UG/SffcvIAQxVBtiFupLLr8pAcElZInNIuGUgYN1FFYC2pZSNXgKvqfqdngotpRZb6KE6RyyBwJnAM=\n';
const NOTE = `${TEXT}\n${LINE}`;
const peter = new TestKey(fromBase64('AYEKFALVFGyNhPJEMzD1QIDr+Y7hfZx09iUvxdXHKDFz')!.subarray(1));
const fixture = new Fixture(FIXTURE);

/** A note of this text, signed under this name. */
function signed(text: string, name: string, key: TestKey): string {
  const id = hex(parseLogKey(logKeyText(name, key.publicKey)).text.split('+')[1]!);
  return `${text}\n\u2014 ${name} ${toBase64(Uint8Array.from([...id, ...key.sign(utf8(text))]))}\n`;
}

test('a key is as others write it, and no other text is one', () => {
  const key = parseLogKey(PETER);
  expect(key).toEqual({ name: 'PeterNeumann', key: peter.publicKey, text: PETER });
  expect(logKeyText(key.name, key.key)).toBe(PETER);
  for (let begin = 0; begin <= PETER.length; ++begin) {
    for (let end = begin; end <= PETER.length; ++end) {
      if (end - begin < PETER.length) expect(refuses(() => parseLogKey(PETER.slice(begin, end)))).toBe(true);
    }
  }
  for (let i = 0; i < PETER.length; ++i) {
    const other = PETER.slice(0, i) + String.fromCharCode(PETER.charCodeAt(i) + 1) + PETER.slice(i + 1);
    expect(
      refuses(() => parseLogKey(other)),
      other,
    ).toBe(true);
  }
  for (const bad of [
    'PeterNeumann+cc469956+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TWBADKEY==',
    'PeterNeumann+173116ae+ZRpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW',
    'PeterNeumann+C74F20A3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW',
  ]) {
    expect(errorOf(() => parseLogKey(bad)).kind, bad).toBe('malformed');
  }
  expect(errorOf(() => parseLogKey(logKeyText('weak', '00'.repeat(32)))).kind).toBe('key');
});

test("Go's example verifies; each byte of it matters", () => {
  const key = parseLogKey(PETER);
  const note = parseSignedNote(NOTE);
  expect(note.text).toBe(TEXT);
  verifyNote(note, key);
  for (let i = 0; i + 1 < TEXT.length; ++i) {
    const text = TEXT.slice(0, i) + String.fromCharCode(TEXT.charCodeAt(i) ^ 1) + TEXT.slice(i + 1);
    expect(errorOf(() => verifyNote({ ...note, text }, key)).kind).toBe('signature');
  }
  expect(signed(TEXT, 'PeterNeumann', peter)).toBe(NOTE);
});

test("others' signatures are passed over, and a wrong one of its own spoils a note", () => {
  const key = parseLogKey(PETER);
  const note = parseSignedNote(NOTE);
  const good = note.signatures[0]!;
  const wrong = { ...good, bytes: good.bytes.map((byte, i) => (i === 63 ? byte ^ 1 : byte)) };
  verifyNote({ ...note, signatures: [{ ...wrong, name: 'another' }, good] }, key);
  verifyNote({ ...note, signatures: [{ ...wrong, keyId: 'c74f20a2' }, good] }, key);
  for (const signatures of [[good, wrong], [wrong, good], [], [{ ...good, name: 'another' }]]) {
    expect(errorOf(() => verifyNote({ ...note, signatures }, key)).kind).toBe('signature');
  }
});

test('other forms of notes are refused', () => {
  const bad = [
    '',
    '\n',
    '\n\n',
    TEXT,
    `${TEXT}\n`,
    LINE,
    NOTE.slice(0, -1),
    `${NOTE}\n`,
    `${NOTE}x`,
    NOTE.replace('think', 'th\tink'),
    NOTE.replace('think', 'th\0ink'),
    NOTE.replace('think', 'th\rink'),
    NOTE.replace('think', 'th\ud800ink'),
    NOTE.replace('\u2014 ', '- '),
    NOTE.replace(' PeterNeumann ', '  '),
    NOTE.replace(' PeterNeumann', ' Peter+Neumann'),
    NOTE.replace(' PeterNeumann', ' Peter\u2003Neumann'),
    NOTE.replace('nAM=', 'nAM'),
    NOTE.replace('x08go/', 'x08go_'),
    NOTE.replace('PeterNeumann x08', 'PeterNeumann  x08'),
    `${TEXT}\n\u2014 a AAAAAA==\n`,
    `${'a'.repeat(70000)}\n\n${LINE}`,
    `${TEXT}\n${LINE.repeat(65)}`,
  ];
  for (const note of bad) expect(errorOf(() => parseSignedNote(note)).kind, note.slice(0, 300)).toBe('malformed');
  expect(refuses(() => parseSignedNote(`${TEXT}\n${LINE.repeat(64)}`))).toBe(false);
});

test('the examples of C2SP', () => {
  const note = parseSignedNote(
    'Ognuno sta solo sul cuor della terra\ntrafitto da un raggio di sole:\n\ned \u00e8 subito sera.\n\n' +
      '\u2014 quasimodo.example/salvatore NnugSzTjtVAewIS+Z/iJhUPeFDkO/5QQ2i5ddnGITLlC+EhfLW9oJKONrMouFSQU0xMcXxj99ihAQwaqP3ZekRwNtIc=\n',
  );
  expect(note.text).toContain('sole:\n\ned');
  expect(note.signatures[0]!.keyId).toBe('367ba04b');
  const head = parseSignedNote(
    'example.com/behind-the-sofa\n20852163\nCsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I=\n\n\u2014 example.com/behind-the-sofa ' +
      'Az3grlgtzPICa5OS8npVmf1Myq/5IZniMp+ZJurmRDeOoRDe4URYN7u5/Zhcyv2q1gGzGku9nTo+zyWE+xeMcTOAYQ8=\n',
  );
  const checkpoint = parseCheckpointText(head.text);
  expect(checkpoint.origin).toBe('example.com/behind-the-sofa');
  expect(checkpoint.size).toBe(20852163);
  expect(toBase64(hex(checkpoint.root))).toBe('CsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I=');
});

test('heads: what their key signed, and of its own log', () => {
  const root = toBase64(new Uint8Array(32).fill(7));
  const text = `example.com/log\n9\n${root}\n`;
  const note = signed(text, 'example.com/log', peter);
  const key = parseLogKey(logKeyText('example.com/log', peter.publicKey));
  expect(openCheckpoint(note, key)).toEqual({ origin: 'example.com/log', size: 9, root: '07'.repeat(32), note });
  expect(errorOf(() => openCheckpoint(note.replace('\n9\n', '\n8\n'), key)).kind).toBe('signature');
  const other = parseLogKey(logKeyText('example.com/other', peter.publicKey));
  expect(errorOf(() => openCheckpoint(note, other)).kind).toBe('signature');
  expect(errorOf(() => openCheckpoint(signed(text, 'example.com/other', peter), other)).message).toContain('example.com/log');
  expect(parseCheckpointText(`log\n0\n${root}\nextension\n`).size).toBe(0);
  for (const bad of [
    '',
    '\n',
    'log\n',
    'log\n9\n',
    `log\n9\n${root}`,
    `\n9\n${root}\n`,
    `log\n09\n${root}\n`,
    `log\n+9\n${root}\n`,
    `log\n 9\n${root}\n`,
    `log\n-1\n${root}\n`,
    `log\n9007199254740992\n${root}\n`,
    `log\n1e3\n${root}\n`,
    `log\n9\n${root}\n\n`,
    `log\n9\n${root.slice(4)}\n`,
    `log\n9\nAAAA${root}\n`,
    `log\n9\n${root.slice(0, -1)}\n`,
  ]) {
    expect(errorOf(() => parseCheckpointText(bad)).kind, bad).toBe('malformed');
  }
});

test('the form of tlog-proofs', () => {
  const text =
    'c2sp.org/tlog-proof@v1\nextra YWdl\nindex 73894\nAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE=\n' +
    'AgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgI=\n\nexample.com/fancylog\n';
  expect(parseReceipt(text)).toEqual({ index: 73894, hashes: ['01'.repeat(32), '02'.repeat(32)], checkpoint: 'example.com/fancylog\n' });
  expect(parseReceipt('c2sp.org/tlog-proof@v1\nindex 0\n\nexample.com/fancylog\n')).toEqual({
    index: 0,
    hashes: [],
    checkpoint: 'example.com/fancylog\n',
  });
  const changes: readonly (readonly [string, string])[] = [
    ['@v1', '@v2'],
    ['extra YWdl', 'extra YWd'],
    ['extra ', 'extra'],
    ['index 7', 'index 07'],
    ['index 7', 'index -7'],
    ['index 7', 'index  7'],
    ['index 73894\n', ''],
    ['AQE=', 'AQE'],
    ['AQEBAQEB', ''],
    ['\n\nexample', '\nexample'],
    ['73894', '18446744073709551616'],
  ];
  for (const [from, to] of changes) expect(errorOf(() => parseReceipt(text.replace(from, to))).kind, to).toBe('malformed');
  expect(refuses(() => parseReceipt(''))).toBe(true);
  const hash = 'AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE=\n';
  expect(refuses(() => parseReceipt(`c2sp.org/tlog-proof@v1\nindex 0\n${hash.repeat(64)}\nx\n`))).toBe(false);
  expect(refuses(() => parseReceipt(`c2sp.org/tlog-proof@v1\nindex 0\n${hash.repeat(65)}\nx\n`))).toBe(true);
});

test('paths of tiles', () => {
  const full = 2 ** 52;
  expect(tilePath(0, 1234067, full)).toBe('tile/0/x001/x234/067');
  expect(tilePath(0, 0, full)).toBe('tile/0/000');
  expect(tilePath(1, 999, 999 * 65536 + 256)).toBe('tile/1/999.p/1');
  expect(tilePath(null, 273, 70000)).toBe('tile/entries/273.p/112');
  expect(tilePath(0, 273, 70000)).toBe('tile/0/273.p/112');
  expect(tilePath(1, 1, 70000)).toBe('tile/1/001.p/17');
  expect(tilePath(2, 0, 70000)).toBe('tile/2/000.p/1');
  expect(tilePath(2, 1, 70000)).toBeNull();
  expect(tilePath(0, 0, 0)).toBeNull();
  expect(tilePath(0, 1000, full)).toBe('tile/0/x001/000');
});

test('bundles of entries', () => {
  const bytes = Uint8Array.of(0, 1, 97, 0, 0, 0, 2, 98, 99);
  expect(parseEntryBundle(bytes, 3).map((entry) => Buffer.from(entry).toString())).toEqual(['a', '', 'bc']);
  for (const count of [0, 2, 4]) expect(errorOf(() => parseEntryBundle(bytes, count)).kind).toBe('malformed');
  for (let size = 0; size < bytes.length; ++size) expect(refuses(() => parseEntryBundle(bytes.subarray(0, size), 3))).toBe(true);
});

/** A log of these leaves, in memory: its tiles, partial ones too. */
function tilesOf(leaves: readonly Uint8Array[], size: number): Map<string, Uint8Array> {
  const tiles = new Map<string, Uint8Array>();
  let hashes = leaves.slice(0, size);
  for (let level = 0; hashes.length > 0; ++level) {
    for (let index = 0; index * 256 < hashes.length; ++index) {
      const tile = hashes.slice(index * 256, (index + 1) * 256);
      tiles.set(tilePath(level, index, size)!, Uint8Array.from(tile.flatMap((hash) => [...hash])));
    }
    hashes = Array.from({ length: Math.floor(hashes.length / 256) }, (_, i) => merkleRoot(hashes.slice(i * 256, (i + 1) * 256)));
  }
  return tiles;
}
const leaves = Array.from({ length: 70000 }, (_, i) => leafDigest(utf8(String(i))));
const roots = new Map<number, string>();
{
  const frontier = new MerkleFrontier();
  for (const [i, leaf] of leaves.entries()) {
    frontier.append(leaf);
    if (i < 1100 || i > 65500) roots.set(i + 1, toHex(frontier.root()));
  }
}
function headOf(size: number): LogCheckpoint {
  return { origin: 'log', size, root: roots.get(size) ?? toHex(merkleRoot([])), note: '' };
}
function from(tiles: ReadonlyMap<string, Uint8Array>): FetchTile {
  return (path) => {
    const bytes = tiles.get(path);
    return bytes === undefined ? Promise.reject(new Error('404')) : Promise.resolve(bytes);
  };
}

test('heads of one log go on from one another, by its tiles', async () => {
  for (const size of [1, 2, 3, 255, 256, 257, 700, 1024, 65536, 65537, 70000]) {
    const tiles = from(tilesOf(leaves, size));
    for (const old of [0, 1, 2, 3, 5, 127, 255, 256, 257, 511, 512, 700, 1000, 65535, 65536, 69999, 70000]) {
      if (old > size || (old > 0 && !roots.has(old))) continue;
      await checkConsistency(headOf(old), headOf(size), tiles);
      if (old === 0) continue;
      const forged = { ...headOf(old), root: toHex(nodeDigest(leaves[0]!, leaves[1]!)) };
      if (old !== 2) expect((await errorOfAsync(() => checkConsistency(forged, headOf(size), tiles))).kind, `${old} ${size}`).toBe('proof');
    }
  }
});

test('a log that was rewritten is found out, whatever tiles it shows', async () => {
  const other = leaves.slice(0, 700);
  other[5] = leafDigest(utf8('another'));
  const honest = tilesOf(leaves, 700);
  const rewritten = tilesOf(other, 700);
  const newHead = { origin: 'log', size: 700, root: toHex(merkleRoot(other)), note: '' };
  for (const tiles of [honest, rewritten]) {
    expect((await errorOfAsync(() => checkConsistency(headOf(300), newHead, from(tiles)))).kind).toBe('proof');
  }
  // Level 0 of one and level 1 of the other.
  const mixed = new Map([...honest].map(([path, bytes]) => [path, path.startsWith('tile/1/') ? rewritten.get(path)! : bytes]));
  expect((await errorOfAsync(() => checkConsistency(headOf(300), newHead, from(mixed)))).kind).toBe('proof');
  const used = new Set<string>();
  await checkConsistency(headOf(300), headOf(700), (path) => from(honest)(path).finally(() => used.add(path)));
  expect(used.size).toBeGreaterThan(1);
  for (const path of used) {
    const changed = new Map(honest).set(
      path,
      honest.get(path)!.map((byte, i) => (i % 32 === 7 ? byte ^ 1 : byte)),
    );
    expect((await errorOfAsync(() => checkConsistency(headOf(300), headOf(700), from(changed)))).kind, path).toBe('proof');
  }
});

test('what heads cannot be, and what tiles cannot be had', async () => {
  const tiles = tilesOf(leaves, 700);
  expect((await errorOfAsync(() => checkConsistency(headOf(700), headOf(300), from(tiles)))).kind).toBe('proof');
  expect((await errorOfAsync(() => checkConsistency(headOf(700), { ...headOf(700), root: roots.get(300)! }, from(tiles)))).kind).toBe(
    'proof',
  );
  expect((await errorOfAsync(() => checkConsistency({ ...headOf(3), origin: 'x' }, headOf(700), from(tiles)))).kind).toBe('proof');
  expect((await errorOfAsync(() => checkConsistency(headOf(3), headOf(700), from(new Map())))).kind).toBe('unavailable');
  const short = new Map([...tiles].map(([path, bytes]) => [path, bytes.subarray(1)]));
  expect((await errorOfAsync(() => checkConsistency(headOf(3), headOf(700), from(short)))).kind).toBe('malformed');
  const abort = new AbortController();
  abort.abort();
  expect((await errorOfAsync(() => checkConsistency(headOf(3), headOf(700), from(tiles), abort.signal))).kind).toBe('cancelled');
  // A partial tile that gave way to the full one.
  const grown = tilesOf(leaves, 1024);
  await checkConsistency(
    headOf(300),
    headOf(700),
    from(
      new Map(
        [...grown]
          .filter(([path]) => !path.includes('.p/') || path.startsWith('tile/1'))
          .concat([...tiles].filter(([path]) => path.startsWith('tile/1'))),
      ),
    ),
  );
});

test('entries are in the log, by its tiles', async () => {
  for (const size of [1, 2, 700, 70000]) {
    const tiles = from(tilesOf(leaves, size));
    for (const index of [0, 1, 255, 256, 511, 699, 65535, 69999]) {
      const leaf = toHex(leaves[index]!);
      if (index < size) await checkInclusion(leaf, index, headOf(size), tiles);
      else expect((await errorOfAsync(() => checkInclusion(leaf, index, headOf(size), tiles))).kind).toBe('proof');
      if (size > 2) expect((await errorOfAsync(() => checkInclusion(leaf, (index + 1) % size, headOf(size), tiles))).kind).toBe('proof');
    }
  }
});

test('the real log: head, an earlier head, every entry, receipts', async () => {
  const { file, logKey } = fixture;
  const head = openCheckpoint(file.checkpoint, logKey);
  const early = openCheckpoint(file.earlyCheckpoint, logKey);
  expect(head.size).toBe(file.entries.length);
  expect(early.size).toBeLessThan(head.size);
  expect(toHex(merkleRoot(file.entries.map((entry) => leafDigest(utf8(entry)))))).toBe(head.root);
  await checkConsistency(early, head, fixture.fetchTile);
  for (const [index, entry] of file.entries.entries()) await checkInclusion(leafHash(entry), index, head, fixture.fetchTile);
  expect(file.receipts.length).toBeGreaterThan(2);
  for (const { entry, proof } of file.receipts) {
    const { index, checkpoint } = openReceipt(proof, leafHash(entry), logKey);
    expect(file.entries[index]).toBe(entry);
    await checkConsistency(checkpoint, head, fixture.fetchTile);
    expect(refuses(() => openReceipt(proof, leafHash(`${entry} `), logKey))).toBe(true);
    for (let at = 0; at < proof.length; at += 7) {
      const code = proof.charCodeAt(at);
      const changed = proof.slice(0, at) + String.fromCharCode(code ^ 1) + proof.slice(at + 1);
      expect(
        refuses(() => openReceipt(changed, leafHash(entry), logKey)),
        `${at}`,
      ).toBe(true);
    }
  }
});

test("random changes throw nothing but the library's error", () => {
  const random = new Random(17);
  const { proof, entry } = fixture.file.receipts[0]!;
  for (let n = 0; n < 500; ++n) {
    const mutate = (text: string): string => Buffer.from(random.mutate(utf8(text))).toString('latin1');
    refuses(() => openReceipt(mutate(proof), leafHash(entry), fixture.logKey));
    refuses(() => openCheckpoint(mutate(fixture.file.checkpoint), fixture.logKey));
    refuses(() => parseLogKey(mutate(fixture.file.logKey)));
  }
});
