"""Run the blocks of a page in order, in one fresh folder, and compare what is shown with what is printed.

    python -m tools.docs.run_page                  # every page, the README too; exit code 1 and all faults
    python -m tools.docs.run_page docs/index.md    # these pages alone
    python -m tools.docs.run_page --update         # write what is printed in place of what was shown
    python -m tools.docs.run_page --missing FILE   # and write the prompts that have no recorded reply there

- `console`: each line after `$ ` is run. Lines below it are its output; without any, nothing is compared. `...` stands
  for any lines. A command may fail only if its output is shown.
- `python`: executed, in one namespace for a page. A `text` block right behind it is its output; a part from
  `<!-- shown -->` to `<!-- end -->` is what a notebook shows for its last expression.
- `bash`: run as one script, with `$TOME` and `$AUTH` of a server where it has `curl`. `json`, `toml`, `yaml`: parsed.
  A block with `title="FILE"` is that file. A block behind `<!-- not run: REASON -->` is not run.

Models are played by recorded replies (`recorded_model`). Where an output is shown, every reply has to be recorded.
UMAP counts as not installed: its clusters, and so the outputs that pages show, differ between processors.
A page begins with the files of `give_files`, and with a tome of them, unless its first command makes one.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import io
import json
import os
import re
import shlex
import subprocess
import sys
import textwrap
import tomllib
import traceback
from collections.abc import Iterator
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

import yaml
from tests.server.served import TOKEN, Served, serve
from tests.texts import REPOSITORY, prose
from tools.docs.recorded_model import Recorded, replay
from tools.docs.snippets import INCLUDED, Snippet, Typed, list_pages, list_snippets, list_typed, write_typed

from tomewise import Tome, plugins
from tomewise.embedding.bundled import BundledMiniLM
from tomewise.language import models_at_hand
from tomewise.terminal import program

WIDTH = 100  # characters of a line that is written into a page
PLAIN = ("", "text", "diff", "markdown", "csv", "html", "shown")  # languages of texts and outputs, which nothing runs
HOME = "/home/you"  # in place of the folder in which the page was run
_FIRST = re.compile(r"^ *\$ tome (?:-m \S+ )?(?!weights|models|config|systems)(\w+)", re.MULTILINE)
_BEHIND = re.compile(r" *```\s*(```text|<!-- shown -->)\n")  # between a block of Python and its output
_OPERATORS = ("|", ">", "<", ";", "&", "$(")
_MASKS = (
    (re.compile(r"\$\d+\.\d+"), "$0.00"),
    (re.compile(r"\b\d+(\.\d+)?\s+(s|ms|seconds|kB|MB|min)\b"), r"0 \2"),
    (re.compile(r"\b\d{4}-\d\d-\d\d([ T]\d\d:\d\d(:\d\d)?)?"), "2026-01-01"),
    (re.compile(r'"(\w*seconds)": [\d.e-]+'), r'"\1": 0'),
    (re.compile(r"127\.0\.0\.1:\d+"), "127.0.0.1:0"),
    (re.compile(r"token=[\w-]+"), "token=0"),
)
_vectors: dict[str, Any] = {}


class _Remembering(BundledMiniLM):
    """The bundled embedder, which embeds no text twice in this process."""

    def _embed_distinct(self, texts: list[str]) -> Any:
        if new := [text for text in texts if text not in _vectors]:
            _vectors.update(zip(new, super()._embed_distinct(new), strict=True))
        import numpy as np

        return np.array([_vectors[text] for text in texts], np.float32)


@dataclass(slots=True)
class Run:
    """One page in its folder: what its blocks share, and the faults that were found."""

    folder: Path
    recorded: Recorded
    update: bool = False
    names: dict[str, Any] = field(default_factory=lambda: {"__name__": "__main__"})
    served: Served | None = None
    faults: list[str] = field(default_factory=list)
    stack: contextlib.ExitStack = field(default_factory=contextlib.ExitStack)


def run_page(path: Path, *, update: bool = False, missing: Path | None = None) -> list[str]:
    """The faults of a page. With `update` it shows what is printed afterwards."""
    text = path.read_text(encoding="utf-8")
    snippets = list(list_snippets(text))
    with TemporaryDirectory() as work, contextlib.ExitStack() as stack:
        folder = Path(work, "you").resolve()
        folder.mkdir()
        run = Run(folder, stack.enter_context(_enter(folder)), update, stack=stack)
        first = _FIRST.search(text)
        give_files(folder, with_tome=not first or first[1] not in ("add", "demo", "import"))
        written = []
        for place, snippet in enumerate(snippets):
            line = text.count("\n", 0, snippet.start)
            before = len(run.faults)
            after = snippets[place + 1] if place + 1 < len(snippets) else None
            is_next = after is not None and _BEHIND.fullmatch(text, snippet.end, after.start)
            try:
                written += _run_snippet(run, snippet, after if is_next else None)
            except Exception:  # noqa: BLE001 - whatever an example raises is a fault of the page
                run.faults.append(traceback.format_exc(limit=-3))
            run.faults[before:] = [f"{path.name}, line {line}: {fault}" for fault in run.faults[before:]]
        if missing:
            with missing.open("a", encoding="utf-8") as out:
                out.writelines(json.dumps(each, ensure_ascii=False) + "\n" for each in run.recorded.missing)
    if update:
        for snippet, new in reversed(written):
            lines = "".join(f"{snippet.indent}{each}" if each.strip() else each for each in new.splitlines(True))
            text = text[: snippet.start] + lines + text[snippet.end :]
        path.write_text(text, encoding="utf-8")
    return run.faults


def read_program(path: Path) -> str:
    """The Python of a program, a notebook or a page, without what is not run and what stands in other files."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".ipynb":
        cells = [cell["source"] for cell in json.loads(text)["cells"] if cell["cell_type"] == "code"]
        return "\n".join("".join(cell) if isinstance(cell, list) else cell for cell in cells)
    if path.suffix == ".py":
        return text
    blocks = [each for each in list_snippets(text) if each.language == "python" and not each.title]
    return "\n".join(each.text for each in blocks if not each.reason and not each.is_included)


def give_files(folder: Path, *, with_tome: bool = True) -> None:
    """The files that a page may name without making them, and its tome."""
    novel = prose(1) + " Ada Marsh forged the letter in May. The keeper put out the light at nine.\n"
    rows = [{"id": f"p{number}", "title": f"Part {number}", "text": prose(number, 6)} for number in range(4)]
    asked = {"id": "i1", "question": "Who forged it?", "answers": ["Ada"], "supporting": ["p1"], "type": "bridge"}
    texts = {
        "novel.txt": novel,
        "letter.txt": "Ada Marsh wrote to Tom Reed in May. Tom Reed forged the letter.\n",
        "notes/one.md": "# One\n\nThe doctor was away in May.\n",
        "notes/two.md": "# Two\n\nThe clerk kept the coin.\n",
        "chapter1.txt": prose(2, 8) + "\n",
        "chapter2.txt": prose(3, 8) + "\n",
        "corpus.jsonl": json.dumps({"id": "r1", "title": "A row", "text": "The widow kept the coin."}) + "\n",
        "musique/corpus.jsonl": "".join(json.dumps(row) + "\n" for row in rows),
        "musique/questions.jsonl": json.dumps(asked) + "\n",
    }
    for name, text in texts.items():
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    for name in ("memory.tome", "novel.tome") if with_tome else ():
        with Tome.open(folder / name) as tome:
            tome.add(folder / "novel.txt", folder / "letter.txt")


@contextlib.contextmanager
def _enter(folder: Path) -> Iterator[Recorded]:
    """Be in a folder as a new user: no settings, keys that nobody accepts, no model on this machine."""
    tools = folder.parent / "bin"
    tools.mkdir()
    for name, line in (
        ("tome", f'exec {sys.executable} -m tomewise "$@"'),
        ("python", f'exec {sys.executable} "$@"'),
        ("curl", f'PATH={shlex.quote(os.environ["PATH"])} exec curl --fail-with-body "$@"'),
    ):
        (tools / name).write_text(f"#!/bin/sh\n{line}\n")
        (tools / name).chmod(0o755)
    clean = {name: value for name, value in os.environ.items() if not re.match(r"TOMEWISE_|OPENAI_|OLLAMA_", name)}
    clean |= {"XDG_CONFIG_HOME": str(folder.parent / "config"), "NO_PROXY": "127.0.0.1", "COLUMNS": str(WIDTH)}
    (tools / "sitecustomize.py").write_text('import sys\nsys.modules["umap"] = None\n')
    clean |= {"PATH": f"{tools}:{os.environ['PATH']}", "PYTHONPATH": f"{tools}:{REPOSITORY / 'src'}"}
    clean |= {f"{name}_API_KEY": "a-key-for-this-page" for name in ("OPENAI", "ANTHROPIC")}
    if "TOMEWISE_CACHE" in os.environ:
        clean["TOMEWISE_CACHE"] = os.environ["TOMEWISE_CACHE"]
    recorded = Recorded(_Remembering())
    with (
        contextlib.chdir(folder),
        patch.dict(os.environ, clean, clear=True),
        patch("tomewise.memory.tree.clustering.find_spec", lambda name: None if name == "umap" else find_spec(name)),
        patch("tomewise.embedding.bundled.BundledMiniLM", _Remembering),
        patch.object(models_at_hand, "SERVERS", ()),
        patch.object(plugins, "_registered", {}),
        replay(recorded),
    ):
        yield recorded


def _run_snippet(run: Run, snippet: Snippet, after: Snippet | None) -> list[tuple[Snippet, str]]:
    """Do what the language of a block asks for. Returns the blocks that show an output, with what was printed."""
    language = snippet.language
    if snippet.reason or (snippet.is_included and not snippet.title):
        return []
    if snippet.title:
        path = Path(snippet.title)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(_include(snippet.text), encoding="utf-8")
    if snippet.is_included:
        return []
    if language == "json":
        json.loads(snippet.text)
    elif language == "toml":
        tomllib.loads(snippet.text)
    elif language == "yaml":
        yaml.safe_load(snippet.text)
    elif language == "python":
        if not snippet.title:
            return _run_python(run, snippet, after if after and after.language in ("text", "shown") else None)
    elif language == "console":
        typed = list_typed(snippet)
        for each in typed:
            _run_typed(run, each)
        return [(snippet, write_typed(typed))]
    elif language == "bash":
        if not snippet.title:
            code, out = _run_shell(run, snippet.text)
            run.faults += [f"exit code {code}: {out}"] if code else []
    elif language not in PLAIN:
        run.faults.append(f"nothing runs {language!r}: say why with <!-- not run: reason -->")
    return []


def _include(text: str) -> str:
    """The text, with files of the repository in place of the lines that name them."""
    return INCLUDED.sub(lambda match: (REPOSITORY / match[1]).read_text(encoding="utf-8"), text)


def _run_python(run: Run, snippet: Snippet, after: Snippet | None) -> list[tuple[Snippet, str]]:
    tree = ast.parse(snippet.text)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    missing = len(run.recorded.missing)
    with contextlib.redirect_stdout(io.StringIO()) as stream:
        exec(compile(tree, "a page", "exec"), run.names)
        value = eval(compile(ast.Expression(last.value), "a page", "eval"), run.names) if last else None
    if after is None:
        return []
    out = stream.getvalue()
    if after.language == "shown":
        out = f'<div class="notebook">\n{getattr(value, "_repr_html_", lambda: repr(value))()}\n</div>\n'
    elif value is not None and not out:
        out = f"{value!r}\n"
    out = _hide_folder(run, out)
    if _flatten([out]) != _flatten([after.text]) or len(run.recorded.missing) > missing:
        may_write = _note_difference(run, missing, after.text.splitlines(), out.splitlines())
        return [(after, out)] if may_write else []
    return []


def _run_typed(run: Run, typed: Typed) -> None:
    """Run one command; what it prints takes the place of what is shown, if these differ."""
    missing = len(run.recorded.missing)
    line = typed.command.replace("\\\n", " ")
    code, out = 0, ""
    for part in [line] if "|" in line else line.split(" && "):
        more_code, more = _run_line(run, part)
        code, out = code or more_code, out + more
    if code and not typed.shown:
        run.faults.append(f"`{typed.command}` ended with exit code {code}: {out}")
    printed = _wrap(_hide_folder(run, out))
    if not typed.shown or (fits(typed.shown, printed) and len(run.recorded.missing) == missing):
        return
    if _note_difference(run, missing, typed.shown, printed):
        typed.shown = printed


def _note_difference(run: Run, missing: int, shown: list[str], printed: list[str]) -> bool:
    """Note that a page shows something else than what is printed. Returns whether it may be written into the page."""
    if roles := sorted({role for role, _ in run.recorded.missing[missing:]}):
        run.faults.append(f"no reply is recorded for {', '.join(roles)}: see --missing")
    elif not run.update:
        run.faults.append("\n".join(["it shows", *shown, "but it prints", *printed, "(make docs-update)"]))
    else:
        return True
    return False


def _run_line(run: Run, line: str) -> tuple[int, str]:
    """Run one command, in this process where it is plain `tome`. Returns its exit code and what it printed."""
    words = shlex.split(line, comments=True)
    if not words:
        return 0, ""
    if words[0] in ("pip", "uv"):  # `make test-wheel` installs; the names of extras are checked in tests/docs
        return 0, ""
    if words[0] == "export":
        name, _, value = words[1].partition("=")
        os.environ[name] = os.path.expandvars(value) if value != "..." else "a-key-for-this-page"
        return 0, ""
    if words[0] == "cd":
        os.chdir(words[1])
        return 0, ""
    target = None
    if len(words) > 2 and words[-2] == ">":
        target, words = words[-1], words[:-2]
    if words[0] != "tome" or any(sign in "".join(_list_bare(line)) for sign in _OPERATORS if not target):
        return _run_shell(run, line)
    if words[1] == "serve":
        run.served = run.stack.enter_context(serve(run.folder, *words[2:], TOMEWISE_EMBEDDER="bundled"))
        return 0, f"{run.served.url}/?token={TOKEN}\n"
    return _run_tome(words[1:], target)


def _list_bare(line: str) -> list[str]:
    """The parts of a line that stand in no quotation marks."""
    return re.split(r"\"[^\"]*\"|'[^']*'", line)


def _run_tome(words: list[str], target: str | None) -> tuple[int, str]:
    printed = io.StringIO()
    given = io.StringIO("Who forged the letter?\n")  # for `tome chat` and `tome ask -`
    with contextlib.ExitStack() as stack:
        stream = stack.enter_context(open(target, "w", encoding="utf-8")) if target else printed
        stack.enter_context(contextlib.redirect_stdout(stream))
        stack.enter_context(contextlib.redirect_stderr(printed))
        stack.enter_context(patch.object(sys, "stdin", given))
        code = program.run(words)
    return code, printed.getvalue()


def _run_shell(run: Run, line: str) -> tuple[int, str]:
    own = {**os.environ}
    if "curl" in line:
        served = run.served or run.stack.enter_context(
            serve(run.folder, "novel.tome", "--root", ".", TOMEWISE_EMBEDDER="bundled")
        )
        run.served = served
        own |= {"TOME": served.url, "AUTH": f"Authorization: Bearer {TOKEN}"}
        line = line.replace("http://127.0.0.1:8765", served.url).replace("TOKEN", TOKEN)
    ran = subprocess.run(
        ["bash", "-ec", line],
        env=own,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        stdin=subprocess.DEVNULL,
        text=True,
        check=False,
    )
    return ran.returncode, ran.stdout


def fits(shown: list[str], printed: list[str]) -> bool:
    """Whether a page shows what was printed, times, prices and white space apart. `...` stands for any lines."""
    parts = " ".join(shown).split("...") if "..." in [line.strip() for line in shown] else [" ".join(shown)]
    pattern = ".*".join(re.escape(_flatten([part])) for part in parts)
    return re.fullmatch(pattern.replace("\\ .*", ".*").replace(".*\\ ", ".*"), _flatten(printed), re.DOTALL) is not None


def _flatten(lines: list[str]) -> str:
    text = "\n".join(lines)
    for pattern, mask in _MASKS:
        text = pattern.sub(mask, text)
    words = " ".join(re.sub(r"─+", "─", text).split())
    return re.sub(r"(?<=\w-) (?=\w)", "", words)  # a line may end at a hyphen


def _hide_folder(run: Run, text: str) -> str:
    settings = str(run.folder.parent / "config")
    return text.replace(settings, f"{HOME}/.config").replace(str(run.folder), HOME)


def _wrap(text: str) -> list[str]:
    """The lines as a terminal wraps them between words."""
    lines = []
    for line in text.rstrip().splitlines():
        indent = " " * (len(line) - len(line.lstrip()) + (2 if len(line) > WIDTH else 0))
        lines += textwrap.wrap(line.rstrip(), WIDTH, subsequent_indent=indent, break_long_words=False) or [""]
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pages", nargs="*", type=Path)
    parser.add_argument("--update", action="store_true")
    parser.add_argument("--missing", type=Path)
    options = parser.parse_args()
    pages = [path.resolve() for path in options.pages] or list_pages(REPOSITORY)
    missing = options.missing.resolve() if options.missing else None
    faults = [fault for path in pages for fault in run_page(path, update=options.update, missing=missing)]
    if faults:
        sys.exit("\n".join([*faults, f"{len(faults)} faults"]))


if __name__ == "__main__":
    main()
