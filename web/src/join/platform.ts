// SPDX-License-Identifier: Apache-2.0
//
// Which machine the visitor has, and the commands that make a worker of it. Pure functions. The commands are those of docs/worker.md, and say
// what is so: the programs are built from source, on Debian 12 or what is like it.
export type System = 'linux-x86' | 'linux-arm' | 'windows' | 'mac';

export const kSystems: { system: System; text: string }[] = [
  { system: 'linux-x86', text: 'Linux, x86-64' },
  { system: 'linux-arm', text: 'Linux, ARM64' },
  { system: 'windows', text: 'Windows' },
  { system: 'mac', text: 'macOS' },
];

export interface Hints {
  userAgent: string;
  platform: string; // navigator.platform, or userAgentData's
  architecture?: string; // userAgentData's high entropy value
}

// A guess; the page lets one choose. A phone gets what its owner most likely has at home.
export function guessSystem({ userAgent, platform, architecture = '' }: Hints): System {
  const text = `${platform} ${userAgent}`.toLowerCase();
  if (/windows|win32|win64/.test(text)) return 'windows';
  if (/mac|iphone|ipad/.test(text)) return 'mac';
  if (/android/.test(text)) return 'linux-x86';
  if (/aarch64|arm64|armv8/.test(text) || architecture.startsWith('arm')) return 'linux-arm';
  return 'linux-x86';
}

// A word for a POSIX shell, whatever is in it. Line breaks and other control characters, which the worker refuses in names, go.
export function quoted(word: string): string {
  const clean = word.replace(/[\u0000-\u001f\u007f-\u009f\u2028\u2029\u202a-\u202e\u2066-\u2069]/g, ' ').trim();
  return /^[A-Za-z0-9_@%+=:,./-]+$/.test(clean) ? clean : `'${clean.replaceAll("'", `'\\''`)}'`;
}

// Cut to so many bytes of UTF-8, at a letter's end: names are limited in bytes.
export function cut(text: string, bytes_max: number): string {
  let bytes = 0;
  let kept = '';
  for (const letter of text) {
    bytes += new TextEncoder().encode(letter).length;
    if (bytes > bytes_max) break;
    kept += letter;
  }
  return kept;
}

export interface Choice {
  system: System;
  worker_url: string;
  operator: string;
  hardware: string;
  cpus: number;
}

export interface CommandStep {
  title: string;
  text: string; // commands, a line each
  note?: string;
}

const kBuild = [
  'scripts/setup build',
  'cmake --preset release',
  'cmake --build build/release --target lockstep-worker',
  'export PATH="$PWD/build/release/worker:$PATH"',
].join('\n');

export function joinSteps({ system, worker_url, operator, hardware, cpus }: Choice): CommandStep[] {
  const name = quoted(cut(operator.trim() === '' ? 'Your name' : operator, 64));
  const machine = quoted(cut(hardware.trim() === '' ? defaultHardware(system, cpus) : hardware, 128));
  const url = quoted(worker_url);
  const steps: CommandStep[] = [];
  if (system === 'windows') {
    steps.push({
      title: 'A Debian beside Windows',
      text: 'wsl --install -d Debian',
      note: 'In PowerShell. What follows goes into the Debian window. The worker does not see whether you use Windows: give it hours, or pause it.',
    });
  } else if (system === 'mac') {
    steps.push({
      title: 'A Debian 12 in a virtual machine',
      text: 'uname -sm',
      note: 'The programs run on Linux. Any virtual machine will do (ARM64 on Apple silicon); there, this prints Linux and its processor. What follows goes into it.',
    });
  }
  steps.push(
    {
      title: 'Build the worker',
      text: kBuild,
      note: 'In the source tree. The first line installs what is missing from Debian’s packages.',
    },
    {
      title: 'Make your keys, once',
      text: `lockstep-worker keys init --operator ${name} --revocation-key ./lockstep-revocation.key`,
      note: 'The revocation key ends your key should it be lost: take that file off the machine. The name is published, for ever.',
    },
    {
      title: 'Say what this machine is',
      text: `lockstep-worker keys certify --hardware ${machine}`,
      note: 'Published too, with the processor’s name and what you attest.',
    },
    {
      title: 'Ask whether it can do the work',
      text: `lockstep-worker doctor --coordinators ${url}`,
    },
    {
      title: 'Run',
      text: `lockstep-worker run --coordinators ${url}`,
      note: 'At the lowest priority. It pauses while you use the machine, on battery, and while other programs need the processor; Ctrl-C ends it at any moment.',
    },
  );
  return steps;
}

export function defaultHardware(system: System, cpus: number): string {
  const kind = { 'linux-x86': 'PC', 'linux-arm': 'ARM machine', windows: 'PC, WSL', mac: 'Mac, virtual machine' }[system];
  return cpus > 0 ? `${kind}, ${cpus} ${cpus === 1 ? 'thread' : 'threads'}` : kind;
}
