// SPDX-License-Identifier: Apache-2.0
//
// Four tokenizers by others, made of what `lockstep tokenizer export` writes: two of the rank file, two of tokenizer.json.
// Each is {name, version, encode(text), count(texts)}: encode gives or promises the ids of a text, in which special tokens are
// ordinary text; count promises the number of ids of all texts, the fastest way that the package has on one thread.
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';

const require = createRequire(import.meta.url);

// The pattern as docs/tokenizer.md gives it (engine/tokenizer/splitter.h).
export const PATTERN =
  "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*" +
  '|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+';

// The same for JavaScript, whose engine knew no (?i:) before 2024 and whose \s is not White_Space: it has U+FEFF and lacks
// U+0085.
const SPACE = '\\t-\\r \\x85\\xA0\\u1680\\u2000-\\u200A\\u2028\\u2029\\u202F\\u205F\\u3000';
export const JAVASCRIPT_PATTERN = PATTERN.replace(
  "(?i:'s|'t|'re|'ve|'m|'ll|'d)",
  "'(?:[sS\\u017F]|[tT]|[rR][eE]|[vV][eE]|[mM]|[lL][lL]|[dD])",
)
  .replaceAll('[^\\s', `[^${SPACE}`)
  .replaceAll('\\S', `[^${SPACE}]`)
  .replaceAll('\\s', `[${SPACE}]`);

function versionOf(name) {
  return JSON.parse(readFileSync(new URL(`node_modules/${name}/package.json`, import.meta.url), 'utf8')).version;
}

// The count for a package that encodes text by text.
const countOneByOne = (encode) => async (texts) => {
  let count = 0;
  for (const text of texts) count += encode(text).length;
  return count;
};

const MAKERS = {
  'js-tiktoken': async ({ ranks }) => {
    const { Tiktoken } = await import('js-tiktoken/lite');
    // Its own layout: "! FIRST_RANK TOKEN TOKEN ...".
    const tokens = ranks.trim().split('\n').map((line) => line.split(' ')[0]);
    const peer = new Tiktoken({
      pat_str: JAVASCRIPT_PATTERN, special_tokens: {}, bpe_ranks: `! 0 ${tokens.join(' ')}`,
    });
    const encode = (text) => peer.encode(text, [], []);
    return { encode, count: countOneByOne(encode) };
  },
  tiktoken: async ({ ranks }) => {
    const { Tiktoken } = require('tiktoken');
    const peer = new Tiktoken(ranks, {}, PATTERN);
    const encode = (text) => peer.encode_ordinary(text);
    return { encode, count: countOneByOne(encode) };
  },
  '@huggingface/tokenizers': async ({ json }) => {
    const { Tokenizer } = await import('@huggingface/tokenizers');
    const peer = new Tokenizer({ ...JSON.parse(json), added_tokens: [] }, {});
    const encode = (text) => peer.encode(text, { add_special_tokens: false }).ids;
    return { encode, count: countOneByOne(encode) };
  },
  tokenizers: async ({ json }) => {
    process.env.TOKENIZERS_PARALLELISM = 'false';
    const { Tokenizer } = require('tokenizers');
    const peer = Tokenizer.fromString(JSON.stringify({ ...JSON.parse(json), added_tokens: [] }));
    const options = { addSpecialTokens: false };
    return {
      encode: async (text) => (await peer.encode(text, null, options)).getIds(),
      // A batch is one call across the languages' border instead of many, and still one thread.
      count: async (texts) => {
        let count = 0;
        for (let at = 0; at < texts.length; at += 256) {
          for (const encoding of await peer.encodeBatch(texts.slice(at, at + 256), options)) count += encoding.getLength();
        }
        return count;
      },
    };
  },
};

export const PEER_NAMES = Object.keys(MAKERS);

// exports: {ranks, json}, the texts of both files.
export async function makePeer(name, exports) {
  return { name, version: versionOf(name), ...(await MAKERS[name](exports)) };
}

export async function makePeers(exports) {
  return Promise.all(PEER_NAMES.map((name) => makePeer(name, exports)));
}
