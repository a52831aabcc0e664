// SPDX-License-Identifier: Apache-2.0
//
// Holds our token ids against those of the peers, token for token; the exit code is 1 if any differ. Called by
// scripts/check-tokenizer-peers, which makes the files that the options name.
//
//   node check.mjs corpus --ranks FILE --json FILE --ids FILE
//   node check.mjs characters --lockstep PROGRAM --folder DIR --unassigned FILE
//   node check.mjs vectors --ranks FILE --json FILE --vectors FILE --sample DIR [--write]
import { parseArgs } from 'node:util';

import { checkCharacters } from './characters.mjs';
import { checkCorpus } from './corpus.mjs';
import { checkVectors } from './vectors.mjs';

const CHECKS = { corpus: checkCorpus, characters: checkCharacters, vectors: checkVectors };
const names = ['ranks', 'json', 'ids', 'lockstep', 'folder', 'unassigned', 'vectors', 'sample'];
const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { ...Object.fromEntries(names.map((name) => [name, { type: 'string' }])), write: { type: 'boolean' } },
});
process.exitCode = (await CHECKS[positionals[0]](values)) ? 0 : 1;
