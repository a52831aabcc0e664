// SPDX-License-Identifier: Apache-2.0
//
// Numbers, times and digests as people read them. Pure functions: the language is English, so that pages and tests read the same everywhere;
// digits are grouped by a narrow no-break space, which no locale takes for a decimal point.
import type { Float } from '../api/types';

const kGroup = '\u202f';
const kMinus = '\u2212';

// 80957 → "80 957".
export function count(value: number): string {
  const digits = String(Math.abs(Math.trunc(value)));
  return (value < 0 ? kMinus : '') + digits.replace(/\B(?=(\d{3})+$)/g, kGroup);
}

// "1 step", "80 957 steps".
export function counted(value: number, one: string, many = `${one}s`): string {
  return `${count(value)} ${value === 1 ? one : many}`;
}

// Steps from `first` to before `end`: "7", "7–9".
export function stepRange(first: number, end: number): string {
  return end - first <= 1 ? count(first) : `${count(first)}–${count(end - 1)}`;
}

// The part of a whole in percent. Never rounds to 0 % or 100 % what is not: a run with one step missing is not complete.
export function percent(part: number, whole: number): string {
  if (whole <= 0) return '0%';
  const value = (100 * part) / whole;
  if (part <= 0) return '0%';
  if (part >= whole) return '100%';
  if (value < 0.1) return '<0.1%';
  if (value > 99.9) return '>99.9%';
  return `${value.toFixed(1)}%`;
}

const kUnits: [number, string][] = [
  [1e12, 'T'],
  [1e9, 'B'],
  [1e6, 'M'],
  [1e3, 'k'],
];

// 400000000000 → "400 B". Three digits at most.
export function short(value: number): string {
  for (const [size, unit] of kUnits) {
    if (Math.abs(value) >= size) return `${Number((value / size).toPrecision(3))}${kGroup}${unit}`;
  }
  return count(value);
}

export function bytes(value: number): string {
  if (value < 1024) return `${count(value)} B`;
  const units = ['KiB', 'MiB', 'GiB', 'TiB'];
  let scaled = value;
  let unit = -1;
  while (scaled >= 1024 && unit < units.length - 1) {
    scaled /= 1024;
    ++unit;
  }
  return `${Number(scaled.toPrecision(3))} ${units[unit]}`;
}

// A float for reading: `digits` significant ones. The exact value is for float(value, 9).
export function float(value: Float | null | undefined, digits = 5): string {
  if (value === null || value === undefined) return '–';
  if (value === 'nan') return 'NaN';
  if (value === 'inf') return '∞';
  if (value === '-inf') return `${kMinus}∞`;
  if (value === 0) return '0';
  const size = Math.abs(value);
  const text = size >= 1e-3 && size < 1e6 ? String(Number(value.toPrecision(digits))) : value.toExponential(Math.max(0, digits - 2));
  return text.replace('e-', `e${kMinus}`).replace('e+', 'e').replace(/^-/, kMinus);
}

// The float as a number for arithmetic and charts.
export function floatValue(value: Float): number {
  if (value === 'nan') return NaN;
  if (value === 'inf') return Infinity;
  if (value === '-inf') return -Infinity;
  return value;
}

// The first and last digits of a digest: enough to tell two apart by eye, never enough to compare them.
export function shortHex(hex: string, head = 8, tail = 4): string {
  return hex.length <= head + tail + 1 ? hex : `${hex.slice(0, head)}…${hex.slice(-tail)}`;
}

// A span of time: its two largest units. "3 d 4 h", "12 min", "less than a minute".
export function duration(ms: number): string {
  if (!Number.isFinite(ms) || ms < 0) return 'unknown';
  const minutes = Math.round(ms / 60_000);
  if (minutes < 1) return 'less than a minute';
  if (minutes < 60) return `${minutes} min`;
  const hours = Math.floor(minutes / 60);
  if (hours < 24) return minutes % 60 === 0 ? `${hours} h` : `${hours} h ${minutes % 60} min`;
  const days = Math.floor(hours / 24);
  if (days >= 365) return `${short(Math.round(days / 36.5) / 10)} years`;
  return hours % 24 === 0 || days >= 30 ? `${count(days)} d` : `${days} d ${hours % 24} h`;
}

// "2 min ago", for times of which the exact one is in the title.
export function ago(ms: number, now: number): string {
  const minutes = Math.round((now - ms) / 60_000);
  if (!(minutes >= 1)) return 'just now';
  if (minutes < 60) return `${minutes} min ago`;
  const hours = Math.round(minutes / 60);
  return hours < 48 ? `${hours} h ago` : `${count(Math.round(hours / 24))} d ago`;
}

// "2026-01-02 15:04:05 UTC".
export function time(ms: number): string {
  if (!Number.isFinite(ms) || Math.abs(ms) > 8.64e15) return 'unknown';
  return `${new Date(ms).toISOString().slice(0, 19).replace('T', ' ')} UTC`;
}

// An hour's rate from what happened within the last hour, of something that may be younger than that.
export function perHour(within_hour: number, since_ms: number | null, now_ms: number): number {
  if (since_ms === null) return within_hour;
  const hours = Math.min(1, Math.max(1 / 60, (now_ms - since_ms) / 3_600_000));
  return Math.round(within_hour / hours);
}

// Time to completion: what is left at an hour's rate. `null`: nothing happened, so there is no rate to go by.
export function timeLeftMs(left: number, per_hour: number): number | null {
  if (left <= 0) return 0;
  if (!(per_hour > 0)) return null;
  return (left / per_hour) * 3_600_000;
}

const kOutcomes = [
  'updated',
  'skipped: loss or gradient norm not finite',
  'skipped: gradient norm above the spike limit',
  'skipped: after one of these',
];

export function outcome(value: number): string {
  return kOutcomes[value] ?? `unknown (${value})`;
}

// A stranger's text with what cannot be seen made to be seen: controls, and the marks that turn the direction of what follows, become U+FFFD.
// (Isolating by <bdi> keeps such marks from their neighbours, but not from reversing the name that they stand in.)
export function visible(text: string): string {
  return text.replace(/[\u0000-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ufeff]/g, '\ufffd');
}
