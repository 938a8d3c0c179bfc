"""What all tests share: public data, and a real browser to look at pages."""

from __future__ import annotations

import functools
import html
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parent
DATA = TESTS.parents[1] / "shared" / "data"
GUARD = TESTS / "network_guard"
sys.path.insert(0, str(GUARD))
import network_guard  # noqa: E402 - beside this file, and in every process that a test starts

NETWORK_LOG = Path(tempfile.mkstemp(prefix="network-", suffix=".log")[1])
os.environ[network_guard.LOG] = str(NETWORK_LOG)
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(GUARD), os.environ.get("PYTHONPATH")]))
network_guard.install()


def pytest_unconfigure():
    """Take the list of refused connections away."""
    NETWORK_LOG.unlink(missing_ok=True)


@pytest.fixture(autouse=True)
def network_use(request):
    """No test uses the network, nor a server on this machine, unless it is marked `network` or `loopback`.

    Ray calls this machine by its address in the network, not by that of the loopback.
    """
    marked = {name for name in ("network", "ray", "loopback") if request.node.get_closest_marker(name)}
    os.environ[network_guard.ALLOWED] = "loopback" if marked == {"loopback"} else "any" if marked else ""
    yield
    os.environ[network_guard.ALLOWED] = ""
    refused = NETWORK_LOG.read_text(encoding="utf-8")
    if refused:
        NETWORK_LOG.write_text("", encoding="utf-8")
        pytest.fail(f"the network was asked:\n{refused}")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """With `--dist loadgroup`, tests that share something dear run in one process: a model is trained once, not twice.

    They are those of files with a fixture of the module or with the mark `xdist_group`, told by the file's text. The
    mark alone does nothing in pytest-xdist 3.8 with pytest 9.2, which no longer lets it put a group into a test's id.
    """
    from xdist.scheduler import LoadScopeScheduling

    if config.getvalue("dist") != "loadgroup":
        return None

    class Together(LoadScopeScheduling):
        def _split_scope(self, nodeid):
            return group_of(config.rootpath / nodeid.partition("::")[0]) or nodeid

    return Together(config, log)


@functools.cache
def group_of(file: Path) -> str | None:
    """What the tests of a file are kept together by; None if they share nothing."""
    text = file.read_text(encoding="utf-8") if file.is_relative_to(TESTS) else ""
    named = re.search(r'xdist_group\("(.+?)"\)', text)
    return named[1] if named else str(file) if 'fixture(scope="module"' in text else None


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of public data sets beside the checkout; tests that read it are skipped where it is absent."""
    if not DATA.is_dir():
        pytest.skip(f"no public data sets at {DATA}")
    return DATA


@pytest.fixture(scope="session")
def counted_once():
    """Opacus computes each Rényi bound once: pure numbers, of which every account of equal steps asks for the same."""
    from opacus.accountants.analysis import rdp

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rdp, "_compute_rdp", functools.lru_cache(maxsize=None)(rdp._compute_rdp))
        yield


CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
QUIET = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--enable-logging=stderr",
    "--virtual-time-budget=3000",
]


@dataclass(frozen=True)
class Seen:
    """What a browser made of a page."""

    dom: str
    console: list[str]


@pytest.fixture
def browser(tmp_path_factory):
    """Opens a page in Chromium, lets its scripts run, and tells what became of it."""
    if CHROMIUM is None:
        pytest.skip("no Chromium on this machine: pages cannot be looked at")

    def opened(page: Path, *more: str) -> Seen:
        profile = tmp_path_factory.mktemp("profile")
        words = [CHROMIUM, *QUIET, f"--user-data-dir={profile}", *(more or ["--dump-dom"]), page.as_uri()]
        done = subprocess.run(words, capture_output=True, text=True, timeout=90, check=True)  # noqa: S603
        return Seen(dom=done.stdout, console=[line for line in done.stderr.splitlines() if "CONSOLE" in line])

    return opened


AXE = TESTS.parent / "node_modules" / "axe-core" / "axe.min.js"
ASK = """
<script>{axe}</script><script>
axe.run().then((found) => {{
  const told = found.violations.map((each) => [each.impact, each.id, each.nodes.map((node) => node.target.join(" "))]);
  const place = document.createElement("pre");
  place.id = "axe-said";
  const wide = document.documentElement.scrollWidth;
  const dark = matchMedia("(prefers-color-scheme: dark)").matches;
  place.textContent = JSON.stringify({{told, passed: found.passes.length, wide, dark}});
  document.body.append(place);
}});
</script></body>"""


@pytest.fixture
def faults(browser):
    """Tells what axe-core finds seriously wrong with a page in a window so wide, and how wide the page came out.

    In the dark it is looked at as by those who asked their machine for dark pages.
    """
    if not AXE.is_file():
        pytest.skip("axe-core is not here (npm install --no-save axe-core): accessibility cannot be tested")

    def found(page: Path, width: int, *, dark: bool = False) -> tuple[list[list[str]], int]:
        open_page = re.sub("<meta http-equiv[^>]*>", "", page.read_text(encoding="utf-8"))
        asked = open_page.replace("</body>", ASK.format(axe=AXE.read_text(encoding="utf-8")))
        tested = page.with_name("tested.html")
        tested.write_text(asked, encoding="utf-8")
        scheme = f"--blink-settings=preferredColorScheme={0 if dark else 1}"
        seen = browser(tested, f"--window-size={width},1600", scheme, "--dump-dom")
        said = json.loads(html.unescape(re.search(r'<pre id="axe-said">(.*?)</pre>', seen.dom, re.DOTALL)[1]))
        assert said["passed"] > 10
        assert said["dark"] is dark
        return [fault for fault in said["told"] if fault[0] in ("serious", "critical")], said["wide"]

    return found
