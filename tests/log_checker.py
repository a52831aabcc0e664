#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a stranger can check of a log, written from docs/log.md, docs/attestation.md, c2sp.org/tlog-tiles, tlog-checkpoint,
signed-note, tlog-proof and RFC 6962 alone. It shares no code with the programs that write the log or verify it: hashes are
Python's, signatures openssl's.

    log = check_log(FOLDER, KEY)          # the folder with `checkpoint`; KEY: NAME+ID+BASE64, or a file that holds it
    check_grown(earlier, log)             # the entries of an earlier log come first in it
    check_receipt(TEXT, KEY, log=log)     # a receipt or a bare tlog-proof
    histories = check_runs(log)           # of each run its records: once, in order, one chain, signed

Whatever is wrong raises LogError, with what was expected and what was found. As a program it prints what it has found, as JSON:

    tests/log_checker.py FOLDER --log-key KEY [--receipts FILE_OR_FOLDER]... [--earlier CHECKPOINT]..."""

import argparse
import base64
import binascii
import dataclasses
import functools
import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile

TILE = 256  # hashes, or entries
HASH_BYTES = 32
SIGNATURE_ED25519 = b"\x01"
DER_OF_ED25519 = bytes.fromhex("302a300506032b6570032100")  # RFC 8410: SubjectPublicKeyInfo, before the 32 bytes
DASH = "\u2014"

KINDS = {
    "application/vnd.lockstep.run.v1+json": "run",
    "application/vnd.lockstep.step-record.v1": "record",
    "application/vnd.lockstep.checkpoint.v1+json": "checkpoint",
    "application/vnd.lockstep.evaluation.v1+json": "evaluation",
    "application/vnd.lockstep.key-event.v1+json": "key",
    "application/vnd.in-toto+json": "attestation",
    "application/vnd.lockstep.opening.v1+json": "opening",
    "application/vnd.lockstep.dispute.v1+json": "dispute",
}
RECORD_BYTES = 336


class LogError(Exception):
    pass


def require(good, message):
    if not good:
        raise LogError(message)


def sha256(data):
    return hashlib.sha256(data).digest()


def text_of(data, what):
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise LogError(f"{what}: expected UTF-8; {error}") from None


def json_of(text, what):
    try:
        value = json.loads(text)
    except ValueError as error:
        raise LogError(f"{what}: expected JSON; {error}") from None
    require(isinstance(value, dict), f"{what}: expected an object")
    return value


def base64_of(text, what):
    try:
        data = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError, TypeError):
        raise LogError(f"{what}: expected base64; found {text!r}") from None
    require(base64.b64encode(data).decode() == text, f"{what}: expected the one padded form of its base64; found {text!r}")
    return data


def verify_ed25519(key, message, signature):
    """Whether openssl takes the signature."""
    with tempfile.TemporaryDirectory() as folder:
        paths = []
        for name, data in (("key", DER_OF_ED25519 + key), ("message", message), ("signature", signature)):
            paths.append(os.path.join(folder, name))
            with open(paths[-1], "wb") as file:
                file.write(data)
        command = ["openssl", "pkeyutl", "-verify", "-pubin", "-keyform", "DER", "-rawin"]
        done = subprocess.run(
            [*command, "-inkey", paths[0], "-in", paths[1], "-sigfile", paths[2]], capture_output=True, check=False
        )
        return done.returncode == 0


# ---- RFC 6962


def leaf_hash(data):
    return sha256(b"\x00" + data)


def node_hash(left, right):
    return sha256(b"\x01" + left + right)


def root_of(leaves):
    """MTH of section 2.1 over leaf hashes."""
    if not leaves:
        return sha256(b"")
    if len(leaves) == 1:
        return leaves[0]
    k = 1 << ((len(leaves) - 1).bit_length() - 1)  # the largest power of two below the size
    return node_hash(root_of(leaves[:k]), root_of(leaves[k:]))


def root_by_proof(index, size, leaf, path):
    """The root that an audit path leads to (section 2.1.1, read from the top down)."""
    require(index < size, f"proof: expected an index below {size}; found {index}")
    if size == 1:
        require(not path, f"proof: expected no further hash; found {len(path)}")
        return leaf
    require(path, "proof: expected a further hash; found the end")
    k = 1 << ((size - 1).bit_length() - 1)
    if index < k:
        return node_hash(root_by_proof(index, k, leaf, path[:-1]), path[-1])
    return node_hash(path[-1], root_by_proof(index - k, size - k, leaf, path[:-1]))


# ---- The log's key and head


@dataclasses.dataclass(frozen=True)
class NoteKey:
    name: str
    key: bytes

    @property
    def id(self):
        return sha256(self.name.encode() + b"\n" + SIGNATURE_ED25519 + self.key)[:4]


def note_key(text):
    """Of NAME+ID+BASE64, or of a file that holds it."""
    if os.path.isfile(text):
        with open(text, encoding="utf-8") as file:
            text = file.read()
    parts = text.strip().split("+", 2)
    require(len(parts) == 3, f"log key: expected NAME+ID+BASE64; found {text!r}")
    data = base64_of(parts[2], "log key")
    require(len(data) == 33 and data[:1] == SIGNATURE_ED25519, "log key: expected an Ed25519 key")
    key = NoteKey(parts[0], data[1:])
    require(key.id.hex() == parts[1], f"log key: expected the id {key.id.hex()}; found {parts[1]}")
    return key


@dataclasses.dataclass(frozen=True)
class Head:
    origin: str
    size: int
    root: bytes


def check_head(note, key):
    """The head that a signed note states, if the key has signed it."""
    text, blank, lines = note.partition("\n\n")
    require(blank and lines.endswith("\n"), "checkpoint: expected a text, a blank line, and signature lines")
    text += "\n"
    fields = text.split("\n")
    require(len(fields) >= 4, f"checkpoint: expected three lines; found {text!r}")
    origin, size, root = fields[:3]
    require(origin == key.name, f"checkpoint: expected the log {key.name}; found {origin}")
    require(re.fullmatch(r"0|[1-9][0-9]*", size), f"checkpoint: expected a size; found {size!r}")
    digest = base64_of(root, "checkpoint: root")
    require(len(digest) == HASH_BYTES, "checkpoint: expected a root of 32 bytes")
    found = 0
    for line in lines[:-1].split("\n"):
        parts = line.split(" ")
        require(len(parts) == 3 and parts[0] == DASH, f"checkpoint: expected a signature line; found {line!r}")
        data = base64_of(parts[2], "checkpoint: signature")
        if parts[1] != key.name or data[:4] != key.id:
            continue
        require(verify_ed25519(key.key, text.encode(), data[4:]), "checkpoint: the log's signature does not hold")
        found += 1
    require(found > 0, f"checkpoint: no signature by {key.name}")
    return Head(origin, int(size), digest)


# ---- Tiles


def read(folder, path):
    try:
        with open(os.path.join(folder, path), "rb") as file:
            return file.read()
    except FileNotFoundError:
        raise LogError(f"{path}: expected this file") from None


def tile_path(level, index, width):
    groups = [f"{index % 1000:03}"]
    while index >= 1000:
        index //= 1000
        groups.append(f"x{index % 1000:03}")
    return f"tile/{level}/{'/'.join(reversed(groups))}" + (f".p/{width}" if width < TILE else "")


def tiles_of(count):
    """(index, width) of the tiles that `count` hashes or entries fill."""
    tiles = [(index, TILE) for index in range(count // TILE)]
    return tiles + [(count // TILE, count % TILE)] if count % TILE else tiles


def read_entry_bundle(folder, index, width):
    path = tile_path("entries", index, width)
    data = read(folder, path)
    entries, at = [], 0
    while len(entries) < width:
        require(at + 2 <= len(data), f"{path}: expected {width} entries; found {len(entries)}")
        length = int.from_bytes(data[at : at + 2], "big")
        require(at + 2 + length <= len(data), f"{path}: entry {len(entries)} goes beyond the end")
        entries.append(data[at + 2 : at + 2 + length])
        at += 2 + length
    require(at == len(data), f"{path}: {len(data) - at} bytes after its {width} entries")
    return entries


@dataclasses.dataclass(frozen=True)
class Log:
    key: NoteKey
    head: Head
    checkpoint: str  # the note
    entries: list  # of bytes
    leaves: list  # their leaf hashes

    @property
    def size(self):
        return self.head.size


def levels_of(leaves):
    """The hashes at each level of tiles, from the leaves up."""
    levels = [leaves]
    while len(levels[-1]) >= TILE:
        below = levels[-1]
        levels.append([root_of(below[i : i + TILE]) for i in range(0, len(below) - len(below) % TILE, TILE)])
    return levels


def check_older_tiles(folder, log):
    """What else lies there: partial tiles of earlier heads are beginnings of what is there now. Tiles beyond the head may be a
    writer's that was stopped before it published the next one; hidden files, what it was just writing."""
    levels = levels_of(log.leaves)
    for parent, _, names in os.walk(os.path.join(folder, "tile")):
        for name in names:
            if name.startswith("."):
                continue
            path = os.path.relpath(os.path.join(parent, name), folder)
            match = re.fullmatch(r"tile/(entries|[0-7])/((?:x[0-9]{3}/)*[0-9]{3})(?:\.p/([1-9][0-9]{0,2}))?", path)
            require(match, f"{path}: no file of a log")
            level, groups, width = match.groups()
            index = int(groups.replace("x", "").replace("/", ""))
            first, width = index * TILE, int(width or TILE)
            if level == "entries":
                if first + width <= log.size:
                    found = read_entry_bundle(folder, index, width)
                    require(found == log.entries[first : first + width], f"{path}: other entries than the log's")
            elif int(level) < len(levels) and first + width <= len(levels[int(level)]):
                wanted = b"".join(levels[int(level)][first : first + width])
                require(read(folder, path) == wanted, f"{path}: other hashes than the log's")


def check_log(folder, key):
    """The log in a folder, if its key has signed for exactly the entries that are there, and all its tiles are."""
    if isinstance(key, str):
        key = note_key(key)
    checkpoint = text_of(read(folder, "checkpoint"), "checkpoint")
    head = check_head(checkpoint, key)
    entries = []
    for index, width in tiles_of(head.size):
        entries += read_entry_bundle(folder, index, width)
    log = Log(key, head, checkpoint, entries, [leaf_hash(entry) for entry in entries])
    root = root_of(log.leaves)
    require(root == head.root, f"{folder}: the head is of the root {head.root.hex()}; that of the entries is {root.hex()}")
    for level, hashes in enumerate(levels_of(log.leaves)):
        for index, width in tiles_of(len(hashes)):
            path = tile_path(level, index, width)
            wanted = b"".join(hashes[index * TILE : index * TILE + width])
            require(read(folder, path) == wanted, f"{path}: other hashes than those of the entries")
    check_older_tiles(folder, log)
    return log


def check_head_in_log(head, log):
    """The log begins with what an earlier head was signed for."""
    require(head.size <= log.size, f"a head of {head.size} entries was signed; the log has only {log.size}")
    root = root_of(log.leaves[: head.size])
    require(root == head.root, f"the root over the first {head.size} entries was {head.root.hex()}; now it is {root.hex()}")


def check_grown(earlier, log):
    check_head_in_log(earlier.head, log)
    require(earlier.entries == log.entries[: earlier.size], "the earlier entries do not come first")


# ---- Receipts


@dataclasses.dataclass(frozen=True)
class Receipt:
    entry: bytes  # None of a bare proof
    index: int
    head: Head


def check_receipt(text, key, entry=None, log=None):
    """A receipt (docs/log.md), or a bare tlog-proof, of `entry` if that is given; and that `log` keeps the promise."""
    if isinstance(key, str):
        key = note_key(key)
    if text.startswith("{"):
        fields = json_of(text, "receipt")
        require(sorted(fields) == ["entry", "proof"], f"receipt: expected entry and proof; found {sorted(fields)}")
        kept = base64_of(fields["entry"], "receipt: entry")
        require(entry is None or entry == kept, "receipt: it is of another entry")
        entry, text = kept, fields["proof"]
    lines, blank, note = text.partition("\n\n")
    lines = lines.split("\n")
    require(blank and lines[0] == "c2sp.org/tlog-proof@v1", "proof: expected a tlog-proof and a head")
    match = re.fullmatch(r"index (0|[1-9][0-9]*)", lines[1] if len(lines) > 1 else "")
    require(match, "proof: expected an index")
    index, hashes = int(match[1]), [base64_of(line, "proof: hash") for line in lines[2:]]
    head = check_head(note, key)
    if entry is not None:
        root = root_by_proof(index, head.size, leaf_hash(entry), hashes)
        require(root == head.root, f"proof: the head is of the root {head.root.hex()}; the proof leads to {root.hex()}")
    if log is not None:
        check_head_in_log(head, log)
        require(entry is None or log.entries[index] == entry, f"the log has another entry at {index} than it promised")
    return Receipt(entry, index, head)


def receipts_in(path):
    """The texts of a file, or of all files beneath a folder but the hidden ones, which may be half written."""
    paths = [path]
    if os.path.isdir(path):
        paths = [os.path.join(folder, name) for folder, _, names in os.walk(path) for name in names if name[0] != "."]
    texts = {}
    for one in sorted(paths):
        with open(one, encoding="utf-8") as file:
            texts[one] = file.read()
    return texts


# ---- Entries


@dataclasses.dataclass(frozen=True)
class Entry:
    index: int
    kind: str
    payload_type: str
    payload: bytes
    signatures: tuple  # of (key id, signature)

    @functools.cached_property
    def json(self):
        return json.loads(self.payload)

    @property
    def signed_bytes(self):
        """PAE of DSSE v1."""
        kind = self.payload_type.encode()
        return b"DSSEv1 %d %s %d %s" % (len(kind), kind, len(self.payload), self.payload)

    def is_signed_by(self, key):
        """Whether one of the signatures is this key's."""
        return any(verify_ed25519(key, self.signed_bytes, signature) for _, signature in self.signatures)


def entries_of(log, *kinds):
    """All entries, or those of some kinds, in their order."""
    entries = []
    for index, data in enumerate(log.entries):
        envelope = json_of(text_of(data, f"entry {index}"), f"entry {index}")
        kind = KINDS.get(envelope.get("payloadType"))
        require(kind, f"entry {index}: of no known kind: {envelope.get('payloadType')}")
        signatures = tuple(
            (one["keyid"], base64_of(one["sig"], f"entry {index}: signature")) for one in envelope["signatures"]
        )
        payload = base64_of(envelope.get("payload"), f"entry {index}: payload")
        if not kinds or kind in kinds:
            entries.append(Entry(index, kind, envelope["payloadType"], payload, signatures))
    return entries


@dataclasses.dataclass(frozen=True)
class Record:
    index: int  # in the log
    bytes: bytes

    @property
    def step(self):
        return int.from_bytes(self.bytes[8:16], "little")

    @property
    def sha256(self):
        return sha256(self.bytes)

    @property
    def previous_chain(self):
        return self.bytes[304:336]

    @property
    def chain(self):
        return sha256(b"lockstep chain 1" + self.previous_chain + self.sha256)


@dataclasses.dataclass
class History:
    run: str  # its id
    registration: Entry
    trainer: bytes  # its key
    records: list  # that continue the chain, in their order
    second: list  # that contradict one of these


def run_id_of(registration):
    """SHA-256 of the manifest's text, which stands in the registration as it is: both are canonical JSON."""
    text = registration.payload.decode()
    begin = text.index('"manifest":') + len('"manifest":')
    _, end = json.JSONDecoder().raw_decode(text, begin)
    return sha256(text[begin:end].encode()).hex()


def first_chain(run, registration):
    """The chain before the run's first step; none of a segment, which its parent has."""
    genesis = registration.json.get("genesis")
    if genesis is None:
        return None
    fields = [bytes.fromhex(genesis[name]) for name in ("parameters", "firstMoment", "secondMoment", "cursor")]
    return sha256(b"lockstep chain genesis 1" + bytes.fromhex(run) + b"".join(fields))


def check_runs(log):
    """The history of each run, by its id: its records come once, in order, in one chain, signed by its trainer. Those that
    contradict an earlier one are `second`."""
    histories = {}
    for entry in entries_of(log, "run", "record"):
        if entry.kind == "run":
            run = run_id_of(entry)
            require(run not in histories, f"entry {entry.index}: the run {run} is registered twice")
            trainer = bytes.fromhex(entry.json["trainerKey"])
            require(entry.is_signed_by(trainer), f"entry {entry.index}: not signed by the trainer")
            histories[run] = History(run, entry, trainer, [], [])
        else:
            add_record(entry, histories)
    return histories


def add_record(entry, histories):
    where = f"entry {entry.index}"
    require(len(entry.payload) == 32 + RECORD_BYTES, f"{where}: expected a record; found {len(entry.payload)} bytes")
    history = histories.get(entry.payload[:32].hex())
    require(history, f"{where}: of a run that is not registered")
    require(entry.is_signed_by(history.trainer), f"{where}: not signed by the trainer of its run")
    record = Record(entry.index, entry.payload[32:])
    earlier = [one for one in history.records + history.second if one.step == record.step]
    require(all(one.bytes != record.bytes for one in earlier), f"{where}: step {record.step} comes twice")
    if history.records:
        last = history.records[-1]
        follows = record.step == last.step + 1 and record.previous_chain == last.chain
    else:
        begin = first_chain(history.run, history.registration)
        follows = begin is None or (record.step == 0 and record.previous_chain == begin)
    require(follows or earlier, f"{where}: step {record.step} does not follow what comes before")
    (history.records if follows else history.second).append(record)


def main():
    parser = argparse.ArgumentParser(description="Checks a log's public files, apart from the programs that write them.")
    parser.add_argument("folder")
    parser.add_argument("--log-key", required=True)
    parser.add_argument("--receipts", action="append", default=[], help="a receipt or proof, or a folder of them")
    parser.add_argument("--earlier", action="append", default=[], help="a head of this log, as it was served before")
    args = parser.parse_args()
    try:
        log = check_log(args.folder, args.log_key)
        for path in args.earlier:
            with open(path, encoding="utf-8") as file:
                check_head_in_log(check_head(file.read(), log.key), log)
        receipts = 0
        for path in args.receipts:
            for name, text in receipts_in(path).items():
                try:
                    check_receipt(text, log.key, log=log)
                except LogError as error:
                    raise LogError(f"{name}: {error}") from None
                receipts += 1
        kinds = [entry.kind for entry in entries_of(log)]
        histories = check_runs(log)
    except LogError as error:
        print(f"log_checker: {error}", file=sys.stderr)
        return 1
    print(
        json.dumps(
            {
                "origin": log.head.origin,
                "size": log.size,
                "root": log.head.root.hex(),
                "entries": {kind: kinds.count(kind) for kind in KINDS.values()},
                "receipts": receipts,
                "runs": {
                    run: {
                        "steps": [record.step for record in (history.records[:1] + history.records[-1:])],
                        "chain": history.records[-1].chain.hex() if history.records else None,
                        "second": [record.step for record in history.second],
                    }
                    for run, history in histories.items()
                },
            },
            indent=1,
        )
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
