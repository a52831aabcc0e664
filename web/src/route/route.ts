// SPDX-License-Identifier: Apache-2.0
//
// Addresses of pages: parsing and writing, without side effects. Whatever is not a page is `unknown`, never an error.
export type RunPart = 'overview' | 'steps' | 'attestations' | 'leases' | 'disputes' | 'manifest';

export type Route =
  | { page: 'runs' }
  | { page: 'run'; run: string; part: RunPart }
  | { page: 'step'; run: string; step: number }
  | { page: 'operators' }
  | { page: 'operator'; key: string }
  | { page: 'workers' }
  | { page: 'worker'; key: string }
  | { page: 'disputes' }
  | { page: 'log' }
  | { page: 'entry'; index: number }
  | { page: 'join' }
  | { page: 'proof' }
  | { page: 'unknown'; path: string };

const kHex = /^[0-9a-f]{64}$/;
const kInteger = /^(0|[1-9][0-9]{0,15})$/;
const kRunParts: RunPart[] = ['steps', 'attestations', 'leases', 'disputes', 'manifest'];

function integer(text: string | undefined): number | null {
  if (text === undefined || !kInteger.test(text)) return null;
  const value = Number(text);
  return Number.isSafeInteger(value) ? value : null;
}

export function parseRoute(path: string): Route {
  const words = path.split('/').filter((word) => word !== '');
  const unknown: Route = { page: 'unknown', path };
  const [first, second, third, fourth] = words;
  if (words.length === 0) return { page: 'runs' };
  if (words.length === 1) {
    switch (first) {
      case 'operators':
      case 'workers':
      case 'disputes':
      case 'log':
      case 'join':
      case 'proof':
        return { page: first };
      default:
        return unknown;
    }
  }
  if (first === 'log' && words.length === 2) {
    const index = integer(second);
    return index === null ? unknown : { page: 'entry', index };
  }
  if (second === undefined || !kHex.test(second)) return unknown;
  if (first === 'operators' && words.length === 2) return { page: 'operator', key: second };
  if (first === 'workers' && words.length === 2) return { page: 'worker', key: second };
  if (first !== 'runs') return unknown;
  if (words.length === 2) return { page: 'run', run: second, part: 'overview' };
  const part = kRunParts.find((name) => name === third);
  if (words.length === 3 && part) return { page: 'run', run: second, part };
  const step = integer(fourth);
  if (words.length === 4 && third === 'steps' && step !== null) return { page: 'step', run: second, step };
  return unknown;
}

export function routePath(route: Route): string {
  switch (route.page) {
    case 'runs':
      return '/';
    case 'run':
      return route.part === 'overview' ? `/runs/${route.run}` : `/runs/${route.run}/${route.part}`;
    case 'step':
      return `/runs/${route.run}/steps/${route.step}`;
    case 'operator':
      return `/operators/${route.key}`;
    case 'worker':
      return `/workers/${route.key}`;
    case 'entry':
      return `/log/${route.index}`;
    case 'unknown':
      return route.path;
    default:
      return `/${route.page}`;
  }
}
