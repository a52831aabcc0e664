// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import { parseEvent } from './events';

const kRun = 'a'.repeat(64);

describe('parseEvent', () => {
  it('reads what docs/api.md has', () => {
    expect(parseEvent('step', `{"run":"${kRun}","step":7,"state":"confirmed"}`)).toEqual({ event: 'step', run: kRun, step: 7, state: 'confirmed' });
    expect(parseEvent('records', `{"run":"${kRun}","first_step":3,"end_step":9,"next_step":9}`)).toEqual({ event: 'records', run: kRun, end_step: 9 });
    expect(parseEvent('records', `{"run":"${kRun}","next_step":9}`)).toEqual({ event: 'records', run: kRun, end_step: 9 });
    expect(parseEvent('lease', `{"run":"${kRun}","begin":3,"end":9,"claimed":true}`)).toEqual({ event: 'lease', run: kRun, begin: 3, end: 9, claimed: true });
    expect(parseEvent('key', '{"operator":"00"}')).toEqual({ event: 'key' });
    expect(parseEvent('reset', '')).toEqual({ event: 'reset' });
    expect(parseEvent('attestation', `{"run":"${kRun}","step":1,"log_index":2,"operator":"<b>","backend":"x86-avx2","verdict":"match"}`)).toMatchObject({ operator: '<b>' });
  });
  it.each([
    ['step', '{"run":"a","step":-1,"state":"confirmed"}'],
    ['step', '{"run":"a","step":1.5,"state":"confirmed"}'],
    ['step', '{"run":"a","step":1,"state":"toString"}'],
    ['step', '{"run":"a","step":1e300,"state":"confirmed"}'],
    ['step', '{"run":7,"step":1,"state":"confirmed"}'],
    ['lease', '{"run":"a","begin":9,"end":3,"claimed":true}'],
    ['records', '{"run":"a"}'],
    ['step', 'null'],
    ['step', '[]'],
    ['step', '{'],
    ['surprise', '{"run":"a"}'],
  ])('passes over %s %s', (event, data) => expect(parseEvent(event, data)).toBeNull());
});
