"""Chat templates as people give them: the template itself, or a file with one. Importing this costs nothing."""

from __future__ import annotations

from pathlib import Path

from recollect.errors import PlanError


def is_template(text: str) -> bool:
    """Whether this is a chat template itself, and not the name of a file with one.

    >>> is_template("{{ messages }}"), is_template("chat_template.jinja")
    (True, False)
    """
    return "{{" in text or "{%" in text


def read_template(given: str | None) -> str | None:
    """The chat template that is given, or is in the file that is given.

    Raises:
        PlanError: There is no such file, or it holds no template.
    """
    if given is None or is_template(given):
        return given
    do = "Give a file with a Jinja template, such as the chat_template.jinja beside a model."
    try:
        text = Path(given).expanduser().read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise PlanError(
            f"The chat template '{given}' cannot be read: {error}.", do=do, code="template_unreadable"
        ) from error
    if not is_template(text):
        raise PlanError(f"'{given}' is no chat template: nothing in it is Jinja.", do=do, code="not_a_template")
    return text
