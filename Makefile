.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help .venv test lint types imports fix test-slow test-gpu mutation demo docs bench bench-commits clean

BIN := .venv/bin
STAMP := .venv/.installed
PIP := $(BIN)/python -m pip install -q -c constraints.txt
# One thread per test process: two processes with a thread pool each would fight over the cores.
PYTEST := OMP_NUM_THREADS=1 $(BIN)/python -m pytest

help:  ## Show this list
	@awk -F ':.*## ' '/^[.a-z-]+:.*## / {printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.venv: $(STAMP)  ## Make the virtual environment with the pinned versions

# setuptools comes from constraints.txt too, hence no build isolation.
$(STAMP): pyproject.toml constraints.txt
	@python=""; \
	for candidate in python3.11 python3; do \
	    if $$candidate -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then \
	        python=$$candidate; break; \
	    fi; \
	done; \
	if [ -z "$$python" ]; then \
	    echo "graphsage needs Python 3.11 or later; found no python3.11 and no new enough python3." >&2; \
	    echo "Install Python 3.11 (the pinned CPU build of torch is for 3.11) and run make again." >&2; \
	    exit 1; \
	fi; \
	echo "== environment: .venv with $$($$python --version), a few minutes the first time"; \
	[ -x $(BIN)/python ] || $$python -m venv .venv
	@$(PIP) torch==2.13.0
	@$(PIP) setuptools
	@$(PIP) --no-build-isolation -e '.[dev]'
	@touch $@

test: lint types imports  ## Lint, types, architecture and fast tests: what CI runs
	@echo "== pytest"
	@$(PYTEST) -q -n 2
	@echo "== pytest, Triton kernels by its interpreter"
	@TRITON_INTERPRET=1 $(PYTEST) -q -n 2 tests/kernels/test_kernels_fast_forms.py tests/kernels/triton/test_triton_forms.py

lint: $(STAMP)  ## Check style and formatting
	@echo "== ruff"
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .

types: $(STAMP)  ## Check types
	@echo "== mypy"
	@$(BIN)/mypy

imports: $(STAMP)  ## Check who may import whom
	@echo "== lint-imports"
	@$(BIN)/lint-imports

fix: $(STAMP)  ## Format, and repair what ruff can repair
	@$(BIN)/ruff check --fix . || true
	@$(BIN)/ruff format .

test-slow: $(STAMP)  ## Run the slow tests
	@$(PYTEST) -m "slow and not gpu"

test-gpu: $(STAMP)  ## Run the tests that need a GPU
	@$(PYTEST) -m gpu

mutation: $(STAMP)  ## Break each line of the core once and list what no test catches (an hour or more)
	@PYTHONPATH=src $(BIN)/python -m benchmarks.mutation

demo: $(STAMP)  ## Train on the embedded data and write the result to demo-out
	@$(BIN)/graphsage demo --out demo-out

docs: $(STAMP)  ## Rewrite the generated parts of README.md and docs/
	@$(BIN)/python docs/generate.py

# Other measurements, and the environments of the peers: benchmarks/README.md.
bench: $(STAMP)  ## Measure speed beside floors, PyG and DGL (half an hour)
	@PYTHONPATH=src $(BIN)/python -m benchmarks.cpu

bench-commits: $(STAMP)  ## Compare speed and memory of two commits: make bench-commits OLD=main NEW=HEAD (10 minutes)
	@[ -n "$(OLD)" ] && [ -n "$(NEW)" ] || { echo "name two commits: make bench-commits OLD=main NEW=HEAD" >&2; exit 2; }
	@PYTHONPATH=src $(BIN)/python -m benchmarks.two_commits $(OLD) $(NEW)

clean:  ## Remove what was built, except .venv
	@rm -rf demo-out build dist src/*.egg-info .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	@find . -name __pycache__ -type d -not -path './.venv/*' -prune -exec rm -rf {} +
