"""Everything that any verb writes is its owner's alone, whatever the umask; what kills leave does not stay."""

from __future__ import annotations

import os
import stat
import sys
import tempfile
import warnings

import numpy as np
import pytest
from typer.testing import CliRunner

from recollect.audits.registry import list_audits_by_verb
from recollect.cli import main
from recollect.cli.app import VERBS, app
from recollect.corpora import synthetic
from recollect.corpora.corpus_writer import write_corpus
from recollect.files import atomic_writes

LSTM = "--set units=8 --set embedding=8 --set epochs=1 --set batch_size=8"
MLP = "--set model.hidden=[8] --set training.epochs=2"
GIVEN = "--controls others.jsonl --work work --workers 1 --threads 1"
COMMANDS = f"""
plant mine.jsonl --format pin{{digits:2}} --secrets 2 --controls 4 --repeat 2 --out planted.jsonl
sanitise mine.jsonl --by duplicates --out clean.jsonl.gz
train char-lstm planted.jsonl {LSTM} --canaries planted.canaries.json --follow-exposure --out model --threads 1
train mlp query.npz {MLP} --out there
score model mine.jsonl --work work
evaluate model mine.jsonl --work work
check plan.yaml
run plan.yaml --out run
exposure model --canaries planted.canaries.json --draws 100 --work work --out exposure-run
extract model --format pin{{digits:2}} --top 2 --work work --out extract-run
leakage model mine.jsonl {GIVEN} --out leakage-run
membership model mine.jsonl {GIVEN} --by user --signal loss --out membership-run
provenance model mine.jsonl {GIVEN} --recipe char-lstm {LSTM} --shadows 1 --calibration 0.5 --out provenance-run
removal there query.npz --controls controls.npz --recipe mlp {MLP} --models 2 --work work --out removal-run
report run --out other.html
compare run run --out compared.html
verify run
clean --work work
forget nobody --work work
list
doctor
"""
TRAINING_MORE = f"""
train char-lstm mine.jsonl {LSTM} --out model --threads 1
sanitise mine.jsonl --by difference --recipe word-lstm {LSTM} --out different.jsonl --work other-work
membership model mine.jsonl {GIVEN} --by user --signal ratio --recipe char-lstm {LSTM} --out membership-run
provenance model mine.jsonl {GIVEN} --recipe char-lstm {LSTM} --shadows 2 --calibration 0.5 --out provenance-run
"""
"""Verbs in the ways in which they train most."""
PLAN = """\
models: {target: model}
corpora: {audited: mine.jsonl, controls: others.jsonl}
audits: {membership: {signal: loss, by: user, fpr: [0.1]}}
work: work
"""


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A folder of the user's own that others may read, under the umask that forbids nothing."""
    folder, scratch = tmp_path / "home", tmp_path / "temporary"
    folder.mkdir()
    folder.chmod(0o755)
    scratch.mkdir()
    people = synthetic.make_texts(people=50, per_person=2, seed=0)
    users = sorted({record.user for record in people})
    write_corpus(people.select_users(users[:10]), folder / "mine.jsonl")
    write_corpus(people.select_users(users[10:]), folder / "others.jsonl")
    rng = np.random.default_rng(0)
    for name in ("query", "controls"):
        np.savez(folder / f"{name}.npz", x=rng.random((60, 4, 4), dtype=np.float32), y=rng.integers(3, size=60))
    (folder / "plan.yaml").write_text(PLAN)
    monkeypatch.chdir(folder)
    monkeypatch.setattr(tempfile, "tempdir", str(scratch))
    before = os.umask(0)
    yield folder
    os.umask(before)


def find_open(folder, given):
    """What others could read or write, of all that is there now and was not given."""
    return {
        f"{path.relative_to(folder)} {stat.S_IMODE(path.lstat().st_mode):o}"
        for path in folder.rglob("*")
        if path not in given and not path.is_symlink() and path.lstat().st_mode & 0o077
    }


def find_files(folder):
    """All files of a folder; torch makes an empty folder for its compiler."""
    return [path for path in folder.rglob("*") if path.is_file()]


def call_all(commands, home):
    """Run one command after the other, and look at what each leaves; the verbs that were called."""
    given = {*home.rglob("*")}
    called = set()
    for words in map(str.split, commands.strip().splitlines()):
        found = CliRunner().invoke(app, words)
        assert found.exit_code == 0, (words, found.output)
        assert not find_open(home, given), words
        assert not find_files(home.parent / "temporary"), words
        called.add(words[0])
    return called


def test_everything_that_every_verb_writes_is_readable_by_its_owner_only(home):
    called = call_all(COMMANDS, home)
    assert called | {"demo"} == {*VERBS, *list_audits_by_verb()}
    assert not [*home.rglob(".*.part")]
    assert len([*home.rglob("*")]) > 90


@pytest.mark.slow
def test_everything_that_verbs_write_which_train_more_is_readable_by_its_owner_only(home):
    call_all(TRAINING_MORE, home)


@pytest.mark.slow
def test_everything_that_the_demonstration_writes_is_readable_by_its_owner_only(home):
    given = {*home.rglob("*")}
    assert CliRunner().invoke(app, ["demo", "--out", "demo"]).exit_code == 0
    assert not find_open(home, given)


@pytest.mark.parametrize("verb", ["sanitise", "train"])
def test_what_a_killed_writer_left_goes_with_the_next_call(home, verb):
    if verb == "train":
        words = f"train word-lstm mine.jsonl {LSTM} --out x --threads 1".split()
        assert CliRunner().invoke(app, words).exit_code == 0
        (home / "x" / "card.json").unlink()
    else:
        words = ["sanitise", "mine.jsonl", "--by", "duplicates", "--out", "x/clean.jsonl"]
        (home / "x").mkdir(mode=0o755)
    left = home / "x" / f".clean.jsonl.4194304-{atomic_writes._MACHINE}0a1b.part"
    left.write_text("half of a private text")
    found = CliRunner().invoke(app, words)
    assert found.exit_code == 0, found.output
    assert not left.exists()


def test_what_libraries_write_for_themselves_is_the_owners_too(monkeypatch):
    monkeypatch.setattr(sys, "argv", ["recollect", "list"])
    monkeypatch.setattr(sys, "stderr", sys.stderr)
    monkeypatch.setattr(warnings, "showwarning", warnings.showwarning)
    before = os.umask(0)
    try:
        with pytest.raises(SystemExit):
            main()
    finally:
        assert os.umask(before) == 0o077
