// SPDX-License-Identifier: Apache-2.0
//
// Asking the coordinator. One kind of error, which says what a page should show: nothing there, refused, or out of reach. The browser's
// cache keeps the ETags and asks again with them.
import type { Page } from './types';

export type FailureKind =
  | 'offline' // no answer at all
  | 'busy' // 429, 503 and the like: worth asking again
  | 'absent' // 404: the coordinator knows nothing of the sort
  | 'refused'; // any other answer that is no success

export class Failure extends Error {
  constructor(
    readonly kind: FailureKind,
    readonly reason: string,
    message: string,
  ) {
    super(message);
    this.name = 'Failure';
  }
}

async function failureOf(answer: Response): Promise<Failure> {
  const kind = answer.status === 404 ? 'absent' : answer.status === 429 || answer.status >= 500 ? 'busy' : 'refused';
  let reason = `HTTP_${answer.status}`;
  let message = `the coordinator answered ${answer.status}`;
  try {
    const body: unknown = await answer.json();
    if (typeof body === 'object' && body !== null && 'error' in body) {
      const error = body.error as { reason?: unknown; message?: unknown };
      if (typeof error.reason === 'string') reason = error.reason;
      if (typeof error.message === 'string') message = error.message;
    }
  } catch {
    // No JSON: a proxy's page, or a refusal of the server itself. The status says enough.
  }
  return new Failure(kind, reason, message);
}

// Throws Failure; an AbortError if the signal said so.
export async function ask(path: string, signal?: AbortSignal, headers?: Record<string, string>): Promise<Response> {
  let answer: Response;
  try {
    answer = await fetch(path, { signal, headers, credentials: 'omit', redirect: 'error' });
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new Failure('offline', 'OFFLINE', 'the coordinator cannot be reached');
  }
  if (!answer.ok) throw await failureOf(answer);
  return answer;
}

export async function askJson<T>(path: string, signal?: AbortSignal): Promise<T> {
  const answer = await ask(path, signal);
  try {
    return (await answer.json()) as T;
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new Failure('refused', 'NOT_JSON', 'the answer is not JSON, or was cut off');
  }
}

// `path` with the parameters that are given.
export function withQuery(path: string, query: Record<string, string | number | null | undefined>): string {
  const words = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (value !== null && value !== undefined && value !== '') words.set(name, String(value));
  }
  const text = words.toString();
  return text === '' ? path : `${path}?${text}`;
}

// All pages of a list, up to `most` items: for lists that are short by nature.
export async function askAll<Name extends string, Item>(path: string, name: Name, most: number, signal?: AbortSignal): Promise<Item[]> {
  const items: Item[] = [];
  let page: string | null = null;
  do {
    const answer: Page<Name, Item> = await askJson(withQuery(path, { limit: 1000, page }), signal);
    items.push(...(answer[name] as Item[]));
    page = answer.next;
  } while (page !== null && items.length < most);
  return items;
}
