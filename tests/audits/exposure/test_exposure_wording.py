"""What the exposure and extraction audits say, kept in one file."""

from __future__ import annotations

from pathlib import Path

import pytest

from recollect.audits.exposure.audit import ExposureAudit
from recollect.audits.exposure.extraction import ExtractionAudit
from recollect.audits.exposure.view import CANARIES
from recollect.audits.rounds import collect_evidence
from recollect.corpora.canaries.formats import parse_format
from recollect.corpora.canaries.manifest import Canaries, Canary
from recollect.corpora.corpus import Corpus
from recollect.corpora.record import Record
from recollect.errors import RecollectError
from recollect.models.hugging_face.causal import Causal
from recollect.models.model import Question
from recollect.signals.evidence import AUDITED, TARGET, Evidence
from recollect.streams import stream
from recollect.testing.fakes import Memoriser, Null
from recollect.testing.tiny import build_tiny_model
from recollect.testing.wording import check_wording
from recollect.testing.world import WorldAnswers

FORMAT = "my pin is {digits:4}"


def judge(audit, model, **given):
    """The result, or the error that was raised instead."""
    evidence = Evidence(models={TARGET: model}, **given)
    try:
        evidence = collect_evidence(
            audit, evidence, score=lambda asked, corpus: WorldAnswers(asked), train=lambda *_: {}
        )
        return audit.run(evidence, stream(0, audit.name))
    except RecollectError as error:
        return error


def manifest(path, *, controls):
    """Two secrets that were planted once, two that were planted three times, and controls."""
    texts = [parse_format(FORMAT).draw(stream(0, "wording", i)) for i in range(4 + controls)]
    planted = [1, 1, 3, 3] + [0] * controls
    canaries = [
        Canary(id=f"canary-{i}", format=FORMAT, text=text, planted=times)
        for i, (text, times) in enumerate(zip(texts, planted, strict=True))
    ]
    Canaries(corpus="0" * 32, seed=0, canaries=tuple(canaries)).save(path)
    return {CANARIES: path}, Memoriser([Record(id=each.id, text=each.text) for each in canaries if each.planted])


@pytest.fixture(scope="module")
def cases(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wording")
    files, memoriser = manifest(folder / "canaries.json", controls=12)
    alone, _ = manifest(folder / "alone.json", controls=0)
    corpus = Corpus.of([Record(id="0", text="my pin is 0042"), Record(id="1", text="my pin is 1234")], name="mails")
    gpt = Causal(build_tiny_model("gpt2"), Question())
    secret = next(record.text for record in memoriser.records)
    found = ExtractionAudit(format="again {digits:2}", top=3, max_steps=200)
    return {
        "memorised secrets": judge(ExposureAudit(draws=200), memoriser, files=files),
        "secrets that nobody saw, without controls": judge(ExposureAudit(draws=200), Null(), files=alone),
        "a memorised secret": judge(ExposureAudit(draws=200, format=FORMAT, secrets=(secret,)), memoriser),
        "given secrets": judge(ExposureAudit(draws=200, format=FORMAT, secrets=("1234", "5678")), Null()),
        "secrets of a corpus": judge(ExposureAudit(draws=200, format=FORMAT), Null(), corpora={AUDITED: corpus}),
        "no secret in the corpus": judge(ExposureAudit(format="{digits:9}"), Null(), corpora={AUDITED: corpus}),
        "a format and canaries": judge(ExposureAudit(format=FORMAT), Null(), files=files),
        "no secrets at all": judge(ExposureAudit(), Null()),
        "another format": judge(ExposureAudit(format=FORMAT, secrets=("12",)), Null()),
        "a classifier": judge(ExposureAudit(), Null(kind="classifier"), files=files),
        "extraction": judge(found, gpt),
        "extraction of what is likely": judge(ExtractionAudit(format="again {digits:3}", max_bits=4.0), gpt),
        "extraction that ends early": judge(ExtractionAudit(format="again {digits:4}", max_steps=1), gpt),
    }


def test_exposure_and_extraction_say_what_they_did(cases):
    check_wording(cases, Path(__file__).with_name("wording.txt"))
