import json
from pathlib import Path

import pytest

from tomewise.errors import ReadingError
from tomewise.place import describe_place
from tomewise.reading.notebook import read_notebook
from tomewise.types import Document

CELLS = [
    {"cell_type": "markdown", "source": ["# Boats\n", "Rain."]},
    {
        "cell_type": "code",
        "source": "# a comment\nprint('''```''')",
        "outputs": [
            {"output_type": "stream", "text": ["\x1b[31mseven\x1b[0m\n", "boats"]},
            {"output_type": "display_data", "data": {"image/png": "AAAA", "text/plain": "<Figure>"}},
            {"output_type": "error", "ename": "KeyError", "evalue": "'oar'", "traceback": ["x"]},
        ],
    },
    {"cell_type": "code", "source": "", "outputs": []},
    {"cell_type": "markdown", "source": "## Oars\n\nWind."},
]


def read(path: Path, notebook: object) -> Document:
    path.write_text(json.dumps(notebook))
    (document,) = read_notebook(path)
    return document


def test_cells_are_read_in_order_with_their_output(tmp_path: Path) -> None:
    notebook = {"cells": CELLS, "metadata": {"language_info": {"name": "python"}}, "nbformat": 4}
    document = read(tmp_path / "a.ipynb", notebook)
    assert document.title == "Boats"
    assert document.text == (
        "# Boats\nRain.\n\n````python\n# a comment\nprint('''```''')\n````\n\n```\nseven\nboats\n```\n\n"
        "```\n<Figure>\n```\n\n```\nKeyError: 'oar'\n```\n\n## Oars\n\nWind."
    )
    assert [describe_place(place) for _, place in document.marks] == [
        "“Boats”, cell 1",
        "“Boats”, cell 2",
        "“Oars”, cell 4",
    ]


def test_a_notebook_of_format_3_and_a_stated_title(tmp_path: Path) -> None:
    cell = {"cell_type": "code", "input": "1 + 1", "outputs": [{"output_type": "pyout", "text": "2"}]}
    document = read(tmp_path / "a.ipynb", {"metadata": {"title": "Sums"}, "worksheets": [{"cells": [cell]}]})
    assert (document.title, document.text) == ("Sums", "```\n1 + 1\n```\n\n```\n2\n```")


@pytest.mark.parametrize("text", ["{", "[]", "{}", '{"cells": 3}', "[" * 100_000])
def test_what_is_not_a_notebook_is_refused(text: str, tmp_path: Path) -> None:
    (tmp_path / "a.ipynb").write_text(text)
    with pytest.raises(ReadingError, match=r"a\.ipynb is not a notebook, because it"):
        read_notebook(tmp_path / "a.ipynb")


@pytest.mark.parametrize("cells", [[3, {}, {"source": [1]}], [{"cell_type": "code", "source": "x", "outputs": 5}]])
def test_odd_cells_are_read_as_far_as_they_go(cells: object, tmp_path: Path) -> None:
    assert read(tmp_path / "a.ipynb", {"cells": cells, "metadata": []}).text in ("1", "```\nx\n```")
