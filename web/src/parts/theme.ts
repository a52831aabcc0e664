// SPDX-License-Identifier: Apache-2.0
//
// Light or dark: the system's choice, or the visitor's, which their browser keeps. Pictures ask here when to be drawn anew.
import { useEffect, useState } from 'preact/hooks';

export type Theme = 'system' | 'light' | 'dark';

const kName = 'lockstep.theme';
const kChanged = 'lockstep:theme';

export function storedTheme(): Theme {
  try {
    const value = localStorage.getItem(kName);
    return value === 'light' || value === 'dark' ? value : 'system';
  } catch {
    return 'system'; // storage is switched off
  }
}

export function applyTheme(theme: Theme): void {
  const root = document.documentElement;
  if (theme === 'system') delete root.dataset.theme;
  else root.dataset.theme = theme;
  dispatchEvent(new Event(kChanged));
}

export function setTheme(theme: Theme): void {
  try {
    if (theme === 'system') localStorage.removeItem(kName);
    else localStorage.setItem(kName, theme);
  } catch {
    // It lasts as long as the page, then.
  }
  applyTheme(theme);
}

// Another number after each change of colours.
export function useThemeVersion(): number {
  const [version, setVersion] = useState(0);
  useEffect(() => {
    const changed = () => setVersion((n) => n + 1);
    const media = matchMedia('(prefers-color-scheme: dark)');
    media.addEventListener('change', changed);
    addEventListener(kChanged, changed);
    return () => {
      media.removeEventListener('change', changed);
      removeEventListener(kChanged, changed);
    };
  }, []);
  return version;
}

export function cssColor(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

export function cssRgb(name: string): [number, number, number] {
  const digits = /^#([0-9a-f]{6})/i.exec(cssColor(name))?.[1] ?? '808080';
  return [0, 2, 4].map((at) => parseInt(digits.slice(at, at + 2), 16)) as [number, number, number];
}
