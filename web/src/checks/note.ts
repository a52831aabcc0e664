// SPDX-License-Identifier: Apache-2.0
//
// Signed notes (c2sp.org/signed-note) with Ed25519 signatures, and the keys that sign them: docs/log.md, "Head".
import { concat, digestBytes, fromStandardBase64, fromUtf8, sha256, toBase64, toHex, utf8 } from './bytes';
import { checkPublicKey, verifyEd25519 } from './ed25519';
import { CheckError } from './errors';
import type { LogKey } from './types';

const NOTE_BYTES_MAX = 65536;
const SIGNATURES_MAX = 64;
const SIGNATURE_BYTES_MAX = 8192;
const LINE_START = '\u2014 ';

export interface NoteSignature {
  readonly name: string;
  /** Eight hexadecimal digits. */
  readonly keyId: string;
  readonly bytes: Uint8Array;
}
export interface SignedNote {
  /** With its last newline. */
  readonly text: string;
  readonly signatures: readonly NoteSignature[];
}

/** Not empty, UTF-8, without white space (Unicode's White_Space), control characters or '+'. */
export function isKeyName(name: string): boolean {
  return name !== '' && !/[\u0000-\u0020\u007f+\u0085\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]/.test(name) && isUtf8(name);
}

function isUtf8(text: string): boolean {
  return fromUtf8(utf8(text)) === text;
}

function noteKeyId(name: string, key: Uint8Array): string {
  return toHex(sha256(utf8(name), Uint8Array.of(0x0a, 0x01), key).subarray(0, 4));
}

/** ORIGIN+ID+BASE64. Throws unless the id is that of name and key, and the key one that may be registered. */
export function parseLogKey(text: string): LogKey {
  const where = 'log key';
  const [name = '', , encoded = ''] = text.split(/\+([^+]*)\+(.*)/s);
  const bytes = fromStandardBase64(encoded);
  if (!isKeyName(name) || bytes === null)
    throw new CheckError('malformed', where, "expected NAME+ID+KEY, as a log's verifier key is written");
  if (bytes.length !== 33 || bytes[0] !== 1) throw new CheckError('malformed', where, 'expected an Ed25519 key as base64');
  const key = checkPublicKey(toHex(bytes.subarray(1)));
  if (`${name}+${noteKeyId(name, bytes.subarray(1))}+${toBase64(bytes)}` !== text) {
    throw new CheckError('malformed', where, 'its id is not that of its name and key');
  }
  return { name, key, text };
}

/** A key's text. */
export function logKeyText(name: string, key: string): string {
  const bytes = digestBytes(key);
  return `${name}+${noteKeyId(name, bytes)}+${toBase64(concat([Uint8Array.of(1), bytes]))}`;
}

function malformed(message: string): never {
  throw new CheckError('malformed', 'signed note', message);
}

function parseLine(line: string): NoteSignature {
  if (!line.startsWith(LINE_START)) malformed('expected a signature line');
  const [name = '', encoded = ''] = line.slice(LINE_START.length).split(/ (.*)/s);
  if (!isKeyName(name)) malformed('expected a key name in a signature line');
  const bytes = fromStandardBase64(encoded);
  if (bytes === null || bytes.length < 5 || bytes.length > SIGNATURE_BYTES_MAX) malformed('expected a key id and a signature as base64');
  return { name, keyId: toHex(bytes.subarray(0, 4)), bytes: bytes.subarray(4) };
}

/** The form. Nothing is verified. Throws "malformed". */
export function parseSignedNote(note: string): SignedNote {
  if (note.length > NOTE_BYTES_MAX || utf8(note).length > NOTE_BYTES_MAX) malformed(`expected at most ${NOTE_BYTES_MAX} bytes`);
  if (/[\u0000-\u0009\u000b-\u001f]/.test(note) || !isUtf8(note)) malformed('expected UTF-8 without control characters');
  const blank = note.lastIndexOf('\n\n');
  if (blank < 0 || !note.endsWith('\n')) malformed('expected a text, an empty line, and signature lines');
  const rest = note.slice(blank + 2);
  const lines = rest === '' ? [] : rest.slice(0, -1).split('\n');
  if (lines.length === 0) malformed('expected a signature; found none');
  if (lines.length > SIGNATURES_MAX) malformed(`expected at most ${SIGNATURES_MAX} signatures`);
  return { text: note.slice(0, blank + 1), signatures: lines.map(parseLine) };
}

/** Throws "signature" unless the key has signed the note, and every line that bears its name and id verifies. Others are ignored. */
export function verifyNote(note: SignedNote, key: LogKey): void {
  const id = noteKeyId(key.name, digestBytes(key.key));
  const own = note.signatures.filter((signature) => signature.name === key.name && signature.keyId === id);
  if (own.length === 0) throw new CheckError('signature', 'signed note', { expected: `a signature of ${key.text}`, found: 'none of it' });
  for (const signature of own) {
    if (!verifyEd25519(key.key, utf8(note.text), signature.bytes)) {
      throw new CheckError('signature', 'signed note', `the signature of ${key.name} does not verify`);
    }
  }
}
