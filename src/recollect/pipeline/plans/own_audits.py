"""`register_audit`: an audit of one's own, known to this process without a package."""

from __future__ import annotations

from recollect.audits.registry import AUDITS
from recollect.audits.verb import Verb
from recollect.errors import PlanError


def register_audit(kind: type) -> type:
    """Make an audit of your own known to this process, by its `name`; also as a decorator.

    It is then a function of `recollect`, a method of sessions, and a key in plans that this process runs. Commands and
    plans that are run elsewhere know it only once a package that offers it is installed.

    Args:
        kind: The class of the audit: a dataclass with `name`, `question`, `paper`, `verb`, `needs` and `run`, whose
            fields are its settings. See the page *Add an audit*.

    Raises:
        PlanError: It is no audit, or there is another one of its name.
    """
    if not isinstance(getattr(kind, "verb", None), Verb):
        raise PlanError(
            f"{getattr(kind, '__name__', repr(kind))} is no audit: it has no verb.",
            do="Declare `verb: ClassVar[Verb] = Verb(...)` on it; see the page *Add an audit* "
            "(docs/how-to/add-an-audit.md).",
            code="invalid_audit",
        )
    AUDITS.register(kind)
    return kind
