"""Run a notebook with nbclient, in this environment's own kernel; print the outputs as JSON.

python run_notebook.py FILE
"""

from __future__ import annotations

import json
import sys

import nbformat
from nbclient import NotebookClient

if __name__ == "__main__":
    notebook = nbformat.read(sys.argv[1], as_version=4)
    NotebookClient(notebook, timeout=600, kernel_name="python3").execute()
    print(json.dumps([list(cell.outputs) for cell in notebook.cells if cell.cell_type == "code"]))
