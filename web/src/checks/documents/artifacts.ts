// SPDX-License-Identifier: Apache-2.0
//
// Artifacts by their digests, through the caller's function: nothing is looked at before it is checked.
import { sha256Hex } from '../bytes';
import { CheckError } from '../errors';
import { fetching } from '../pace';
import type { FetchArtifact, Hex } from '../types';

export interface WholeOptions {
  /** For messages. */
  readonly what: string;
  /** Its size, if that is known. */
  readonly bytes?: number;
  readonly bytesMax: number;
}

export class Artifacts {
  bytesFetched = 0;

  constructor(
    private readonly fetchArtifact: FetchArtifact,
    readonly signal: AbortSignal | undefined,
  ) {}

  /** The whole artifact, whose digest is its name. Throws "unavailable", "too_large", "mismatch". */
  async whole(sha256: Hex, options: WholeOptions): Promise<Uint8Array> {
    const { what, bytesMax } = options;
    expectSize(what, options.bytes ?? 0, bytesMax);
    const bytes = await fetching(what, this.signal, () => this.fetchArtifact(sha256, undefined, this.signal));
    this.bytesFetched += bytes.length;
    expectSize(what, bytes.length, bytesMax);
    const found = sha256Hex(bytes);
    if (found !== sha256) throw new CheckError('mismatch', what, { expected: `bytes of SHA-256 ${sha256}`, found });
    return bytes;
  }

  /** A part of an artifact: as many bytes as were asked for, and unchecked. */
  async part(sha256: Hex, what: string, begin: number, end: number): Promise<Uint8Array> {
    const bytes = await fetching(what, this.signal, () => this.fetchArtifact(sha256, { begin, end }, this.signal));
    this.bytesFetched += bytes.length;
    if (bytes.length !== end - begin)
      throw new CheckError('mismatch', what, { expected: `${end - begin} bytes`, found: String(bytes.length) });
    return bytes;
  }
}

function expectSize(what: string, bytes: number, bytesMax: number): void {
  if (bytes > bytesMax)
    throw new CheckError('too_large', what, { expected: `at most ${bytesMax} bytes to fetch here`, found: String(bytes) });
}
