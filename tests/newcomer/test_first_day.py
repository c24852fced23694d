"""The commands of a first day: with the light installation, then with everything, and in a notebook."""

from __future__ import annotations

import json
import re
import shlex
from importlib.metadata import Distribution
from pathlib import Path

import pytest
from tests.newcomer.conftest import REPOSITORY, Installed, everything, light, makers

STORY = (REPOSITORY / "src" / "tomewise" / "sample" / "story.md").read_text(encoding="utf-8")
LETTER = "Ada Marsh forged the letter in May. The keeper, Tom Hale, put out the light at nine.\n"
LEFT_OUT = frozenset(
    "graspologic-native numba llvmlite scipy onnx scikit-learn umap-learn pandas fastapi pypdfium2 torch".split()
)


def run_all(machine: Installed, *lines: str) -> list[str]:
    """Run lines as a shell would; returns what each wrote to standard output."""
    written = []
    for line in lines:
        ran = machine.run(*shlex.split(line)[1:])
        assert ran.returncode == 0, (line, ran.stderr)
        assert "Traceback" not in ran.stderr
        written.append(ran.stdout)
    return written


def list_packages(machine: Installed) -> set[str]:
    site = next((machine.python.parents[1] / "lib").glob("python3*/site-packages"))
    return {Distribution.at(folder).metadata["Name"].lower() for folder in site.glob("*.dist-info")}


@pytest.mark.parametrize("machine", ["LIGHT", "ALL"], indirect=True)
def test_the_environment_is_whole(machine: Installed):
    ran = machine.call(machine.python, "-m", "pip", "check")
    assert (ran.returncode, ran.stdout) == (0, "No broken requirements found.\n")


@light
def test_the_light_installation_is_light(machine: Installed):
    assert not list_packages(machine) & LEFT_OUT
    assert len(list_packages(machine)) <= 65


@light
def test_the_first_lines_of_the_readme_end_in_a_cited_answer(machine: Installed):
    readme = (REPOSITORY / "README.md").read_text(encoding="utf-8")
    first, weights, *others = re.findall(r"^\$ (.*)$", readme, re.MULTILINE)[:4]
    assert (first, weights) == ('pip install "tomewise[documents]"', "tome weights")
    *_, answer = run_all(machine, weights, *others)
    assert "Mrs. Moy pleaded guilty." in answer
    assert "story.md" in answer


@light
def test_the_documentation_comes_along(machine: Installed):
    site = next((machine.python.parents[1] / "lib").glob("python3*/site-packages"))
    manual = site / "tomewise" / "manual"
    assert sum(path.stat().st_size for path in manual.rglob("*.*")) <= 600_000
    listed, found, page = run_all(machine, "tome help", "tome help how much will it cost", "tome help examples")
    assert "(`how-to/costs`)" in listed
    assert found.startswith("tome help how-to/costs")
    assert "with Tome.open(" in page
    included = re.findall(r'^--8<-- "([^":]+)', "\n".join(map(Path.read_text, manual.rglob("*.md"))), re.MULTILINE)
    assert [name for name in included if not name.endswith(".svg") and not (manual / name).exists()] == []


@light
def test_a_day_with_the_light_installation(machine: Installed):
    notes = machine.here / "notes"
    notes.mkdir()
    (notes / "one.md").write_text("# One\n\nThe doctor was away in May.")
    (notes / "two.md").write_text("# Two\n\nThe clerk kept the coin.")
    (machine.here / "novel.txt").write_text(STORY + LETTER, encoding="utf-8")
    run_all(machine, "tome --version", "tome --help", "tome systems", "tome systems comorag", "tome models")
    run_all(machine, "tome add novel.txt notes/", 'tome ask "Who forged the letter?"', 'tome search "the coin"')
    answer = json.loads(run_all(machine, 'tome ask "Who put out the light?" --system naive --json')[0])
    assert answer["statements"][0]["quotes"][0]["document"] == str(machine.here / "novel.txt")
    assert answer["statements"][0]["quotes"][0]["text"] in STORY + LETTER
    (notes / "one.md").rename(notes / "moved.md")
    (notes / "two.md").unlink()
    run_all(machine, "tome add --sync notes/", "tome clean", "tome log", "tome log 1 --again", "tome sessions")
    documents = {each["id"] for each in json.loads(run_all(machine, "tome show --json")[0])["documents"]}
    assert {Path(name).name for name in documents} == {"novel.txt", "moved.md"}
    run_all(machine, "tome build --system hybrid", 'tome ask --system hybrid+probe "Who put out the light?" --trace')
    run_all(machine, "tome remove notes --yes", "tome eval run naive hybrid --data sample --out eval")
    table = run_all(machine, "tome eval report eval --format markdown --baseline naive")[0]
    assert "hybrid" in table
    ran = machine.run("ask", "-", stdin="Who forged the letter?\n")
    assert "Ada Marsh" in ran.stdout


@light
def test_what_is_left_out_is_asked_for_by_name(machine: Installed):
    (machine.here / "a.pdf").write_bytes(b"%PDF-1.7")
    (machine.here / "novel.txt").write_text(LETTER)
    run_all(machine, "tome add novel.txt")
    for line, extra in (
        ("tome build --system raptor", "graph"),
        ("tome build --system hipporag2", "graph"),
        ("tome add a.pdf", "documents"),
        ("tome serve memory.tome", "server"),
        ("tome mcp", "server"),
        ("tome ask who --model anthropic:claude-sonnet-4-5", "anthropic"),
    ):
        ran = machine.run(*shlex.split(line)[1:], ANTHROPIC_API_KEY="a-key-for-this-test")
        assert ran.returncode != 0, line
        assert re.search(rf"pip install ['\"]tomewise\[{extra}\]['\"]", ran.stderr), (line, ran.stderr)
        assert len(ran.stderr.strip().splitlines()) == 1, (line, ran.stderr)


@everything
def test_graphs_and_trees_with_everything(machine: Installed):
    (machine.here / "story.md").write_text(STORY[:12_000], encoding="utf-8")
    run_all(machine, "tome add story.md", "tome build --system comorag --estimate", "tome build --system comorag")
    run_all(machine, 'tome ask "Who found the body?" --system comorag --trace')
    run_all(machine, "tome build --system cam", 'tome ask "Who found the body?" --system cam')
    run_all(
        machine, "tome mcp -m memory.tome --config", "tome eval run naive --data sample --retrieval-only --out eval"
    )
    run_all(machine, "tome eval report eval --plots plots")
    assert list((machine.here / "plots").iterdir())
    ran = machine.call(machine.python, "-m", "tomewise", "show")
    assert "story.md" in ran.stdout


@makers
def test_the_notebook_of_the_examples(machine: Installed):
    """Jupyter's kernel runs every cell without an error."""
    runner = REPOSITORY / "tests" / "newcomer" / "run_notebook.py"
    ran = machine.call(machine.python, runner, REPOSITORY / "examples" / "notebook.ipynb")
    assert ran.returncode == 0, ran.stderr
    outputs = [output for cell in json.loads(ran.stdout.splitlines()[-1]) for output in cell]
    assert not [output for output in outputs if output["output_type"] == "error"]
    assert any("<mark>" in output.get("data", {}).get("text/html", "") for output in outputs)
    assert (machine.here / "memory.html").exists()
