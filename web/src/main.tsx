// SPDX-License-Identifier: Apache-2.0
//
// The dashboard begins here: styles, the visitor's theme, the connection for events, and the page.
import { render } from 'preact';
import 'uplot/dist/uPlot.min.css';
import { startLive } from './api/live';
import { App } from './app';
import { applyTheme, storedTheme } from './parts/theme';
import './style/theme.css';
import './style/page.css';
import './style/pictures.css';

applyTheme(storedTheme());
startLive();
render(<App />, document.getElementById('app')!);
