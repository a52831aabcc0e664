// SPDX-License-Identifier: Apache-2.0
//
// What a match proves, and what it does not: docs/attestation.md and docs/verify.md in plain words.
import { Command, PageHead, Section } from '../parts/layout';
import { State } from '../parts/text';
import { Link } from '../route/navigate';
import { useResource } from '../api/resource';
import type { Server } from '../api/types';

export function ProofPage() {
  const server = useResource<Server>('/api/v1/server');
  return (
    <div class="prose">
      <PageHead title="What a match proves, and what it does not" />
      <p class="lead">
        Training is a long chain of arithmetic. Here every machine does it in the same written order, so that two honest machines get the same result to the last bit. Any difference is therefore evidence.
      </p>
      <div class="versus">
        <Section title="It proves" className="proves">
          <p>A confirmed step says that as many operators as the run asks for, each on their own,</p>
          <ul>
            <li>computed this step from the state that the chain commits to, under the run’s numerics, and got the published record to the last bit: all parameters, both moments, the gradient, the windows of text that were read, the losses;</li>
            <li>had committed to every part of the computation before anybody knew which parts would be asked for, and then showed those. Whoever only copies the published hashes cannot.</li>
          </ul>
          <p>And the chain says that the steps follow each other: none was left out, repeated or changed since.</p>
        </Section>
        <Section title="It does not prove" className="not">
          <ul>
            <li>
              <b>That operators are different people.</b> No log can show that. Whoever needs to know it has to know the people: <code>lockstep verify --trust</code> takes a list.
            </li>
            <li>
              <b>That other steps are right.</b> The state before a step is the business of the step before. An unaudited step between two confirmed ones is unaudited.
            </li>
            <li>
              <b>That the data, the recipe or the model are good,</b> or lawful, or that the trainer has not trained another model beside this one.
            </li>
            <li>
              <b>Which machine was at work.</b> What a worker says about its hardware is its word.
            </li>
            <li>
              <b>That nobody cheated where few look.</b> Who computes part of a step may be lucky with few openings. But one honest mismatch by somebody you trust disputes the step.
            </li>
          </ul>
        </Section>
      </div>
      <Section title="States of a step">
        <dl class="fields">
          <div>
            <dt>
              <State state="confirmed" />
            </dt>
            <dd>Matches that count, by as many different operators on as many kinds of backend as the run’s quorum asks for.</dd>
          </div>
          <div>
            <dt>
              <State state="provisional" />
            </dt>
            <dd>At least one match counts; the quorum is not reached.</dd>
          </div>
          <div>
            <dt>
              <State state="claimed" />
            </dt>
            <dd>Somebody has taken the step to replay it. The coordinator’s knowledge, not evidence.</dd>
          </div>
          <div>
            <dt>
              <State state="disputed" />
            </dt>
            <dd>A registered worker found another record, or the trainer signed two. Both are kept. It does not say who is right, and it is never outvoted.</dd>
          </div>
          <div>
            <dt>
              <State state="unaudited" />
            </dt>
            <dd>Published, and nobody has replayed it.</dd>
          </div>
        </dl>
      </Section>
      <Section title="Why the coordinator need not be trusted">
        <p>
          Records are signed by the trainer and attestations by workers; the coordinator can forge neither. All stand in a <Link to={{ page: 'log' }}>log</Link> with a signed head, of which everybody can see that it only grows. Whoever hands something in
          gets a receipt: a log that drops an entry contradicts its own signature. This dashboard checks signatures, chain and receipts in your browser and says where something does not hold.
        </p>
        <p>What a coordinator can do is to show you an old copy, or a log of its own. Against that helps a head that you, or somebody you know, saw before.</p>
      </Section>
      <Section title="Check it without this page">
        <p>The dashboard comes from the coordinator, too. For a verdict that depends on nothing it serves but bytes, take the log and verify it on your machine, offline, with a log key that you had from the trainer:</p>
        <Command
          what="The commands to verify"
          text={`lockstep bundle ${location.origin} --log-key KEY --out run.bundle\nlockstep verify run.bundle --log-key KEY --trust operators.txt`}
        />
        {server.data && (
          <p class="small soft">
            This coordinator says that its key is{' '}
            <code>
              <bdi>{server.data.log_key}</bdi>
            </code>
            . Compare it with what the trainer says.
          </p>
        )}
        <p>
          And nobody’s word at all: replay a step yourself, <code>lockstep replay RUN --steps N</code>, or <Link to={{ page: 'join' }}>let your machine do so</Link>.
        </p>
      </Section>
    </div>
  );
}
