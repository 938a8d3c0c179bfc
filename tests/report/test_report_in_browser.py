"""The page in a real Chromium: hostile records neither run nor load anything, and tables sort and filter."""

from __future__ import annotations

import re
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import pyarrow as pa
import pytest

from recollect.report import write_report
from recollect.report.notebook import render_notebook_html
from recollect.results import Failed, Finding, Note, Provenance, Result, RunFolder, Skipped
from recollect.results.result import About, Guard, GuardCheck, LimitCheck, Mention, Placebo, Power, Withheld

pytestmark = [pytest.mark.browser, pytest.mark.loopback, pytest.mark.xdist_group("browser")]
HIT = "document.documentElement.dataset.hit=1"
HOSTILE = [
    f"<script>{HIT}</script>",
    f"</script><script>{HIT};fetch('URL/fetched')</script>",
    f"\"><img src='URL/image' onerror='{HIT}'>",
    f"'><svg onload='{HIT}'><animate onbegin='{HIT}'></svg>",
    f"<iframe src='javascript:parent.{HIT}'></iframe>",
    f"<iframe srcdoc='<script>parent.{HIT}</script>'></iframe>",
    "</style><style>@import 'URL/style'; body{display:none;background:url(URL/picture)}</style>",
    "<link rel=stylesheet href=URL/sheet><base href=URL><object data=URL/object></object>",
    f"javascript:{HIT}",
    f"<input autofocus onfocus={HIT}><details open ontoggle={HIT}>",
    "{{ 7 * 7 }}{% raw %}--><!-- <![CDATA[ </title></textarea></table></svg>",
    "\u202egnp.exe\u2066\x00\x1b[31m\u2028",
]


class Web:
    """A web server that remembers what it was requested."""

    def __init__(self):
        asked = self.asked = []

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                asked.append(self.path)
                self.send_response(404)
                self.end_headers()

            def log_message(self, *words):
                """Say nothing."""

        self.server = HTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()


@pytest.fixture
def web():
    made = Web()
    yield made
    made.server.shutdown()
    made.server.server_close()


def hostile(url):
    """A result whose every string is hostile."""
    short = [text.replace("URL", url) for text in HOSTILE]
    everything, endless = " ".join(short), "<b>x" * 25_000
    finding = Finding(
        name="auc",
        value=0.5,
        why_no_interval=everything,
        unit=everything,
        n={"records": 3},
        method=everything,
        reading=everything,
        severity="high",
        next_step=everything,
    )
    made = Result(
        audit="hostile",
        question=everything,
        verdict=(everything, Mention(kind="user", id=everything)),
        outcome="inconclusive",
        outcome_code="no_power",
        next_step=everything,
        findings=(finding,),
        withheld=(Withheld(finding="tpr", code="evil", reason=everything),),
        guard=Guard(comparable=False, checks=(GuardCheck(name="length", comparable=False, text=everything),)),
        placebo=Placebo(status="failed", reason=everything),
        power=Power(minimum_detectable_effect=1.0, effect_unit=everything),
        limits=(LimitCheck(limit=everything, status="not_checked", reason=everything),),
        about=About(system=everything, version=everything, who=everything, purpose=everything, date=everything),
        untested=(everything, endless),
        notes=(Note(code="evil", text=everything), Note(code="evil", text=endless)),
        skipped=(Skipped(audit="hostile", finding="tpr", code="too_few", reason=everything),),
        failed=(Failed(audit="hostile", code="broke", error=everything),),
        dropped={"audited.empty_text": 2},
        settings={everything: everything, "deep": {everything: [everything]}},
    ).with_tables(
        rows=pa.table(
            {
                everything: [*short, endless],
                "user": [*short, endless],
                "record": [*short, endless],
                "text": [*short, endless],
                "n": range(len(short) + 1),
            }
        )
    )
    trace = {"model": everything, "corpus": everything, "versions": {everything: everything}}
    return made.with_provenance(
        Provenance(
            recollect=everything, torch=everything, digests={everything: everything}, seed=0, queries=0, seconds=0
        ).model_copy(update=trace)
    )


@pytest.fixture
def page(tmp_path, web):
    folder = RunFolder(tmp_path / "run")
    folder.write_result(hostile(web.url))
    folder.plan.write_text(f'models: {{target: {{ref: "{HOSTILE[0]}"}}}}\n')
    return write_report(folder.path, show_text=True, real_names=True)


def test_hostile_records_neither_run_nor_load_nor_break_anything(page, web, browser):
    seen = browser(page)
    assert "data-hit" not in seen.dom[:300]
    assert web.asked == []
    assert seen.console == []
    assert len(re.findall(r"<(script|style|img|iframe|link|base|object|details)\b", seen.dom)) == 2
    assert not re.search(r"<[^>]*\son[a-z]+=", seen.dom)
    assert "<footer>" in seen.dom
    assert not re.search("[\u202e\u2066\x00\x1b\u2028]", seen.dom)
    assert page.stat().st_size < 6_000_000


def test_in_a_notebook_they_do_not_either(tmp_path, web, browser):
    result = hostile(web.url)
    page = tmp_path / "notebook.html"
    page.write_text(
        f"<!doctype html><body>{render_notebook_html(result, result.tables_in_memory)}<footer></footer></body>"
    )
    seen = browser(page)
    assert "data-hit" not in seen.dom[:300]
    assert web.asked == []
    assert seen.console == []
    assert re.findall(r"<(script|style|img|iframe|link|base|object|details)\b", seen.dom) == ["style"]
    assert not re.search(r"<[^>]*\son[a-z]+=", seen.dom)
    assert "<footer>" in seen.dom


def test_even_unescaped_nothing_runs_or_loads(page, web, browser):
    raw = "".join(text.replace("URL", web.url) for text in HOSTILE)
    page.write_text(page.read_text().replace("<footer>", raw + "<footer>"))
    seen = browser(page)
    assert "data-hit" not in seen.dom[:300]
    assert web.asked == []
    assert any("Content Security Policy" in line for line in seen.console)


def test_without_any_wall_the_hostile_records_do_run_and_load(tmp_path, web, browser):
    page = tmp_path / "open.html"
    page.write_text("<!doctype html><body>" + "".join(text.replace("URL", web.url) for text in HOSTILE))
    seen = browser(page)
    assert "data-hit" in seen.dom[:300]
    assert {"/fetched", "/image"} <= {*web.asked}


def test_tables_sort_by_number_and_filter(folder, browser):
    page = write_report(folder.path)
    drive = """<script>
      const press = (words) => [...document.querySelectorAll("th button")].find((b) => b.textContent === words).click();
      press("Rank"); press("Rank");
      const input = document.querySelector("input");
      input.value = "SECRET-3"; input.dispatchEvent(new Event("input"));
    </script></body>"""
    without = re.sub("<meta http-equiv[^>]*>", "", page.read_text())
    page.write_text(without.replace("</body>", drive))
    seen = browser(page)
    rows = re.findall(r"<tr[^>]*><td>secret-.*?</tr>", seen.dom)
    ranks = [float(re.findall(r'<td[^>]*?(?:data-number="([^"]*)")?>', row)[6]) for row in rows]
    assert len(rows) == 38
    assert ranks == sorted(ranks)
    shown = sorted(row.split("<td>")[1].split("<")[0] for row in rows if "hidden" not in row)
    assert shown == ["secret-3", *(f"secret-{i}" for i in range(30, 38))]
    assert 'aria-sort="ascending"' in seen.dom
    assert "9 of 38 rows" in seen.dom


def test_the_page_prints(folder, browser, tmp_path):
    page = write_report(folder.path)
    browser(page, f"--print-to-pdf={tmp_path / 'report.pdf'}")
    assert (tmp_path / "report.pdf").read_bytes().startswith(b"%PDF")
