// SPDX-License-Identifier: Apache-2.0
//
// A peer as the other side of a benchmark (engine/tokenizer/tokenizer_bench.cc): for each line on standard input, encodes all
// texts once on one thread and answers with a line, the number of tokens.
//
//   node speed.mjs PEER DIR     of DIR/ranks.tiktoken, DIR/tokenizer.json, and DIR/texts.json, an array of texts
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';

import { readExports } from './ids.mjs';
import { makePeer } from './peers.mjs';

const [name, folder] = process.argv.slice(2);
const peer = await makePeer(name, readExports({ ranks: join(folder, 'ranks.tiktoken'), json: join(folder, 'tokenizer.json') }));
const texts = JSON.parse(readFileSync(join(folder, 'texts.json'), 'utf8'));

for await (const line of createInterface({ input: process.stdin })) {
  if (line !== 'encode') break;
  process.stdout.write(`${await peer.count(texts)}\n`);
}
