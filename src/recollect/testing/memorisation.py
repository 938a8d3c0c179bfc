"""A test that a model has not memorised its canaries: a function, and the pytest fixture that holds it.

The package registers this module as a pytest plug-in, so that `assert_not_memorised` is a fixture wherever Recollect
is installed. Importing it loads neither torch nor transformers.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from recollect.session import AuditResult


def check_not_memorised(model: Any, canaries: str | Path, *, fail_if: str = "", **settings: Any) -> AuditResult:
    """Raise unless the model shows no sign of having memorised the planted canaries; the result of the exposure audit.

    Args:
        model: A path or another name of a model, or an object with `tokenizer=`.
        canaries: The manifest that `recollect plant` wrote beside the corpus.
        fail_if: A limit that decides in place of the outcome: "highest_exposure_bits>20".
        settings: Arguments of `recollect.exposure`: tokenizer=, draws=, alpha=, work=, seed= …

    Raises:
        AssertionError: The model memorised a canary, the audit was inconclusive, or the limit was exceeded.
    """
    import recollect

    limits = [fail_if] if fail_if else []
    found: AuditResult = recollect.exposure(model, canaries=canaries, fail_if=limits, **settings)
    result = found.result
    kept = all(check.status == "kept" for check in result.limits) if limits else result.outcome == "not_found"
    if not kept:
        numbers = "\n".join(f"  {check.limit}: {check.status} ({check.value})" for check in result.limits)
        raise AssertionError(f"{result.verdict_text}\n{numbers}\n{result.next_step or ''}".strip())
    return found


@pytest.fixture
def assert_not_memorised(tmp_path: Path) -> Callable[..., AuditResult]:
    """`assert_not_memorised(model, canaries)` fails the test if the model memorised the canaries."""

    def check(model: Any, canaries: str | Path, **settings: Any) -> AuditResult:
        return check_not_memorised(model, canaries, **{"work": tmp_path / "recollect", **settings})

    return check
