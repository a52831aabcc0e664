// SPDX-License-Identifier: Apache-2.0
//
// What /events tells (docs/api.md, Events), as one type, and reading it. An event that does not have its form is passed over: the next full
// load sets things right.
import type { Hex, StateName } from './types';

export type LiveEvent =
  | { event: 'run'; run: Hex }
  | { event: 'records'; run: Hex; end_step: number }
  | { event: 'checkpoint'; run: Hex }
  | { event: 'step'; run: Hex; step: number; state: StateName }
  | { event: 'attestation'; run: Hex; step: number; log_index: number; operator: string; backend: string; verdict: string }
  | { event: 'dispute'; run: Hex; step: number; reason: string }
  | { event: 'lease'; run: Hex; begin: number; end: number; claimed: boolean }
  | { event: 'key' }
  | { event: 'evaluation'; run: Hex; step: number }
  | { event: 'reset' };

export const kEventNames = ['run', 'records', 'checkpoint', 'step', 'attestation', 'dispute', 'lease', 'key', 'evaluation', 'reset'] as const;

const kStates: readonly string[] = ['unaudited', 'claimed', 'provisional', 'confirmed', 'disputed'];

export function parseEvent(event: string, data: string): LiveEvent | null {
  if (event === 'reset') return { event };
  let body: Record<string, unknown>;
  try {
    const parsed: unknown = JSON.parse(data);
    if (typeof parsed !== 'object' || parsed === null) return null;
    body = parsed as Record<string, unknown>;
  } catch {
    return null;
  }
  const text = (name: string) => (typeof body[name] === 'string' ? body[name] : null);
  const number = (name: string) => (Number.isSafeInteger(body[name]) && (body[name] as number) >= 0 ? (body[name] as number) : null);
  if (event === 'key') return { event };
  const run = text('run');
  if (run === null) return null;
  switch (event) {
    case 'run':
    case 'checkpoint':
      return { event, run };
    case 'records': {
      const end_step = number('end_step') ?? number('next_step');
      return end_step === null ? null : { event, run, end_step };
    }
    case 'step': {
      const step = number('step');
      const state = text('state');
      return step === null || state === null || !kStates.includes(state) ? null : { event, run, step, state: state as StateName };
    }
    case 'attestation': {
      const step = number('step');
      const log_index = number('log_index');
      if (step === null || log_index === null) return null;
      return {
        event,
        run,
        step,
        log_index,
        operator: text('operator') ?? '',
        backend: text('backend') ?? '',
        verdict: text('verdict') ?? '',
      };
    }
    case 'dispute': {
      const step = number('step');
      return step === null ? null : { event, run, step, reason: text('reason') ?? '' };
    }
    case 'lease': {
      const begin = number('begin');
      const end = number('end');
      return begin === null || end === null || end < begin ? null : { event, run, begin, end, claimed: body.claimed === true };
    }
    case 'evaluation': {
      const step = number('step');
      return step === null ? null : { event, run, step };
    }
    default:
      return null;
  }
}
