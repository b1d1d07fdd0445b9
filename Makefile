# Varve. `make run` and `make test` are the two commands to know; README.md tells the rest.
#
# Flavours of the same sources, each in its own folder under build/:
#   rel   release: the C-linked server              asan  ASan + UBSan, slow checks: all unit tests
#   tsan  ThreadSanitizer: concurrency tests        fuzz  libFuzzer targets (clang)
#   static-amd64, static-arm64  against musl, for any Linux (deploy/musl)
#   native  for this machine's processor, with LTO and a profile that native-train makes (tests/bench/train.py)

.DELETE_ON_ERROR:
.SECONDARY:
MAKEFLAGS += --no-builtin-rules
SHELL := /bin/bash

VERSION := $(shell sed -n 's/^## \[\([0-9.]*\)\].*/\1/p' CHANGELOG.md 2>/dev/null | head -n 1)
REVISION := $(shell git rev-parse --short=12 HEAD 2>/dev/null || echo unknown)

Q := $(if $(V),,@)# make V=1 shows the commands

ifeq ($(origin CC),default)
CC := gcc
endif
WARN := -Wall -Wextra -Werror -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wvla -Wpointer-arith -Wundef
# No contraction of a * b + c: results are the same bits on every machine, and compensated sums stay compensated.
CFLAGS_ALL := -std=gnu17 -g -ffp-contract=off -fno-omit-frame-pointer -pthread -D_GNU_SOURCE -I. -ffile-prefix-map=$(CURDIR)=. $(WARN)
CFLAGS_rel := -O2 -fstack-protector-strong
CFLAGS_asan := -O1 -fsanitize=address,undefined -fno-sanitize-recover=all -DVARVE_SLOW_CHECKS
# gcc 12 aligns locals of 64 bytes to 32 only in frames that ASan keeps to find uses after return (its bug 110027).
build/asan/obj/storage/kernels_avx512.o: CFLAGS_asan += --param asan-use-after-return=0
CFLAGS_tsan := -O1 -fsanitize=thread -DVARVE_SLOW_CHECKS
CFLAGS_fuzz := -O1 -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all -DVARVE_SLOW_CHECKS
CFLAGS_native-train := -O2 -march=native -fprofile-generate -fprofile-update=prefer-atomic
# -w: the sources are checked by the other flavours; what gcc says here is about the profile (functions that training met
# only inlined), or guesses from it (values that "may be" uninitialized on paths that were never taken).
CFLAGS_native := -O2 -march=native -flto -fprofile-use -fprofile-partial-training -w -fstack-protector-strong
LIBS_COMMON := -lzstd -lroaring -lpcre2-8 -lhttp_parser -luv -lz -lm -pthread
LIBS_rel := $(LIBS_COMMON) -ljemalloc
LIBS_asan := $(LIBS_COMMON)
LIBS_tsan := $(LIBS_COMMON)
LIBS_native := $(LIBS_rel)
LIBS_native-train := $(LIBS_rel)
AR_native := gcc-ar
NEEDS_native := build/native-train/trained

ROOMS := storage/base storage ingest query server
SOURCES := $(foreach room,$(ROOMS),$(wildcard $(room)/*.c))
MAIN := server/main.c
GENERATED := build/page/assets.c
LIBRARY_SOURCES := $(filter-out $(MAIN),$(SOURCES))
TEST_SOURCES := $(wildcard tests/unit/*/test_*.c)
TESTS := $(patsubst tests/unit/%.c,%,$(TEST_SOURCES))
SUPPORT_SOURCES := $(wildcard tests/sim/*.c)
FUZZ_TARGETS := $(patsubst tests/fuzz/fuzz_%.c,%,$(wildcard tests/fuzz/fuzz_*.c))
BENCHES := $(patsubst tests/bench/%.c,%,$(wildcard tests/bench/bench_*.c))

# Concurrency tests, run under ThreadSanitizer too: those named so, and those that this list adds.
TSAN_TESTS := $(filter %_tsan,$(TESTS))

# How many compilers and unit tests may run side by side.
JOBS ?= $(shell nproc)
FUZZ_SECONDS ?= 60
FUZZ_SMOKE_SECONDS ?= 3
SEED ?= 1

all: build/varve

.PHONY: all deps deps-test run test unit lint lint-format lint-tidy lint-cppcheck format arch fuzz fuzz-smoke \
	fuzz-build bench sim clean native image deb FORCE
build/varve: build/rel/varve
	ln -sf rel/varve $@

deps:
	@deploy/install-deps

deps-test:
	@deploy/install-deps --test

run: deps
	@$(MAKE) --no-print-directory -j$(JOBS) all
	build/varve serve --storage.path=varve-data --web.listen-address=:8428

VERSION_FLAGS := -DVARVE_VERSION='"$(VERSION)"' -DVARVE_REVISION='"$(REVISION)"'

include deploy/musl/rules.mk

# ---- one set of rules per flavour; some have a compiler, needs and a last step of their own
FLAVOURS := rel asan tsan fuzz native native-train $(STATIC_ARCHES:%=static-%)
CC_fuzz := clang
define flavour
build/$(1)/obj/%.o: %.c | $$(NEEDS_$(1))
	@mkdir -p $$(@D)
	@echo "  cc    $$<  ($(1))"
	$$(Q)$$(or $$(CC_$(1)),$$(CC)) $$(CFLAGS_ALL) $$(CFLAGS_$(1)) $$(VERSION_FLAGS) -DVARVE_FLAVOUR='"$(1)"' -MMD -MP -c -o $$@ $$<

build/$(1)/libvarve.a: $$(LIBRARY_SOURCES:%.c=build/$(1)/obj/%.o) $$(GENERATED:%.c=build/$(1)/obj/%.o)
	@echo "  ar    $$@"
	$$(Q)rm -f $$@ && $$(or $$(AR_$(1)),ar) rcsD $$@ $$^

build/$(1)/varve: $$(MAIN:%.c=build/$(1)/obj/%.o) build/$(1)/libvarve.a $$(NEEDS_$(1))
	@echo "  link  $$@"
	$$(Q)$$(or $$(CC_$(1)),$$(CC)) $$(CFLAGS_ALL) $$(CFLAGS_$(1)) -o $$@ $$(filter %.o %.a,$$^) $$(LIBS_$(1)) $$(FINISH_$(1))

build/$(1)/tests/%: build/$(1)/obj/tests/unit/%.o $$(SUPPORT_SOURCES:%.c=build/$(1)/obj/%.o) build/$(1)/libvarve.a \
		$$(NEEDS_$(1)) $$(NEEDS_TEST_$(1))
	@mkdir -p $$(@D)
	@echo "  link  $$@"
	$$(Q)$$(or $$(CC_$(1)),$$(CC)) $$(CFLAGS_ALL) $$(CFLAGS_$(1)) -o $$@ $$(filter %.o %.a,$$^) -lcmocka $$(LIBS_$(1))

build/$(1)/bench/%: build/$(1)/obj/tests/bench/%.o build/$(1)/libvarve.a $$(NEEDS_$(1))
	@mkdir -p $$(@D)
	@echo "  link  $$@"
	$$(Q)$$(or $$(CC_$(1)),$$(CC)) $$(CFLAGS_ALL) $$(CFLAGS_$(1)) -o $$@ $$(filter %.o %.a,$$^) $$(LIBS_$(1))
endef
$(foreach f,$(FLAVOURS),$(eval $(call flavour,$(f))))

# What shows the version is built anew when the version changes (in what is shipped; tests would all link again).
build/version: FORCE
	@mkdir -p $(@D)
	@echo '$(VERSION) $(REVISION)' | cmp -s - $@ || echo '$(VERSION) $(REVISION)' >$@
VERSIONED := $(if $(SOURCES),$(shell grep -l 'VARVE_VERSION\|VARVE_REVISION' $(SOURCES)))
$(foreach f,rel native $(STATIC_ARCHES:%=static-%),$(VERSIONED:%.c=build/$(f)/obj/%.o)): build/version

-include $(wildcard build/*/obj/*/*.d build/*/obj/*/*/*.d build/*/obj/*/*/*/*.d)

# ---- the built-in page: TypeScript in server/page, npm's packages in build/page; out comes C with the files in it
PAGE_SOURCES := server/page/build.mjs server/page/index.html $(wildcard server/page/src/*)

# $(call npm-install,FOLDER): what the lock file there names, under build; no script of a package runs.
define npm-install
	@command -v npm >/dev/null || { echo "npm is missing: deploy/install-deps installs it" >&2; exit 1; }
	@mkdir -p $(@D)
	@echo "  npm   $(@D)"
	$(Q)cp $(1)/package.json $(1)/package-lock.json $(@D)/
	$(Q)cd $(@D) && npm ci --ignore-scripts --no-audit --no-fund --no-update-notifier --loglevel=error >npm.log 2>&1 \
		|| { cat npm.log >&2; exit 1; }
	@touch $@
endef

build/page/installed: server/page/package.json server/page/package-lock.json
	$(call npm-install,server/page)

build/page/assets.c: build/page/installed $(PAGE_SOURCES)
	@echo "  page  $@"
	$(Q)node server/page/build.mjs build/page

build/page/checked: build/page/installed server/page/tsconfig.json $(PAGE_SOURCES)
	$(Q)node build/page/node_modules/typescript/bin/tsc --noEmit -p server/page
	@touch $@

# The browser's driver, for tests/page.
build/page-tests/installed: tests/page/package.json tests/page/package-lock.json
	$(call npm-install,tests/page)

# ---- tests: built first, then run by one runner that totals everything (tests/run)
ASAN_BINARIES := $(TESTS:%=build/asan/tests/%)
TSAN_BINARIES := $(TSAN_TESTS:%=build/tsan/tests/%)

test: deps-test
	@$(MAKE) --no-print-directory -j$(JOBS) all $(ASAN_BINARIES) $(TSAN_BINARIES) fuzz-build \
		build/page-tests/installed $(STATIC_TEST_BINARIES)
	@tests/run --jobs $(JOBS) --fuzz-seconds $(FUZZ_SMOKE_SECONDS) $(ASAN_BINARIES) $(TSAN_BINARIES) \
		$(FUZZ_BINARIES) --black-box integration cli crash sim conformance page e2e clients static image

unit: $(ASAN_BINARIES) $(TSAN_BINARIES)
	@tests/run --jobs $(JOBS) $(ASAN_BINARIES) $(TSAN_BINARIES)

# The simulator: one seed is one whole history of faults, the same every time.
sim: build/asan/tests/storage/test_sim
	$(if $(filter file,$(origin SEED)),,VARVE_SEED=$(SEED)) $<

# ---- fuzzing (clang's libFuzzer); finds stay in build/fuzz/finds, seeds are tests/fuzz/corpus
FUZZ_BINARIES := $(FUZZ_TARGETS:%=build/fuzz/bin/fuzz_%)

build/fuzz/bin/fuzz_%: build/fuzz/obj/tests/fuzz/fuzz_%.o build/fuzz/libvarve.a
	@mkdir -p $(@D)
	@echo "  link  $@"
	$(Q)clang $(CFLAGS_ALL) -fsanitize=fuzzer,address,undefined -o $@ $^ $(LIBS_COMMON)

fuzz-build: $(FUZZ_BINARIES)

fuzz: $(FUZZ_BINARIES)
	@set -e; for name in $(FUZZ_TARGETS); do \
		mkdir -p build/fuzz/corpus/$$name build/fuzz/finds tests/fuzz/corpus/$$name; \
		echo "== fuzz_$$name, $(FUZZ_SECONDS) s"; \
		build/fuzz/bin/fuzz_$$name -max_total_time=$(FUZZ_SECONDS) -timeout=10 -rss_limit_mb=2048 \
			-print_final_stats=1 -artifact_prefix=build/fuzz/finds/$$name- \
			build/fuzz/corpus/$$name tests/fuzz/corpus/$$name 2>&1 | grep -E 'ERROR|SUMMARY|Test unit|^stat::' ; \
		test $${PIPESTATUS[0]} -eq 0; \
	done

fuzz-smoke: $(FUZZ_BINARIES)
	@tests/run --jobs $(JOBS) --fuzz-seconds $(FUZZ_SMOKE_SECONDS) $(FUZZ_BINARIES)

# ---- measurements: each program prints its own table
bench: $(BENCHES:%=build/rel/bench/%)
	@set -e; for program in $^; do echo "== $$program"; $$program; done

# ---- checks of the text itself; stamps under build/lint make the slow ones incremental
LINT_SOURCES := $(SOURCES) $(wildcard tests/sim/*.c tests/fuzz/*.c tests/bench/*.c)
LINT_FLAGS := $(filter-out -W%,$(CFLAGS_ALL)) $(VERSION_FLAGS) -DVARVE_FLAVOUR='"lint"'
LINT_ALL := $(wildcard $(ROOMS:%=%/*.[ch]) tests/*/*.[ch] tests/unit/*/*.[ch])

lint:
	@$(MAKE) --no-print-directory -j$(JOBS) lint-format lint-tidy lint-cppcheck build/page/checked
	@tests/check/pow10.py --check
	@echo "lint: clean"

lint-format:
	clang-format --dry-run -Werror $(LINT_ALL)

# The analyzer stays inside one function: it can't know that an err from elsewhere is not NULL, and would
# follow failed calls past TRY into code that runs only when they succeeded.
ANALYZER := -Xclang -analyzer-config -Xclang ipa=none

build/lint/%.tidy: %.c .clang-tidy
	@mkdir -p $(@D)
	@echo "  tidy  $<"
	$(Q)clang-tidy --quiet $< -- $(LINT_FLAGS) $(ANALYZER) 2>build/lint/$*.log \
		|| { cat build/lint/$*.log; exit 1; }
	@$(CC) $(LINT_FLAGS) -MM -MP -MT $@ -MF build/lint/$*.d $<
	@touch $@

lint-tidy: $(LINT_SOURCES:%.c=build/lint/%.tidy)
-include $(LINT_SOURCES:%.c=build/lint/%.d)

lint-cppcheck:
	@mkdir -p build/lint/cppcheck
	cppcheck --quiet --std=c11 --enable=warning,performance,portability --inline-suppr --error-exitcode=1 \
		--suppressions-list=tests/check/cppcheck.txt --cppcheck-build-dir=build/lint/cppcheck -j $(JOBS) \
		-D_GNU_SOURCE $(VERSION_FLAGS) -I. $(LINT_SOURCES)

format:
	clang-format -i $(LINT_ALL)

arch:
	@tests/check/arch.py

# ---- for this machine alone: built once to be watched, then again with what was seen
build/native-train/trained: build/native-train/varve tests/bench/train.py
	@echo "  train $<"
	@find build/native-train -name '*.gcda' -delete
	$(Q)tests/bench/train.py $<
	@rm -rf build/native && mkdir -p build/native # gcc looks for an object's profile beside it
	@cd build/native-train && find obj -name '*.gcda' | tar -c -T - | tar -x -C ../native
	@touch $@

native: deps
	@$(MAKE) --no-print-directory -j$(JOBS) build/native-train/trained
	@$(MAKE) --no-print-directory -j$(JOBS) build/native/varve

# ---- what is shipped (deploy/README.md)
image: build/page/assets.c
	@deploy/image/build $(VERSION) $(REVISION)

deb: static
	@deploy/deb/build $(ARCH) $(VERSION) $(REVISION)

clean:
	rm -rf build

# ---- the naive evaluator of tests/oracle against the engine, on random data and random queries
ORACLE_SOURCES := $(wildcard tests/oracle/*.c)
define oracle
build/$(1)/tests/query/test_oracle: build/$(1)/obj/tests/unit/query/test_oracle.o \
		$(ORACLE_SOURCES:%.c=build/$(1)/obj/%.o) build/$(1)/libvarve.a
	@mkdir -p $$(@D)
	$$(CC) $$(CFLAGS_ALL) $$(CFLAGS_$(1)) -o $$@ $$^ -lcmocka $$(LIBS_$(1))
endef
$(foreach f,rel asan,$(eval $(call oracle,$(f))))

# One seed is one run, the same every time; goes on until a difference shows.
.PHONY: fuzz-promql
fuzz-promql: build/rel/tests/query/test_oracle
	VARVE_SEED=$(SEED) VARVE_FOREVER=1 $<
