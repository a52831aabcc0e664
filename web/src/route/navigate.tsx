// SPDX-License-Identifier: Apache-2.0
//
// Going from page to page without loading anew. Links are ordinary links: they open in a new tab, can be copied, and work by keyboard.
import { createContext, type ComponentChildren, type JSX } from 'preact';
import { useContext, useEffect, useState } from 'preact/hooks';
import { parseRoute, routePath, type Route } from './route';

const Current = createContext<Route>({ page: 'runs' });

export const useRoute = (): Route => useContext(Current);

const kMoved = 'lockstep:moved';

export function go(route: Route, options: { replace?: boolean } = {}): void {
  const path = routePath(route);
  if (options.replace) history.replaceState(null, '', path);
  else history.pushState(null, '', path);
  dispatchEvent(new CustomEvent(kMoved, { detail: { scroll: true } }));
}

// Holds the page's address. After a move the page begins at its top, and the main heading gets the focus, so that a screen reader says where
// one is.
export function Router({ children }: { children: ComponentChildren }): JSX.Element {
  const [route, setRoute] = useState(() => parseRoute(location.pathname));
  useEffect(() => {
    const moved = (event: Event) => {
      setRoute(parseRoute(location.pathname));
      if (!(event instanceof CustomEvent)) return;
      scrollTo(0, 0);
      requestAnimationFrame(() => document.querySelector<HTMLElement>('main h1')?.focus({ preventScroll: true }));
    };
    addEventListener('popstate', moved);
    addEventListener(kMoved, moved);
    return () => {
      removeEventListener('popstate', moved);
      removeEventListener(kMoved, moved);
    };
  }, []);
  return <Current.Provider value={route}>{children}</Current.Provider>;
}

interface LinkProps {
  to: Route;
  children: ComponentChildren;
  class?: string;
  'aria-current'?: 'page' | 'true' | undefined;
}

export function Link({ to, children, ...rest }: LinkProps) {
  const follow = (event: MouseEvent) => {
    if (event.defaultPrevented || event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
    event.preventDefault();
    go(to);
  };
  return (
    <a {...rest} href={routePath(to)} onClick={follow}>
      {children}
    </a>
  );
}
