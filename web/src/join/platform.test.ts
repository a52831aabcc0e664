// SPDX-License-Identifier: Apache-2.0
import { execFileSync } from 'node:child_process';
import { describe, expect, it } from 'vitest';
import { cut, guessSystem, joinSteps, kSystems, quoted, type Choice } from './platform';

const kAgents: [string, Parameters<typeof guessSystem>[0], string][] = [
  ['Chrome on Linux', { platform: 'Linux x86_64', userAgent: 'Mozilla/5.0 (X11; Linux x86_64) Chrome/140' }, 'linux-x86'],
  ['Firefox on a Raspberry Pi', { platform: 'Linux aarch64', userAgent: 'Mozilla/5.0 (X11; Linux aarch64; rv:140.0) Firefox/140.0' }, 'linux-arm'],
  ['Chrome on ARM Linux, which hides it', { platform: 'Linux', userAgent: 'Mozilla/5.0 (X11; Linux x86_64)', architecture: 'arm' }, 'linux-arm'],
  ['Edge on Windows', { platform: 'Win32', userAgent: 'Mozilla/5.0 (Windows NT 10.0; Win64; x64)' }, 'windows'],
  ['Safari', { platform: 'MacIntel', userAgent: 'Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) Safari/605' }, 'mac'],
  ['an iPhone', { platform: 'iPhone', userAgent: 'Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X)' }, 'mac'],
  ['an Android phone', { platform: 'Linux armv81', userAgent: 'Mozilla/5.0 (Linux; Android 15)' }, 'linux-x86'],
  ['nothing', { platform: '', userAgent: '' }, 'linux-x86'],
];

const kChoice: Choice = { system: 'linux-x86', worker_url: 'https://audit.example.com:7440', operator: 'Ada L.', hardware: 'desktop, 8 cores', cpus: 8 };

describe('guessSystem', () => {
  it.each(kAgents)('%s', (_, hints, system) => expect(guessSystem(hints)).toBe(system));
});

describe('quoted', () => {
  it.each(['Ada', "O'Neil", '$(reboot)', '`id`', 'a"b', 'a\\b', '; rm -rf ~', '-n', '!!', '名前', "'", "''", ' '])('a shell reads %j as it was', (word) => {
    const said = execFileSync('sh', ['-c', `printf %s ${quoted(word)}`], { encoding: 'utf8' });
    expect(said).toBe(word.trim());
  });
  it('is one line, whatever is in it', () => {
    expect(quoted('a\nb\r\u202ec')).toBe("'a b  c'");
  });
});

describe('cut', () => {
  it('cuts at a letter', () => {
    expect(cut('abc', 2)).toBe('ab');
    expect(cut('a計b', 3)).toBe('a');
    expect(cut('👩👩', 7)).toBe('👩');
  });
});

describe('joinSteps', () => {
  it.each(kSystems)('for $text: builds, makes keys, certifies, asks, runs, in this order', ({ system }) => {
    const commands = joinSteps({ ...kChoice, system }).map((step) => step.text);
    const places = ['--target lockstep-worker', 'keys init', 'keys certify', 'doctor', 'lockstep-worker run'].map((words) => commands.findIndex((text) => text.includes(words)));
    expect(places.every((place) => place >= 0)).toBe(true);
    expect([...places].sort((a, b) => a - b)).toEqual(places);
  });
  it('names the coordinator and what was typed', () => {
    const text = joinSteps(kChoice).map((step) => step.text).join('\n');
    expect(text).toContain('lockstep-worker run --coordinators https://audit.example.com:7440');
    expect(text).toContain("--operator 'Ada L.'");
    expect(text).toContain("--hardware 'desktop, 8 cores'");
  });
  it('has words of its own where none were typed', () => {
    const text = joinSteps({ ...kChoice, operator: ' ', hardware: '' }).map((step) => step.text).join('\n');
    expect(text).toContain("--operator 'Your name'");
    expect(text).toContain("--hardware 'PC, 8 threads'");
  });
  it('prepares a Debian where there is none', () => {
    expect(joinSteps({ ...kChoice, system: 'windows' })[0]!.text).toContain('wsl');
    expect(joinSteps({ ...kChoice, system: 'mac' }).length).toBe(joinSteps(kChoice).length + 1);
  });
  it('names limited in bytes are cut', () => {
    const text = joinSteps({ ...kChoice, operator: '計'.repeat(60) })[1]!.text;
    expect(text).toContain(`'${'計'.repeat(21)}'`);
  });
});
