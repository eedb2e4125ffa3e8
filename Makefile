# What the README promises. `make test` is what CI runs.

CARGO ?= cargo
TARGET := $(or $(CARGO_TARGET_DIR),target)
# A C compiler, what libbpf is built with, and the server with its extensions and pgbench.
DEMO_PACKAGES := gcc g++ libc6-dev make pkg-config libelf-dev zlib1g-dev postgresql postgresql-contrib
PACKAGES := $(DEMO_PACKAGES) binutils xz-utils shellcheck clang llvm e2fsprogs xfsprogs btrfs-progs f2fs-tools

.PHONY: browser atlas generate cargo-deb deb deb-test release kills regress-watch bench-watch bench-record-pgbench bench-record help packages demo-packages hook build demo test check bench bench-hook bench-switch bench-simulator bench-doctor bench-trace bench-lifetimes python regress regress-all bench-pgbench lab lab-record lab-postgres lab-power lab-epoch lab-quick fuzz-smoke nightly clean

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 16

packages:
	@scripts/packages.sh $(PACKAGES)

demo-packages:
	@scripts/packages.sh $(DEMO_PACKAGES)

hook: ## the preloaded library, as it ships
	$(CARGO) build --locked -q -p shelflife-preload --profile hook

build: hook ## the program, release
	$(CARGO) build --locked --release -p shelflife

check: ## formatting, lints, documentation
	$(CARGO) fmt --all --check
	$(CARGO) clippy --locked -q --workspace --all-targets -- -D warnings
	RUSTDOCFLAGS='-D warnings' $(CARGO) doc --locked -q --workspace --no-deps
	shellcheck scripts/*.sh .ci/run
	shellcheck -s dash lab/guest/init lab/guest/*.sh

# Not everywhere a package of this name.
browser: ## Chromium, in which a test opens pages; where there is none it is skipped
	@command -v chromium >/dev/null || scripts/packages.sh chromium || true

test: packages browser python hook check ## everything but what takes long
	$(CARGO) build --locked -q --workspace --bins
	scripts/test.sh

# Its block writes are recorded if that is allowed here, in memory, so that the traces are not among them.
demo: demo-packages build ## a quick trial of off, temp-vs-rest and wal-first on a real PostgreSQL
	@traces=$$(mktemp -d -p /dev/shm shelflife-demo-XXXXXX 2>/dev/null || mktemp -d) && \
	$(TARGET)/release/shelflife trial --preset quick --policies off,temp-vs-rest,wal-first --yes \
		--try-record $$traces --html $(TARGET)/demo.html; status=$$?; \
	rmdir $$traces 2>/dev/null || echo "traces: $$traces (shelflife trace summary $$traces/round-001-*)"; \
	exit $$status

bench: bench-watch bench-hook bench-switch bench-simulator bench-doctor bench-trace bench-lifetimes bench-record ## all benchmarks

bench-simulator: ## pages per second of the drive simulator, and against a bare loop
	$(CARGO) bench --locked -q -p shelflife-ssd --bench speed

bench-doctor: ## how long doctor takes with 200 block devices
	$(CARGO) bench --locked -q -p shelflife-probe --bench speed

bench-record: packages ## small bios a second that are recorded without a loss, and what one costs
	SHELFLIFE_BENCH_SECONDS=30 $(CARGO) bench --locked -q -p shelflife-record --features bpf --bench speed

# Many short rounds, as what disturbs a shared machine drifts; SHELFLIFE_BENCH_BLOCKS and
# SHELFLIFE_BENCH_SECONDS make it shorter. About 40 minutes.
bench-record-pgbench: packages ## what recording costs pgbench, in paired rounds on a RAM-backed loop device
	$(CARGO) bench --locked -q -p shelflife --bench record_pgbench

bench-trace: ## events per second of importers, writer and reader
	$(CARGO) bench --locked -q -p shelflife-trace --bench speed

bench-lifetimes: ## events per second of `lifetimes`, and against reading alone
	$(CARGO) bench --locked -q -p shelflife-learn --bench lifetimes

bench-watch: packages ## the daemon: file storms, a million files, late bytes; about 8 minutes
	$(CARGO) bench --locked -q -p shelflife-watch --bench watch

generate: ## man pages and completions below packaging/, from the arguments
	$(CARGO) build --locked -q -p shelflife
	rm -rf packaging/man packaging/completions
	$(TARGET)/debug/shelflife generate packaging

CARGO_DEB := 3.8.0

cargo-deb:
	@$(TARGET)/tools/bin/cargo-deb --version 2>/dev/null | grep -qx '$(CARGO_DEB)' || \
		$(CARGO) install -q --locked --version $(CARGO_DEB) --root $(TARGET)/tools cargo-deb

deb: build cargo-deb ## a Debian package below target/debian
	rm -f $(TARGET)/debian/*.deb
	$(TARGET)/tools/bin/cargo-deb --locked -p shelflife --no-build --strip

deb-test: deb ## the package in a clean chroot: install, work, remove, purge
	@scripts/packages.sh debootstrap
	scripts/deb-chroot.sh $(TARGET)/debian/*.deb

release: ## tarballs that run with glibc 2.31, built in a Debian 11, below target/release-*; aarch64 where Rust has it
	@scripts/packages.sh debootstrap binutils
	scripts/release.sh

python: ## a Python with DuckDB below target/, for the tests that query traces; without network they are skipped
	@test -x $(TARGET)/python/bin/python || { scripts/packages.sh python3-venv && python3 -m venv $(TARGET)/python \
		&& $(TARGET)/python/bin/pip install -q duckdb; } || rm -rf $(TARGET)/python

bench-hook: packages hook ## what the hook adds to an open
	$(CARGO) bench --locked -q -p shelflife-preload --bench hook

bench-switch: packages hook ## how long a switch takes at 50,000 files under load
	$(CARGO) bench --locked -q -p shelflife --bench switch

regress: packages hook ## PostgreSQL's own regression suite under the hook
	$(CARGO) build --locked -q -p shelflife
	scripts/regress.sh core

regress-watch: packages hook ## the regression suite with the daemon attached
	$(CARGO) build --locked -q -p shelflife
	scripts/regress.sh watched

# KILLS=5 makes it shorter; about 5 s each.
KILLS ?= 50
kills: packages hook ## kill -9 of server or daemon at random moments under load
	SHELFLIFE_KILLS=$(KILLS) $(CARGO) test --locked -q -p shelflife --test it watch_kills -- --nocapture

regress-all: packages hook ## and its decoding, crash and standby tests (about 15 min)
	$(CARGO) build --locked -q -p shelflife
	scripts/regress.sh core decoding recovery

# In memory, so that no drive hides it. About an hour; PARTS="hook" and SHELFLIFE_BENCH_PAIRS=100 make it shorter.
bench-pgbench: packages hook ## what hook and daemon cost pgbench, switched on and off under it in turns of a second
	TMPDIR=/dev/shm $(CARGO) bench --locked -q -p shelflife --bench pgbench -- $(PARTS)

atlas: packages build ## best and worst cases: all scenarios on three drives, into target/atlas (about 90 min, resumable; root)
	$(TARGET)/release/shelflife atlas $(TARGET)/atlas --html $(TARGET)/atlas.html

lab: packages build ## every stack on four stock kernels in QEMU; writes docs/support-matrix.md (10 min once all is fetched; can be stopped and goes on)
	$(CARGO) run --locked -q -p shelflife-lab -- stacks

lab-record: packages build ## the recorder on device mapper, md, SCSI and NVMe in QEMU: every byte with file, hint, stream?
	$(CARGO) run --locked -q -p shelflife-lab -- record

lab-postgres: packages build ## PostgreSQL on f2fs and ext4 in QEMU: which handles do WAL and relations get?
	$(CARGO) run --locked -q -p shelflife-lab -- postgres

lab-epoch: packages build ## a trial on a whole drive with FDP in QEMU, broken off and resumed
	$(CARGO) run --locked -q -p shelflife-lab -- epoch

lab-power: packages build ## power cuts under load in QEMU, ten on f2fs and ten on ext4
	$(CARGO) run --locked -q -p shelflife-lab -- power

# The program that `make test` built: a release build would take longer than the guests.
lab-quick: packages ## ten stacks on two stock kernels in QEMU
	$(CARGO) build --locked -q -p shelflife
	$(CARGO) run --locked -q -p shelflife-lab -- stacks --quick --shelflife $(TARGET)/debug/shelflife

fuzz-smoke: ## every fuzz target for 10 seconds, on the stable toolchain
	scripts/fuzz.sh 10

nightly: test bench bench-pgbench bench-record-pgbench regress-all regress-watch kills deb-test release lab lab-record lab-postgres lab-power lab-epoch ## what takes long; results go into docs/results.md
	scripts/fuzz.sh 300

clean:
	$(CARGO) clean
