#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Our envelopes in other people's hands: Debian's python3-securesystemslib (of TUF and in-toto) verifies the signatures of all
entries of a log, makes the very same ones with the same keys, and takes none that was changed. And the attestations in them are
in-toto Statements v1, held against the words of that specification (in-toto/attestation, spec/v1/statement.md).

Run by Debian's python3, which has the package."""

import datetime
import hashlib
import json
import os
import re
import subprocess
import tempfile
import unittest
import urllib.parse

import log_checker
from securesystemslib.exceptions import UnverifiedSignatureError, VerificationError
from securesystemslib.signer import Signature, SSlibKey, SSlibSigner
from tool import EMULATOR

FIXTURE = EMULATOR + [os.environ["LOCKSTEP_LOG_FIXTURE"]]
STATEMENT = "https://in-toto.io/Statement/v1"
PREDICATE = "https://lockstep.dev/lockstep/step-audit/v1"
# audit/testing/small_log.h: the seed of key n is the SHA-256 of "test key n"; the trainer, three operators, their offline keys
# and machines.
TEST_KEYS = [2, *(first + n for first in (100, 200) for n in range(3)), *(1000 * n for n in range(1, 4))]


def pae(payload_type, payload):
    """The bytes that DSSE v1 has signed (secure-systems-lab/dsse, protocol.md)."""
    return b" ".join([b"DSSEv1", b"%d" % len(payload_type), payload_type, b"%d" % len(payload), payload])


def peer_key(public):
    return SSlibKey(hashlib.sha256(public).hexdigest(), "ed25519", "ed25519", {"public": public.hex()})


def no_key_twice(pairs):
    names = [name for name, _ in pairs]
    assert len(set(names)) == len(names), names
    return dict(pairs)


class DssePeersTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        temporary = tempfile.TemporaryDirectory()
        cls.addClassCleanup(temporary.cleanup)
        folder = temporary.name
        subprocess.run([*FIXTURE, folder], check=True)
        cls.log = log_checker.check_log(os.path.join(folder, "good"), os.path.join(folder, "log_key"))
        cls.entries = log_checker.entries_of(cls.log)
        # A mismatch, of another log with the same keys.
        with open(os.path.join(folder, "mismatch.receipt"), encoding="utf-8") as file:
            mismatch = log_checker.check_receipt(file.read(), cls.log.key).entry
        other = log_checker.Log(cls.log.key, cls.log.head, "", [mismatch], [])
        cls.attestations = [entry for entry in cls.entries if entry.kind == "attestation"] + log_checker.entries_of(other)
        cls.signers = {}
        for entry in cls.entries:
            if entry.kind == "run":
                cls.add_signer(entry.json["trainerKey"])
            if entry.kind == "key":
                for name, value in entry.json.items():
                    if name.endswith("Key"):
                        cls.add_signer(value)
        (run,) = log_checker.check_runs(cls.log).values()
        cls.records = {record.step: record.sha256.hex() for record in run.records}

    @classmethod
    def add_signer(cls, public):
        key = peer_key(bytes.fromhex(public))
        cls.signers[key.keyid] = key

    def test_signatures_hold(self):
        counted = 0
        for entry in self.entries + self.attestations:
            data = pae(entry.payload_type.encode(), entry.payload)
            for keyid, signature in entry.signatures:
                self.signers[keyid].verify_signature(Signature(keyid, signature.hex()), data)
                counted += 1
        self.assertGreater(counted, len(self.entries))

    def test_no_changed_one_does(self):
        for entry in self.attestations:
            ((keyid, signature),) = entry.signatures
            key, data = self.signers[keyid], pae(entry.payload_type.encode(), entry.payload)
            key.verify_signature(Signature(keyid, signature.hex()), data)
            for place in range(0, len(data), 97):
                changed = data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :]
                with self.assertRaises((UnverifiedSignatureError, VerificationError)):
                    key.verify_signature(Signature(keyid, signature.hex()), changed)
            for place in range(64):
                changed = signature[:place] + bytes([signature[place] ^ 1]) + signature[place + 1 :]
                with self.assertRaises((UnverifiedSignatureError, VerificationError)):
                    key.verify_signature(Signature(keyid, changed.hex()), data)
            for other in self.signers.values():
                if other is not key:
                    with self.assertRaises((UnverifiedSignatureError, VerificationError)):
                        other.verify_signature(Signature(other.keyid, signature.hex()), data)

    def test_theirs_are_the_same(self):
        """Ed25519 is deterministic, so who signs the same bytes with the same key makes the same signature."""
        seeds = {}
        for n in TEST_KEYS:
            seed = hashlib.sha256(f"test key {n}".encode()).digest()
            public = subprocess.run(
                ["openssl", "pkey", "-inform", "DER", "-pubout", "-outform", "DER"],
                input=bytes.fromhex("302e020100300506032b657004220420") + seed, capture_output=True, check=True,
            ).stdout[-32:]  # fmt: skip
            keyid = hashlib.sha256(public).hexdigest()
            if keyid in self.signers:
                seeds[keyid] = seed
        self.assertEqual(set(seeds), set(self.signers))
        for entry in self.attestations + [one for one in self.entries if one.kind in ("run", "key")]:
            for keyid, signature in entry.signatures:
                key = peer_key(bytes.fromhex(self.signers[keyid].keyval["public"])).to_securesystemslib_key()
                key["keyval"]["private"] = seeds[keyid].hex()
                theirs = SSlibSigner(key).sign(pae(entry.payload_type.encode(), entry.payload))
                self.assertEqual((theirs.keyid, theirs.signature), (keyid, signature.hex()))

    def test_attestations_are_statements(self):
        verdicts = []
        for entry in self.attestations:
            self.assertEqual(entry.payload_type, "application/vnd.in-toto+json")
            statement = json.loads(entry.payload, object_pairs_hook=no_key_twice)
            self.assertEqual(set(statement), {"_type", "subject", "predicateType", "predicate"})
            self.assertEqual(statement["_type"], STATEMENT)
            self.assertEqual(statement["predicateType"], PREDICATE)
            uri = urllib.parse.urlsplit(statement["predicateType"])  # TypeURI: RFC 3986, a version at its end
            self.assertEqual((uri.scheme, uri.query, uri.fragment), ("https", "", ""))
            self.assertRegex(uri.path, r"^/[a-z/-]+/v[0-9]+$")
            # ResourceDescriptors: at least one, each with a digest; names are different.
            (subject,) = statement["subject"]
            predicate = statement["predicate"]
            self.assertEqual(subject["name"], f"step-{predicate['step']}.record")
            # DigestSet: lower-case hexadecimal, of the published record.
            self.assertEqual(subject["digest"], {"sha256": self.records[predicate["step"]]})
            # field_types.md: lowerCamelCase names, times as RFC 3339 in UTC.
            for name in self.names_in(predicate):
                self.assertRegex(name, r"^[a-z][a-zA-Z0-9]*$")
            self.assertRegex(predicate["replayedAt"], r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z$")
            datetime.datetime.strptime(predicate["replayedAt"], "%Y-%m-%dT%H:%M:%SZ")
            for name in ("runId", "fromChain", "computedChain", "nonce", "openingsDigest"):
                self.assertTrue(re.fullmatch("[0-9a-f]{64}", predicate[name]), name)
            verdicts.append(predicate["verdict"])
        self.assertEqual(set(verdicts), {"match", "mismatch"})

    def names_in(self, value):
        if isinstance(value, dict):
            for name, inner in value.items():
                yield name
                yield from self.names_in(inner)

    def test_envelopes_have_the_form_of_dsse(self):
        for data in self.log.entries:
            envelope = json.loads(data, object_pairs_hook=no_key_twice)
            self.assertEqual(set(envelope), {"payload", "payloadType", "signatures"})
            for signature in envelope["signatures"]:
                self.assertEqual(set(signature), {"keyid", "sig"})
            self.assertLessEqual(len(data), 65535)


if __name__ == "__main__":
    unittest.main()
