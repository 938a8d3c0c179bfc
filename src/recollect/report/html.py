"""The report as one self-contained HTML file that loads nothing and runs no script but its own.

Three walls are before a hostile record: every value is escaped by the template engine, what is invisible is spelt
out, and the content security policy names the one style and the one script of this file by their digests, so that
nothing else runs or loads even if it got in.
"""

from __future__ import annotations

import base64
import hashlib
from importlib.resources import files
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined, Template
from markupsafe import Markup

from recollect.report.annex import CAVEATS, CHECKED, NOTHING, OPINION
from recollect.report.questions import NOT_EXAMINED, NOT_TESTED
from recollect.report.report import Report
from recollect.report.template_cache import TemplateCache
from recollect.report.words import fit


def render_html(report: Report) -> str:
    """The report as a page."""
    constants = {
        "caveats": CAVEATS,
        "nothing": NOTHING,
        "opinion": OPINION,
        "checked": CHECKED,
        "not_asked": NOT_TESTED,
        "not_examined": NOT_EXAMINED,
    }
    return render_guarded(build_environment().get_template("report.html"), report=report, **constants)


def render_guarded(page: Template, **values: Any) -> str:
    """Render an HTML page with our style and script, and the policy that lets nothing else run."""
    style, script = read_template("parts.css") + read_template("report.css"), read_template("report.js")
    policy = (
        f"default-src 'none'; style-src '{_compute_policy_digest(style)}'; "
        f"script-src '{_compute_policy_digest(script)}'; base-uri 'none'; form-action 'none'"
    )
    return page.render(policy=policy, style=style, script=script, **values) + "\n"


def build_environment() -> Environment:
    """The template engine of HTML pages: it escapes always, and knows no value that is missing."""
    return Environment(
        loader=PackageLoader("recollect.report"),
        bytecode_cache=TemplateCache(),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_finalise_html,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def read_template(name: str) -> Markup:
    """A style or a script of our HTML page, which needs no escaping."""
    text = (files("recollect.report") / "templates" / name).read_text(encoding="utf-8")
    return Markup(text)  # noqa: S704


def _finalise_html(value: Any) -> Any:
    """A value as it goes into the HTML page: our own markup as it is, all else as fit words, which are then escaped."""
    return value if isinstance(value, Markup) else fit(str(value))


def _compute_policy_digest(text: str) -> str:
    """The digest of a style or script of an HTML page, as its content security policy names it."""
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"
