// SPDX-License-Identifier: Apache-2.0
//
// What stands around every page: the header with the ways through, whether the page is live, light or dark; the footer. And which page an
// address is. A page that fails in itself says so and leaves the rest standing.
import { Component, type ComponentChildren, type JSX } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { live, type LiveState } from './api/live';
import { useResource } from './api/resource';
import type { Server } from './api/types';
import { count } from './format/format';
import { JoinPage } from './pages/join';
import { OperatorPage, OperatorsPage, WorkerPage, WorkersPage } from './pages/operators';
import { ProofPage } from './pages/proof';
import { RunPage } from './pages/run';
import { RunsPage } from './pages/runs';
import { later } from './parts/later';
import { PageHead } from './parts/layout';
import { setTheme, storedTheme, type Theme } from './parts/theme';
import { Link, Router, useRoute } from './route/navigate';
import { routePath, type Route } from './route/route';

// What checks signatures comes when it is first needed: most of the code is that.
const StepPage = later('the step', async () => (await import('./pages/step')).StepPage);
const DisputesPage = later('the disputes', async () => (await import('./pages/disputes')).DisputesPage);
const LogPage = later('the log', async () => (await import('./pages/log')).LogPage);
const EntryPage = later('the entry', async () => (await import('./pages/entry')).EntryPage);

export function App() {
  return (
    <Router>
      <a class="skip-link" href="#content">
        Skip to the content
      </a>
      <Header />
      <LostBanner />
      <main id="content" tabIndex={-1}>
        <Current />
      </main>
      <Footer />
    </Router>
  );
}

function Current(): JSX.Element {
  const route = useRoute();
  return (
    <Guard key={routePath(route)}>
      <PageOf route={route} />
    </Guard>
  );
}

function PageOf({ route }: { route: Route }): JSX.Element {
  switch (route.page) {
    case 'runs':
      return <RunsPage />;
    case 'run':
      return <RunPage run={route.run} part={route.part} />;
    case 'step':
      return <StepPage run={route.run} step={route.step} />;
    case 'operators':
      return <OperatorsPage />;
    case 'operator':
      return <OperatorPage operator={route.key} />;
    case 'workers':
      return <WorkersPage />;
    case 'worker':
      return <WorkerPage worker={route.key} />;
    case 'disputes':
      return <DisputesPage />;
    case 'log':
      return <LogPage />;
    case 'entry':
      return <EntryPage index={route.index} />;
    case 'join':
      return <JoinPage />;
    case 'proof':
      return <ProofPage />;
    case 'unknown':
      return (
        <>
          <PageHead title="No such page" />
          <p class="lead">
            There is nothing at <bdi>{route.path}</bdi>.
          </p>
          <p>
            <Link to={{ page: 'runs' }}>To the runs</Link>
          </p>
        </>
      );
  }
}

class Guard extends Component<{ children: ComponentChildren }, { error: string | null }> {
  state = { error: null };
  static getDerivedStateFromError(error: unknown) {
    return { error: error instanceof Error ? error.message : String(error) };
  }
  render() {
    if (this.state.error === null) return <>{this.props.children}</>;
    return (
      <div class="message bad-news" role="alert">
        <h1 tabIndex={-1}>This page has failed</h1>
        <p>
          It is a fault of the dashboard, not of the run: <bdi>{this.state.error}</bdi>
        </p>
        <button type="button" onClick={() => location.reload()}>
          Load it again
        </button>
      </div>
    );
  }
}

const kNavigation: { to: Route; text: string; pages: Route['page'][] }[] = [
  { to: { page: 'runs' }, text: 'Runs', pages: ['runs', 'run', 'step'] },
  { to: { page: 'operators' }, text: 'Operators', pages: ['operators', 'operator', 'workers', 'worker'] },
  { to: { page: 'disputes' }, text: 'Disputes', pages: ['disputes'] },
  { to: { page: 'log' }, text: 'Log', pages: ['log', 'entry'] },
  { to: { page: 'proof' }, text: 'What a match proves', pages: ['proof'] },
  { to: { page: 'join' }, text: 'Join', pages: ['join'] },
];

function Header() {
  const route = useRoute();
  return (
    <header class="site-header">
      <div>
        <Link to={{ page: 'runs' }} class="brand">
          <Logo />
          lockstep
        </Link>
        <nav class="site-nav" aria-label="Main">
          <ul>
            {kNavigation.map(({ to, text, pages }) => (
              <li key={text}>
                <Link to={to} aria-current={pages.includes(route.page) ? (routePath(route) === routePath(to) ? 'page' : 'true') : undefined}>
                  {text}
                </Link>
              </li>
            ))}
          </ul>
        </nav>
        <div class="header-tools">
          <LiveSign />
          <ThemeButton />
        </div>
      </div>
    </header>
  );
}

function Logo() {
  return (
    <svg width="20" height="20" viewBox="0 0 16 16" aria-hidden="true">
      <g fill="none" stroke="currentColor" stroke-width="2.4" stroke-linecap="square">
        <path d="M2.2 3.2h4.2M9.6 8h4.2M2.2 12.8h4.2" opacity=".4" />
        <path d="M9.6 3.2h4.2M2.2 8h4.2M9.6 12.8h4.2" />
      </g>
    </svg>
  );
}

function useLiveState(): LiveState {
  const [state, setState] = useState(live.state);
  useEffect(() => {
    setState(live.state);
    return live.watch(setState);
  }, []);
  return state;
}

const kLiveWords: Record<LiveState, [string, string]> = {
  live: ['Live', 'What happens is shown as it happens'],
  connecting: ['Connecting', 'Connecting to the coordinator'],
  lost: ['Not live', 'The connection is lost; trying again'],
};

function LiveSign() {
  const state = useLiveState();
  const [word, meaning] = kLiveWords[state];
  return (
    <span class="live" title={meaning} role="status" data-live={state}>
      <svg width="10" height="10" viewBox="0 0 10 10" aria-hidden="true">
        {state === 'live' ? (
          <circle cx="5" cy="5" r="4" class="live-dot" />
        ) : (
          <circle cx="5" cy="5" r="3.5" fill="none" stroke="currentColor" stroke-width="1.5" stroke-dasharray={state === 'lost' ? '3 2' : undefined} />
        )}
      </svg>
      {word}
    </span>
  );
}

function ThemeButton() {
  const [theme, choose] = useState<Theme>(storedTheme);
  const next: Theme = theme === 'system' ? 'light' : theme === 'light' ? 'dark' : 'system';
  const words: Record<Theme, string> = { system: 'Theme: system', light: 'Theme: light', dark: 'Theme: dark' };
  return (
    <button
      type="button"
      class="plain"
      aria-label={`${words[theme]}. Change to ${next}`}
      title={words[theme]}
      onClick={() => {
        setTheme(next);
        choose(next);
      }}
    >
      <svg width="18" height="18" viewBox="0 0 18 18" aria-hidden="true" fill="none" stroke="currentColor" stroke-width="1.4">
        <circle cx="9" cy="9" r="6.3" />
        {theme === 'system' && <path d="M9 2.7a6.3 6.3 0 0 1 0 12.6z" fill="currentColor" />}
        {theme === 'dark' && <circle cx="9" cy="9" r="6.3" fill="currentColor" />}
      </svg>
    </button>
  );
}

function LostBanner() {
  const state = useLiveState();
  const [shown, setShown] = useState(false);
  useEffect(() => {
    if (state === 'live') setShown(false);
    if (state !== 'lost') return;
    // A short break is mended before anybody needs to know.
    const timer = setTimeout(() => setShown(true), 2_500);
    return () => clearTimeout(timer);
  }, [state]);
  if (!shown) return null;
  return (
    <div class="banner" role="status">
      <p>The connection to the coordinator is lost. What you see may be old; it goes on by itself when the coordinator is back.</p>
    </div>
  );
}

function Footer() {
  const server = useResource<Server>('/api/v1/server');
  return (
    <footer class="site-footer">
      <div>
        {server.data && (
          <>
            <span>
              Log <bdi class="mono">{server.data.origin}</bdi>
            </span>
            <span>
              Coordinator <bdi>{server.data.version}</bdi>
            </span>
            <span>{count(server.data.log_size)} entries</span>
          </>
        )}
        <a href="/api/v1/runs">JSON API</a>
        <span>Nothing is loaded from anywhere else.</span>
      </div>
    </footer>
  );
}
