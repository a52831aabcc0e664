# SPDX-License-Identifier: Apache-2.0
"""The loop of a PyTorch peer (bench/peer_process.h): requests "case WORDS..." and "run", each answered with "ok"."""
import os
import sys

import torch


def serve(make_case):
    """make_case(*words) returns what "run" calls. The number of threads comes from OMP_NUM_THREADS."""
    torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))
    run = None
    for line in sys.stdin:
        words = line.split()
        if words[0] == "case":
            run = make_case(*words[1:])
        else:
            run()
        print("ok", flush=True)
