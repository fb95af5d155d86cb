.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help .venv test lint types imports fix test-slow test-gpu demo docs results-setmm results-debian results-small-graphs results-ranks results-quick results-plan results-larger-graph results-ray bench-peers bench bench-commits test-browser load crash fuzz soak sizing clean

BIN := .venv/bin
STAMP := .venv/.installed
PIP := $(BIN)/python -m pip install -q -c constraints.txt
# One thread per test process: two processes with a thread pool each would fight over the cores.
PYTEST := OMP_NUM_THREADS=1 $(BIN)/python -m pytest

help:  ## Show this list
	@awk -F ':.*## ' '/^[.a-z-]+:.*## / {printf "  make %-20s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

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

test-browser: $(STAMP)  ## Test the map page in chromium; screenshots go to build/screenshots
	@GRAPHSAGE_SCREENSHOTS=build/screenshots $(PYTEST) tests/browser -q

test-gpu: $(STAMP)  ## Run the tests that need a GPU
	@$(PYTEST) -m gpu

demo: $(STAMP)  ## Train on the embedded data and write the result to demo-out
	@$(BIN)/graphsage demo --out demo-out

docs: $(STAMP)  ## Rewrite the generated parts of README.md and docs/
	@$(BIN)/python docs/generate.py

results-setmm: $(STAMP)  ## Measure setmm again: sweep on validation, then 5 seeds (about half an hour)
	@PYTHONPATH=. $(BIN)/python -m benchmarks.tuned setmm

results-debian: $(STAMP)  ## Measure Debian again: make results-debian DEBIAN=folder/with/the/tables
	@[ -n "$(DEBIAN)" ] || { echo "say where the tables are: make results-debian DEBIAN=path/to/debian" >&2; exit 2; }
	@PYTHONPATH=. $(BIN)/python -m benchmarks.tuned debian $(DEBIAN)

results-ranks: $(STAMP)  ## Train with one rank and with two: make results-ranks PPI=path/to/ppi
	@PYTHONPATH=.:src $(BIN)/python -m benchmarks.ranks --data setmm $(if $(PPI),--data ppi=$(PPI)) --out results/scale/ranks.json

results-small-graphs: $(STAMP)  ## Measure four small graphs beside PyG: make results-small-graphs DATA=path
	@[ -n "$(DATA)" ] || { echo "say where the graphs are: make results-small-graphs DATA=path" >&2; exit 2; }
	@$(BIN)/python benchmarks/small_graphs.py $(DATA) --out results/small-graphs.json

results-plan: $(STAMP)  ## Measure this machine, then the planner beside the clock; best when idle (2 minutes)
	@OMP_WAIT_POLICY=PASSIVE PYTHONPATH=. $(BIN)/python -m benchmarks.plan $(if $(BUSY),--busy)

results-quick: $(STAMP)  ## Reproduce the paper's trends: make results-quick PPI=path/to/ppi DEBIAN=path/to/debian (an hour)
	@$(BIN)/graphsage reproduce all --data setmm $(if $(PPI),--data ppi=$(PPI)) $(if $(DEBIAN),--data debian=$(DEBIAN)) \
	    --profile quick --out results/quick

# FOLDER: scratch space, about 35 GB.
FOLDER ?= build/larger-graph
results-larger-graph: $(STAMP)  ## Build and embed 10 million nodes and 200 million edges in 3 GB, killed and resumed
	@$(BIN)/python benchmarks/larger_graph.py $(FOLDER) --out results/scale/larger-graph.json

results-ray: $(STAMP)  ## Embed on two local Ray nodes beside in-process; kill a worker, then a node
	@$(BIN)/python benchmarks/ray_faults.py --out results/scale/ray.json

# The peers' environments, apart from ours: each has a torch of its own choice. Their interpreters can be named instead.
PEERS ?= build/peers
PYG ?= $(wildcard $(PEERS)/pyg/bin/python)
DGL ?= $(wildcard $(PEERS)/dgl/bin/python)
bench-peers: $(STAMP)  ## Make environments with PyG and DGL for make bench (half an hour: torch-sparse is compiled)
	@[ -x $(PEERS)/pyg/bin/python ] || $(BIN)/python -m venv $(PEERS)/pyg
	@$(PEERS)/pyg/bin/python -m pip install -q -c constraints.txt torch==2.13.0 setuptools wheel numpy scipy pandas
	@$(PEERS)/pyg/bin/python -m pip install -q torch_geometric==2.8.1
	@$(PEERS)/pyg/bin/python -m pip install -q --no-build-isolation torch_scatter==2.1.2 torch_sparse==0.6.18 torch_cluster==1.6.3
	@[ -x $(PEERS)/dgl/bin/python ] || $(BIN)/python -m venv $(PEERS)/dgl
	@$(PEERS)/dgl/bin/python -m pip install -q torch==2.2.1 dgl==2.1.0 'torchdata<0.8' 'numpy<2' pandas pydantic pyyaml setuptools

bench: $(STAMP)  ## Measure speed beside floors and peers; make bench-peers first (half an hour)
	@PYTHONPATH=. $(BIN)/python -m benchmarks.cpu $(if $(PYG),--pyg $(PYG)) $(if $(DGL),--dgl $(DGL))

bench-commits: $(STAMP)  ## Compare speed and memory of two commits: make bench-commits OLD=main NEW=HEAD (10 minutes)
	@[ -n "$(OLD)" ] && [ -n "$(NEW)" ] || { echo "name two commits: make bench-commits OLD=main NEW=HEAD" >&2; exit 2; }
	@PYTHONPATH=src:. $(BIN)/python -m benchmarks.two_commits $(OLD) $(NEW)

# The service under load, killed, fuzzed and watched; each writes results/serve/NAME.json. RUN: a trained setmm model.
RUN ?= demo-out/model

$(RUN)/config.json: | $(STAMP)
	@[ "$(RUN)" = demo-out/model ] || { echo "$(RUN) is not a trained model" >&2; exit 2; }
	@$(BIN)/graphsage demo --out demo-out

load: $(STAMP) $(RUN)/config.json  ## Measure latency, throughput and overload of the service (1 minute)
	@$(BIN)/python benchmarks/serve_load.py $(RUN) --out results/serve/load.json

crash: $(STAMP)  ## Kill a live graph and the service 200 times, damage 1,000 journals, time a restart (10 minutes)
	@$(BIN)/python benchmarks/serve_crash.py --kills 200 --torn 1000 --restart --out results/serve/crash.json

fuzz: $(STAMP)  ## Send 1,000 generated requests to each operation of the service (10 minutes)
	@$(BIN)/python benchmarks/serve_fuzz.py --cases 1000 --out results/serve/fuzz.json

MINUTES ?= 60
soak: $(STAMP) $(RUN)/config.json  ## Mixed load on the service for an hour: make soak MINUTES=60
	@$(BIN)/python benchmarks/serve_soak.py $(RUN) --minutes $(MINUTES) --out results/serve/soak.json

sizing: $(STAMP)  ## Measure disk, memory and time of live graphs of several sizes
	@$(BIN)/python benchmarks/serve_sizing.py --out results/serve/sizing.json

clean:  ## Remove what was built, except .venv
	@rm -rf demo-out build dist src/*.egg-info .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	@find . -name __pycache__ -type d -not -path './.venv/*' -prune -exec rm -rf {} +
