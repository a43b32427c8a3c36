# Everything from one place. `make bench` and `make test` install what they need (as root, or by
# sudo; otherwise they print the line to type and carry on with what is there).

CARGO_TARGET_DIR ?= $(CURDIR)/target
export CARGO_TARGET_DIR
# A folder of the cache, if it is there. Make's own functions split names at spaces.
in_cache = $(shell cache="$${MYELIN_CACHE:-$${XDG_CACHE_HOME:-$$HOME/.cache}/myelin}"; [ ! -d "$$cache/$(1)" ] || echo "$$cache/$(1)")
# The ROS 2 that its driver is built with: what `scripts/setup ros2` has installed, if it has.
ifeq ($(origin ROS2_PREFIX),undefined)
ROS2_PREFIX := $(call in_cache,ros2)
endif
export ROS2_PREFIX
# The CycloneDDS 11 that its driver is built with: what `make cyclonedds11` has made, if it has.
ifeq ($(origin CYCLONEDDS11_PREFIX),undefined)
CYCLONEDDS11_PREFIX := $(call in_cache,cyclonedds11)
endif
export CYCLONEDDS11_PREFIX
# By the shell, which takes any name of a folder.
MYELIN := "$$CARGO_TARGET_DIR/release/myelin"

.PHONY: bench bench-all build cyclonedds11 test test-long test-all lint dist dist-check dist-repeat release setup-check first-sample docs counts overhead fidelity shm sanitize

## The main job: the first answer. What takes minutes to build has to wait for `make bench-all`; where
## it has been built once, it is built and measured here too.
bench:
	@scripts/setup bench
	@scripts/build-first
	@status=0; $(MYELIN) bench run quick || status=$$?; scripts/build-first left-out; exit $$status

## The same, of all systems that there are.
bench-all: build
	$(MYELIN) bench run quick

build:
	@scripts/setup bench
	@scripts/c-library --release >/dev/null
	cargo build --release --workspace
	@scripts/python driver --release
	@scripts/build-zenoh
	@[ -z "$$ROS2_PREFIX" ] || scripts/rmw
	@[ -z "$$CYCLONEDDS11_PREFIX" ] || scripts/cyclonedds11 plug-in

## CycloneDDS 11 with psmx_myelin, in a minute or two; from then on it is built and measured, too.
cyclonedds11:
	@scripts/setup cyclonedds11
	@scripts/cyclonedds11

## All tests, the ones against the real middleware and the page in a browser included. They go on to
## the end, whatever fails; the last lines say what did.
test:
	@scripts/setup test
	@scripts/test short

## What takes its time: all pages in a browser, AArch64 in an emulator, Miri, the thread sanitizer,
## fuzzing, 20,000 kills.
test-long:
	@scripts/setup long
	@scripts/test long

## Both, with one list at the end.
test-all:
	@scripts/setup test
	@scripts/setup long
	@scripts/test short long

lint:
	@scripts/test lint

## Packages for amd64 and arm64 in target/dist: the library for C and C++, the command with the drivers, the
## Python module; rmw_myelin where there is a ROS 2.
dist:
	@scripts/setup dist
	@scripts/dist

## Tries them in bare Debians, 11 to 13, amd64 and arm64; as root, with debootstrap.
dist-check:
	@scripts/dist-check

## Makes the packages of the last commit twice, in two folders: they must have the same bytes.
dist-repeat:
	@scripts/setup dist
	@scripts/dist-repeat

## Makes the release of a tag on GitHub, with these packages. The workflow does it.
release:
	@scripts/release

## What `make bench` installs and builds in a bare Debian 11, 12 and 13; as root, with debootstrap.
setup-check:
	@scripts/setup-check

## Seconds from nothing to the first sample in each language, in a bare Debian 12, by the packages of `make dist`; as
## root, with debootstrap.
first-sample:
	@scripts/first-sample

## The documentation as a site, in target/docs.
docs:
	@scripts/setup docs
	@scripts/docs

## Instructions and system calls of the hot path, against bench/counts/table.tsv.
counts:
	@scripts/counts

## What the bench itself adds to a measurement.
overhead:
	cargo bench -p myelin-bench-kit

## Our round trips against plain programs without our kit, alternating. What is not installed is
## said to be skipped; FIDELITY takes options of bench/check/fidelity.py.
fidelity: build
	-@for check in $(wildcard bench/drivers/*/check/Makefile); do \
		$(MAKE) -C $$(dirname $$check) || true; done
	bench/check/fidelity.py $(FIDELITY)

## Myelin's shared-memory route against iceoryx2, CycloneDDS and the floor; needs a quiet machine.
shm: build
	$(MYELIN) bench run shm-roundtrip shm-untouched publish

## Of the long tests those that need the nightly toolchain: Miri, thread sanitizer, fuzzing.
sanitize:
	scripts/sanitize
