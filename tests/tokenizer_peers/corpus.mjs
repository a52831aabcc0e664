// SPDX-License-Identifier: Apache-2.0
//
// Every document that `lockstep tokenizer encode --json --with-text` printed against every peer, on all processors.
import { createReadStream } from 'node:fs';
import { availableParallelism } from 'node:os';
import { createInterface } from 'node:readline';
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads';

import { firstDifference, readExports, sameIds } from './ids.mjs';
import { makePeer, PEER_NAMES } from './peers.mjs';

const SHOWN_MAX = 10;

// One peer over every share.count-th line of the file of ids.
async function compareShare({ name, exports, ids, share }) {
  const peer = await makePeer(name, exports);
  const result = { documents: 0, tokens: 0, bytes: 0, seconds: 0, differing: [] };
  let line_number = 0;
  for await (const line of createInterface({ input: createReadStream(ids), crlfDelay: Infinity })) {
    if (line_number++ % share.count !== share.index) continue;
    const document = JSON.parse(line);
    const started = performance.now();
    const theirs = await peer.encode(document.text);
    result.seconds += (performance.now() - started) / 1e3;
    result.documents += 1;
    result.tokens += document.ids.length;
    result.bytes += Buffer.byteLength(document.text);
    if (!sameIds(document.ids, theirs)) {
      result.differing.push(`${document.name}: ${firstDifference(document.ids, theirs)}`);
    }
  }
  return result;
}

function inWorker(job) {
  return new Promise((resolve, reject) => {
    const worker = new Worker(new URL(import.meta.url), { workerData: job });
    worker.once('message', resolve);
    worker.once('error', reject);
  });
}

export async function checkCorpus(options) {
  const exports = readExports(options);
  const count = availableParallelism();
  let failed = false;
  for (const name of PEER_NAMES) {
    const started = performance.now();
    const shares = Array.from({ length: count }, (_, index) => ({ index, count }));
    const parts = await Promise.all(shares.map((share) => inWorker({ name, exports, ids: options.ids, share })));
    const sum = (key) => parts.reduce((total, part) => total + part[key], 0);
    const differing = parts.flatMap((part) => part.differing);
    const megabytes = sum('bytes') / 1e6;
    console.log(
      `${name}: ${sum('documents')} documents, ${sum('tokens')} tokens, ${megabytes.toFixed(1)} MB, ` +
        `${differing.length} documents differ; ${((performance.now() - started) / 1e3).toFixed(0)} s, ` +
        `${(megabytes / sum('seconds')).toFixed(1)} MB/s a thread`,
    );
    for (const line of differing.slice(0, SHOWN_MAX)) console.log(`  ${line}`);
    failed ||= differing.length > 0 || sum('documents') === 0;
  }
  return !failed;
}

if (!isMainThread) parentPort.postMessage(await compareShare(workerData));
