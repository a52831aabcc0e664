// SPDX-License-Identifier: Apache-2.0
import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';

const kTheme = readFileSync(new URL('./theme.css', import.meta.url), 'utf8');

// The custom properties of the nth block that has --ground.
function colorsOf(index: number): Map<string, string> {
  const block = kTheme.split('--ground:')[index + 1]!.split('}')[0]!;
  return new Map([...`--ground:${block}`.matchAll(/(--[a-z-]+):\s*(#[0-9a-f]{6})(?:[0-9a-f]{2})?;/g)].map((match) => [match[1]!, match[2]!]));
}

// WCAG 2.2, relative luminance and contrast ratio.
function luminance(hex: string): number {
  const [r, g, b] = [1, 3, 5].map((at) => {
    const value = parseInt(hex.slice(at, at + 2), 16) / 255;
    return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
  }) as [number, number, number];
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}
function contrast(one: string, other: string): number {
  const [light, dark] = [luminance(one), luminance(other)].sort((a, b) => b - a) as [number, number];
  return (light + 0.05) / (dark + 0.05);
}

const kText = ['--ink', '--ink-soft', '--accent', '--good', '--bad'];
const kGrounds = ['--ground', '--surface', '--sunken'];

describe.each([
  ['light', colorsOf(0)],
  ['dark', colorsOf(1)],
])('%s', (_, colors) => {
  const of = (name: string) => colors.get(name)!;
  it.each(kText.flatMap((text) => kGrounds.map((ground) => [text, ground] as const)))('%s is read on %s', (text, ground) => {
    expect(contrast(of(text), of(ground))).toBeGreaterThanOrEqual(4.5);
  });
  it.each([['--ink', '--warn-ground'], ['--ink', '--bad-ground'], ['--ink', '--accent-ground'], ['--ground', '--accent'], ['--ground', '--ink']])('%s is read on %s', (text, ground) => {
    expect(contrast(of(text), of(ground))).toBeGreaterThanOrEqual(4.5);
  });
  it.each(['--rule-strong', '--chart-line', '--chart-other', '--chart-third', '--chart-mark'])('%s is seen', (name) => {
    expect(contrast(of(name), of('--surface'))).toBeGreaterThanOrEqual(3);
  });
  it('the two states without a pattern differ in lightness', () => {
    expect(contrast(of('--state-confirmed'), of('--state-unaudited'))).toBeGreaterThanOrEqual(3);
  });
  it('patterns are seen on their states', () => {
    for (const state of ['claimed', 'provisional', 'disputed']) expect(contrast(of(`--state-${state}`), of(`--state-${state}-ink`))).toBeGreaterThanOrEqual(2);
  });
});

it('the theme that is chosen is the one that the system asks for', () => {
  expect([...colorsOf(2)]).toEqual([...colorsOf(1)]);
});
