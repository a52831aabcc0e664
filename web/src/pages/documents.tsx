// SPDX-License-Identifier: Apache-2.0
//
// The documents behind a step: which texts it read, computed here from the run's public files and held against the record's cursor and
// windows. It may take some megabytes, so it is done when asked for.
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import type { RunDetail, StepDetail } from '../api/types';
import * as checks from '../checks';
import type { DocumentsProgress, Span, StepDocuments, Tokenizer } from '../checks';
import { bytes, count, counted } from '../format/format';
import { CheckList, Section, Table, Th } from '../parts/layout';
import { Name } from '../parts/text';
import { fetchArtifact } from '../verify/fetch';

const kRows = 50;
const kTokensShown = 512;

type Progress = DocumentsProgress | { phase: 'tokenizer'; done: number; total: number };

const kPhases: Record<Progress['phase'], string> = {
  manifest: 'reading the corpus manifest',
  cursor: 'looking for a state to start from',
  walk: 'following the stream, windows',
  names: 'names of documents, files',
  tokens: 'token shards, bytes',
  tokenizer: 'the tokenizer',
};

interface Found {
  documents: StepDocuments;
  tokenizer: Tokenizer | null;
  tokenizer_error: string | null;
}

export function Documents({ run, detail }: { run: RunDetail; detail: StepDetail }) {
  const [progress, setProgress] = useState<Progress | null>(null);
  const [found, setFound] = useState<Found | null>(null);
  const [error, setError] = useState<string | null>(null);
  const stop = useRef<AbortController | null>(null);
  useEffect(() => () => stop.current?.abort(), []);

  const start = async () => {
    const mine = new AbortController();
    stop.current = mine;
    setError(null);
    setProgress({ phase: 'manifest', done: 0, total: 1 });
    try {
      const answer = await find(run, detail, mine.signal, setProgress);
      if (!mine.signal.aborted) setFound(answer);
    } catch (failure) {
      if (!mine.signal.aborted) setError(failure instanceof Error ? failure.message : String(failure));
    }
    if (!mine.signal.aborted) setProgress(null);
  };
  return (
    <Section title="The documents behind this step">
      {found === null && (
        <p class="lead">
          Which texts the step read follows from the seed and the corpus alone. Your browser can work it out from the run’s public files and compare the result with
          the record’s roots; it takes some megabytes and a moment.
        </p>
      )}
      {found === null && progress === null && (
        <button type="button" class="primary" onClick={start}>
          Find the documents
        </button>
      )}
      {progress !== null && (
        <div role="status">
          <p>
            {kPhases[progress.phase]}: {count(progress.done)} of {count(progress.total)}
          </p>
          <progress value={progress.done} max={Math.max(1, progress.total)} aria-label="Progress" />{' '}
          <button
            type="button"
            onClick={() => {
              stop.current?.abort();
              setProgress(null);
            }}
          >
            Stop
          </button>
        </div>
      )}
      {error !== null && (
        <div class="message bad-news spaced-little" role="alert">
          <p>
            The documents cannot be shown: <bdi>{error}</bdi>
          </p>
        </div>
      )}
      {found !== null && <Result found={found} />}
    </Section>
  );
}

async function find(run: RunDetail, detail: StepDetail, signal: AbortSignal, onProgress: (progress: Progress) => void): Promise<Found> {
  const manifest = checks.parseRunManifest(run.manifest);
  const record = checks.decodeStepRecord(Uint8Array.from(atob(detail.record), (letter) => letter.charCodeAt(0)));
  const checkpoints = run.checkpoints.map((one) => ({ nextStep: one.step, manifest: one.manifest }));
  const documents = await checks.stepDocuments({ manifest, record, checkpoints, fetchArtifact, signal, onProgress });
  try {
    onProgress({ phase: 'tokenizer', done: 0, total: 1 });
    return { documents, tokenizer: await checks.fetchTokenizer(manifest.tokenizer, fetchArtifact, signal), tokenizer_error: null };
  } catch (failure) {
    return { documents, tokenizer: null, tokenizer_error: failure instanceof Error ? failure.message : String(failure) };
  }
}

function Result({ found }: { found: Found }) {
  const { documents, tokenizer, tokenizer_error } = found;
  const [rows, setRows] = useState(kRows);
  const [open, setOpen] = useState<Span | null>(null);
  const good = documents.checks.every((check) => check.ok);
  const names = useMemo(() => new Set(documents.spans.map((span) => `${span.sourceIndex} ${span.shard} ${span.document}`)).size, [documents]);
  return (
    <div data-testid="documents" data-good={good ? 'yes' : 'no'}>
      <p>
        {counted(names, 'document')} in {counted(documents.windows, 'window')} of {count(documents.seqLen + 1)} tokens.{' '}
        <span class="soft">
          Found from {documents.from.kind === 'beginning' ? 'the beginning of the stream' : `the state before step ${count(documents.from.step)}`};{' '}
          {bytes(documents.bytesFetched)} fetched and checked.
        </span>
      </p>
      <CheckList checks={documents.checks} />
      {documents.notes.length > 0 && (
        <ul class="small soft">
          {documents.notes.map((note) => (
            <li key={note}>
              <bdi>{note}</bdi>
            </li>
          ))}
        </ul>
      )}
      {tokenizer_error !== null && (
        <p class="bad">
          Without the tokenizer there is no text: <bdi>{tokenizer_error}</bdi>
        </p>
      )}
      <div class="spaced-little">
        <Table
          label="Stretches of documents that the step read"
          head={
            <>
              <Th number>Window</Th>
              <Th number>Rank</Th>
              <Th>Source</Th>
              <Th>Document</Th>
              <Th number>Tokens</Th>
              <Th>Text</Th>
            </>
          }
        >
          {documents.spans.slice(0, rows).map((span, n) => (
            <tr key={n}>
              <td class="number">{count(span.window)}</td>
              <td class="number">{count(span.rank)}</td>
              <td>
                <bdi>{span.source}</bdi>
              </td>
              <td>
                <Name text={span.name} none={`shard ${span.shard}, document ${span.document}`} />
              </td>
              <td class="number">
                {count(span.begin)} to {count(span.end - 1)} of {count(span.documentTokens)}
              </td>
              <td>
                <button type="button" aria-expanded={open === span} disabled={tokenizer === null} onClick={() => setOpen(open === span ? null : span)}>
                  {open === span ? 'Hide' : 'Read'}
                  <span class="hidden-text"> stretch {n + 1}</span>
                </button>
              </td>
            </tr>
          ))}
        </Table>
      </div>
      {documents.spans.length > rows && (
        <div class="pager">
          <span>
            {count(rows)} of {count(documents.spans.length)}
          </span>
          <button type="button" onClick={() => setRows(rows + 200)}>
            Show more
          </button>
        </div>
      )}
      {open !== null && tokenizer !== null && <Text documents={documents} tokenizer={tokenizer} span={open} />}
    </div>
  );
}

function Text({ documents, tokenizer, span }: { documents: StepDocuments; tokenizer: Tokenizer; span: Span }) {
  const [whole, setWhole] = useState(false);
  const tokens = documents.spanTokens(span);
  const shown = whole ? tokens : tokens.subarray(0, kTokensShown);
  return (
    <div class="spaced-little" aria-live="polite">
      <h3>
        <Name text={span.name} none={`shard ${span.shard}, document ${span.document}`} />, tokens {count(span.begin)} to {count(span.begin + shown.length - 1)}
      </h3>
      <pre class="block wrap" dir="auto" tabIndex={0} role="group" aria-label="The text">
        {tokenizer.decode(shown)}
      </pre>
      {!whole && tokens.length > kTokensShown && (
        <button type="button" onClick={() => setWhole(true)}>
          All {count(tokens.length)} tokens
        </button>
      )}
    </div>
  );
}
