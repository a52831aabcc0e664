// SPDX-License-Identifier: Apache-2.0
//
// Tokenizer files: docs/tokenizer.md, "The file", all its rules; and decoding.
import { concat, fromStandardBase64, fromUtf8, fromUtf8Lenient, sha256Hex } from '../bytes';
import { CheckError } from '../errors';
import { throwIfCancelled } from '../pace';
import type { FetchArtifact, Hex, Tokenizer } from '../types';
import { Artifacts } from './artifacts';

const FILE_BYTES_MAX = 2 ** 26;
const ENTRIES_MAX = 2 ** 20;
const TOKEN_BYTES_MAX = 1024;

class FileTokenizer implements Tokenizer {
  readonly vocabSize: number;

  constructor(
    readonly sha256: Hex,
    private readonly entries: readonly Uint8Array[],
    private readonly ordinary: number,
    readonly endOfText: number,
  ) {
    this.vocabSize = entries.length;
  }

  tokenBytes(id: number): Uint8Array {
    const bytes = this.entries[id];
    if (bytes !== undefined) return bytes.slice();
    throw new CheckError('malformed', 'token', { expected: `an id below ${this.vocabSize}`, found: String(id) });
  }
  isSpecial(id: number): boolean {
    return id >= this.ordinary && id < this.vocabSize;
  }
  decode(ids: ArrayLike<number>, options: { readonly special?: boolean } = {}): string {
    const parts: Uint8Array[] = [];
    for (let i = 0; i < ids.length; ++i) {
      const bytes = this.entries[ids[i]!] ?? this.tokenBytes(ids[i]!);
      if (options.special === true || !this.isSpecial(ids[i]!)) parts.push(bytes);
    }
    return fromUtf8Lenient(concat(parts));
  }
}

class Lines {
  private number = 0;
  constructor(private readonly lines: readonly string[]) {}

  /** The next line's rest after these words. */
  after(words: string): string {
    const line = this.next();
    return line.startsWith(words) ? line.slice(words.length) : this.fail(`"${words}"`, 'something else');
  }
  count(name: string, most: number): number {
    const text = this.after(`${name} `);
    const value = /^(?:0|[1-9][0-9]{0,7})$/.test(text) ? Number(text) : NaN;
    return value <= most ? value : this.fail(`a number of at most ${most}`, 'something else');
  }
  entry(): Uint8Array {
    const bytes = fromStandardBase64(this.next());
    if (bytes !== null && bytes.length >= 1 && bytes.length <= TOKEN_BYTES_MAX) return bytes;
    return this.fail(`base64 of 1 to ${TOKEN_BYTES_MAX} bytes`, 'something else');
  }
  end(): void {
    if (this.number !== this.lines.length) this.fail('the end', 'more lines');
  }
  fail(expected: string, found: string): never {
    throw new CheckError('malformed', `tokenizer, line ${this.number}`, { expected, found });
  }
  private next(): string {
    const line = this.lines[this.number++];
    return line ?? this.fail('a line', 'the end');
  }
}

function latin1(bytes: Uint8Array): string {
  return String.fromCharCode(...bytes);
}

/** A tokenizer file. Throws "malformed" with the line. */
export function parseTokenizer(bytes: Uint8Array): Tokenizer {
  const text = bytes.length <= FILE_BYTES_MAX ? fromUtf8(bytes) : null;
  if (text === null || !text.endsWith('\n')) {
    throw new CheckError('malformed', 'tokenizer', {
      expected: `lines of ASCII, at most ${FILE_BYTES_MAX} bytes`,
      found: 'something else',
    });
  }
  const lines = new Lines(text.slice(0, -1).split('\n'));
  if (lines.after('lockstep-tokenizer ') !== '1') lines.fail('version 1', 'another');
  if (lines.after('split ') !== 'llama3-unicode14') lines.fail('the split llama3-unicode14', 'another');
  const ordinary = lines.count('tokens', ENTRIES_MAX);
  const special = lines.count('special', ENTRIES_MAX - ordinary);
  const endOfText = lines.count('end-of-text', ordinary + special - 1);
  if (endOfText < ordinary) lines.fail('the id of a special token', String(endOfText));
  const entries: Uint8Array[] = [];
  const seen = new Set<string>();
  for (let id = 0; id < ordinary + special; ++id) {
    const entry = lines.entry();
    if (id < 256 && id < ordinary && entry.length !== 1) lines.fail('a single byte', `${entry.length}`);
    if (id >= ordinary && fromUtf8(entry) === null) lines.fail('a name in UTF-8', 'bytes that are not');
    if (seen.size === seen.add(latin1(entry)).size) lines.fail("an entry that is no other's", 'one for the second time');
    entries.push(entry);
  }
  if (ordinary < 256) lines.fail('256 single bytes and more', `${ordinary} tokens`);
  lines.end();
  return new FileTokenizer(sha256Hex(bytes), entries, ordinary, endOfText);
}

/** A run's tokenizer: fetched, checked by its digest, parsed. Some megabytes for a large vocabulary: keep it. */
export async function fetchTokenizer(sha256: Hex, fetchArtifact: FetchArtifact, signal?: AbortSignal): Promise<Tokenizer> {
  const bytes = await new Artifacts(fetchArtifact, signal).whole(sha256, { what: 'tokenizer', bytesMax: FILE_BYTES_MAX });
  throwIfCancelled(signal);
  return parseTokenizer(bytes);
}
