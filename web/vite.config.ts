// SPDX-License-Identifier: Apache-2.0
//
// How the dashboard is built: one folder, dist/, of files with hashed names that the coordinator serves under / (docs/api.md). Nothing in it
// is inline, since the pages' content security policy is default-src 'self'. `npm run dev` serves the sources and passes the API on to a
// coordinator, LOCKSTEP_HTTP (http://127.0.0.1:7442); `--mode fixture` makes one up instead (testing/fixture.ts).
import { defineConfig } from 'vitest/config';
import { fixture } from './testing/fixture';

const coordinator = process.env.LOCKSTEP_HTTP ?? 'http://127.0.0.1:7442';
const served = ['/api', '/events', '/checkpoint', '/tile', '/artifact', '/healthz', '/metrics'];

export default defineConfig(({ mode }) => ({
  build: {
    target: 'es2022',
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: true,
  },
  plugins: mode === 'fixture' ? [fixture()] : [],
  server: { proxy: mode === 'fixture' ? {} : Object.fromEntries(served.map((path) => [path, coordinator])) },
  // No time is a criterion: what hangs, hangs for long.
  test: { include: ['src/**/*.test.ts'], environment: 'node', testTimeout: 600_000, hookTimeout: 600_000 },
}));
