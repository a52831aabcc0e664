// SPDX-License-Identifier: Apache-2.0
//
// Text to the clipboard. Over plain http, which coordinators on a home network speak, browsers have no navigator.clipboard.
export async function copyText(text: string): Promise<boolean> {
  if (navigator.clipboard) {
    try {
      await navigator.clipboard.writeText(text);
      return true;
    } catch {
      // Refused: the old way may still be open.
    }
  }
  const before = document.activeElement;
  const area = document.createElement('textarea');
  area.value = text;
  area.style.position = 'fixed';
  area.style.opacity = '0';
  document.body.append(area);
  area.select();
  try {
    return document.execCommand('copy');
  } finally {
    area.remove();
    if (before instanceof HTMLElement) before.focus();
  }
}
