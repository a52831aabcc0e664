// SPDX-License-Identifier: Apache-2.0
//
// The frame of a page: its title, the way back, sections, tables, code to copy, lists of checks.
import type { ComponentChildren } from 'preact';
import { useEffect, useId } from 'preact/hooks';
import type { Check } from '../checks';
import { Link } from '../route/navigate';
import type { Route } from '../route/route';
import { CopyButton } from './text';

export interface Crumb {
  to: Route;
  text: ComponentChildren;
}

export function PageHead({
  title,
  shown,
  crumbs,
  children,
}: {
  title: string; // of the window
  shown?: ComponentChildren; // the heading, if it is more than the title
  crumbs?: Crumb[];
  children?: ComponentChildren;
}) {
  useEffect(() => {
    document.title = title === '' ? 'lockstep' : `${title} · lockstep`;
  }, [title]);
  return (
    <>
      {crumbs && (
        <nav class="crumbs" aria-label="Way back">
          {crumbs.map((crumb) => (
            <span key={String(crumb.text)}>
              <Link to={crumb.to}>{crumb.text}</Link>
            </span>
          ))}
        </nav>
      )}
      <div class="page-head">
        <h1 tabIndex={-1}>{shown ?? title}</h1>
        {children && <div class="actions">{children}</div>}
      </div>
    </>
  );
}

export function Section({
  title,
  aside,
  className,
  children,
}: {
  title: ComponentChildren;
  aside?: ComponentChildren;
  className?: string;
  children: ComponentChildren;
}) {
  const id = useId();
  return (
    <section aria-labelledby={id} class={className}>
      <div class="section-head">
        <h2 id={id}>{title}</h2>
        {aside && <div class="actions">{aside}</div>}
      </div>
      {children}
    </section>
  );
}

// A table that scrolls sideways by itself; the keyboard can do so too.
export function Table({ label, head, children }: { label: string; head: ComponentChildren; children: ComponentChildren }) {
  return (
    <div class="table" role="group" aria-label={label} tabIndex={0}>
      <table>
        <thead>
          <tr>{head}</tr>
        </thead>
        <tbody>{children}</tbody>
      </table>
    </div>
  );
}

export function Th({ number = false, children }: { number?: boolean; children?: ComponentChildren }) {
  return (
    <th scope="col" class={number ? 'number' : undefined}>
      {children}
    </th>
  );
}

export function Field({ label, children }: { label: ComponentChildren; children: ComponentChildren }) {
  return (
    <div>
      <dt>{label}</dt>
      <dd>{children}</dd>
    </div>
  );
}

export function Readout({ label, children, note }: { label: ComponentChildren; children: ComponentChildren; note?: ComponentChildren }) {
  return (
    <div>
      <dt>{label}</dt>
      <dd>
        {children}
        {note && <small>{note}</small>}
      </dd>
    </div>
  );
}

export function Command({ text, what }: { text: string; what: string }) {
  return (
    <div class="command">
      <pre tabIndex={0} role="group" aria-label={what}>
        <code>{text}</code>
      </pre>
      <CopyButton text={text} what={what} label="Copy" />
    </div>
  );
}

export function Mark({ ok }: { ok: boolean | null }) {
  const [sign, word, color] = ok === null ? ['·', 'not checked', 'soft'] : ok ? ['✓', 'holds', 'good'] : ['✗', 'does not hold', 'bad'];
  return (
    <span class={color}>
      <span class="check-mark" aria-hidden="true">
        {sign}
      </span>
      <span class="hidden-text">{word}: </span>
    </span>
  );
}

export function CheckList({ checks }: { checks: readonly Check[] }) {
  return (
    <ul class="checks">
      {checks.map((check, n) => (
        <li key={n}>
          <Mark ok={check.ok} />
          <span>
            <bdi>{check.message}</bdi>
            {!check.ok && check.expected !== undefined && (
              <div class="small mono">
                expected <bdi>{check.expected}</bdi>, found <bdi>{check.found ?? '–'}</bdi>
              </div>
            )}
          </span>
        </li>
      ))}
    </ul>
  );
}
