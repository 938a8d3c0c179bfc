"""The page for everybody: axe-core, in a real Chromium, finds nothing serious: desk and telephone, light and dark."""

from __future__ import annotations

import re

import pytest

from recollect.report import write_report
from recollect.report.notebook import render_notebook_html

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("browser")]
WIDTHS = {"desk": 1280, "telephone": 500}
"""Chromium's window is never narrower than 500."""


@pytest.mark.parametrize(
    ("width", "dark"),
    [
        pytest.param("telephone", False, id="telephone-light"),
        pytest.param("desk", True, id="desk-dark"),
        pytest.param("telephone", True, id="telephone-dark", marks=pytest.mark.slow),
        pytest.param("desk", False, id="desk-light", marks=pytest.mark.slow),
    ],
)
def test_nobody_is_shut_out(full, faults, width, dark):
    serious, wide = faults(write_report(full.path), WIDTHS[width], dark=dark)
    assert serious == []
    assert wide <= WIDTHS[width]


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_nor_by_a_notebook(exposed, everything_said, tmp_path, faults, dark):
    result = exposed().replace(**everything_said)
    page = tmp_path / "notebook.html"
    title = "<!doctype html><html lang=en><head><title>A notebook</title></head>"
    page.write_text(
        f"{title}<body><main><h1>One</h1><h2>Two</h2>"
        f"{render_notebook_html(result, result.tables_in_memory)}</main></body>"
    )
    serious, wide = faults(page, WIDTHS["telephone"], dark=dark)
    assert serious == []
    assert wide <= WIDTHS["telephone"]


def spoilt(folder, bad):
    """The report's page with something bad in it, and without what else it tells: only its style is needed."""
    page = write_report(folder.path)
    text = page.read_text(encoding="utf-8")
    body = f"<body><main><h1>One</h1><p>Nothing is <b>said</b> <a href='#x' id=x>here</a>.</p>{bad}</main></body>"
    page.write_text(re.sub("<body.*</body>", lambda _: body, text, flags=re.DOTALL), encoding="utf-8")
    return page


def test_a_page_with_faults_is_found_out(folder, faults):
    bad = "<img src='data:,'><input><p style='color:#ccc;background:#fff'>pale</p>"
    serious, _ = faults(spoilt(folder, bad), WIDTHS["desk"])
    assert {"image-alt", "label", "color-contrast"} <= {name for _, name, _ in serious}


def test_words_that_only_light_pages_can_show_are_found_out_in_the_dark(folder, faults):
    page = spoilt(folder, "<p style='color:#1b1f27'>ink on ink</p>")
    assert faults(page, WIDTHS["desk"])[0] == []
    serious, _ = faults(page, WIDTHS["desk"], dark=True)
    assert [name for _, name, _ in serious] == ["color-contrast"]
