// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import { ago, bytes, count, counted, duration, float, percent, perHour, short, shortHex, stepRange, time, timeLeftMs, visible } from './format';

describe('count', () => {
  it('groups digits by threes with a narrow space', () => {
    expect([0, 7, 999, 1000, 80957, 1234567].map(count)).toEqual(['0', '7', '999', '1\u202f000', '80\u202f957', '1\u202f234\u202f567']);
    expect(count(-1500)).toBe('\u22121\u202f500');
  });
  it('names steps from one to before another', () => {
    expect([stepRange(7, 8), stepRange(7, 10), stepRange(998, 1001)]).toEqual(['7', '7–9', '998–1\u202f000']);
  });
  it('counts one thing and several', () => {
    expect([counted(1, 'step'), counted(2, 'step'), counted(0, 'leaf', 'leaves')]).toEqual(['1 step', '2 steps', '0 leaves']);
  });
});

describe('percent', () => {
  it('never says 0 or 100 of what is neither', () => {
    expect(percent(80_956, 80_957)).toBe('>99.9%');
    expect(percent(1, 80_957)).toBe('<0.1%');
    expect(percent(80_957, 80_957)).toBe('100%');
    expect(percent(0, 80_957)).toBe('0%');
  });
  it('is 0 of nothing', () => expect(percent(0, 0)).toBe('0%'));
  it('has one digit after the point', () => expect(percent(1, 3)).toBe('33.3%'));
});

describe('float', () => {
  it('writes what JSON has no number for', () => {
    expect([float('nan'), float('inf'), float('-inf'), float(null)]).toEqual(['NaN', '∞', '\u2212∞', '–']);
  });
  it('has as many digits as asked for', () => {
    expect(float(2.5612345, 4)).toBe('2.561');
    expect(float(0.00045, 4)).toBe('4.50e\u22124');
    expect(float(-3.25)).toBe('\u22123.25');
    expect(float(0)).toBe('0');
  });
  it('gives a binary32 back with nine digits', () => {
    for (const value of [0.1, 3.14159274, 1e-20, 123456792, 5e-45].map(Math.fround)) {
      const text = float(value, 9).replace('\u2212', '-').replace('\u2212', '-');
      expect(Math.fround(Number(text))).toBe(value);
    }
  });
});

describe('sizes and times', () => {
  it('shortens', () => {
    expect([short(999), short(80_957), short(4e11)]).toEqual(['999', '81\u202fk', '400\u202fB']);
    expect([bytes(0), bytes(1023), bytes(1536), bytes(3 * 2 ** 30)]).toEqual(['0 B', '1\u202f023 B', '1.5 KiB', '3 GiB']);
  });
  it('says how long', () => {
    const hour = 3_600_000;
    expect([duration(5_000), duration(60_000), duration(hour), duration(1.5 * hour), duration(26 * hour), duration(100 * 24 * hour)]).toEqual([
      'less than a minute', '1 min', '1 h', '1 h 30 min', '1 d 2 h', '100 d',
    ]);
    expect([duration(NaN), duration(-1), duration(Infinity)]).toEqual(['unknown', 'unknown', 'unknown']);
  });
  it('says when', () => {
    expect(time(0)).toBe('1970-01-01 00:00:00 UTC');
    expect(time(1e300)).toBe('unknown');
    expect(ago(1_000, 2_000)).toBe('just now');
    expect(ago(0, 3_600_000)).toBe('1 h ago');
    expect([ago(0, 150_000), ago(0, 47 * 3_600_000), ago(0, 72 * 3_600_000)]).toEqual(['3 min ago', '47 h ago', '3 d ago']);
    expect(ago(5_000_000, 0)).toBe('just now'); // the server's clock is ahead
  });
  it('takes an hour’s rate from less than an hour', () => {
    const hour = 3_600_000;
    expect(perHour(30, null, hour)).toBe(30);
    expect(perHour(30, 0, 5 * hour)).toBe(30);
    expect(perHour(30, 0, hour / 2)).toBe(60);
    expect(perHour(2, 0, 1)).toBe(120); // as if a minute old
    expect(perHour(2, 9_000, 0)).toBe(120); // the server's clock is ahead
  });
  it('has no time to completion without a rate', () => {
    expect(timeLeftMs(100, 0)).toBeNull();
    expect(timeLeftMs(0, 0)).toBe(0);
    expect(timeLeftMs(100, 50)).toBe(2 * 3_600_000);
  });
});

describe('strangers and digests', () => {
  it('shows ends of a digest', () => {
    expect(shortHex('0123456789abcdef'.repeat(4))).toBe('01234567…cdef');
    expect(shortHex('short')).toBe('short');
  });
  it('makes marks of direction and controls seen, and leaves letters alone', () => {
    expect(visible('\u202Egnp.exe\u202C')).toBe('\ufffdgnp.exe\ufffd');
    expect(visible('a\nb\u0000c\u2066')).toBe('a\ufffdb\ufffdc\ufffd');
    expect(visible('計算 عربى <b> 👩‍🔬')).toBe('計算 عربى <b> 👩‍🔬');
  });
});
