"""Runs where lm-evaluation-harness is installed: scores the texts whenever a line comes in, and says how long it took.

Called as `python _harness_side.py MODEL TEXTS.json THREADS`; each line is a batch size. Knows nothing of recollect.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import torch
from lm_eval.api.instance import Instance
from lm_eval.models.huggingface import HFLM

if __name__ == "__main__":
    model, texts, threads = sys.argv[1:4]
    torch.set_num_threads(int(threads))
    clock = time.process_time if int(threads) == 1 else time.perf_counter
    harness = HFLM(pretrained=model, device="cpu", dtype="float32", batch_size=1)
    requests = [
        Instance(request_type="loglikelihood", doc={}, arguments=("", text), idx=i)
        for i, text in enumerate(json.loads(Path(texts).read_text(encoding="utf-8")))
    ]
    print("ready", flush=True)
    for line in sys.stdin:
        harness.batch_size_per_gpu = int(line)
        begun = clock()
        found = harness.loglikelihood(requests, disable_tqdm=True)
        print(json.dumps({"seconds": clock() - begun, "logprobs": [each[0] for each in found]}), flush=True)
