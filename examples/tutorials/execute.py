"""Executes the tutorials and keeps what they show: `python execute.py [NAME …]`.

Every notebook runs from top to bottom in a folder of its own. What its cells print and show goes into the notebook, and
the notebook as a page into `docs/tutorials`; tests compare the two.
"""

from __future__ import annotations

import ast
import contextlib
import io
import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

HOME = Path(__file__).resolve().parent
PAGES = HOME.parents[1] / "docs" / "tutorials"
MAX_CHARACTERS = 4000
"""Characters of one cell's output that are kept."""


def list_notebooks() -> list[Path]:
    """The notebooks, in the order of the documentation."""
    return sorted(HOME.glob("*.ipynb"))


def execute(notebook: Path) -> dict[str, Any]:
    """The notebook with the outputs of a run in an empty folder."""
    document: dict[str, Any] = json.loads(notebook.read_text(encoding="utf-8"))
    names: dict[str, Any] = {"__name__": "__main__"}
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        for cell in document["cells"]:
            if cell["cell_type"] == "code":
                cell["outputs"] = _run_cell("".join(cell["source"]), names)
    return document


def _run_cell(code: str, names: dict[str, Any]) -> list[dict[str, Any]]:
    """What a cell prints, and the value of its last line, if that is an expression."""
    lines = ast.parse(code)
    last = lines.body.pop() if isinstance(lines.body[-1], ast.Expr) else None
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(compile(lines, "notebook", "exec"), names)  # noqa: S102 - our own notebook
        value = None if last is None else eval(compile(ast.Expression(last.value), "notebook", "eval"), names)  # noqa: S307
    outputs = []
    if text := printed.getvalue()[:MAX_CHARACTERS]:
        outputs.append({"output_type": "stream", "name": "stdout", "text": text.splitlines(keepends=True)})
    if value is not None:
        shown = repr(value)[:MAX_CHARACTERS].splitlines(keepends=True)
        outputs.append({"output_type": "display_data", "metadata": {}, "data": {"text/plain": shown}})
    return outputs


def render_page(document: dict[str, Any], name: str) -> str:
    """A notebook as a page of the documentation."""
    pieces = []
    for cell in document["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            pieces.append(source)
            continue
        pieces.append(f"```python\n{source}\n```")
        for output in cell["outputs"]:
            text = "".join(output.get("text") or output["data"]["text/plain"]).rstrip()
            pieces.append(f"```text\n{text}\n```")
    pieces.append(f"*This page is the notebook `examples/tutorials/{name}.ipynb` with what it shows when it is run.*")
    return "\n\n".join(pieces) + "\n"


def main(names: list[str]) -> None:
    """Execute the notebooks of these names, or all of them."""
    os.environ |= {"COLUMNS": "100"}
    for notebook in list_notebooks():
        if names and notebook.stem not in names:
            continue
        document = execute(notebook)
        notebook.write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        (PAGES / f"{notebook.stem}.md").write_text(render_page(document, notebook.stem), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
