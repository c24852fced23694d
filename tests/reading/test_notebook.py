import json

import pytest

from tomewise.types.place import describe_place

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
    {"cell_type": "markdown", "source": "Ice.\n\n## Oars\n\nWind."},
]


def test_cells_are_read_in_order_with_their_output(read_document):
    notebook = {"cells": CELLS, "metadata": {"language_info": {"name": "python"}}, "nbformat": 4}
    document = read_document("a.ipynb", json.dumps(notebook))
    assert document.title == "Boats"
    assert document.text == (
        "# Boats\nRain.\n\n````python\n# a comment\nprint('''```''')\n````\n\n```\nseven\nboats\n```\n\n"
        "```\n<Figure>\n```\n\n```\nKeyError: 'oar'\n```\n\nIce.\n\n## Oars\n\nWind."
    )
    places = [describe_place(place) for _, place in document.marks]
    assert places == ["“Boats”, cell 1", "“Boats”, cell 2", "“Boats”, cell 4", "“Oars”, cell 4"]


SUM = {"cell_type": "code", "input": "1 + 1", "outputs": [{"output_type": "pyout", "text": "2"}]}


@pytest.mark.parametrize(
    ("notebook", "title", "text"),
    [
        ({"metadata": {"title": "Sums"}, "worksheets": [{"cells": [SUM]}]}, "Sums", "```\n1 + 1\n```\n\n```\n2\n```"),
        ({"cells": [3, {}, {"source": [1]}], "metadata": []}, "", "1"),
        ({"cells": [{"cell_type": "code", "source": "x", "outputs": 5}], "metadata": []}, "", "```\nx\n```"),
    ],
    ids=["format 3", "cells that are no cells", "outputs that are none"],
)
def test_older_and_odd_notebooks_are_read_as_far_as_they_go(notebook, title, text, read_document):
    document = read_document("a.ipynb", json.dumps(notebook))
    assert (document.title, document.text) == (title, text)
