"""The page for everybody: axe-core, in a real Chromium, finds nothing serious: desk and telephone, light and dark."""

from __future__ import annotations

import pytest

from recollect.report import write_report
from recollect.report.notebook import notebook_html

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("browser")]
WIDTHS = {"desk": 1280, "telephone": 500}
"""Chromium's window is never narrower than 500."""


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", WIDTHS.values(), ids=WIDTHS)
def test_nobody_is_shut_out(full, faults, width, dark):
    serious, wide = faults(write_report(full.path), width, dark=dark)
    assert serious == []
    assert wide <= width


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_nor_by_a_notebook(exposed, everything_said, tmp_path, faults, dark):
    result = exposed().replaced(**everything_said)
    page = tmp_path / "notebook.html"
    title = "<!doctype html><html lang=en><head><title>A notebook</title></head>"
    page.write_text(f"{title}<body><main><h1>One</h1><h2>Two</h2>{notebook_html(result, result.held)}</main></body>")
    serious, wide = faults(page, WIDTHS["telephone"], dark=dark)
    assert serious == []
    assert wide <= WIDTHS["telephone"]


def test_a_page_with_faults_is_found_out(folder, faults):
    page = write_report(folder.path)
    bad = "<img src='data:,'><input><p style='color:#ccc;background:#fff'>pale</p></body>"
    page.write_text(page.read_text(encoding="utf-8").replace("</body>", bad), encoding="utf-8")
    serious, _ = faults(page, WIDTHS["desk"])
    assert {"image-alt", "label", "color-contrast"} <= {name for _, name, _ in serious}


def test_words_that_only_light_pages_can_show_are_found_out_in_the_dark(folder, faults):
    page = write_report(folder.path)
    bad = "<p style='color:#1b1f27'>ink on ink</p></body>"
    page.write_text(page.read_text(encoding="utf-8").replace("</body>", bad), encoding="utf-8")
    assert faults(page, WIDTHS["desk"])[0] == []
    serious, _ = faults(page, WIDTHS["desk"], dark=True)
    assert [name for _, name, _ in serious] == ["color-contrast"]
