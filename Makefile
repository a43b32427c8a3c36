# Everything from one place. `make bench` and `make test` install what they need (as root, or by
# sudo; otherwise they print the line to type and carry on with what is there).

CARGO_TARGET_DIR ?= $(CURDIR)/target
export CARGO_TARGET_DIR
MYELIN := $(CARGO_TARGET_DIR)/release/myelin

.PHONY: bench build test lint overhead fidelity shm sanitize

## The main job: Myelin, and CycloneDDS with and without iceoryx, beside the machine's floor.
bench: build
	$(MYELIN) bench run quick

build:
	@scripts/setup bench
	cargo build --release --workspace
	@scripts/build-zenoh

## All tests, the ones against the real middleware and the page in a browser included.
test: lint
	@scripts/setup test
	cargo build --workspace
	@scripts/build-zenoh test
	cargo test --workspace
	RUSTFLAGS="--cfg loom" cargo test -p myelin-driver-os --lib --release \
		--target-dir $(CARGO_TARGET_DIR)/loom
	RUSTFLAGS="--cfg loom" cargo test -p myelin-shm --test model_loom --release \
		--target-dir $(CARGO_TARGET_DIR)/loom

lint:
	cargo fmt --check
	cargo clippy --workspace --all-targets -- -D warnings

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

## The thread sanitizer, Miri and the fuzzer, where the nightly toolchain has them.
sanitize:
	scripts/sanitize
