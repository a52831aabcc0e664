# SPDX-License-Identifier: Apache-2.0
"""What the tests of the `lockstep` tool share. LOCKSTEP names the program, LOCKSTEP_EMULATOR what runs it where it is built
for another machine."""

import os
import shlex
import subprocess

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
SAMPLE = os.path.join(ROOT, "tests", "data", "sample")
TOKENIZER = os.path.join(ROOT, "tests", "data", "tokenizer", "sample.tokenizer")
EMULATOR = shlex.split(os.environ.get("LOCKSTEP_EMULATOR", ""))
PROGRAM = EMULATOR + [os.environ.get("LOCKSTEP") or os.path.join(ROOT, "build", "release", "cli", "lockstep")]
RECORD_BYTES = 336  # of a step record, docs/step_record.md
CODE_FAILURE, CODE_USAGE, CODE_MISMATCH, CODE_NETWORK, CODE_BAD_ARTIFACT, CODE_INTERRUPTED = 1, 2, 3, 4, 5, 130


def run_tool(*args, code=0):
    """The finished process. code None: any exit code will do."""
    done = subprocess.run([*PROGRAM, *args], capture_output=True, check=False)
    if code is not None and done.returncode != code:
        raise AssertionError(f"{args}: exit code {done.returncode}, expected {code}\n{done.stdout}\n{done.stderr.decode()}")
    return done


def output(*args, code=0):
    return run_tool(*args, code=code).stdout.decode()


def error(*args, code):
    return run_tool(*args, code=code).stderr.decode()


def make_corpus(folder, ingested=None):
    """folder/tokenizer of 512 entries and folder/corpus, of the document stores in the folder `ingested`, or of the built-in sample."""
    if ingested is None:
        ingested = os.path.join(folder, "stores")
        run_tool("corpus", "ingest", os.path.join(SAMPLE, "corpus.toml"), "--out", ingested)
    stores = [os.path.join(ingested, name) for name in ("web", "edu", "code", "math")]
    tokenizer, corpus = os.path.join(folder, "tokenizer"), os.path.join(folder, "corpus")
    run_tool("tokenizer", "train", "--from", *stores, "--vocab", "512", "--out", tokenizer)
    run_tool("corpus", "build", "--tokenizer", tokenizer, "--stores", *stores, "--out", corpus)


def make_run(folder, checkpoint_every=5, name="test", ingested=None):
    """folder/run: a run of the golden preset, not trained yet, on the text of make_corpus. Its path."""
    make_corpus(folder, ingested)
    path = os.path.join(folder, "run.toml")
    with open(path, "w", encoding="utf-8") as file:
        file.write(
            f'preset = "golden"\nname = "{name}"\ncheckpoint_every = {checkpoint_every}\n'
            '[corpus]\npath = "corpus"\n[tokenizer]\npath = "tokenizer"\n'
        )
    run = os.path.join(folder, "run")
    run_tool("run", "init", path, "--out", run)
    return run
