// SPDX-License-Identifier: Apache-2.0
//
// What was fetched, checked and parsed, for the next step that needs it: corpus manifests, indices, names. Bounded; what was used last
// stays. Keys are digests, so nothing in it can grow old.

const MIB = 2 ** 20;

export class DocumentsCache {
  private readonly kept = new Map<string, { readonly value: unknown; readonly bytes: number }>();
  private bytes = 0;

  constructor(private readonly bytesMax = 64 * MIB) {}

  /** The value of the key, made (from so many bytes) if it is not there. What is larger than the cache is not kept. */
  async get<T>(key: string, make: () => Promise<{ readonly value: T; readonly bytes: number }>): Promise<T> {
    const known = this.kept.get(key);
    if (known !== undefined) {
      this.kept.delete(key);
      this.kept.set(key, known);
      return known.value as T;
    }
    const made = await make();
    if (made.bytes > this.bytesMax) return made.value;
    this.bytes += made.bytes - (this.kept.get(key)?.bytes ?? 0);
    this.kept.set(key, made);
    for (const [oldest, { bytes }] of this.kept) {
      if (this.bytes <= this.bytesMax) break;
      this.kept.delete(oldest);
      this.bytes -= bytes;
    }
    return made.value;
  }
}
