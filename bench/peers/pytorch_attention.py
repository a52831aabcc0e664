#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Masked softmax attention in PyTorch (fp32), the peer of the attention benchmark.

Requests (asked_by_line.py):
  case HEAD_DIM QUERY_HEADS KV_HEADS TOKENS WINDOW   makes the tensors; window 0: causal only
  run                                                one forward and backward

The query heads of a group are laid one after the other, so that no key or value is copied, and the
mask is added in place: the fastest of the plain ways to write it.
"""
import torch
from asked_by_line import serve


def make_case(*words):
    head_dim, query_heads, kv_heads, tokens, window = map(int, words)
    torch.manual_seed(1)
    rows = (query_heads // kv_heads) * tokens
    q = torch.randn(kv_heads, rows, head_dim, requires_grad=True)
    k = torch.randn(kv_heads, tokens, head_dim, requires_grad=True)
    v = torch.randn(kv_heads, tokens, head_dim, requires_grad=True)
    dout = torch.randn(kv_heads, rows, head_dim)
    i = torch.arange(tokens)[:, None]
    j = torch.arange(tokens)[None, :]
    hidden = j > i
    if window > 0:
        hidden = hidden | (j <= i - window)
    mask = torch.zeros(tokens, tokens).masked_fill_(hidden, float("-inf"))
    scale = head_dim**-0.5

    def run():
        scores = torch.matmul(q * scale, k.transpose(1, 2))
        scores.view(query_heads, tokens, tokens).add_(mask)
        out = torch.matmul(torch.softmax(scores, dim=-1), v)
        torch.autograd.grad(out, (q, k, v), dout)

    return run


if __name__ == "__main__":
    serve(make_case)
