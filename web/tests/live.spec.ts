// SPDX-License-Identifier: Apache-2.0
//
// A page that stays open while things happen: attestations arrive, a stranger with a hostile name joins, the coordinator goes and comes back.
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { kDesktop, launch, Watched, World } from './programs';

let world: World;
let browser: Browser;
let run: string;

beforeAll(async () => {
  [world, browser] = await Promise.all([World.start(), launch()]);
  run = (await (await fetch(`${world.facts.http_address}/api/v1/runs`)).json()).runs[0].run;
});
afterAll(async () => {
  await browser?.close();
  await world?.end();
});

describe('live', () => {
  it('steps, attestations and the map follow without a reload', async () => {
    const watched = await Watched.open(browser, world.facts.http_address);
    const { page } = watched;
    await page.goto(`${world.facts.http_address}/runs/${run}`);
    await page.locator('[data-live=live]').waitFor();
    await page.getByText('11 of 12 steps').waitFor();
    let loads = 0;
    page.on('request', (request) => (loads += request.resourceType() === 'document' ? 1 : 0));
    const before = await page.getByTestId('map').locator('canvas').screenshot();
    await world.tell('publish 18');
    // Six more steps come, and two workers attest each.
    await page.getByText('17 of 18 steps').waitFor();
    await page.getByRole('row').filter({ hasText: '✓ match' }).first().waitFor();
    await page.getByRole('link', { name: 'All 36' }).waitFor();
    const after = await page.getByTestId('map').locator('canvas').screenshot();
    expect(after.equals(before)).toBe(false);
    expect(loads).toBe(0);
    expect(watched.wrong).toEqual([]);
    await watched.close();
  });

  it('a step’s own page gets its attestations as they come', async () => {
    const watched = await Watched.open(browser, world.facts.http_address);
    const { page } = watched;
    await world.tell('rest');
    await world.tell('publish 21');
    await page.goto(`${world.facts.http_address}/runs/${run}/steps/19`);
    await page.getByText('1 of 1 attestation hold').waitFor();
    await page.locator('.readouts').getByText('provisional').waitFor();
    await world.tell('new');
    await page.getByText('2 of 2 attestations hold').waitFor();
    await page.locator('.readouts').getByText('confirmed').waitFor();
    expect(await page.getByRole('article', { name: /^Attestation by/ }).count()).toBe(2);
    expect(watched.wrong).toEqual([]);
    await watched.close();
  });

  it('hostile names are text and nothing else', async () => {
    const watched = await Watched.open(browser, world.facts.http_address);
    const { page } = watched;
    for (const path of ['/operators', '/workers', `/runs/${run}`, `/runs/${run}/attestations`, `/runs/${run}/steps/5`, '/log/0']) {
      await page.goto(world.facts.http_address + path);
      await page.getByText(world.facts.names[0]!).first().waitFor({ state: 'attached' });
      expect(await page.locator('img, main script').count()).toBe(0);
    }
    await page.goto(`${world.facts.http_address}/operators`);
    await page.getByRole('link', { name: 'N'.repeat(64) }).waitFor();
    const names = await page.locator('tbody th bdi').allInnerTexts();
    expect(names[0]).toBe(world.facts.names[0]);
    expect(names.join('')).not.toMatch(/[\u202a-\u202e\u2066-\u2069]/);
    await page.getByRole('link', { name: world.facts.names[0] }).click();
    await page.getByRole('heading', { level: 1, name: world.facts.names[0] }).waitFor();
    expect(await page.title()).toBe(`${world.facts.names[0]} · lockstep`);
    expect(watched.wrong).toEqual([]);
    await watched.close();
  });

  it('goes on when the coordinator is away, says so, and catches up', async () => {
    const watched = await Watched.open(browser, world.facts.http_address, kDesktop);
    const { page } = watched;
    await page.goto(`${world.facts.http_address}/runs/${run}`);
    await page.locator('[data-live=live]').waitFor();
    await page.getByText('20 of 21 steps').waitFor();
    await world.tell('stop');
    await page.locator('[data-live=lost]').waitFor();
    await page.getByText('The connection to the coordinator is lost').waitFor();
    // What was there is still there; what was not says why.
    expect(await page.getByText('20 of 21 steps').count()).toBe(1);
    await page.getByRole('link', { name: 'Join' }).click();
    await page.getByRole('heading', { name: 'Lend a machine' }).waitFor();
    await page.getByRole('link', { name: 'Operators', exact: true }).click();
    await page.getByText('The coordinator cannot be reached').waitFor();
    await page.getByRole('link', { name: 'Log', exact: true }).click();
    await page.getByText(/cannot be (reached|loaded)/).first().waitFor();
    await world.tell('start');
    await page.locator('[data-live=live]').waitFor({ timeout: 45_000 });
    await page.getByRole('link', { name: 'Operators', exact: true }).click();
    await page.getByRole('row').nth(1).waitFor();
    await watched.close();
  });
});

describe('nothing there', () => {
  it.each([
    ['/runs/' + 'ab'.repeat(32), 'Not here'],
    ['/operators/' + 'ab'.repeat(32), 'Not here'],
    ['/log/99999999', 'Not here'],
  ])('%s', async (path, words) => {
    const watched = await Watched.open(browser, world.facts.http_address);
    await watched.page.goto(world.facts.http_address + path);
    await watched.page.getByText(words).first().waitFor();
    await watched.page.getByRole('button', { name: 'Try again' }).first().waitFor();
    await watched.close();
  });
});
