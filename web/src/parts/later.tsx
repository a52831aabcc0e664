// SPDX-License-Identifier: Apache-2.0
//
// A part of the dashboard that is loaded when it is first shown. Its file has a hashed name: after the coordinator was given another dashboard
// it may be gone, and the page has to be loaded anew.
import type { ComponentType, JSX } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { Loading } from './loaded';

export function later<Props extends object>(what: string, load: () => Promise<ComponentType<Props>>): (props: Props) => JSX.Element {
  let loaded: ComponentType<Props> | null = null;
  return function Later(props: Props) {
    const [, show] = useState(0);
    const [failed, setFailed] = useState(false);
    useEffect(() => {
      if (loaded !== null) return;
      load().then(
        (component) => {
          loaded = component;
          show((n) => n + 1);
        },
        () => setFailed(true),
      );
    }, []);
    if (loaded !== null) {
      const Loaded = loaded;
      return <Loaded {...props} />;
    }
    if (!failed) return <Loading what={what} />;
    return (
      <div class="message bad-news" role="alert">
        <h2>This part of the dashboard cannot be loaded</h2>
        <p>The coordinator is out of reach, or it has another dashboard by now.</p>
        <button type="button" onClick={() => location.reload()}>
          Load the page again
        </button>
      </div>
    );
  };
}
