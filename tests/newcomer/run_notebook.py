"""Run a notebook with nbclient, in this environment's own kernel; print the outputs as JSON.

python run_notebook.py [FILE]     # without a file, cells that a new user may write
"""

from __future__ import annotations

import json
import sys

import nbformat
from nbclient import NotebookClient

CELLS = (
    "from tomewise import Document, Tome",
    "tome = Tome.open('notebook.tome')\n"
    "report = tome.add(Document(id='log', text='The keeper, Ada Marsh, put out the light at nine.'))",
    "answer = tome.ask('Who put out the light?')\nprint(answer.text, [c.quote for c in answer.citations])",
    "later = await tome.aask('Who put out the light?', system='hybrid+probe')\nprint(later.system)",
    "async for item in tome.astream('When was the light put out?'):\n    last = item\nprint(type(last).__name__)",
    "answer",
    "tome.build('hipporag2')\nprint(tome.ask('Who put out the light?', system='hipporag2').text)\ntome.close()",
)


def main() -> None:
    if sys.argv[1:]:
        notebook = nbformat.read(sys.argv[1], as_version=4)
    else:
        notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in CELLS])
    NotebookClient(notebook, timeout=600, kernel_name="python3").execute()
    print(json.dumps([list(cell.outputs) for cell in notebook.cells if cell.cell_type == "code"]))


if __name__ == "__main__":
    main()
