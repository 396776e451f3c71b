# What one does with a checkout. Plain `make` lists it.

TARGET_DIR := $(abspath $(or $(CARGO_TARGET_DIR),target))
ARGS ?=

.DEFAULT_GOAL := help
.PHONY: help demo test mutations bench lint ci cargo redis

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## /{printf "make %-9s %s\n", $$1, $$2}' $(firstword $(MAKEFILE_LIST))

demo: cargo redis ## run the demo against a Redis of its own (ARGS=--no-bar: plain lines)
	cargo run --release --example demo -- $(ARGS)

# Interrupted or not, it leaves no process and no file outside target: temporary
# files of doctests go there, and `exec` passes make's signals on to .ci/group.
test: cargo redis ## run all tests, doctests included (ARGS: passed to cargo test)
	@mkdir -p "$(TARGET_DIR)/tmp"
	exec env TMPDIR="$(TARGET_DIR)/tmp" .ci/group cargo test --all-features $(ARGS)

mutations: cargo redis ## break the scripts on purpose and see that the model test notices
	exec .ci/group tests/mutations/run $(ARGS)

bench: cargo redis ## measure how fast tasks are picked up and a queue is drained
	exec .ci/group cargo bench --bench pickup --bench drain $(ARGS)

lint: cargo ## check format, clippy and docs, with warnings denied
	cargo fmt --check
	cargo clippy --all-targets --all-features -- -D warnings
	RUSTDOCFLAGS=-Dwarnings cargo doc --no-deps --all-features

ci: cargo ## do all that a change must pass
	.ci/run

cargo:
	@command -v cargo >/dev/null || { echo 'cargo is missing: install Rust, see https://rustup.rs' >&2; exit 2; }

redis:
	@.ci/ensure-redis
