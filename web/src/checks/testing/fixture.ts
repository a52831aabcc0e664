// SPDX-License-Identifier: Apache-2.0
//
// For tests: the fixture that make_fixture.py made with the real programs, and what serves its files.
import { readFileSync } from 'node:fs';
import { gunzipSync } from 'node:zlib';
import { parseEntry, parseLogKey } from '../index';
import type { EntryKind, FetchArtifact, FetchTile, LogEntry, LogKey } from '../types';

export interface FixtureFile {
  readonly logKey: string;
  readonly checkpoint: string;
  readonly earlyCheckpoint: string;
  readonly steps: number;
  readonly cheatedStep: number;
  readonly entries: readonly string[];
  readonly tiles: Readonly<Record<string, string>>;
  readonly receipts: readonly { readonly entry: string; readonly proof: string }[];
  readonly artifacts: Readonly<Record<string, string>>;
  /** What `lockstep corpus trace --json` says of each step. */
  readonly traces: readonly Trace[];
}
export interface Trace {
  readonly windows: readonly {
    readonly window: number;
    readonly spans: readonly {
      readonly source: string;
      readonly shard: number;
      readonly document: number;
      readonly begin: number;
      readonly end: number;
      readonly name: string;
    }[];
  }[];
}

export class Fixture {
  readonly file: FixtureFile;
  readonly logKey: LogKey;
  readonly entries: readonly LogEntry[];
  readonly artifacts: Map<string, Uint8Array>;
  readonly tiles: Map<string, Uint8Array>;
  /** What was fetched. */
  readonly fetched: string[] = [];

  constructor(path: URL | string) {
    this.file = JSON.parse(gunzipSync(readFileSync(path)).toString('utf8')) as FixtureFile;
    this.logKey = parseLogKey(this.file.logKey);
    this.entries = this.file.entries.map(parseEntry);
    const decode = (files: Readonly<Record<string, string>>): Map<string, Uint8Array> =>
      new Map(Object.entries(files).map(([name, text]) => [name, new Uint8Array(Buffer.from(text, 'base64'))]));
    this.artifacts = decode(this.file.artifacts);
    this.tiles = decode(this.file.tiles);
  }

  of<Kind extends EntryKind>(kind: Kind): Extract<LogEntry, { kind: Kind }>[] {
    return this.entries.filter((entry): entry is Extract<LogEntry, { kind: Kind }> => entry.kind === kind);
  }

  readonly fetchArtifact: FetchArtifact = (sha256, range) => {
    this.fetched.push(range === undefined ? sha256 : `${sha256} ${range.begin}-${range.end}`);
    const bytes = this.artifacts.get(sha256);
    if (bytes === undefined) return Promise.reject(new Error(`404 ${sha256}`));
    return Promise.resolve(range === undefined ? bytes : bytes.subarray(range.begin, range.end));
  };
  readonly fetchTile: FetchTile = (path) => {
    this.fetched.push(path);
    const bytes = this.tiles.get(path);
    return bytes === undefined ? Promise.reject(new Error(`404 ${path}`)) : Promise.resolve(bytes);
  };
}

export const FIXTURE = new URL('fixture.json.gz', import.meta.url);
