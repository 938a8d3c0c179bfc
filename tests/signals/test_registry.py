"""The registries: a table one can read, in which every row leads somewhere, and the plug-ins of others."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass, fields, replace
from importlib import metadata
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import ClassVar

import pytest
import yaml

import recollect.signals
from recollect.audits.registry import AUDITS, find_verb
from recollect.audits.registry import VERBS as RENAMED
from recollect.cli.app import VERBS
from recollect.models.access import Access
from recollect.report.presentations import find_presentation
from recollect.session import Session
from recollect.signals.evidence import AUDITED, CONTROLS, TARGET
from recollect.signals.loss import Loss
from recollect.signals.registry import SIGNALS, Registry, make_signal
from recollect.signals.scores import Scores
from recollect.testing.fakes import Null
from recollect.testing.refusals import refused
from recollect.testing.world import World

NOT_SIGNALS = {"__init__", "evidence", "aggregation", "registry", "roles", "shadow_scores", "scores", "signal"}


@pytest.mark.parametrize("name", SIGNALS.table)
def test_every_row_of_the_table_leads_to_a_signal_of_that_name(name):
    signal = make_signal(name)
    assert signal.name == name
    assert signal.paper
    assert SIGNALS.describe(name) == type(signal).__doc__.partition("\n")[0]


def test_every_signals_file_has_a_row():
    files = {path.stem for path in Path(recollect.signals.__path__[0]).glob("*.py")} - NOT_SIGNALS
    assert files == {place.partition(":")[0].rpartition(".")[2] for place in SIGNALS.table.values()}


@pytest.mark.parametrize("name", AUDITS.table)
def test_every_row_of_the_audits_leads_to_an_audit_of_that_name(name):
    assert AUDITS.load(name).name == name


def test_an_unknown_name_gets_the_nearest_known_one():
    with refused("unknown_signal") as refusal:
        make_signal("los")
    assert str(refusal.error).startswith("There is no signal 'los'.\n  Did you mean 'loss'? Known: loss")


def test_an_unknown_setting_gets_the_nearest_known_one():
    offered = Registry("signal", {"local": "recollect.execution.local:LocalBackend"})
    with refused("unknown_setting") as refusal:
        offered.make("local", {"worker": 2})
    assert "'workers'" in refusal.error.do
    assert offered.make("local", {"workers": 2}).workers == 2


@dataclass(frozen=True, kw_only=True)
class Brevity:
    """Short records score higher."""

    unit: int = 1
    name: ClassVar[str] = "brevity"
    paper: ClassVar[str] = "a test"
    kinds: ClassVar[tuple[str, ...]] = ("causal", "masked")
    needs: ClassVar[dict] = {TARGET: Access.top(1)}

    def score(self, evidence, corpus):
        shorter = {record.id: -len(record.text) / self.unit for record in evidence.corpora[corpus]}
        return Scores.of(evidence.corpora[corpus], shorter)


@pytest.fixture
def unregistered():
    """Whatever a test registers is forgotten after it."""
    yield
    SIGNALS.registered.clear()


@pytest.mark.usefixtures("unregistered")
def test_a_signal_of_ones_own_is_known_once_it_is_registered():
    with refused("unknown_signal") as refusal:
        make_signal("brevity")
    assert "recollect.register_signal" in refusal.error.do
    assert recollect.register_signal(Brevity) is Brevity
    assert make_signal("brevity", unit=2) == Brevity(unit=2)
    assert SIGNALS.describe("brevity") == "Short records score higher."
    assert SIGNALS.locate("brevity").endswith("test_registry:Brevity")
    again = type("Brevity", (Brevity,), {})
    recollect.register_signal(again)  # a notebook's cell that is run again
    assert SIGNALS.load("brevity") is again


@pytest.mark.usefixtures("unregistered")
def test_a_signal_can_be_given_as_an_object_or_a_class_and_is_planned_by_name():
    session = Session()
    for given, settings in ((Brevity(unit=3), {"unit": 3}), (Brevity, {}), (Loss(), {})):
        plan = session.plan("membership", Null(), [{"text": "a b"}], signal=given)
        assert (plan.audit.signal, dict(plan.audit.signal_settings)) == (given.name, settings)
    plan = session.plan("membership", Null(), [{"text": "a b"}], signal=Brevity(unit=3), signal_settings={"unit": 4})
    assert plan.audit.signal_settings == {"unit": 4}


@pytest.mark.usefixtures("unregistered")
def test_a_membership_audit_scores_by_a_signal_of_ones_own(tmp_path):
    corpora = World(members=8, others=8, controls=12).corpora
    given = {"controls": corpora[CONTROLS], "work": tmp_path / "work", "out": tmp_path / "run"}
    result = recollect.membership(Null(), corpora[AUDITED], signal=Brevity(unit=2), **given)
    lengths = {record.id: len(record.text) for record in corpora[AUDITED]}
    found = result.table("candidates")
    assert dict(zip(found["record"].to_pylist(), found["score"].to_pylist(), strict=True)) == {
        name: -length / 2 for name, length in lengths.items()
    }
    assert yaml.safe_load((tmp_path / "run/plan.yaml").read_text())["audits"]["membership"]["signal"] == "brevity"


@pytest.mark.usefixtures("unregistered")
def test_what_is_no_signal_or_has_a_name_of_ours_is_refused():
    plain = type("Plain", (), {"name": "plain", "score": None})
    for wrong in (plain, Brevity(), 7, type("Odd", (plain,), {"paper": "", "kinds": (), "needs": {}})):
        with refused("invalid_signal"):
            recollect.register_signal(wrong)
    with refused("invalid_signal"):
        Session().plan("membership", Null(), [{"text": "a b"}], signal=lambda answers: 0)
    with refused("plugin_name_taken"):
        recollect.register_signal(type("Ours", (Brevity,), {"name": "loss"}))
    with refused("bad_name"):
        recollect.register_signal(type("Ours", (Brevity,), {"name": "../loss"}))
    assert not SIGNALS.registered


def with_plugins(monkeypatch, **plugins: str) -> Registry:
    """A registry with these plug-ins installed."""

    def installed(*, group: str) -> list[EntryPoint]:
        return [EntryPoint(name, value, group) for name, value in plugins.items()] if group == "recollect.tests" else []

    monkeypatch.setattr(metadata, "entry_points", installed)
    return Registry("test", {"ours": "recollect.execution.local:LocalBackend"})


def test_plugins_come_in_by_their_entry_point_group(monkeypatch):
    known = with_plugins(monkeypatch, theirs="recollect.testing.fakes:Null")
    assert known.names == ("ours", "theirs")
    assert known.make("theirs", {"seed": 3}).seed == 3
    assert known.describe("theirs").startswith("A model that cannot have seen")


def test_a_plugin_that_cannot_be_loaded_is_an_error_when_it_is_requested(monkeypatch):
    known = with_plugins(monkeypatch, absent="no_such_package:Thing", empty="recollect.errors:Thing")
    for name in ("absent", "empty"):
        with refused("plugin_broken"):
            known.load(name)
    assert known.load("ours")


@dataclass(frozen=True, kw_only=True)
class Capped:
    """A signal of a plug-in."""

    cap: float = 2.0
    """The largest score."""
    order: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.cap < 0:
            raise ValueError("cap is negative")


class Plain:
    """A class that is no dataclass."""


def test_a_setting_of_another_type_is_refused_with_what_it_is_and_what_is_allowed(monkeypatch):
    known = with_plugins(monkeypatch, capped=f"{__name__}:Capped")
    for make in (lambda: known.make("capped", {"cap": "abc"}), lambda: make_signal("lowest-tokens", fraction="abc")):
        with refused("invalid_setting") as refusal:
            make()
        assert "is 'abc'. Input should be a valid number" in refusal.error.found
    assert refusal.error.found.startswith("fraction of the signal 'lowest-tokens' is")
    assert refusal.error.do.startswith(
        "fraction: The share of tokens that count, between 0 and 1; at least one token does. Its default is 0.2."
    )
    made = known.make("capped", {"cap": "3", "order": ["b", "a"]})
    assert made == Capped(cap=3.0, order=("b", "a"))


def test_a_value_out_of_range_is_refused_under_the_name_of_its_setting():
    with refused("out_of_range") as refusal:
        make_signal("rmia", offline_a=2)
    assert refusal.error.found == "offline_a is 2.0."


def test_settings_that_the_class_of_a_plugin_refuses_in_its_own_way_are_a_plan_error(monkeypatch):
    known = with_plugins(monkeypatch, capped=f"{__name__}:Capped")
    with refused("invalid_setting") as refusal:
        known.make("capped", {"cap": -1.0})
    assert refusal.error.found == "The test 'capped' refuses its settings: cap is negative"


def test_a_plugin_that_is_no_dataclass_or_lacks_something_is_refused_by_what_it_lacks(monkeypatch):
    known = with_plugins(monkeypatch, plain=f"{__name__}:Plain", capped=f"{__name__}:Capped")
    with refused("plugin_broken") as refusal:
        known.make("plain", {"cap": 1})
    assert "it is no dataclass" in refusal.error.found
    assert "@dataclass(frozen=True, kw_only=True)" in refusal.error.do
    with refused("plugin_broken") as refusal:
        replace(known, required=("name", "score")).load("capped")
    assert "it has no name, score" in refusal.error.found


def test_whatever_the_code_of_a_plugin_raises_names_the_plugin(monkeypatch, tmp_path):
    (tmp_path / "raises_at_once.py").write_text("1 / 0\n")
    monkeypatch.syspath_prepend(tmp_path)
    known = with_plugins(monkeypatch, bad="raises_at_once:Thing", capped=f"{__name__}:Capped")
    assert "'bad' of a plug-in cannot be loaded: ZeroDivisionError" in known.find_fault("bad")
    assert known.find_fault("capped") == ""
    assert known.plugins == ("bad", "capped")


def test_a_plugin_cannot_take_a_name_of_ours(monkeypatch):
    with refused("plugin_name_taken"):
        with_plugins(monkeypatch, ours="evil:Thing").load("ours")


def test_no_plugin_can_have_the_name_of_a_verb_or_of_what_a_session_offers():
    offered = {name for name in dir(Session) if not name.startswith("_")}
    assert {*VERBS, *RENAMED, *offered} - {each.name for each in fields(Session)} == AUDITS.reserved


def test_a_plugin_whose_package_is_gone_does_not_stop_a_list(monkeypatch):
    assert with_plugins(monkeypatch, absent="no_such_package.audit:Thing").describe("absent") == ""


@dataclass(frozen=True)
class Nameless:
    """An audit of a plug-in that does not say how it is called."""

    name: ClassVar[str] = "nameless"


@pytest.mark.parametrize(("name", "code"), [("nameless", "audit_without_verb"), ("other", "plugin_misnamed")])
def test_an_audit_of_a_plugin_is_called_by_its_own_name_and_says_how(monkeypatch, name, code):
    monkeypatch.setattr(Registry, "load", lambda self, _: Nameless)
    with refused(code):
        find_verb(name)


def test_listing_what_there_is_loads_neither_torch_nor_transformers():
    code = (
        "import sys; from recollect.signals.registry import SIGNALS; from recollect.audits.registry import AUDITS; "
        "[r.describe(n) for r in (SIGNALS, AUDITS) for n in r.names]; sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0  # noqa: S603 - our own code


@pytest.mark.parametrize("audit", AUDITS.table)
def test_verb_and_view_of_an_audit_are_those_that_its_class_declares(audit):
    kind = AUDITS.load(audit)
    assert find_verb(audit) is kind.verb
    assert find_presentation(audit) is kind.presentation


def test_the_verb_of_an_audit_is_found_without_what_it_computes_with():
    script = (
        "import sys\n"
        "from recollect.audits.registry import AUDITS, find_verb\n"
        "assert all(find_verb(name).roles for name in AUDITS.table)\n"
        "assert not [name for name in sys.modules if name.endswith('.audit') and 'audits.' in name], sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True)  # noqa: S603
