// SPDX-License-Identifier: Apache-2.0
//
// A list of the API, a page at a time. The tokens of the pages before are kept, so that one can go back.
import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';
import { withQuery } from '../api/client';
import type { LiveEvent } from '../api/events';
import { useResource } from '../api/resource';
import type { Page } from '../api/types';
import { Empty, Show } from './loaded';

export function Paged<Name extends string, Item>({
  path,
  query = {},
  name,
  what,
  empty,
  limit = 50,
  fresh,
  children,
}: {
  path: string;
  query?: Record<string, string | number | null | undefined>;
  name: Name;
  what: string;
  empty: ComponentChildren;
  limit?: number;
  fresh: (event: LiveEvent) => boolean;
  children: (items: Item[]) => ComponentChildren;
}) {
  const list = withQuery(path, { ...query, limit });
  const [tokens, setTokens] = useState<{ list: string; pages: string[] }>({ list, pages: [] });
  const pages = tokens.list === list ? tokens.pages : [];
  const page = pages[pages.length - 1] ?? null;
  const loaded = useResource<Page<Name, Item>>(withQuery(path, { ...query, limit, page }), fresh);
  return (
    <Show of={loaded} what={what}>
      {(answer) => {
        const items = answer[name] as Item[];
        return (
          <>
            {items.length > 0 ? (
              children(items)
            ) : (
              // A filtered list may have nothing on a page and go on.
              <Empty>{answer.next !== null ? 'None on this page. There are older ones to look through.' : pages.length === 0 ? empty : 'Nothing more.'}</Empty>
            )}
            {(pages.length > 0 || answer.next !== null) && (
              <nav class="pager" aria-label={`Pages of ${what}`}>
                <button type="button" disabled={pages.length === 0} onClick={() => setTokens({ list, pages: [] })}>
                  First
                </button>
                <button type="button" disabled={pages.length === 0} onClick={() => setTokens({ list, pages: pages.slice(0, -1) })}>
                  Back
                </button>
                <span aria-live="polite">Page {pages.length + 1}</span>
                <button
                  type="button"
                  disabled={answer.next === null}
                  onClick={() => answer.next !== null && setTokens({ list, pages: [...pages, answer.next] })}
                >
                  Next
                </button>
              </nav>
            )}
          </>
        );
      }}
    </Show>
  );
}

export function Exports({ path, what }: { path: string; what: string }) {
  return (
    <span>
      Export{' '}
      <a href={`${path}.csv`} download>
        CSV<span class="hidden-text"> of {what}</span>
      </a>{' '}
      ·{' '}
      <a href={`${path}.jsonl`} download>
        JSONL<span class="hidden-text"> of {what}</span>
      </a>
    </span>
  );
}
