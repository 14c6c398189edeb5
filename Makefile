# Everything a fresh machine needs: `make run` starts the node, `make test` passes all tests.
# Each target makes what it needs first; a second time nothing is downloaded.

# Some environments forbid it, but what tests compile is to be kept: they start many processes.
export PYTHONDONTWRITEBYTECODE :=

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := PIP_CONSTRAINT=constraints.txt $(BIN)/python -m pip --disable-pip-version-check --quiet
# What is there already is enough most of the time; only else is anything downloaded. The extras
# are named without commas between them, at which make would cut them apart.
INSTALL = $(PIP) install --no-index --no-build-isolation --editable '.[$(1)]' 2>/dev/null || \
  $(PIP) install hatchling editables --editable '.[$(1)]'
JOBS ?= 2
METRICS ?= 9644
PYTEST := $(BIN)/python -m pytest
# Real clients have timeouts of their own, and a crowded machine may miss one: what failed is run once
# more, alone, and said so. What fails twice has failed.
TWICE = $(PYTEST) -q -n $(JOBS) $(1) || { echo "Once more, alone, what failed:"; \
  $(PYTEST) -q --last-failed --last-failed-no-failures=none $(1); }

.PHONY: run test check format lint types unit integration interop spark warm kubernetes example bench compiled bench-spark bench-http requirements docs clean

# A node, and beside it a schema registry, a REST proxy and a pipeline on Spark.
# PIPELINE=no REGISTRY=no REST=no starts the node alone; REGISTRY=127.0.0.1:18081 moves the registry.
# make run PORT=19092 DATA=/var/tmp/orders METRICS=19644 LAKE=/var/tmp/lake ARGS='--set num.partitions=3'
run: $(VENV)/installed
	@$(BIN)/python tools/run.py --metrics $(METRICS) $(if $(PORT),--listen 127.0.0.1:$(PORT)) \
	  $(if $(DATA),--data '$(DATA)') $(if $(LAKE),--lake '$(LAKE)') \
	  $(if $(filter no,$(PIPELINE)),--no-pipeline) $(if $(REGISTRY),--registry '$(REGISTRY)') \
	  $(if $(REST),--rest '$(REST)') $(ARGS)

# `warm` takes what the integration tests, which mostly wait, leave idle.
test: check
	@$(MAKE) --no-print-directory -j2 integration warm
	@$(MAKE) --no-print-directory interop
	@$(MAKE) --no-print-directory spark

# Types are judged by one process, beside the tests.
check: $(VENV)/installed-dev
	@$(MAKE) --no-print-directory -j2 lint types unit

format: $(VENV)/installed-dev
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

lint: $(VENV)/installed-dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

types: $(VENV)/installed-dev
	$(BIN)/mypy

# Decoders are compiled first, once: the processes that run tests would each do it.
unit: $(VENV)/installed-dev
	@$(BIN)/python -m headrace.spark.decoding.compiling
	$(PYTEST) -q -n $(JOBS) tests/unit tests/property tests/simulation

# Clients wait more than they compute, so there are more processes than cores.
integration: JOBS = 5
integration: $(VENV)/installed-dev
	@$(call TWICE,tests/integration)

# Apache Kafka itself, from Maven by artifact name, as the judge of our files and answers.
interop: JOBS = 4
interop: $(VENV)/installed-dev
	@$(call TWICE,tests/interop)

# Pipelines on a real Spark. Each process has one session that its tests share; all begin with tests
# that start JVMs of their own (tests/spark/conftest.py says which), and with the classes that one
# start has kept.
spark: JOBS = 3
spark: warm
	@$(call TWICE,tests/spark)

warm: $(VENV)/installed-dev
	@$(BIN)/headrace spark warm || echo "Going on without; the tests take longer."

# The example of Kubernetes on a cluster that is there; tests/kubernetes/test_orders.py says what it needs.
kubernetes: $(VENV)/installed-dev
	$(PYTEST) -q tests/kubernetes

# One example from its records to its tables: make example NAME=flight_status
example: $(VENV)/installed-spark
	$(BIN)/python -m examples.pipelines $(NAME) $(ARGS)

bench: $(VENV)/installed-dev compiled
	$(BIN)/python -m benchmarks $(ARGS)

# What is measured starts processes, and those of an installed package compile nothing.
compiled: $(VENV)/installed-dev
	@$(BIN)/python -m compileall -q src

# Planning a hundred tables, merging by key, serving, and Spark's source beside its stock connector: all
# of them, and then an error if one is not as fast as it should be.
bench-spark: $(VENV)/installed-dev compiled
	@missed=0; for part in pipeline_planning table_merging serving 'spark_source $(ARGS)'; do \
	  echo "benchmarks.$$part"; $(BIN)/python -m benchmarks.$$part || missed=1; done; exit $$missed

# What requests to the HTTP products cost, in CPU of each process.
bench-http: $(VENV)/installed-dev compiled
	$(BIN)/python -m benchmarks.http $(ARGS)
	$(BIN)/python -m benchmarks.registry

requirements: $(VENV)/installed-dev
	$(BIN)/python tools/requirements.py $(ARGS)

docs: $(VENV)/installed
	$(BIN)/python tools/compatibility.py

clean:
	rm -rf $(VENV) build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Headrace needs Python 3.11 or newer; point to one with: make PYTHON=/path/to/python3.11 $(MAKECMDGOALS)"; exit 1; }
	@$(PYTHON) -m venv $(VENV) || \
	  { rm -rf $(VENV); echo "Python cannot make virtual environments here; on Debian and Ubuntu: apt install python3-venv"; exit 1; }

$(VENV)/installed: $(VENV)/bin/python pyproject.toml constraints.txt
	@echo "Installing Headrace into $(VENV) ..."
	@$(call INSTALL,services)
	@$(BIN)/python -m compileall -q src
	@touch $@

$(VENV)/installed-spark: $(VENV)/bin/python pyproject.toml constraints.txt
	@echo "Installing Spark into $(VENV), some 900 MB; the first time takes minutes ..."
	@$(call INSTALL,pipelines)
	@touch $@

$(VENV)/installed-dev: $(VENV)/bin/python pyproject.toml constraints.txt
	@echo "Installing Headrace and its test tools into $(VENV) ..."
	@$(call INSTALL,dev)
	@$(BIN)/python -m compileall -q src
	@touch $@ $(VENV)/installed $(VENV)/installed-spark
