// SPDX-License-Identifier: Apache-2.0
//
// The committed ids of tests/data/tokenizer/peer_ids.json, made by the peers alone: of hard texts in full, of the built-in
// sample's documents as their number and the SHA-256 of the ids as little-endian u32.
import { createHash } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { firstDifference, readExports, sameIds } from './ids.mjs';
import { makePeers } from './peers.mjs';

function summary(ids) {
  const bytes = Buffer.alloc(4 * ids.length);
  ids.forEach((id, i) => bytes.writeUInt32LE(id, 4 * i));
  return { tokens: ids.length, sha256: createHash('sha256').update(bytes).digest('hex') };
}

// What all peers give; they must agree.
async function agreedIds(peers, name, text) {
  let ids;
  for (const peer of peers) {
    const theirs = Array.from(await peer.encode(text));
    if (ids && !sameIds(ids, theirs)) {
      throw new Error(`${name}: ${peers[0].name} and ${peer.name} differ at ${firstDifference(ids, theirs)}`);
    }
    ids = theirs;
  }
  return ids;
}

// write: makes the file anew for the texts that it has.
export async function checkVectors({ ranks, json, vectors, sample, write }) {
  const peers = await makePeers(readExports({ ranks, json }));
  const before = readFileSync(vectors, 'utf8');
  const cases = [];
  for (const { text } of JSON.parse(before).cases) {
    cases.push({ text, ids: await agreedIds(peers, JSON.stringify(text), text) });
  }
  const documents = [];
  for (const line of readFileSync(join(sample, 'web.jsonl'), 'utf8').split('\n').filter(Boolean)) {
    const { id, text } = JSON.parse(line);
    documents.push({ id, ...summary(await agreedIds(peers, id, text)) });
  }
  const made_by = Object.fromEntries(peers.map((peer) => [peer.name, peer.version]));
  const ascii = (value) =>
    JSON.stringify(value).replace(/[^ -~]/g, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`);
  const lines = (entries) => `[\n${entries.map(ascii).join(',\n')}]`;
  const after = `{"made_by":${JSON.stringify(made_by)},\n"cases":${lines(cases)},\n"sample":${lines(documents)}}\n`;
  if (write) writeFileSync(vectors, after);
  const same = write || after === before;
  console.log(
    `${vectors}: ${cases.length} texts and ${documents.length} documents by ${peers.length} peers, ` +
      `${write ? 'written' : same ? 'as committed' : 'not as committed'}`,
  );
  return same;
}
