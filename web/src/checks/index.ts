// SPDX-License-Identifier: Apache-2.0
//
// What a browser checks by itself, so that it shows nothing on a server's word: signatures, entries of the log, the log's head and
// receipts, attestations and openings, and the documents behind a step. No DOM, no framework, no network but the functions that the
// caller passes. What may be imported from outside this folder is what stands here; README.md says how to use it.
//
// Everything takes untrusted input and throws CheckError and nothing else. Envelopes are taken as bytes, or as the text that the JSON
// API gives (its UTF-8 are the bytes).
export type * from './types';
export { CheckError, type CheckErrorKind } from './errors';
export { allOk } from './check_list';

// Envelopes and keys.
export { dssePae, parseDsse } from './dsse';
export { checkPublicKey, keyId, verifyEd25519 } from './ed25519';

// Entries: form, and who signed.
export { isSignedBy, leafHash, parseEntry, parseEntryOf } from './entry';
export { chainAfter, compareRecords, decodeStepRecord, genesisChain, stepRecordDigest } from './step_record';
export { parseRunManifest, transcriptLeavesOf, windowsOfStep } from './run_manifest';

// What an entry says, held against others. Lists for ticks and crosses; good if all are (allOk).
export { checkAttestation, checkCheckpointAnnouncement, checkKeyEvent, checkRecord, checkRun, firstDifference } from './evidence';
export { checkDispute, checkDisputeEvidence, type DisputedFacts } from './disputes';
export { challengedIndices, checkOpenings, type OpeningsContext } from './openings';

// The log.
export { parseLogKey } from './note';
export { checkConsistency, checkInclusion, openCheckpoint, openReceipt } from './log';
export { parseEntryBundle, tilePath } from './tiles';
export { verifyConsistency, verifyInclusion } from './merkle';

// The documents behind a step.
export { DocumentsCache } from './documents/cache';
export { DEFAULT_LIMITS, stepDocuments } from './documents/step_documents';
export { fetchTokenizer, parseTokenizer } from './documents/tokenizer';
