# Everything runs in .venv; the two commands that matter are `make demo` and `make test`.

PYTHON ?= python3
BIN := .venv/bin
INSTALLED := .venv/.installed
# A real training step where it is there, else the built-in list of the same message sizes.
WORKLOAD := $(firstword $(wildcard ../shared/data/chakra/resnet50-ddp.rank0.et) resnet50_ddp)

.PHONY: demo test lint bench clean

demo: $(INSTALLED)
	mkdir -p out
	$(BIN)/opticcl compare --nodes 64 --workload $(WORKLOAD) --algorithm main --html out/compare.html

test: $(INSTALLED)
	$(BIN)/pytest -q -n 2

lint: $(INSTALLED)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: $(INSTALLED)
	$(BIN)/python benchmarks/run.py
	$(BIN)/python benchmarks/flow.py
	$(BIN)/python benchmarks/train.py
	$(BIN)/python benchmarks/packet.py
	$(BIN)/python benchmarks/routes.py
	$(BIN)/python benchmarks/synthesis.py

$(INSTALLED): pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet -c constraints.txt -e '.[dev]'
	touch $@

clean:
	rm -rf .venv out dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
