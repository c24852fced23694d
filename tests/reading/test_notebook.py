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


TABLE = "<table><tr><th>ore</th><th>tons</th></tr><tr><td>tin</td><td>55</td></tr></table>"
OUTPUTS = {
    "a table": ({"text/plain": "   ore tons\n0 tin   55", "text/html": TABLE}, "| ore | tons |\n| tin | 55 |"),
    "a page behind a placeholder": (
        {"text/plain": "<IPython.core.display.HTML object>", "text/html": "<b>tin</b>"},
        "**tin**",
    ),
    "markdown": ({"text/plain": "<IPython.core.display.Markdown object>", "text/markdown": "*tin*"}, "*tin*"),
    "latex": ({"text/plain": "<IPython.core.display.Math object>", "text/latex": "$x$"}, "$x$"),
    "words before a page": (
        {"text/plain": "Model(n=3) fitted", "text/html": "<style>x</style><div>drawn</div>"},
        "Model(n=3) fitted",
    ),
    "a script": ({"text/plain": "<Chart>", "text/html": "<script>draw()</script>"}, "<Chart>"),
}


@pytest.mark.parametrize(("data", "expected"), OUTPUTS.values(), ids=OUTPUTS)
def test_an_output_is_what_it_shows(data, expected, read_document):
    outputs = [{"output_type": "execute_result", "data": data}]
    notebook = {"cells": [{"cell_type": "code", "source": "", "outputs": outputs}]}
    assert read_document("a.ipynb", json.dumps(notebook)).text == f"```\n{expected}\n```"
