// SPDX-License-Identifier: Apache-2.0
//
// The code points of Unicode between neighbours that show, in the ids, which class the splitter takes it for; with a
// vocabulary made for that. Where a peer differs, the code point must be one that our Unicode version leaves unassigned.
import { spawnSync } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { sameIds } from './ids.mjs';
import { makePeers } from './peers.mjs';

// What stands before the code point in probeText. Each has a token with every byte that can come after it, so that the ids
// tell whether both were in one piece.
const NEIGHBOURS = ['a', '!', '1', ' ', "'"];
const NEWLINE = 10;  // the id of a line end
const BLOCK = 4096;  // code points a text

// The 256 bytes, then each neighbour with each byte, as a rank file.
function probeRanks() {
  const tokens = Array.from({ length: 256 }, (_, byte) => Buffer.from([byte]));
  for (const neighbour of NEIGHBOURS) {
    for (let byte = 0; byte < 256; ++byte) tokens.push(Buffer.from([neighbour.charCodeAt(0), byte]));
  }
  return tokens.map((token, rank) => `${token.toString('base64')} ${rank}\n`).join('');
}

// Ends in two line ends, and nowhere else has two.
function probeText(code) {
  const c = String.fromCodePoint(code);
  return `a${c}!${c}1${c} ${c}1'${c}a ${c}${c}!x\n\n`;
}

// Every code point of the planes that have characters, but surrogates and the two line ends; every 61st of the other planes,
// which are unassigned or for private use. In blocks.
function blocksOfCodePoints() {
  const blocks = [[]];
  for (let code = 0; code < 0x110000; ++code) {
    const plane = code >> 16;
    if (code === 0xa || code === 0xd || (code >= 0xd800 && code < 0xe000)) continue;
    if (plane > 3 && plane !== 14 && code % 61 !== 0) continue;
    if (blocks.at(-1).length === BLOCK) blocks.push([]);
    blocks.at(-1).push(code);
  }
  return blocks;
}

// The ids of each text of a block.
function idsOfEach(ids) {
  const parts = [];
  let begin = 0;
  for (let i = 1; i < ids.length; ++i) {
    if (ids[i - 1] !== NEWLINE || ids[i] !== NEWLINE) continue;
    parts.push(ids.slice(begin, i + 1));
    begin = i + 1;
  }
  return parts;
}

// Ours for every text, by way of the rank file; leaves probe.json in the folder.
function encodeOurs(lockstep, folder, ranks, texts) {
  const run = (...args) => {
    const done = spawnSync(lockstep, ['tokenizer', ...args], { encoding: 'utf8', maxBuffer: 1 << 30 });
    if (done.status !== 0) throw new Error(`${lockstep} tokenizer ${args[0]}: ${done.stderr || done.error}`);
    return done.stdout;
  };
  const at = (name) => join(folder, name);
  writeFileSync(at('probe.tiktoken'), ranks);
  run('import', '--format', 'tiktoken', at('probe.tiktoken'), '--out', at('probe.tokenizer'));
  run('export', '--tokenizer', at('probe.tokenizer'), '--format', 'huggingface', '--out', at('probe.json'));
  const paths = texts.map((text, i) => {
    writeFileSync(at(`probe-${i}.txt`), text);
    return at(`probe-${i}.txt`);
  });
  const lines = run('encode', '--tokenizer', at('probe.tokenizer'), '--json', ...paths).trim().split('\n');
  return lines.map((line) => JSON.parse(line).ids);
}

const hex = (code) => code.toString(16).toUpperCase().padStart(4, '0');

function asRanges(codes) {
  const ranges = [];
  for (const code of codes) {
    if (ranges.length > 0 && ranges.at(-1)[1] === code - 1) ranges.at(-1)[1] = code;
    else ranges.push([code, code]);
  }
  return ranges.map(([first, last]) => (first === last ? hex(first) : `${hex(first)}–${hex(last)}`)).join(' ');
}

async function differingCodes(peer, blocks, texts, ours) {
  const differing = [];
  for (let b = 0; b < blocks.length; ++b) {
    const theirs = await peer.encode(texts[b]);
    if (sameIds(ours[b], theirs)) continue;
    const mine = idsOfEach(ours[b]);
    const others = idsOfEach(theirs);
    if (mine.length !== BLOCK && b + 1 < blocks.length) throw new Error('a text has two line ends within');
    blocks[b].forEach((code, i) => {
      if (!others[i] || !sameIds(mine[i], others[i])) differing.push(code);
    });
  }
  return differing;
}

// unassigned: a file of ranges, "FIRST LAST" a line in hexadecimal, of what our Unicode version leaves unassigned.
export async function checkCharacters({ lockstep, folder, unassigned }) {
  mkdirSync(folder, { recursive: true });
  const open = readFileSync(unassigned, 'utf8').trim().split('\n')
    .map((line) => line.split(' ').map((word) => parseInt(word, 16)));
  const isOpen = (code) => open.some(([first, last]) => first <= code && code <= last);
  const ranks = probeRanks();
  const blocks = blocksOfCodePoints();
  const texts = blocks.map((block) => block.map(probeText).join(''));
  const ours = encodeOurs(lockstep, folder, ranks, texts);
  let failed = false;
  for (const peer of await makePeers({ ranks, json: readFileSync(join(folder, 'probe.json'), 'utf8') })) {
    const differing = await differingCodes(peer, blocks, texts, ours);
    const others = differing.filter((code) => !isOpen(code));
    console.log(
      `${peer.name}: ${blocks.flat().length} code points, ${differing.length - others.length} differ that Unicode 14 leaves ` +
        `unassigned, ${others.length} others${others.length > 0 ? `: ${asRanges(others)}` : ''}`,
    );
    writeFileSync(join(folder, `${peer.name.replace('/', '-')}.differing.txt`), `${asRanges(differing)}\n`);
    failed ||= others.length > 0;
  }
  return !failed;
}
