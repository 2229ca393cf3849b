# Everything runs in .venv; the two commands that matter are `make demo` and `make test`.

PYTHON ?= python3
BIN := .venv/bin
# dev; mpi, torch and cluster for the tests with real processes, docs for the site (.ci/run installs all).
EXTRAS ?= dev
# The oldest torch that pyproject.toml allows; the newest is what pip finds.
TORCH_OLDEST := $(shell sed -n 's/^torch = \["torch>=\([0-9.]*\)"\]/\1/p' pyproject.toml)
# The package alone, which is all that `make demo` needs, and what tests, linters and benchmarks need besides.
INSTALLED := .venv/.installed
EXTENDED := .venv/.extended
# Modules are compiled when they are first imported: most of them never are.
PIP_INSTALL := $(BIN)/pip install --quiet --no-compile -c constraints.txt
# The all-reduces of a training step of ResNet-50.
WORKLOAD := examples/resnet50-step.toml

# As many processes as cores, each with its share of the files; an idle one takes tests from a busy one.
PYTEST := $(BIN)/pytest -q -n auto --maxprocesses 8 --dist worksteal --durations=10 --durations-min=3

# Python keeps what it has compiled, whatever the user's settings say: else every process of the tests compiles all modules anew.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test test-deep test-oldest test-torch lint bench golden mutants pages docs clean

demo: $(INSTALLED)
	mkdir -p out
	$(BIN)/opticcl compare --nodes 64 --workload $(WORKLOAD) --out out/compare.html

test: $(EXTENDED)
	$(PYTEST)

# All tests, those marked `deep` too, with ten times as many examples, drawn anew each time, and the last file first.
# Tests of the explorer need a browser: that of the system, or one that playwright installs; without either they are not run, and the
# end of the tests says so.
test-deep: $(EXTENDED)
	-$(PIP_INSTALL) -e '.[browser]'
	-command -v chromium chromium-browser google-chrome > /dev/null || $(BIN)/playwright install chromium
	$(PYTEST) -m '' --hypothesis-profile=nightly --timeout 3600 --reverse-files

	$(MAKE) test-oldest
	$(MAKE) test-torch

# All tests of `make test` on the lower bounds of pyproject.toml, in an environment of their own. The oldest torch is that of test-torch.
test-oldest: .venv-oldest/.installed
	.venv-oldest/bin/pytest -q -n auto --maxprocesses 8 --dist worksteal

# The tests of the PyTorch backend on the oldest and on the newest torch, an environment each, of some gigabytes. Twenty runs in a row
# are part of `make test-deep`, on the version of constraints.txt.
test-torch: .venv-torch-oldest/.installed .venv-torch-newest/.installed
	set -e; for version in oldest newest; do \
	.venv-torch-$$version/bin/python -c 'import torch; print("torch", torch.__version__)'; \
	.venv-torch-$$version/bin/pytest -q -n 0 -m '' --timeout 3600 -k 'not twenty' tests/execute/test_torch.py; done

lint: $(EXTENDED)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# All benchmarks, or those whose names contain ONLY; exit code 1 where a mark is missed. Compared with benchmarks/results/.
bench: $(EXTENDED)
	$(BIN)/python benchmarks/run.py $(addprefix --only ,$(ONLY))

# The documentation site, in out/site; with the pages of `make pages`, if they have been computed.
docs: $(INSTALLED)
	$(PIP_INSTALL) -e '.[docs]'
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build

# Pages of the site that are computed, in out/pages: what is declined, where each algorithm wins, ... Minutes; or those of ONLY.
pages: $(EXTENDED)
	$(BIN)/python -m tests.pages $(ONLY)

# Golden records that do not exist yet; or those of ONLY, a list of names, with REASON where they are slower or have another verdict
# or refusal. See docs/extending/tests.md.
golden: $(EXTENDED)
	@$(BIN)/python -m tests.records --only "$$ONLY" --reason "$$REASON"

# Small changes of the source that no test notices; hours in all, and a run goes on where the last one ended.
mutants: $(EXTENDED)
	$(BIN)/python -m tests.source_mutants verify circuits fabrics simulate formats traces

$(INSTALLED): pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(PIP_INSTALL) -e .
	$(BIN)/opticcl warm
	touch $@

$(EXTENDED): $(INSTALLED)
	$(PIP_INSTALL) -e '.[$(EXTRAS)]'
	touch $@

.venv-torch-oldest/.installed: TORCH := torch==$(TORCH_OLDEST).*
.venv-torch-newest/.installed: TORCH := torch
.venv-torch-%/.installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(@D)
	grep -v '^torch==' constraints.txt > $(@D)/constraints.txt
	$(@D)/bin/pip install --quiet -c $(@D)/constraints.txt -e '.[dev]' '$(TORCH)'
	touch $@

.venv-oldest/.installed: pyproject.toml tests/oldest.py
	$(PYTHON) -m venv $(@D)
	$(@D)/bin/python -m tests.oldest > $(@D)/constraints.txt
	$(@D)/bin/pip install --quiet -c $(@D)/constraints.txt -e "$$($(@D)/bin/python -m tests.oldest --extras)"
	touch $@

clean:
	rm -rf .venv .venv-oldest .venv-torch-* out dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
