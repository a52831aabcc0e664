// SPDX-License-Identifier: Apache-2.0
//
// The state of every step of a run, a byte each, as GET /runs/{run}/coverage gives it, kept up to date by events. No DOM and no drawing.
// What events cannot tell (a lease that ended where another goes on, whether a new step was skipped) the next full load sets right.
import type { LiveEvent } from '../api/events';
import type { Counts, StateName } from '../api/types';

export const kStates: readonly StateName[] = ['unaudited', 'claimed', 'provisional', 'confirmed', 'disputed'];
export const kSkipped = 0x10;
const kStateMask = 0x0f;

const kUnaudited = 1;
const kClaimed = 2;

export function stateOf(byte: number): StateName | null {
  return kStates[(byte & kStateMask) - 1] ?? null;
}

export function codeOf(state: StateName): number {
  return kStates.indexOf(state) + 1;
}

export interface Segment {
  begin: number; // steps, numbered as the run numbers them
  end: number; // one past the last
  state: StateName;
}


export class Coverage {
  // Grows with every change: what was drawn from an older one is old.
  version = 0;
  private held: Uint8Array;
  private length: number;
  private readonly counted = new Array<number>(kStateMask + 1).fill(0);

  // Takes `bytes` over.
  constructor(
    readonly first_step: number,
    bytes: Uint8Array,
  ) {
    this.held = bytes;
    this.length = bytes.length;
    for (const byte of bytes) ++this.counted[byte & kStateMask]!;
  }

  get steps(): number {
    return this.length;
  }
  get end_step(): number {
    return this.first_step + this.length;
  }
  // A view, good until the next change.
  get bytes(): Uint8Array {
    return this.held.subarray(0, this.length);
  }

  has(step: number): boolean {
    return step >= this.first_step && step < this.end_step;
  }
  state(step: number): StateName | null {
    return this.has(step) ? stateOf(this.held[step - this.first_step]!) : null;
  }
  skipped(step: number): boolean {
    return this.has(step) && (this.held[step - this.first_step]! & kSkipped) !== 0;
  }

  counts(): Counts {
    return Object.fromEntries(kStates.map((state) => [state, this.counted[codeOf(state)]!])) as Counts;
  }

  // The event's effect, if it is of the run that this is. Whether anything changed.
  apply(event: LiveEvent): boolean {
    switch (event.event) {
      case 'step':
        // An event may overtake that of its record.
        return this.grow(event.step + 1) || this.has(event.step) ? this.paint(event.step, codeOf(event.state)) : false;
      case 'records':
        return this.grow(event.end_step);
      case 'lease': {
        const [from, to] = event.claimed ? [kUnaudited, kClaimed] : [kClaimed, kUnaudited];
        let changed = false;
        const end = Math.min(event.end, this.end_step);
        for (let step = Math.max(event.begin, this.first_step); step < end; ++step) {
          if ((this.held[step - this.first_step]! & kStateMask) === from) changed = this.paint(step, to) || changed;
        }
        return changed;
      }
      default:
        return false;
    }
  }

  // Stretches of steps in one state, ascending.
  segments(): Segment[] {
    const segments: Segment[] = [];
    let begin = 0;
    for (let n = 1; n <= this.length; ++n) {
      if (n < this.length && (this.held[n]! & kStateMask) === (this.held[begin]! & kStateMask)) continue;
      const state = stateOf(this.held[begin]!);
      if (state !== null) segments.push({ begin: this.first_step + begin, end: this.first_step + n, state });
      begin = n;
    }
    return segments;
  }

  // Offsets of the disputed steps, at most `most`.
  disputed(most: number): number[] {
    const found: number[] = [];
    const code = codeOf('disputed');
    if (this.counted[code] === 0) return found;
    for (let n = 0; n < this.length && found.length < most; ++n) {
      if ((this.held[n]! & kStateMask) === code) found.push(n);
    }
    return found;
  }

  private paint(step: number, code: number): boolean {
    const at = step - this.first_step;
    const before = this.held[at]!;
    if ((before & kStateMask) === code) return false;
    --this.counted[before & kStateMask]!;
    ++this.counted[code]!;
    this.held[at] = (before & ~kStateMask) | code;
    ++this.version;
    return true;
  }

  // Steps up to `end` that are not there yet come as unaudited ones. No more than a run can have grown by between two full loads.
  private grow(end: number): boolean {
    const length = end - this.first_step;
    if (length <= this.length || length > this.length + 1_000_000) return false;
    if (length > this.held.length) {
      const larger = new Uint8Array(Math.max(length, Math.ceil(this.held.length * 1.25), 1024));
      larger.set(this.bytes);
      this.held = larger;
    }
    this.held.fill(kUnaudited, this.length, length);
    this.counted[kUnaudited]! += length - this.length;
    this.length = length;
    ++this.version;
    return true;
  }
}

// The run in stretches of `block_steps` and what is in each: the map as a table.
export function blocks(coverage: Coverage, block_steps: number): { begin: number; end: number; counts: Counts }[] {
  const rows: { begin: number; end: number; counts: Counts }[] = [];
  const bytes = coverage.bytes;
  for (let begin = 0; begin < bytes.length; begin += block_steps) {
    const end = Math.min(begin + block_steps, bytes.length);
    const counts: Counts = { unaudited: 0, claimed: 0, provisional: 0, confirmed: 0, disputed: 0 };
    for (let n = begin; n < end; ++n) {
      const state = stateOf(bytes[n]!);
      if (state !== null) ++counts[state];
    }
    rows.push({ begin: coverage.first_step + begin, end: coverage.first_step + end, counts });
  }
  return rows;
}

// A round number of steps such that there are at most `most` blocks.
export function blockSteps(steps: number, most: number): number {
  for (let power = 1; ; power *= 10) {
    for (const factor of [1, 2, 5]) {
      if (steps <= factor * power * most) return factor * power;
    }
  }
}
