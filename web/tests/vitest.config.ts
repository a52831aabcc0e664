// SPDX-License-Identifier: Apache-2.0
//
// The browser tests: one file after another, since each starts programs and a browser.
import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['tests/**/*.spec.ts'],
    environment: 'node',
    fileParallelism: false,
    testTimeout: 60_000,
    hookTimeout: 600_000,
  },
});
