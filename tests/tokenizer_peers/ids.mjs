// SPDX-License-Identifier: Apache-2.0
//
// Token ids side by side.
import { readFileSync } from 'node:fs';

// The texts of the files that `lockstep tokenizer export` wrote.
export const readExports = ({ ranks, json }) => ({
  ranks: readFileSync(ranks, 'utf8'), json: readFileSync(json, 'utf8'),
});

export const sameIds = (a, b) => a.length === b.length && a.every((id, i) => id === b[i]);

// Where two lists part, for a message.
export function firstDifference(ours, theirs) {
  let i = 0;
  while (i < ours.length && ours[i] === theirs[i]) ++i;
  const show = (ids) => `${ids.slice(i, i + 5)} (of ${ids.length})`;
  return `token ${i}: ${show(ours)} against ${show(theirs)}`;
}
