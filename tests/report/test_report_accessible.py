"""The page for everybody: axe-core, in a real Chromium, finds nothing serious, on a desk and on a telephone."""

from __future__ import annotations

import html
import json
import re
from pathlib import Path

import pytest

from recollect.report import write_report

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("browser")]
AXE = Path(__file__).resolve().parents[2] / "node_modules" / "axe-core" / "axe.min.js"
ASK = """
<script>{axe}</script><script>
axe.run().then((found) => {{
  const told = found.violations.map((each) => [each.impact, each.id, each.nodes.map((node) => node.target.join(" "))]);
  const place = document.createElement("pre");
  place.id = "axe-said";
  place.textContent = JSON.stringify({{told, passed: found.passes.length, wide: document.documentElement.scrollWidth}});
  document.body.append(place);
}});
</script></body>"""
WIDTHS = {"desk": "1280,1600", "telephone": "500,1600"}
"""Chromium's window is never narrower than 500."""


def faults(page, browser, size):
    """What axe-core complains of, by how bad it is, and how wide the page came out."""
    if not AXE.is_file():
        pytest.skip("axe-core is not here (npm install --no-save axe-core): accessibility cannot be tested")
    open_page = re.sub("<meta http-equiv[^>]*>", "", page.read_text(encoding="utf-8"))
    tested = page.with_name("tested.html")
    tested.write_text(open_page.replace("</body>", ASK.format(axe=AXE.read_text(encoding="utf-8"))), encoding="utf-8")
    seen = browser(tested, f"--window-size={size}", "--dump-dom")
    said = json.loads(html.unescape(re.search(r'<pre id="axe-said">(.*?)</pre>', seen.dom, re.DOTALL)[1]))
    assert said["passed"] > 10
    return [fault for fault in said["told"] if fault[0] in ("serious", "critical")], said["wide"]


@pytest.mark.parametrize("size", WIDTHS.values(), ids=WIDTHS)
def test_nobody_is_shut_out(folder, browser, size):
    serious, wide = faults(write_report(folder.path), browser, size)
    assert serious == []
    assert wide <= int(size.partition(",")[0])


def test_a_page_with_faults_is_found_out(folder, browser):
    page = write_report(folder.path)
    bad = "<img src='data:,'><input><p style='color:#ccc;background:#fff'>pale</p></body>"
    page.write_text(page.read_text(encoding="utf-8").replace("</body>", bad), encoding="utf-8")
    serious, _ = faults(page, browser, WIDTHS["desk"])
    assert {"image-alt", "label"} <= {name for _, name, _ in serious}
