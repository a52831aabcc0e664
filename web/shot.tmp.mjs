import { chromium } from 'playwright-core';
const [url, out, scheme, w, h, full] = process.argv.slice(2);
const browser = await chromium.launch({ executablePath: '/usr/bin/chromium', args: ['--no-sandbox'] });
const page = await browser.newPage({ viewport: { width: +w, height: +h }, colorScheme: scheme });
page.on('console', (m) => console.log('console', m.text()));
await page.goto(url);
await page.waitForTimeout(2500);
await page.screenshot({ path: out, fullPage: full === 'full' });
await browser.close();
