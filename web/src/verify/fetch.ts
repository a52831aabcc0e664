// SPDX-License-Identifier: Apache-2.0
//
// What checks fetch by themselves: entries of the log, tiles, artifacts. All from the server that the page is from; every byte is checked
// by whoever asked for it.
import { ask, askJson } from '../api/client';
import type { LogEntryDetail } from '../api/types';
import type { FetchArtifact, FetchTile } from '../checks';

const kKept = 400;
const entries = new Map<number, Promise<LogEntryDetail>>();

// Entries do not change; their receipts only get newer.
export function fetchEntry(index: number): Promise<LogEntryDetail> {
  const known = entries.get(index);
  if (known !== undefined) return known;
  const asked = askJson<LogEntryDetail>(`/api/v1/log/entries/${index}`);
  entries.set(index, asked);
  asked.catch(() => entries.delete(index));
  for (const oldest of entries.keys()) {
    if (entries.size <= kKept) break;
    entries.delete(oldest);
  }
  return asked;
}

export const fetchTile: FetchTile = async (path, signal) => new Uint8Array(await (await ask(`/${path}`, signal)).arrayBuffer());

export const fetchArtifact: FetchArtifact = async (sha256, range, signal) => {
  const headers = range === undefined ? undefined : { Range: `bytes=${range.begin}-${range.end - 1}` };
  const answer = await ask(`/artifact/${sha256}`, signal, headers);
  const bytes = new Uint8Array(await answer.arrayBuffer());
  // A server that does not do ranges sends all of it.
  return range !== undefined && answer.status === 200 ? bytes.subarray(range.begin, range.end) : bytes;
};
