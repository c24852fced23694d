"""What pages name exists: paths, links, commands, options, Python names, variables. Words are spelt right."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from functools import cache
from pathlib import Path

import pytest
import typer
from tests.texts import REPOSITORY

import tomewise
from tomewise import events, parts, testing, types
from tomewise.settings import SETTINGS
from tomewise.terminal import commands, program  # noqa: F401 - it adds all commands to the application

PACKAGE = REPOSITORY / "src" / "tomewise"
GENERATED = REPOSITORY / "docs" / "reference"
PAGES = sorted(path for path in (REPOSITORY / "docs").rglob("*.md") if not path.is_relative_to(GENERATED))
NAMED = [*PAGES, *(REPOSITORY / name for name in ("README.md", "SECURITY.md", "CONTRIBUTING.md"))]
CODE = re.compile(r"`([^`\n]+)`")
SOURCE = "\n".join(path.read_text(encoding="utf-8") for path in PACKAGE.rglob("*.py"))
TESTS = "\n".join(path.read_text(encoding="utf-8") for path in (REPOSITORY / "tests").rglob("*.py"))
PROJECT = (REPOSITORY / "pyproject.toml").read_text(encoding="utf-8")
FOREIGN = ("OLLAMA_CONTEXT_LENGTH",)  # variables of other programs
EXAMPLES = frozenset(
    "llms.txt llms-full.txt letter.txt novel.txt logbook.py chapter1.txt chapter2.txt before.jsonl pool.html "
    "points.html".split()
)


def list_code(path: Path) -> list[str]:
    """The words between backticks, blocks apart."""
    prose = re.sub(r"^```.*?^```", "", path.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    return CODE.findall(prose)


def list_commands(path: Path) -> list[str]:
    """The lines of `tome` in blocks, and those between backticks."""
    text = path.read_text(encoding="utf-8")
    typed = re.findall(r"^\$ (.*)$", text, re.MULTILINE)
    return [
        part for line in [*typed, *list_code(path)] for part in re.split(r" && | \| ", line) if part.startswith("tome ")
    ]


def every_option(command: typer.models.CommandInfo) -> set[str]:
    own = {option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)}
    return own.union(*(every_option(child) for child in getattr(command, "commands", {}).values()))


ROOT = typer.main.get_command(commands.app)
OPTIONS = every_option(ROOT) | {"--help", "--version", "--debug", "--install-completion"}
by_page = pytest.mark.parametrize("path", NAMED, ids=lambda path: path.relative_to(REPOSITORY).as_posix())


@by_page
def test_paths(path: Path) -> None:
    roots = (REPOSITORY, PACKAGE, REPOSITORY / "docs", path.parent)
    for name in list_code(path):
        if re.fullmatch(r"[\w./*-]+/[\w./*-]*|[\w-]+\.(py|md|js|toml|jsonl|txt)", name) and not name.startswith(
            ("/", "~", ".")
        ):
            known = any(root.joinpath(name).exists() or any(root.glob(name.rstrip("/"))) for root in roots)
            packaged = any(PACKAGE.rglob(name.rstrip("/")))
            outside = (
                name in EXAMPLES
                or name.startswith(("memory.tome", "dist/", "build/", "notes/", "docs/reference/"))
                or name in SOURCE
            )
            assert known or packaged or outside, f"{path.name}: {name} is not a path of the project"


@by_page
def test_commands_and_options(path: Path) -> None:
    for line in list_commands(path):
        words = line.split()
        if len(words) > 1 and re.fullmatch(r"[a-z]+", words[1]):
            assert words[1] in ROOT.commands, f"{path.name}: {line}"
    text = path.read_text(encoding="utf-8")
    lines = [*list_commands(path), *(name for name in list_code(path) if name.startswith("-"))]
    for option in {word for line in lines for word in re.findall(r"(?<!\S)(--[a-z][a-z-]*)", line)}:
        assert option in OPTIONS or f"pip install {option}" in text, f"{path.name}: {option} is not an option of tome"


@by_page
def test_variables(path: Path) -> None:
    for name in set(re.findall(r"\b(?:TOMEWISE|OPENAI|OLLAMA)_[A-Z_]+\b", path.read_text(encoding="utf-8"))):
        is_setting = name.removeprefix("TOMEWISE_").lower() in SETTINGS
        assert is_setting or name in FOREIGN or f'"{name}"' in SOURCE + TESTS, f"{path.name}: {name} is not read"


@by_page
def test_python_names(path: Path) -> None:
    homes = (tomewise, parts, testing, types, events)
    members = {
        name: getattr(home, name)
        for home in homes
        for name in (*dir(home), *getattr(home, "__all__", ()))
        if hasattr(home, name)
    }
    for name in list_code(path):
        if found := re.fullmatch(r"([A-Z][a-z]+\w*)\.(\w+)(?:\(.*\))?", name):
            owner, member = found.groups()
            is_public = owner in members and hasattr(members[owner], member)
            fields = getattr(members.get(owner), "__dataclass_fields__", {})
            is_inner = re.search(rf"^class {owner}\b", SOURCE, re.MULTILINE) and f"def {member}(" in SOURCE
            assert is_public or member in fields or is_inner, f"{path.name}: {name} does not exist"
        elif re.fullmatch(r"[A-Z][a-z]+[A-Z]\w+", name):
            assert re.search(rf"\b{name}\b", SOURCE), f"{path.name}: {name} does not exist"


@by_page
def test_links(path: Path) -> None:
    """Each leads to a file that git keeps."""
    prose = re.sub(r"^```.*?^```", "", path.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    for link in re.findall(r"\]\(([^)#\s]+)", prose):
        if not link.startswith("https://"):
            target = (path.parent / link).resolve().relative_to(REPOSITORY).as_posix()
            assert target in list_kept(), f"{path.name}: {link} is not in a checkout"


@cache
def list_kept() -> frozenset[str]:
    ran = subprocess.run(["git", "ls-files"], cwd=REPOSITORY, check=True, capture_output=True, text=True)
    return frozenset(ran.stdout.splitlines())


def test_where_the_readme_is_read_elsewhere_it_names_pages_that_are_in_the_wheel() -> None:
    wheel = tomllib.loads(PROJECT)["tool"]["hatch"]
    text = (REPOSITORY / "README.md").read_text(encoding="utf-8")
    for each in wheel["metadata"]["hooks"]["fancy-pypi-readme"]["substitutions"]:
        text = re.sub(each["pattern"], each["replacement"], text)
    assert "](" not in text
    pages = re.findall(r"\(`tome help (\S+)`\)", text)
    assert len(pages) > 10
    left_out = wheel["build"]["targets"]["wheel"]["exclude"]
    for page in pages:
        path = f"docs/{page}.md"
        assert (REPOSITORY / path).is_file(), page
        assert path not in left_out, f"{page} is not in the wheel"


def test_nothing_that_users_read_has_an_address_that_nobody_has() -> None:
    for path in (*NAMED, *GENERATED.rglob("*.md"), REPOSITORY / "pyproject.toml"):
        assert ".invalid" not in path.read_text(encoding="utf-8"), path


def test_no_word_is_misspelt() -> None:
    pytest.importorskip("codespell_lib", reason="install the dependency group dev")
    paths = [":(glob)*.md", "docs/*.md", "bench/RESULTS.md", "examples", "mkdocs.yml"]
    options = {"cwd": REPOSITORY, "capture_output": True, "text": True}
    files = subprocess.run(["git", "ls-files", *paths], check=True, **options).stdout.split()
    ran = subprocess.run([sys.executable, "-m", "codespell_lib", *files], check=False, **options)
    assert ran.returncode == 0, ran.stdout
