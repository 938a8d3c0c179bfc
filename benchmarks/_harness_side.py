"""Runs where lm-evaluation-harness is installed: scores the texts whenever a line comes in, and says how long it took.

Called as `python _harness_side.py MODEL TEXTS.json THREADS BATCH`; knows nothing of recollect.
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
    model, texts, threads, batch = sys.argv[1:5]
    torch.set_num_threads(int(threads))
    clock = time.process_time if int(threads) == 1 else time.perf_counter
    harness = HFLM(pretrained=model, device="cpu", dtype="float32", batch_size=int(batch))
    requests = [
        Instance(request_type="loglikelihood", doc={}, arguments=("", text), idx=i)
        for i, text in enumerate(json.loads(Path(texts).read_text(encoding="utf-8")))
    ]
    print("ready", flush=True)
    for _ in sys.stdin:
        begun = clock()
        found = harness.loglikelihood(requests, disable_tqdm=True)
        print(json.dumps({"seconds": clock() - begun, "logprobs": [each[0] for each in found]}), flush=True)
