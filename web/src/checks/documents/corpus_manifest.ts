// SPDX-License-Identifier: Apache-2.0
//
// Corpus manifests: docs/shards.md §6, all its rules; and the weights of rule 1 of docs/stream.md.
import { sha256Hex } from '../bytes';
import { CheckError, quote } from '../errors';
import { Fields, readObject } from '../fields';
import { type Json, parseCanonicalObject } from '../json';
import type { Hex } from '../types';

const WHERE = 'corpus manifest';
const DEPTH_MAX = 8;
const SOURCES_MAX = 4096;
const SHARDS_MAX = 2 ** 20;
const SHARD_TOKENS_MAX = 2 ** 28;
const NAMES_BYTES_MAX = 2 ** 28;
const SHARE_MAX = 2n ** 56n;
const INTEGER_MAX = 2n ** 62n;

export interface CorpusFile {
  readonly bytes: number;
  readonly sha256: Hex;
}
export interface Shard {
  readonly documents: number;
  readonly tokens: CorpusFile & { readonly count: number; readonly root: Hex };
  readonly index: CorpusFile;
  readonly names: CorpusFile;
  readonly chunks: CorpusFile;
}
export interface Source {
  readonly name: string;
  readonly licence: string;
  readonly documents: number;
  readonly tokens: number;
  readonly share: bigint;
  readonly shards: readonly Shard[];
}
export interface CorpusManifest {
  readonly sha256: Hex;
  readonly chunkBytes: number;
  readonly tokenBytes: 2 | 4;
  readonly separator: number;
  readonly tokenizer: Hex;
  readonly vocabSize: number;
  readonly sources: readonly Source[];
}

/** An integer of up to 62 bits. Those that must be numbers here are refused above 2^53 - 1, which no corpus has. */
function wide(fields: Fields, key: string, most: bigint): bigint {
  const value = fields.value(key);
  const exact = typeof value === 'bigint' || (typeof value === 'number' && Number.isSafeInteger(value)) ? BigInt(value) : -1n;
  return exact >= 0n && exact <= most ? exact : fields.fail(key, `an integer of at most ${most}`, 'something else');
}
function count(fields: Fields, key: string): number {
  return fields.integer(key, 0, Number.MAX_SAFE_INTEGER);
}
function file(fields: Fields): CorpusFile {
  return { bytes: count(fields, 'bytes'), sha256: fields.digest('sha256') };
}

interface Sizes {
  readonly chunkBytes: number;
  readonly tokenBytes: number;
}

function readShard(fields: Fields, sizes: Sizes): Shard {
  const shard = {
    documents: fields.integer('documents', 1, SHARD_TOKENS_MAX),
    tokens: fields.object('tokens', (part) => ({
      ...file(part),
      count: part.integer('count', 1, SHARD_TOKENS_MAX),
      root: part.digest('root'),
    })),
    index: fields.object('index', file),
    names: fields.object('names', file),
    chunks: fields.object('chunks', file),
  };
  const { documents, tokens, index, names, chunks } = shard;
  const expect = (holds: boolean, key: string, expected: string, found: number): void => {
    if (!holds) fields.fail(key, expected, String(found));
  };
  expect(documents <= tokens.count, 'documents', `at most its tokens, ${tokens.count}`, documents);
  expect(tokens.bytes === tokens.count * sizes.tokenBytes, 'tokens.bytes', String(tokens.count * sizes.tokenBytes), tokens.bytes);
  expect(index.bytes === 28 + 4 * documents, 'index.bytes', String(28 + 4 * documents), index.bytes);
  const chunkFile = 32 * Math.ceil(tokens.bytes / sizes.chunkBytes);
  expect(chunks.bytes === chunkFile, 'chunks.bytes', String(chunkFile), chunks.bytes);
  const least = 28 + 4 * documents;
  expect(names.bytes >= least && names.bytes <= least + NAMES_BYTES_MAX, 'names.bytes', `from ${least}`, names.bytes);
  return shard;
}

function readSource(fields: Fields, sizes: Sizes): Source {
  const name = fields.string('name', 64);
  if (!/^[A-Za-z0-9_-][A-Za-z0-9_.-]*$/.test(name) || name === 'manifest.json') fields.fail('name', "a source's name", quote(name));
  fields.digest('store');
  wide(fields, 'text_bytes', INTEGER_MAX);
  const source = {
    name,
    licence: fields.string('licence', 2 ** 26),
    documents: count(fields, 'documents'),
    tokens: count(fields, 'tokens'),
    share: wide(fields, 'share', SHARE_MAX),
    shards: fields
      .array('shards', SHARDS_MAX)
      .map((item, i) => readObject(item, `${fields.where}.shards[${i}]`, (shard) => readShard(shard, sizes))),
  };
  const sum = (of: (shard: Shard) => number): number => source.shards.reduce((total, shard) => total + of(shard), 0);
  if (sum((shard) => shard.documents) !== source.documents) fields.fail('documents', 'the sum over its shards', String(source.documents));
  if (sum((shard) => shard.tokens.count) !== source.tokens) fields.fail('tokens', 'the sum over its shards', String(source.tokens));
  return source;
}

function readSources(fields: Fields, items: readonly Json[], sizes: Sizes): Source[] {
  const sources = items.map((item, i) => readObject(item, `${WHERE}.sources[${i}]`, (source) => readSource(source, sizes)));
  // Names are ASCII: code units are bytes.
  for (let i = 1; i < sources.length; ++i) {
    if (!(sources[i - 1]!.name < sources[i]!.name)) fields.fail('sources', 'names ascending', quote(sources[i]!.name));
  }
  return sources;
}

/** The bytes of manifest.json. Throws "malformed". */
export function parseCorpusManifest(bytes: Uint8Array): CorpusManifest {
  const json = parseCanonicalObject(bytes, { where: WHERE, depthMax: DEPTH_MAX }, '64');
  return readObject(json, WHERE, (fields) => {
    fields.word('format', ['lockstep-corpus-1']);
    const tokenizer = fields.object('tokenizer', (part) => ({
      sha256: part.digest('sha256'),
      vocabSize: part.integer('vocab_size', 1, 2 ** 31 - 1),
    }));
    const tokenBytes = tokenizer.vocabSize <= 65536 ? 2 : 4;
    const chunkBytes = fields.integer('chunk_bytes', 4096, 2 ** 24);
    if (!Number.isInteger(Math.log2(chunkBytes))) fields.fail('chunk_bytes', 'a power of two', String(chunkBytes));
    const found = fields.integer('token_bytes', 0, 8);
    if (found !== tokenBytes) fields.fail('token_bytes', String(tokenBytes), String(found));
    fields.integer('shard_tokens', 1, SHARD_TOKENS_MAX);
    return {
      sha256: sha256Hex(bytes),
      chunkBytes,
      tokenBytes,
      separator: fields.integer('separator', 0, tokenizer.vocabSize - 1),
      tokenizer: tokenizer.sha256,
      vocabSize: tokenizer.vocabSize,
      sources: readSources(fields, fields.array('sources', SOURCES_MAX), { chunkBytes, tokenBytes }),
    };
  });
}

/** What a shard's file is called in a corpus folder: for messages. */
export function shardFile(corpus: CorpusManifest, source: number, shard: number, kind: 'tokens' | 'index' | 'names' | 'chunks'): string {
  return `${corpus.sources[source]!.name}/${String(shard).padStart(5, '0')}.${kind}`;
}

/** Rule 1: w_i, exactly. */
export function mixWeights(corpus: CorpusManifest): bigint[] {
  const shares = corpus.sources.reduce((sum, source) => (source.documents > 0 ? sum + source.share : sum), 0n);
  return corpus.sources.map((source) => {
    if (source.documents === 0 || source.share === 0n) return 0n;
    return (((source.share << 63n) / shares) * BigInt(source.documents)) / BigInt(source.tokens);
  });
}

/** Mean tokens of a document, in the long run of the mix. A number to estimate with. */
export function meanDocumentTokens(corpus: CorpusManifest): number {
  let tokens = 0;
  let weights = 0;
  for (const [i, weight] of mixWeights(corpus).entries()) {
    const source = corpus.sources[i]!;
    if (weight === 0n) continue;
    weights += Number(weight);
    tokens += Number(weight) * (source.tokens / source.documents);
  }
  if (weights === 0) throw new CheckError('malformed', WHERE, 'no source has documents and a share above 0, so there is no stream');
  return tokens / weights;
}
