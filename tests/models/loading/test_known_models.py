"""Models with kept answers: found again by their files without being loaded, and only while nothing has changed."""

from __future__ import annotations

import os
import shutil
from functools import partial
from itertools import count
from pathlib import Path

import numpy as np
import pytest

from recollect.corpora.corpus import Corpus
from recollect.corpora.record import Record
from recollect.models.answer_store.scoring import score_corpus
from recollect.models.loading import known_models, local_models
from recollect.models.loading.known_models import KNOWN_MODELS, DeferredModel
from recollect.models.loading.loader import load_model
from recollect.models.model import Embedder, Perturber, Question, Steppable, compute_address
from recollect.models.model_options import Loading
from recollect.testing.refusals import refused
from recollect.testing.tiny import TEXTS, build_tiny_model, save_tiny

RECORDS = [Record(id=str(i), user="ann", text=text) for i, text in enumerate(TEXTS)]
KEPT, NEW = Corpus.of(RECORDS[:-1], name="kept"), Corpus.of(RECORDS, name="new")


class Loaded:
    """Stands for a model that had to be loaded."""

    kind = "causal"


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """A causal model that has scored a corpus: its folder, and the work folder."""
    home = tmp_path_factory.mktemp("saved")
    folder = save_tiny(build_tiny_model("gpt2"), home / "model")
    score_corpus(load(folder, home / "work"), KEPT, home / "work")
    return folder, home / "work"


@pytest.fixture
def copied(saved, tmp_path):
    """The same, to be changed."""
    for place, name in zip(saved, ("model", "work"), strict=True):
        shutil.copytree(place, tmp_path / name)
    return tmp_path / "model", tmp_path / "work"


def load(folder: Path, work: Path, **settings: object) -> object:
    """A model in a folder as the pipeline loads it."""
    question = settings.pop("question", Question())
    return load_model(str(folder), question=question, loading=Loading(work=work, **settings))


@pytest.fixture
def unloadable(monkeypatch):
    """Fails the test as soon as a model is loaded."""
    monkeypatch.setattr(local_models, "load_local", lambda *_: pytest.fail("it was loaded"))


@pytest.mark.usefixtures("unloadable")
def test_a_model_with_kept_answers_is_not_loaded(saved):
    known = load(*saved)
    assert isinstance(known, DeferredModel)
    found = score_corpus(known, KEPT, saved[1]).get_answers(KEPT)
    assert len(found.records) == len(KEPT)


def test_it_is_what_loading_gives(saved):
    folder, work = saved
    whole, known = load_model(str(folder), question=Question()), load(folder, work)
    for name in ("name", "kind", "digest", "question", "access", "revision"):
        assert getattr(known, name) == getattr(whole, name)
    assert compute_address(known) == compute_address(whole)
    assert np.array_equal(known.answer(RECORDS).logprob, whole.answer(RECORDS).logprob)
    assert known.stepper().encode("abc") == whole.stepper().encode("abc")
    assert known.budget == whole.budget


def test_records_that_are_new_load_it(copied):
    folder, work = copied
    known = load(folder, work)
    found = score_corpus(known, NEW, work).get_answers(NEW)
    alone = load_model(str(folder)).answer(RECORDS)  # batched otherwise
    assert np.allclose(found.logprob, alone.logprob, atol=1e-4)


@pytest.mark.parametrize("name", ["model.safetensors", "config.json", "tokenizer.json", "card.json"])
def test_any_other_byte_in_a_file_makes_it_unknown(copied, name):
    folder, work = copied
    path = folder / name
    before = path.stat() if path.exists() else None
    content = bytearray(path.read_bytes() if before else b"{} ")
    content[-1] ^= 1
    path.write_bytes(content)
    if before:
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert find(folder, work) is None


def find(folder: Path, work: Path) -> object:
    """The model if it is known; None if it had to be loaded."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(local_models, "load_local", lambda *_: Loaded())
        found = load(folder, work)
    return found if isinstance(found, DeferredModel) else None


def test_another_way_to_load_or_score_makes_it_unknown(saved):
    folder, work = saved
    assert find(folder, work) is not None
    for other in ({"question": Question(window=9)}, {"attention": "eager"}, {"keeps_precision": True}):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(local_models, "load_local", lambda *_: Loaded())
            assert not isinstance(load(folder, work, **other), DeferredModel)


def test_another_version_of_a_library_makes_it_unknown(saved, monkeypatch):
    monkeypatch.setattr(known_models, "get_versions", lambda _: {"transformers": "99"})
    assert find(*saved) is None


@pytest.mark.parametrize("damage", ["note", "store", "manifest"])
def test_a_damaged_note_or_store_makes_it_unknown(copied, damage):
    folder, work = copied
    (note,), (store,) = (work / KNOWN_MODELS).iterdir(), (work / "answers").iterdir()
    if damage == "note":
        note.write_text(note.read_text().replace('"steps": true', '"steps": false'))
    elif damage == "store":
        shutil.rmtree(store)
    else:
        (store / "manifest.json").write_text("{}")
    assert find(folder, work) is None


def test_a_copy_elsewhere_is_known_too(copied, tmp_path):
    folder, work = copied
    assert find(folder.rename(tmp_path / "moved"), work).name == str(tmp_path / "moved")


def test_files_that_change_before_it_computes_are_refused(copied):
    folder, work = copied
    known = load(folder, work)
    save_tiny(build_tiny_model("gpt2", seed=1), folder)
    with refused("model_changed"):
        known.answer(RECORDS)


def test_files_that_change_while_it_is_loaded_leave_no_note(tmp_path):
    folder, work = save_tiny(build_tiny_model("gpt2"), tmp_path / "model"), tmp_path / "work"
    model = load(folder, work)
    (folder / "README.md").write_text("new")
    score_corpus(model, KEPT, work)
    assert not (work / KNOWN_MODELS).exists()


def test_large_files_go_by_their_times_which_cannot_be_set_back(copied, monkeypatch):
    folder, work = copied
    path = folder / "model.safetensors"
    clock = count(path.stat().st_ctime_ns + 10**10)
    monkeypatch.setattr(known_models, "CONTENT_BYTES", path.stat().st_size - 1)
    monkeypatch.setattr(known_models.time, "time_ns", partial(next, clock))
    score_corpus(load(folder, work), KEPT, work)
    assert find(folder, work) is not None
    before, content = path.stat(), bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert find(folder, work) is None


def test_a_large_file_that_was_written_just_now_is_not_trusted(copied, monkeypatch):
    folder, work = copied
    path = folder / "model.safetensors"
    monkeypatch.setattr(known_models, "CONTENT_BYTES", path.stat().st_size - 1)
    monkeypatch.setattr(known_models.time, "time_ns", lambda: path.stat().st_ctime_ns + 10**9)
    notes = len(list((work / KNOWN_MODELS).iterdir()))
    score_corpus(load(folder, work), KEPT, work)
    assert len(list((work / KNOWN_MODELS).iterdir())) == notes


def test_each_kind_can_do_what_it_could(tmp_path):
    for family, able in {"bert": (Embedder, Perturber), "t5": (Steppable,)}.items():
        folder, work = save_tiny(build_tiny_model(family), tmp_path / family), tmp_path / "work"
        records = [Record(id="1", source="a b", target="c d")] if family == "t5" else RECORDS[:1]
        score_corpus(load(folder, work), Corpus.of(records, name=family), work)
        known = find(folder, work)
        assert [kind for kind in (Embedder, Perturber, Steppable) if isinstance(known, kind)] == list(able)
