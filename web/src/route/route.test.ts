// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import { parseRoute, routePath, type Route } from './route';

const kRun = '0123456789abcdef'.repeat(4);
const kRoutes: [string, Route][] = [
  ['/', { page: 'runs' }],
  [`/runs/${kRun}`, { page: 'run', run: kRun, part: 'overview' }],
  [`/runs/${kRun}/steps`, { page: 'run', run: kRun, part: 'steps' }],
  [`/runs/${kRun}/attestations`, { page: 'run', run: kRun, part: 'attestations' }],
  [`/runs/${kRun}/leases`, { page: 'run', run: kRun, part: 'leases' }],
  [`/runs/${kRun}/disputes`, { page: 'run', run: kRun, part: 'disputes' }],
  [`/runs/${kRun}/manifest`, { page: 'run', run: kRun, part: 'manifest' }],
  [`/runs/${kRun}/steps/0`, { page: 'step', run: kRun, step: 0 }],
  [`/runs/${kRun}/steps/80956`, { page: 'step', run: kRun, step: 80956 }],
  ['/operators', { page: 'operators' }],
  [`/operators/${kRun}`, { page: 'operator', key: kRun }],
  ['/workers', { page: 'workers' }],
  [`/workers/${kRun}`, { page: 'worker', key: kRun }],
  ['/disputes', { page: 'disputes' }],
  ['/log', { page: 'log' }],
  ['/log/17', { page: 'entry', index: 17 }],
  ['/join', { page: 'join' }],
  ['/proof', { page: 'proof' }],
];

describe('routes', () => {
  it.each(kRoutes)('%s', (path, route) => {
    expect(parseRoute(path)).toEqual(route);
    expect(routePath(route)).toBe(path);
  });
  it.each([
    '/nothing', '/runs', '/runs/abc', `/runs/${kRun.toUpperCase()}`, `/runs/${kRun}/steps/01`, `/runs/${kRun}/steps/-1`, `/runs/${kRun}/steps/1e3`,
    `/runs/${kRun}/overview`, `/runs/${kRun}/steps/9007199254740993`, '/log/x', '/log/1/2', '/leases', `/runs/${kRun}/leases/0`, `/operators/${kRun}/x`, `/disputes/${kRun}`, '/__proto__', '/constructor',
  ])('%s is no page', (path) => expect(parseRoute(path)).toEqual({ page: 'unknown', path }));
  it('takes a slash at the end', () => expect(parseRoute('/log/')).toEqual({ page: 'log' }));
});
