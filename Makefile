# The two commands of the README are `make demo` and `make test`; the rest is for contributors.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt
# Two test processes, one torch thread each: never more threads than cores. Bytecode is kept, whatever the environment
# says: without it, every process that a test starts compiles the package anew.
PYTEST := PYTHONDONTWRITEBYTECODE= OMP_NUM_THREADS=1 MKL_NUM_THREADS=1 TOKENIZERS_PARALLELISM=false HF_HUB_OFFLINE=1 $(BIN)/pytest

.PHONY: chaos faults fuzz nulls demo test test-all check format bench docs reproduce wheel clean

$(VENV)/user: pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PIP) --editable '.[private]'
	touch $@

$(VENV)/dev: pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PIP) --editable '.[dev]'
	touch $@ $(VENV)/user

demo: $(VENV)/user
	$(BIN)/recollect demo

test: $(VENV)/dev
	$(PYTEST) -n 2 --dist loadgroup

test-all: $(VENV)/dev
	$(PYTEST) -n 2 --dist loadgroup -m "not chaos"

# 5,000 commands of rubbish in one process, 200 as processes; about half an hour
fuzz: $(VENV)/dev
	$(PYTEST) -n 2 --dist loadgroup -m fuzz tests/fuzz

check: $(VENV)/dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(VENV)/dev
	$(BIN)/ruff check --fix --quiet . ; $(BIN)/ruff format .

bench: $(VENV)/dev
	for file in benchmarks/[a-z]*.py; do $(BIN)/python $$file || exit 1; done

docs: $(VENV)/dev
	$(BIN)/zensical build --strict

# make reproduce PAPER=carlini2018: all tables from the kept results, without data and training
# make reproduce PAPER=carlini2018 [STUDY=figure4_epochs] DATA=folder: a study; what was done before is not done again
reproduce: $(VENV)/dev
	$(BIN)/python reproductions/$(PAPER)/run.py $(STUDY) $(if $(DATA),--data $(DATA),--kept); status=$$?; \
	PYTHONPATH=reproductions $(BIN)/python reproductions/fill_readme.py $(PAPER) && exit $$status

# make nulls DATA=folder [CELLS='membership-user-*'] [AGAIN=1]; what was done before is not done again, but with AGAIN
# if other code did it
nulls: $(VENV)/dev
	OMP_NUM_THREADS=1 $(BIN)/python studies/nulls/run.py $(CELLS) --jobs 2 $(if $(DATA),--data $(DATA)) $(if $(AGAIN),--again)
	$(BIN)/python studies/nulls/table.py .recollect/nulls/results

# make chaos [MINUTES=55]; kills, runs at once, full disks, flipped bits; what was done before is not done again
chaos: $(VENV)/dev
	OMP_NUM_THREADS=1 TOKENIZERS_PARALLELISM=false HF_HUB_OFFLINE=1 $(BIN)/python tests/chaos/run.py --minutes $(or $(MINUTES),55)

# make faults [MINUTES=55] [TIMES=10] [AT=FOLDER]; workers, nodes, drivers and heads of a Ray cluster are killed; what was done before is not done again
faults: $(VENV)/dev
	OMP_NUM_THREADS=1 TOKENIZERS_PARALLELISM=false HF_HUB_OFFLINE=1 $(BIN)/python tests/cluster_faults/run.py $(AT) --minutes $(or $(MINUTES),55) --times $(or $(TIMES),10)

# the wheel as users get it: built, installed into an environment of its own, and put to work outside of the checkout
wheel:
	rm -rf dist .venv-build .venv-wheel
	$(PYTHON) -m venv .venv-build
	.venv-build/bin/python -m pip install --quiet --disable-pip-version-check build
	.venv-build/bin/python -m build --wheel
	$(PYTHON) -m venv .venv-wheel
	.venv-wheel/bin/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt "$$(echo dist/*.whl)[private]"
	cd dist && ../.venv-wheel/bin/recollect demo

clean:
	rm -rf $(VENV) .venv-build .venv-wheel node_modules site dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
