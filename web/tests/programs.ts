// SPDX-License-Identifier: Apache-2.0
//
// What the browser tests stand on: real programs, as child processes that end with the test, and Debian's chromium. LOCKSTEP,
// LOCKSTEP_COORDINATOR, LOCKSTEP_WORKER, LOCKSTEP_DISHONEST_TRAINER and LOCKSTEP_WHOLE_RUN name the programs (without them, those of
// build/release); LOCKSTEP_WEB_ROOT the dashboard (web/dist), LOCKSTEP_CHROMIUM the browser.
import { spawn, type ChildProcess } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { createInterface } from 'node:readline';
import { chromium, type Browser, type BrowserContext, type BrowserContextOptions, type Page } from 'playwright-core';

export const kRoot = resolve(import.meta.dirname ?? new URL('.', import.meta.url).pathname, '..', '..');
export const kWebRoot = process.env.LOCKSTEP_WEB_ROOT ?? join(kRoot, 'web', 'dist');

export function program(variable: string, ...path: string[]): string {
  return process.env[variable] ?? join(kRoot, 'build', 'release', ...path);
}

// A child process that is spoken to in lines.
export class Lines {
  private readonly child: ChildProcess;
  private readonly waiting: ((line: string) => void)[] = [];
  private readonly lines: string[] = [];
  private messages = '';
  private ended: number | null = null;

  constructor(words: string[], environment: Record<string, string> = {}) {
    this.child = spawn(words[0]!, words.slice(1), { stdio: ['pipe', 'pipe', 'pipe'], env: { ...process.env, ...environment } });
    this.child.stderr!.on('data', (data) => (this.messages += data));
    this.child.on('exit', (code) => {
      this.ended = code ?? -1;
      for (const give of this.waiting.splice(0)) give('');
    });
    createInterface(this.child.stdout!).on('line', (line) => {
      const give = this.waiting.shift();
      if (give) give(line);
      else this.lines.push(line);
    });
  }

  // The next line as JSON. Throws with the process's own words if it ends first.
  async next<T>(): Promise<T> {
    const line = this.lines.shift() ?? (this.ended === null ? await new Promise<string>((give) => this.waiting.push(give)) : '');
    if (line === '') throw new Error(`the program ended with ${this.ended}\n${this.messages}`);
    return JSON.parse(line) as T;
  }

  say(line: string): void {
    this.child.stdin!.write(`${line}\n`);
  }

  async end(): Promise<void> {
    if (this.ended !== null) return;
    const over = new Promise((done) => this.child.once('exit', done));
    this.child.stdin!.end();
    const killed = setTimeout(() => this.child.kill('SIGTERM'), 5_000);
    await over;
    clearTimeout(killed);
  }

  kill(): void {
    this.child.kill('SIGTERM');
  }
}

export interface WorldFacts {
  http_address: string;
  worker_address: string;
  log_key: string;
  steps: number;
  cheated: number;
  names: string[];
  hardware: string[];
  receipts: string[];
}

// tests/world.py.
export class World {
  private constructor(
    private readonly lines: Lines,
    readonly facts: WorldFacts,
  ) {}

  static async start(): Promise<World> {
    const lines = new Lines(['python3', '-B', join(kRoot, 'web', 'tests', 'world.py'), '--web-root', kWebRoot]);
    return new World(lines, await lines.next<WorldFacts>());
  }
  tell<T>(line: string): Promise<T> {
    this.lines.say(line);
    return this.lines.next<T>();
  }
  end(): Promise<void> {
    return this.lines.end();
  }
}

// A folder of its own, and its removal.
export function temporaryFolder(): { path: string; remove: () => void } {
  const path = mkdtempSync(join(tmpdir(), 'lockstep-web-'));
  return { path, remove: () => rmSync(path, { recursive: true, force: true }) };
}

export function launch(): Promise<Browser> {
  return chromium.launch({
    executablePath: process.env.LOCKSTEP_CHROMIUM ?? '/usr/bin/chromium',
    // Root, as in a container, has no sandbox; all that is loaded is our own.
    args: process.getuid?.() === 0 ? ['--no-sandbox'] : [],
  });
}

export const kDesktop: BrowserContextOptions = { viewport: { width: 1280, height: 800 } };
export const kPhone: BrowserContextOptions = { viewport: { width: 360, height: 740 }, deviceScaleFactor: 2, isMobile: true, hasTouch: true };

// What a page must never do, written down as it happens: errors, requests elsewhere, dialogs.
export class Watched {
  readonly wrong: string[] = [];
  private constructor(
    readonly page: Page,
    readonly context: BrowserContext,
  ) {}

  static async open(browser: Browser, address: string, options: BrowserContextOptions = kDesktop): Promise<Watched> {
    const context = await browser.newContext(options);
    const page = await context.newPage();
    const watched = new Watched(page, context);
    page.on('console', (message) => {
      if (message.type() === 'error' || message.type() === 'warning') watched.wrong.push(`console: ${message.text()}`);
    });
    page.on('pageerror', (error) => watched.wrong.push(`error: ${error.message}`));
    page.on('dialog', (dialog) => {
      watched.wrong.push(`dialog: ${dialog.message()}`);
      void dialog.dismiss();
    });
    page.on('request', (request) => {
      if (!request.url().startsWith(address) && !request.url().startsWith('data:')) watched.wrong.push(`request: ${request.url()}`);
    });
    return watched;
  }

  close(): Promise<void> {
    return this.context.close();
  }
}
