// SPDX-License-Identifier: Apache-2.0
//
// Every page, over a real coordinator with real data: that it shows what it should, checks what it says it checks, asks nobody else for
// anything, keeps to its policy, is free of what axe-core finds, and fits a phone. In light and dark.
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { kDesktop, kPhone, launch, Watched, World } from './programs';

const kAxe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

let world: World;
let browser: Browser;
let run: string;
let operator: string;
let worker: string;

beforeAll(async () => {
  [world, browser] = await Promise.all([World.start(), launch()]);
  const get = async (path: string) => (await fetch(world.facts.http_address + path)).json();
  run = (await get('/api/v1/runs')).runs[0].run;
  operator = (await get('/api/v1/operators')).operators[0].key;
  worker = (await get('/api/v1/workers')).workers[0].key;
});
afterAll(async () => {
  await browser?.close();
  await world?.end();
});

interface Named {
  name: string;
  path: () => string;
  heading: string | RegExp;
  ready: (page: Page) => Promise<unknown>; // resolves when what the page is for is there
}

const text = (words: string | RegExp) => (page: Page) => page.getByText(words).first().waitFor();
const kPages: Named[] = [
  { name: 'runs', path: () => '/', heading: 'Runs', ready: text('91.7%') },
  { name: 'run', path: () => `/runs/${run}`, heading: 'walk', ready: (page) => page.locator('.u-wrap canvas').nth(3).waitFor() },
  { name: 'steps', path: () => `/runs/${run}/steps`, heading: 'walk', ready: text('Gradient norm') },
  { name: 'attestations', path: () => `/runs/${run}/attestations`, heading: 'walk', ready: text('✗ mismatch') },
  { name: 'leases', path: () => `/runs/${run}/leases`, heading: 'walk', ready: text('✓ done') },
  { name: 'disputes of a run', path: () => `/runs/${run}/disputes`, heading: 'walk', ready: text('First difference') },
  { name: 'manifest', path: () => `/runs/${run}/manifest`, heading: 'walk', ready: text('States to start from') },
  { name: 'step', path: () => `/runs/${run}/steps/3`, heading: 'Step 3', ready: (page) => page.locator('[data-testid=checked][data-done=yes]').waitFor() },
  { name: 'disputed step', path: () => `/runs/${run}/steps/6`, heading: 'Step 6', ready: (page) => page.locator('[data-testid=checked][data-done=yes]').waitFor() },
  { name: 'operators', path: () => '/operators', heading: 'Operators', ready: text('x86-avx2') },
  { name: 'operator', path: () => `/operators/${operator}`, heading: /./, ready: (page) => page.getByRole('region', { name: 'Leases that were not finished' }).locator('.empty, .table').waitFor() },
  { name: 'workers', path: () => '/workers', heading: 'Workers', ready: text('x86-avx2') },
  { name: 'worker', path: () => `/workers/${worker}`, heading: /./, ready: (page) => page.getByRole('region', { name: 'Leases that were not finished' }).locator('.empty, .table').waitFor() },
  { name: 'disputes', path: () => '/disputes', heading: 'Disputes', ready: text('First difference') },
  { name: 'log', path: () => '/log', heading: 'Log', ready: (page) => page.locator('[data-testid=head][data-good=yes]').waitFor() },
  { name: 'entry', path: () => '/log/1', heading: 'Entry 1', ready: (page) => page.locator('[data-testid=entry][data-good=yes]').waitFor() },
  { name: 'join', path: () => '/join', heading: 'Lend a machine', ready: text('lockstep-worker run --coordinators') },
  { name: 'proof', path: () => '/proof', heading: 'What a match proves, and what it does not', ready: text('It does not prove') },
  { name: 'no page', path: () => '/nothing/here', heading: 'No such page', ready: text('There is nothing at') },
];

interface Violation {
  id: string;
  nodes: { html: string; failureSummary: string }[];
}

async function violations(page: Page): Promise<string[]> {
  // Through the debugger's door, which the page's policy does not close.
  await page.evaluate(kAxe);
  const found = (await page.evaluate('axe.run(document, { resultTypes: ["violations"] })')) as { violations: Violation[] };
  return found.violations.flatMap((one) => one.nodes.map((node) => `${one.id}: ${node.html}\n${node.failureSummary}`));
}

describe.each([
  ['light, desktop', { ...kDesktop, colorScheme: 'light' as const }],
  ['dark, desktop', { ...kDesktop, colorScheme: 'dark' as const }],
  ['light, phone', { ...kPhone, colorScheme: 'light' as const }],
  ['dark, phone', { ...kPhone, colorScheme: 'dark' as const }],
])('%s', (_, options) => {
  it.each(kPages)('$name', async ({ path, heading, ready }) => {
    const watched = await Watched.open(browser, world.facts.http_address, options);
    const { page } = watched;
    await page.goto(world.facts.http_address + path());
    await ready(page);
    await page.getByRole('heading', { level: 1, name: heading }).waitFor();
    // Everything that can be opened is.
    for (const details of await page.locator('details').all()) await details.evaluate((element) => ((element as HTMLDetailsElement).open = true));
    await page.waitForTimeout(100);
    expect(await page.evaluate(() => document.documentElement.scrollWidth - innerWidth)).toBeLessThanOrEqual(0);
    expect(await violations(page)).toEqual([]);
    expect(watched.wrong).toEqual([]);
    await watched.close();
  });
});

describe('what pages check', () => {
  const open = async (path: string) => {
    const watched = await Watched.open(browser, world.facts.http_address);
    await watched.page.goto(world.facts.http_address + path);
    return watched;
  };

  it.each([3, 6, 0, 11])('record and attestations of step %i hold', async (step) => {
    const { page, close } = await open(`/runs/${run}/steps/${step}`).then((watched) => ({ page: watched.page, close: () => watched.close() }));
    const checked = page.locator('[data-testid=checked][data-done=yes]');
    await checked.waitFor();
    expect(await checked.innerText()).toContain('2 of 2 attestations hold');
    expect(await page.locator('.checks .bad').count()).toBe(0);
    await close();
  });

  it('a record that the server changed does not hold', async () => {
    const watched = await Watched.open(browser, world.facts.http_address);
    await watched.page.route(`**/api/v1/runs/${run}/steps/3`, async (route) => {
      const answer = await route.fetch();
      const body = await answer.json();
      const bytes = Buffer.from(body.record, 'base64');
      bytes[264]! ^= 1; // the loss
      await route.fulfill({ response: answer, json: { ...body, record: bytes.toString('base64') } });
    });
    await watched.page.goto(`${world.facts.http_address}/runs/${run}/steps/3`);
    const checked = watched.page.locator('[data-testid=checked][data-done=yes]');
    await checked.waitFor();
    expect(await checked.innerText()).toContain('Something about the record does not hold');
    await watched.close();
  });

  it('an attestation that the server turned around does not hold', async () => {
    const watched = await Watched.open(browser, world.facts.http_address);
    await watched.page.route(`**/api/v1/runs/${run}/steps/3`, async (route) => {
      const answer = await route.fetch();
      const body = await answer.json();
      const envelope = JSON.parse(body.attestations[1].envelope);
      const payload = Buffer.from(envelope.payload, 'base64').toString().replace('"threads":1', '"threads":2');
      body.attestations[1].envelope = JSON.stringify({ ...envelope, payload: Buffer.from(payload).toString('base64') });
      await route.fulfill({ response: answer, json: body });
    });
    await watched.page.goto(`${world.facts.http_address}/runs/${run}/steps/3`);
    const checked = watched.page.locator('[data-testid=checked][data-done=yes]');
    await checked.waitFor();
    expect(await checked.innerText()).toContain('1 of 2 attestations hold');
    await watched.close();
  });

  it.each([3, 6])('the documents behind step %i', async (step) => {
    const watched = await open(`/runs/${run}/steps/${step}`);
    const { page } = watched;
    await page.getByRole('button', { name: 'Find the documents' }).click();
    // The sixth step's window was tampered with: what the stream gives is not what the record says.
    const found = page.locator(`[data-testid=documents][data-good=${step === world.facts.cheated ? 'no' : 'yes'}]`);
    await found.waitFor();
    await page.getByRole('button', { name: 'Read stretch 1' }).first().click();
    const words = await page.getByRole('group', { name: 'The text' }).innerText();
    expect(words).toMatch(/[a-z]{3,} [a-z]+/i);
    expect(watched.wrong).toEqual([]);
    await watched.close();
  });

  it('the log’s head, its receipts, and one that somebody kept', async () => {
    const watched = await open('/log');
    const { page } = watched;
    await page.locator('[data-testid=head][data-good=yes]').waitFor();
    await page.getByRole('button', { name: 'Check the receipts' }).click();
    await page.getByText('25 of 25 receipts hold').waitFor();
    await page.getByLabel('Receipt, as JSON').fill(world.facts.receipts[0]!);
    await page.getByRole('button', { name: 'Check it' }).click();
    await page.getByText('holds it there and goes on from that head').waitFor();
    // A promise that was not given.
    const kept = JSON.parse(world.facts.receipts[0]!);
    await page.getByLabel('Receipt, as JSON').fill(JSON.stringify({ ...kept, proof: kept.proof.replace(/^index \d+/m, 'index 0') }));
    await page.getByRole('button', { name: 'Check it' }).click();
    await page.locator('.checks .bad').first().waitFor();
    // The second visit holds the head against the first one's.
    await page.reload();
    await page.getByText('nothing was rewritten').waitFor();
    expect(watched.wrong).toEqual([]);
    await watched.close();
  });

  it('a log that is rewritten, or has another key, is noticed', async () => {
    const watched = await open('/log');
    const { page } = watched;
    await page.locator('[data-testid=head][data-good=yes]').waitFor();
    await page.waitForFunction(() => Object.keys(localStorage).some((name) => name.startsWith('lockstep.log.')));
    await page.evaluate(() => {
      for (const name of Object.keys(localStorage)) {
        if (!name.startsWith('lockstep.log.')) continue;
        const kept = JSON.parse(localStorage.getItem(name)!);
        localStorage.setItem(name, JSON.stringify({ ...kept, key: `${kept.key}x` }));
      }
    });
    await page.reload();
    await page.locator('[data-testid=head][data-good=no]').waitFor();
    await page.getByText('another key than when this browser saw it before').waitFor();
    await watched.close();
  });

  it('the commands name this coordinator and what the visitor types, and nothing is sent', async () => {
    const watched = await open('/join');
    const { page } = watched;
    await page.getByText(`lockstep-worker run --coordinators ${world.facts.worker_address}`).waitFor();
    const asked: string[] = [];
    page.on('request', (request) => asked.push(request.url()));
    await page.getByLabel('Your name, or a group’s').fill("Eve's $(lab)");
    await page.getByText(`--operator 'Eve'\\''s $(lab)'`).waitFor();
    await page.getByLabel('Windows').check();
    await page.getByText('wsl --install -d Debian').waitFor();
    expect(asked).toEqual([]);
    await watched.close();
  });
});

describe('what became of leases', () => {
  const kWords = ['<img src=x onerror=alert(1)>', '\u2066\u05d0\u202e gnp.exe', 'w'.repeat(1024), '', ''];

  it.each([
    ['desktop', kDesktop],
    ['phone', kPhone],
  ])('what their holders say is text, and all of it is there: %s', async (_, options) => {
    const watched = await Watched.open(browser, world.facts.http_address, options);
    const { page } = watched;
    await page.route('**/api/v1/**/leases?*', async (route) => {
      const answer = await route.fetch();
      const [one] = (await answer.json()).leases;
      const leases = kWords.map((detail, n) => ({ ...one, state: ['inconclusive', 'canceled', 'inconclusive', 'canceled', 'expired'][n], detail, end_step: one.end_step + n, granted_ms: one.granted_ms + n }));
      await route.fulfill({ response: answer, json: { leases, next: null } });
    });
    await page.goto(`${world.facts.http_address}/runs/${run}/leases`);
    const words = page.locator('td.words');
    await words.nth(4).waitFor();
    expect(await words.allInnerTexts()).toEqual([kWords[0], '\ufffd\u05d0\ufffd gnp.exe', kWords[2], 'nothing said', '–']);
    expect(await words.locator('img').count()).toBe(0);
    expect(await words.nth(2).locator('bdi').evaluate((element) => element.scrollWidth <= element.parentElement!.clientWidth)).toBe(true);
    expect(await page.evaluate(() => document.documentElement.scrollWidth - innerWidth)).toBeLessThanOrEqual(0);
    expect(await violations(page)).toEqual([]);
    expect(watched.wrong).toEqual([]);
    await watched.close();
  });

  it('a page with none of a filtered list is not taken for its end', async () => {
    const watched = await Watched.open(browser, world.facts.http_address);
    const { page } = watched;
    await page.route('**/api/v1/leases?*', async (route) => {
      const older = new URL(route.request().url()).searchParams.has('page');
      const answer = await fetch(`${world.facts.http_address}/api/v1/runs/${run}/leases`);
      const leases = (await answer.json()).leases.slice(0, 1).map((one: object) => ({ ...one, state: 'expired' }));
      await route.fulfill({ json: older ? { leases, next: null } : { leases: [], next: '5-aa' } });
    });
    await page.goto(`${world.facts.http_address}/workers/${worker}`);
    await page.getByText('None on this page').waitFor();
    await page.getByRole('navigation', { name: 'Pages of the leases' }).getByRole('button', { name: 'Next' }).click();
    await page.getByText('✗ expired').waitFor();
    expect(watched.wrong).toEqual([]);
    await watched.close();
  });

  it('all that have ended, those that are held, and none of a kind', async () => {
    const watched = await Watched.open(browser, world.facts.http_address);
    const { page } = watched;
    await page.goto(`${world.facts.http_address}/runs/${run}/leases`);
    await page.getByText('✓ done').first().waitFor();
    await Promise.all([page.waitForResponse(/leases\?state=unfinished&/), page.getByLabel('State').selectOption('unfinished')]);
    await page.getByLabel('State').selectOption('inconclusive');
    await page.getByText('None is inconclusive.').waitFor();
    await page.getByRole('navigation', { name: 'Parts of the run' }).getByRole('link', { name: 'Leases' }).waitFor();
    expect(watched.wrong).toEqual([]);
    await watched.close();
  });
});

describe('by keyboard', () => {
  it('skips to the content, and says where one is', async () => {
    const watched = await Watched.open(browser, world.facts.http_address);
    const { page } = watched;
    await page.goto(`${world.facts.http_address}/`);
    await page.getByRole('link', { name: 'walk' }).waitFor();
    await page.keyboard.press('Tab');
    expect(await page.evaluate(() => document.activeElement?.textContent)).toBe('Skip to the content');
    await page.getByRole('link', { name: 'Operators' }).focus();
    await page.keyboard.press('Enter');
    await page.waitForURL('**/operators');
    await page.waitForFunction(() => document.activeElement?.tagName === 'H1' && document.activeElement.textContent === 'Operators');
    expect(await page.title()).toBe('Operators · lockstep');
    await page.goBack();
    await page.getByRole('heading', { level: 1, name: 'Runs' }).waitFor();
    await watched.close();
  });
  it('keeps the theme that is chosen', async () => {
    const watched = await Watched.open(browser, world.facts.http_address, { ...kDesktop, colorScheme: 'light' });
    const { page } = watched;
    await page.goto(world.facts.http_address);
    const ground = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
    const light = await ground();
    await page.getByRole('button', { name: /^Theme/ }).click();
    await page.getByRole('button', { name: /^Theme: light/ }).click();
    expect(await ground()).not.toBe(light);
    await page.reload();
    await page.getByRole('button', { name: /^Theme: dark/ }).waitFor();
    expect(await ground()).not.toBe(light);
    await watched.close();
  });
});
