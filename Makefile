# `make run` starts a node with a pipeline, `make test` runs all tests; both work on a fresh machine.
# Each target builds its prerequisites first; the second time nothing is downloaded.

# Keep compiled modules even where the environment forbids it: tests start many processes.
export PYTHONDONTWRITEBYTECODE :=

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := PIP_CONSTRAINT=constraints.txt $(BIN)/python -m pip --disable-pip-version-check --quiet
# Try the installed packages first and download only if they do not suffice. pip's output goes to a
# file: its last lines are shown if the installation fails. Extras have no commas between them, at
# which make would split.
INSTALL = $(PIP) install --no-index --no-build-isolation --editable '.[$(1)]' >/dev/null 2>&1 || \
  $(PIP) install hatchling editables --editable '.[$(1)]' >$(VENV)/install.log 2>&1 || \
  { tail -3 $(VENV)/install.log; \
    echo "Installation failed: is there a network? The whole output is in $(VENV)/install.log"; exit 1; }
JOBS ?= 2
METRICS ?= 9644
PYTEST := $(BIN)/python -m pytest
# Runs a command and prints its duration, also if it fails: $(call timed,NAME,COMMAND)
timed = begin=$$(date +%s); $(2); status=$$?; \
  echo "$(1): $$(($$(date +%s) - begin)) s"; exit $$status

# Warn about mistyped variables. A name with an underscore, such as HEADRACE_KILLS, is for a program.
VARIABLES := ARGS BIN DATA JOBS LAKE METRICS NAME NODES BROKERS PIP PIPELINE PORT PYTEST PYTHON REGISTRY REST SECONDS SEED SEEDS VENV
GIVEN = $(foreach name,$(.VARIABLES),$(if $(filter command,$(origin $(name))),$(name)))
UNKNOWN = $(foreach name,$(filter-out $(VARIABLES),$(GIVEN)),$(if $(findstring _,$(name)),,$(name)))
$(foreach name,$(if $(filter 0,$(MAKELEVEL)),$(UNKNOWN)),$(warning $(name) has no effect here))

.PHONY: run test check format lint types unit sim chaos integration interop spark warm kubernetes example bench compiled bench-spark bench-http requirements docs docs-site wheel clean

# A node with a schema registry, a REST proxy and a pipeline on Spark.
# NODES=3 starts a cluster of three nodes, and BROKERS=4 a node with three brokers beside it.
# PIPELINE=no REGISTRY=no REST=no starts the node alone; REGISTRY=127.0.0.1:18081 moves the registry.
# make run PORT=19092 DATA=/var/tmp/orders METRICS=19644 LAKE=/var/tmp/lake ARGS='--set num.partitions=3'
run: $(VENV)/installed
	@$(BIN)/python tools/run.py --metrics $(METRICS) $(if $(PORT),--listen 127.0.0.1:$(PORT)) \
	  $(if $(NODES),--nodes $(NODES)) $(if $(BROKERS),--brokers $(BROKERS)) \
	  $(if $(DATA),--data '$(DATA)') $(if $(LAKE),--lake '$(LAKE)') \
	  $(if $(filter no,$(PIPELINE)),--no-pipeline) $(if $(REGISTRY),--registry '$(REGISTRY)') \
	  $(if $(REST),--rest '$(REST)') $(ARGS)

# `warm` uses the processor time that the integration tests, which mostly wait, leave idle.
test: check
	@$(MAKE) --no-print-directory -j2 integration warm
	@$(MAKE) --no-print-directory interop
	@$(MAKE) --no-print-directory spark

# One process checks types while the tests run.
check: $(VENV)/installed-dev
	@$(MAKE) --no-print-directory -j2 lint types unit

format: $(VENV)/installed-dev
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

lint: $(VENV)/installed-dev
	@$(call timed,lint,$(BIN)/ruff format --check . && $(BIN)/ruff check .)

types: $(VENV)/installed-dev
	@$(call timed,types,$(BIN)/mypy)

# Compile the decoders once before the tests: otherwise each test process would do it.
unit: $(VENV)/installed-dev
	@$(BIN)/python -m headrace.spark.compiling
	@$(call timed,unit,$(PYTEST) -q -n $(JOBS) tests/unit tests/property tests/simulation)

# Clusters, groups, transactions and quorums under seeded faults: make sim SEEDS=5000; make sim SEED=17 repeats one.
sim: $(VENV)/installed-dev
	@HEADRACE_SEEDS=$(or $(SEEDS),1000) $(if $(SEED),HEADRACE_SEED=$(SEED)) \
	  $(PYTEST) -q -n $(JOBS) tests/simulation

# Three nodes as processes under load and seeded faults: make chaos SECONDS=120 SEED=7.
# With root, ip and tc the nodes have networks of their own, which are cut and slowed down.
chaos: $(VENV)/installed-dev
	@$(BIN)/python -m tests.chaos --seconds $(or $(SECONDS),60) $(if $(SEED),--seed $(SEED)) $(ARGS)

# Clients wait more than they compute, so there are more test processes than cores.
integration: JOBS = 5
integration: $(VENV)/installed-dev
	@$(call timed,integration,$(PYTEST) -q -n $(JOBS) tests/integration)

# Apache Kafka itself, from Maven by artifact name, checks our files and answers.
interop: JOBS = 4
interop: $(VENV)/installed-dev
	@$(call timed,interop,$(PYTEST) -q -n $(JOBS) tests/interop)

# Pipelines on a real Spark. The tests of each process share one session. Tests that start JVMs of
# their own run first (tests/spark/conftest.py lists them), with the classes cached by `warm`.
spark: JOBS = 3
spark: warm
	@$(call timed,spark,$(PYTEST) -q -n $(JOBS) tests/spark)

warm: $(VENV)/installed-dev
	@$(call timed,warm,$(BIN)/headrace spark warm || echo "No class cache; the tests take longer.")

# The Kubernetes example on an existing cluster; tests/kubernetes/test_orders.py lists the prerequisites.
kubernetes: $(VENV)/installed-dev
	$(PYTEST) -q tests/kubernetes

# One example from its records to its tables: make example NAME=flight_status
example: $(VENV)/installed-spark
	$(BIN)/python -m examples.pipelines $(NAME) $(ARGS)

bench: $(VENV)/installed-dev compiled
	$(BIN)/python -m benchmarks $(ARGS)

# Compile all modules, as in an installed package: benchmarks start many processes.
compiled: $(VENV)/installed-dev
	@$(BIN)/python -m compileall -q src

# Planning a hundred tables, merging by key, serving, and Spark's source against the stock connector.
# Fails at the end if a figure misses its target.
bench-spark: $(VENV)/installed-dev compiled
	@missed=0; for part in pipeline_planning table_merging serving 'spark_source $(ARGS)'; do \
	  echo "benchmarks.$$part"; $(BIN)/python -m benchmarks.$$part || missed=1; done; exit $$missed

# CPU of each process per request to the HTTP products.
bench-http: $(VENV)/installed-dev compiled
	$(BIN)/python -m benchmarks.http $(ARGS)
	$(BIN)/python -m benchmarks.registry

requirements: $(VENV)/installed-dev
	$(BIN)/python tools/requirements.py $(ARGS)

docs: $(VENV)/installed
	$(BIN)/python tools/api_table.py
	$(BIN)/python tools/compatibility.py
	$(BIN)/python tools/pipeline_options.py
	$(BIN)/python tools/rights.py
	$(BIN)/python tools/settings.py

# The documents as a searchable site in build/site; links are checked, nothing is loaded remotely.
docs-site: $(VENV)/installed-docs
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet && \
	  echo "Read it with: $(BIN)/python -m http.server --directory build/site"

# The package as users install it: dist/headrace-*.whl. pip builds it in an environment of its own.
wheel: $(VENV)/bin/python
	@rm -rf dist
	@$(PIP) wheel --no-deps --wheel-dir dist . && ls dist/*.whl

clean:
	rm -rf $(VENV) build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Headrace needs Python 3.11 or newer; point to one with: make PYTHON=/path/to/python3.11 $(MAKECMDGOALS)"; exit 1; }
	@$(PYTHON) -m venv $(VENV) || \
	  { rm -rf $(VENV); echo "Python cannot make virtual environments here; on Debian and Ubuntu: apt install python3-venv"; exit 1; }

$(VENV)/installed: $(VENV)/bin/python pyproject.toml constraints.txt
	@echo "Installing Headrace into $(VENV) (about 150 MB, the first time half a minute) ..."
	@$(call INSTALL,services)
	@$(BIN)/python -m compileall -q src
	@touch $@

$(VENV)/installed-spark: $(VENV)/bin/python pyproject.toml constraints.txt
	@echo "Installing Spark into $(VENV) (about 1200 MB, the first time some minutes) ..."
	@$(call INSTALL,pipelines)
	@touch $@

$(VENV)/installed-docs: $(VENV)/bin/python pyproject.toml constraints.txt
	@echo "Installing MkDocs into $(VENV) ..."
	@$(call INSTALL,docs)
	@touch $@

$(VENV)/installed-dev: $(VENV)/bin/python pyproject.toml constraints.txt
	@echo "Installing Headrace and its test tools into $(VENV) (about 2 GB, the first time some minutes) ..."
	@$(call INSTALL,dev)
	@$(BIN)/python -m compileall -q src
	@touch $@ $(VENV)/installed $(VENV)/installed-spark
