// SPDX-License-Identifier: Apache-2.0
//
// How to lend a machine: the exact commands, for the visitor's own, at this coordinator.
import { useEffect, useState } from 'preact/hooks';
import { useResource } from '../api/resource';
import type { Server } from '../api/types';
import { defaultHardware, guessSystem, joinSteps, kSystems, type System } from '../join/platform';
import { Command, PageHead, Section } from '../parts/layout';
import { Show } from '../parts/loaded';
import { Link } from '../route/navigate';

interface AgentData {
  platform: string;
  getHighEntropyValues?: (names: string[]) => Promise<{ architecture?: string }>;
}

function useGuess(): System {
  const data = (navigator as { userAgentData?: AgentData }).userAgentData;
  const hints = { userAgent: navigator.userAgent, platform: data?.platform ?? navigator.platform ?? '' };
  const [system, setSystem] = useState(() => guessSystem(hints));
  useEffect(() => {
    data?.getHighEntropyValues?.(['architecture']).then(
      ({ architecture }) => setSystem(guessSystem({ ...hints, architecture })),
      () => {
        // Refused: the first guess stands.
      },
    );
  }, []);
  return system;
}

export function JoinPage() {
  const server = useResource<Server>('/api/v1/server');
  const guess = useGuess();
  const [chosen, setChosen] = useState<System | null>(null);
  const [operator, setOperator] = useState('');
  const [hardware, setHardware] = useState('');
  const system = chosen ?? guess;
  const cpus = navigator.hardwareConcurrency ?? 0;
  return (
    <>
      <PageHead title="Lend a machine" />
      <p class="lead">
        Your machine recomputes steps of these runs when it has nothing better to do, and signs what it finds. The more machines of different people and different kinds agree, the less anybody has to believe whoever trained the model.
      </p>
      <Show of={server} what="the coordinator's address">
        {(found) => (
          <>
            <Section title="Your machine">
              <fieldset>
                <legend>System</legend>
                <div class="choices">
                  {kSystems.map((one) => (
                    <label key={one.system}>
                      <input type="radio" name="system" value={one.system} checked={system === one.system} onChange={() => setChosen(one.system)} />
                      {one.text}
                    </label>
                  ))}
                </div>
              </fieldset>
              <div class="form">
                <label>
                  Your name, or a group’s
                  <input value={operator} maxLength={64} autocomplete="nickname" placeholder="Your name" onInput={(event) => setOperator(event.currentTarget.value)} />
                </label>
                <label>
                  The machine, in your words
                  <input value={hardware} maxLength={128} placeholder={defaultHardware(system, cpus)} onInput={(event) => setHardware(event.currentTarget.value)} />
                </label>
              </div>
              <p class="small soft">Nothing that you type here leaves this page; it only goes into the commands below.</p>
            </Section>
            <Section title="Commands">
              <ol class="steps">
                {joinSteps({ system, worker_url: found.worker_url, operator, hardware, cpus }).map((step) => (
                  <li key={step.title}>
                    <h3>{step.title}</h3>
                    {step.note && <p class="soft">{step.note}</p>}
                    <Command text={step.text} what={step.title} />
                  </li>
                ))}
              </ol>
            </Section>
            <Section title="What it does to your machine">
              <ul>
                <li>It computes at the lowest priority, and pauses for you, on battery, under other load, outside the hours that you allow, and when the disk gets short.</li>
                <li>It downloads states and token data by their SHA-256, up to a cap (50 GiB unless you say otherwise), and runs no code that comes from the network.</li>
                <li>It makes outgoing connections only. Nothing listens on the network.</li>
                <li>It needs a 64-bit processor, with AVX2, AVX-512 or NEON to be of use.</li>
                <li>It publishes, for ever: your name, what you say of the machine, the processor’s name and number of threads, and for each step it checked, when.</li>
              </ul>
              <p>
                <code>lockstep-worker status</code> says what it is doing or why not; <code>pause</code>, <code>resume</code> and <code>stop</code> do what they say. A second machine has its own key: see docs/worker.md.{' '}
                <Link to={{ page: 'proof' }}>What your matches will prove</Link>
              </p>
            </Section>
          </>
        )}
      </Show>
    </>
  );
}
