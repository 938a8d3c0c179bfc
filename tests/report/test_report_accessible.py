"""The page for everybody: axe-core, in a real Chromium, finds nothing serious, on a desk and on a telephone."""

from __future__ import annotations

import pytest

from recollect.report import write_report

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("browser")]
WIDTHS = {"desk": 1280, "telephone": 500}
"""Chromium's window is never narrower than 500."""


@pytest.mark.parametrize("width", WIDTHS.values(), ids=WIDTHS)
def test_nobody_is_shut_out(folder, faults, width):
    serious, wide = faults(write_report(folder.path), width)
    assert serious == []
    assert wide <= width


def test_a_page_with_faults_is_found_out(folder, faults):
    page = write_report(folder.path)
    bad = "<img src='data:,'><input><p style='color:#ccc;background:#fff'>pale</p></body>"
    page.write_text(page.read_text(encoding="utf-8").replace("</body>", bad), encoding="utf-8")
    serious, _ = faults(page, WIDTHS["desk"])
    assert {"image-alt", "label"} <= {name for _, name, _ in serious}
