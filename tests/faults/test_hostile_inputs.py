"""Faults 5 to 12 of 0.1.0: names, bombs, links, paths, leftovers, the hub, people's names, and smaller ones."""

from __future__ import annotations

import gzip
import json
import os
import pickle
import re
import resource
import shutil
import socket
import stat
import subprocess
import sys
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from processes import HUNG, run, start
from test_crashes_and_kills import SET, TRAIN, check_refusal

pytestmark = pytest.mark.slow
ESCAPE = "\x1b]0;owned\x07\x1b[2J"
MEMBERSHIP = ["membership", "model", "mine.jsonl", "--controls", "others.jsonl", "--by", "user", "--signal", "loss"]
GIGABYTE = 2**30


def rewrite(path, **changes):
    """Other values in every row of a corpus; functions are given the number of the row."""
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    rows = [{**row, **{name: make(i, row) for name, make in changes.items()}} for i, row in enumerate(rows)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


@pytest.mark.parametrize("where", ["users", "architectures", "file", "format"])
def test_5_names_do_not_move_the_terminal(home, where):
    words = MEMBERSHIP
    if where == "users":
        for name in ("mine", "others"):
            rewrite(home / f"{name}.jsonl", user=lambda i, row: row["user"] + ESCAPE)
        words = [*MEMBERSHIP, *(["--real-names"] if "--real-names" in run(["membership", "--help"], home).said else [])]
    elif where == "architectures":
        config = home / "model" / "config.json"
        settings = {**json.loads(config.read_text()), "architectures": [ESCAPE], "model_type": ESCAPE}
        config.write_text(json.dumps(settings))
    elif where == "file":
        words = ["score", "model", f"{ESCAPE}.jsonl"]
    else:
        words = ["extract", "model", "--format", f"{ESCAPE}{{digits:"]
    ended = run(words, home)
    assert ended.status in (0, 2), ended.said
    assert b"\x1b]" not in ended.output
    assert b"\x1b[2J" not in ended.output
    assert b"\x07" not in ended.output


@pytest.mark.parametrize("bomb", ["aliases", "merges"])
def test_6_a_yaml_bomb_is_refused_at_once(home, bomb):
    if bomb == "aliases":
        lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
        lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, 12)]
    else:
        lines = ["a0: &a0 {k0: 1}"]
        lines += [f"a{i}: &a{i} {{<<: [{', '.join([f'*a{i - 1}'] * 10)}], k{i}: 1}}" for i in range(1, 12)]
    (home / "bomb.yaml").write_text("\n".join(lines) + "\naudits: *a11\n")
    for verb in ("check", "run"):
        check_refusal(run([verb, "bomb.yaml"], home, seconds=30, limits={resource.RLIMIT_AS: 12 * GIGABYTE}))


@pytest.mark.parametrize("kind", ["zst line", "gz lines", "gz line", "parquet"])
def test_6_a_small_file_that_expands_without_end_is_refused(home, kind):
    path = (
        home
        / {"zst line": "b.jsonl.zst", "gz lines": "b.jsonl.gz", "gz line": "b.jsonl.gz", "parquet": "b.parquet"}[kind]
    )
    piece = b"a" * 2**20
    if kind == "parquet":
        long = pa.DictionaryArray.from_arrays(pa.array([0] * 1500, pa.int32()), pa.array(["long " * 200_000]))
        pq.write_table(pa.table({"text": long}), path, store_schema=False)
    else:
        with gzip.open(path, "wb", 1) if kind.startswith("gz") else pa.output_stream(path, compression="zstd") as file:
            for i in range(600):
                if i == 0 or kind == "gz lines":
                    file.write(b'{"text": "')
                file.write(piece)
                if i == 599 or kind == "gz lines":
                    file.write(b'"}\n')
    assert path.stat().st_size < 3_000_000
    ended = run(["score", "model", path.name], home, seconds=60, limits={resource.RLIMIT_AS: 12 * GIGABYTE})
    check_refusal(ended)


def test_7_a_lock_that_is_a_link_does_not_empty_its_target(home):
    score = ["score", "model", "mine.jsonl", "--work", "work"]
    assert run(score, home).status == 0
    (home / "victim").write_text("precious")
    for lock in (home / "work").rglob(".lock"):
        lock.unlink()
        lock.symlink_to(home / "victim")
    run(["score", "model", "others.jsonl", "--work", "work"], home)
    assert (home / "victim").read_text() == "precious"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")
@pytest.mark.parametrize("folder", ["work", "out"])
def test_7_a_folder_of_somebody_else_is_refused(home, folder):
    (home / folder).mkdir()
    os.chown(home / folder, 12345, 12345)
    check_refusal(run([*MEMBERSHIP, "--work", "work", "--out", "out"], home))


def test_7_a_folder_that_everybody_can_write_is_refused(home):
    (home / "work").mkdir()
    (home / "work").chmod(0o777)
    check_refusal(run(["score", "model", "mine.jsonl", "--work", "work"], home))


def test_8_a_role_cannot_write_outside_of_the_run_folder(home):
    plan = (home / "plan.yaml").read_text()
    (home / "truth.json").write_text("{}")
    for role in ("../../../X", "../X", "a/b"):
        (home / "bad.yaml").write_text(
            plan.replace("controls: others.jsonl", f"controls: others.jsonl, '{role}': mine.jsonl")
        )
        check_refusal(run(["run", "bad.yaml", "--out", "out"], home))
        (home / "bad.yaml").write_text(plan + f"cohorts: {{'{role}': truth.json}}\n")
        check_refusal(run(["run", "bad.yaml", "--out", "out"], home))


SANITISE = ["sanitise", "mine.jsonl", "--by", "difference", "--recipe", "word-lstm", *SET, "--out", "clean.jsonl"]


@pytest.mark.parametrize("verb", ["train", "sanitise"])
def test_9_what_a_killed_writer_left_goes_with_the_next_call(home, verb):
    words = TRAIN if verb == "train" else ["sanitise", "mine.jsonl", "--by", "duplicates", "--out", "clean.jsonl"]

    def stop_at_the_first_rename():
        os.replace = os.rename = lambda *names: os.kill(os.getpid(), 9)
        Path.replace = Path.rename = lambda *names: os.kill(os.getpid(), 9)

    assert start(words, home, prepare=stop_at_the_first_rename).wait().status == -9
    left = [path for path in home.rglob("*") if path.name.endswith(".part") or "tmp" in path.name]
    assert left, "nothing was left, so nothing is shown"
    assert run(words, home).status == 0
    assert not [path for path in left if path.exists()]


def test_9_everything_that_training_writes_is_its_owners_alone(home):
    (home / "trained").mkdir(mode=0o755)
    assert run(TRAIN, home, prepare=lambda: os.umask(0)).status == 0
    open_to_others = [path.name for path in (home / "trained").rglob("*") if stat.S_IMODE(path.stat().st_mode) & 0o077]
    assert open_to_others == []


def test_10_a_mistyped_folder_asks_nobody(home):
    def watch():
        os.environ.pop("HF_HUB_OFFLINE", None)
        import huggingface_hub.constants

        huggingface_hub.constants.HF_HUB_OFFLINE = False
        import transformers.utils.hub

        transformers.utils.hub._is_offline_mode = False

        def asked(*address):
            (home / "asked").write_text(str(address))
            raise OSError("no network here")

        socket.getaddrinfo = socket.socket.connect = asked

    ended = run(["score", "tunedd", "mine.jsonl"], home, prepare=watch, seconds=120)
    assert not (home / "asked").exists(), (home / "asked").read_text()
    check_refusal(ended)


def test_10_a_revision_can_be_pinned_and_its_commit_stands_in_the_result(home):
    commit, cached = "0123456789" * 4, home / "cache" / "models--somebody--tiny"
    shutil.copytree(home / "model", cached / "snapshots" / commit)
    (cached / "refs").mkdir()
    (cached / "refs" / "v1").write_text(commit)
    words = [sys.executable, "-m", "recollect", *MEMBERSHIP, "--out", "out"]
    words[words.index("model")] = "hf:somebody/tiny@v1"
    environment = {**os.environ, "HF_HUB_CACHE": str(home / "cache"), "HF_HUB_OFFLINE": "1"}
    ended = subprocess.run(words, cwd=home, env=environment, capture_output=True, check=False)  # noqa: S603
    assert ended.returncode == 0, ended.stderr
    assert commit in (home / "out" / "results" / "membership.json").read_text()


def test_10_a_configuration_cannot_choose_the_code_of_attention(home):
    config = home / "model" / "config.json"
    settings = {
        **json.loads(config.read_text()),
        "attn_implementation": "somebody/kernel",
        "_attn_implementation": "somebody/kernel",
    }
    config.write_text(json.dumps(settings))
    ended = run(["score", "model", "mine.jsonl"], home)
    assert ended.status == 0, ended.said


def test_11_people_have_pseudonyms_where_they_are_shown(home):
    for name in ("mine", "others"):
        rewrite(home / f"{name}.jsonl", user=lambda i, row: f"Zacharias-{row['user']}")
    ended = run([*MEMBERSHIP, "--out", "out"], home)
    assert ended.status == 0, ended.said
    assert "Zacharias" not in ended.said
    for page in ("report.html", "report.md"):
        assert "Zacharias" not in (home / "out" / page).read_text()
    table = pq.read_table(home / "out" / "tables" / "membership" / "candidates.parquet")
    assert "Zacharias" in str(table.to_pydict())


def test_12_a_file_of_bad_lines_is_not_called_empty(home):
    (home / "bad.jsonl").write_text("not json\n" * 20)
    ended = run(["score", "model", "bad.jsonl", "--skip-bad"], home)
    check_refusal(ended)
    assert not re.search(r"empty|no records", ended.said), ended.said


def test_12_advice_to_read_pickled_code_is_not_passed_on(home):
    class Code:
        def __reduce__(self):
            return (os.system, ("echo it ran",))

    (home / "model" / "model.safetensors").unlink()
    torch.save({"w": Code()}, home / "model" / "pytorch_model.bin", pickle_module=pickle)
    ended = run(["score", "model", "mine.jsonl"], home)
    check_refusal(ended)
    assert "weights_only" not in ended.said


@pytest.mark.parametrize("sizes", [{"n_layer": 10**9}])
def test_12_absurd_sizes_are_refused_at_once(home, sizes):
    config = home / "model" / "config.json"
    config.write_text(json.dumps({**json.loads(config.read_text()), **sizes}))
    ended = run(["score", "model", "mine.jsonl"], home, seconds=60, limits={resource.RLIMIT_AS: 12 * GIGABYTE})
    assert ended.status != HUNG
    check_refusal(ended)


@pytest.mark.parametrize(("redirection", "words", "status"), [("", "list", 0), ("2>&-", "score model absent.jsonl", 2)])
def test_12_streams_that_are_closed_or_know_only_ascii_do_not_change_the_status(home, redirection, words, status):
    ascii_only = {**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0", "LC_ALL": "C"}
    line = f"{sys.executable} -m recollect {words} {redirection}"
    ended = subprocess.run(line, shell=True, cwd=home, env=ascii_only, capture_output=True, check=False)  # noqa: S602
    assert ended.returncode == status, ended.stderr


def test_12_a_dead_workers_block_is_tried_again(home):
    """The first worker that scores kills itself, once."""
    (home / "mortal.py").write_text(
        "import os, pathlib\n"
        "def model():\n"
        "    from recollect.models import load_model\n"
        "    loaded, marker = load_model('model'), pathlib.Path('died')\n"
        "    if not marker.exists() and os.getppid() != int(pathlib.Path('parent').read_text()):\n"
        "        marker.touch(); os._exit(9)\n"
        "    return loaded\n"
    )
    (home / "parent").write_text(str(os.getpid()))
    ended = run(["score", "python:mortal:model", "mine.jsonl", "--workers", "2"], home)
    assert (home / "died").exists()
    assert ended.status == 0, ended.said


def test_12_there_is_a_lock_file_with_hashes():
    import recollect

    root = Path(recollect.__file__).parents[2]
    assert "--hash=sha256:" in (root / "requirements.lock").read_text()


def test_12_a_corpus_that_changes_during_a_run_is_noticed_by_its_content(home):
    """Between the first pass over the corpus and the next, a byte changes; size and time stay."""
    from recollect.corpora.readers.corpus_reader import read_corpus

    path = home / "mine.jsonl"
    corpus = read_corpus(path)
    assert len(corpus)
    list(corpus)
    before = path.stat()
    data = path.read_bytes()
    path.write_bytes(data.replace(b"e", b"a", 1) if b"e" in data else data[::-1])
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    time.sleep(0.01)
    with pytest.raises(Exception, match=r"chang"):
        list(corpus)


def test_damage_is_found_by_verify(home):
    """Built since: checksums of everything, and a manifest of a run folder."""
    assert run([*MEMBERSHIP, "--out", "out"], home).status == 0
    assert run(["verify", "out"], home).status == 0
    path = home / "out" / "tables" / "membership" / "candidates.parquet"
    path.write_bytes(path.read_bytes() + b"x")
    check_refusal(run(["verify", "out"], home))
    shutil.rmtree(home / "out")
    assert "would be deleted" in run(["clean"], home).said
