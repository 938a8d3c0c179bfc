"""llama.cpp's own HTTP server, from the package xllamacpp, in a process of its own.

`python -m recollect.testing.llama_server MODEL.gguf PORT [CONTEXT]` serves until its standard input ends.
"""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

NAME = "served"
"""How the server calls its model."""


@contextmanager
def run_llama_server(model: Path, *, context: int = 512, port: int | None = None) -> Iterator[str]:
    """The address of a server that serves a GGUF file while this lasts.

    Args:
        model: The file.
        context: Tokens that the model reads at once.
        port: Where it listens; any free one if None. Answers are kept by address, so that the same port resumes.
    """
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = port or free.getsockname()[1]
    words = [sys.executable, "-m", "recollect.testing.llama_server", str(model), str(port), str(context)]
    process = subprocess.Popen(  # noqa: S603 - our own module
        words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    try:
        assert process.stdout is not None  # noqa: S101 - it is piped
        if not any(line.startswith("http://") for line in process.stdout):
            raise RuntimeError(f"llama.cpp does not serve {model}")
        yield f"http://127.0.0.1:{port}/v1#{NAME}"
    finally:
        process.kill()
        process.wait()


def serve(model: str, port: str, context: str = "512") -> None:
    """Serve a file until standard input ends."""
    import xllamacpp

    settings = xllamacpp.CommonParams()
    settings.model.path = model
    settings.model_alias = {NAME} if isinstance(settings.model_alias, set) else NAME
    settings.port, settings.n_parallel, settings.n_ctx = int(port), 2, 2 * int(context)
    settings.cpuparams.n_threads = settings.cpuparams_batch.n_threads = 1
    # the cache of keys and values is rounded to F16 by default, which moves log-probabilities by about 0.01
    settings.cache_type_k = settings.cache_type_v = xllamacpp.ggml_type.GGML_TYPE_F32
    settings.flash_attn_type = xllamacpp.llama_flash_attn_type.LLAMA_FLASH_ATTN_TYPE_DISABLED
    settings.n_threads_http, settings.warmup, settings.verbosity = 8, False, 0
    server = xllamacpp.Server(settings)
    sys.stdout.write(f"{server.listening_address}\n")
    sys.stdout.flush()
    sys.stdin.read()


if __name__ == "__main__":
    serve(*sys.argv[1:])
