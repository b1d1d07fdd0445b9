# Varve. `make run` and `make test` are the two commands to know; README.md tells the rest.
#
# Flavours of the same sources, each in its own folder under build/:
#   rel   release: the C-linked server              asan  ASan + UBSan, slow checks: all unit tests
#   tsan  ThreadSanitizer: concurrency tests        fuzz  libFuzzer targets (clang)

.DELETE_ON_ERROR:
MAKEFLAGS += --no-builtin-rules
SHELL := /bin/bash

VERSION := $(shell sed -n 's/^## \[\([0-9.]*\)\].*/\1/p' CHANGELOG.md 2>/dev/null | head -n 1)
REVISION := $(shell git rev-parse --short=12 HEAD 2>/dev/null || echo unknown)

CC ?= gcc
WARN := -Wall -Wextra -Werror -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wvla -Wpointer-arith -Wundef
CFLAGS_ALL := -std=gnu17 -g -fno-omit-frame-pointer -pthread -D_GNU_SOURCE -I. $(WARN)
CFLAGS_rel := -O2 -fstack-protector-strong
CFLAGS_asan := -O1 -fsanitize=address,undefined -fno-sanitize-recover=all -DVARVE_SLOW_CHECKS
CFLAGS_tsan := -O1 -fsanitize=thread -DVARVE_SLOW_CHECKS
CFLAGS_fuzz := -O1 -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all -DVARVE_SLOW_CHECKS
LIBS_COMMON := -lzstd -lroaring -lpcre2-8 -lhttp_parser -luv -lz -lm -pthread
LIBS_rel := $(LIBS_COMMON) -ljemalloc
LIBS_asan := $(LIBS_COMMON)
LIBS_tsan := $(LIBS_COMMON)

ROOMS := storage/base storage ingest query server
SOURCES := $(foreach room,$(ROOMS),$(wildcard $(room)/*.c))
MAIN := server/main.c
LIBRARY_SOURCES := $(filter-out $(MAIN),$(SOURCES))
TEST_SOURCES := $(wildcard tests/unit/*/test_*.c)
TESTS := $(patsubst tests/unit/%.c,%,$(TEST_SOURCES))
SUPPORT_SOURCES := $(wildcard tests/sim/*.c)

all: build/varve

.PHONY: all deps run test clean
build/varve: build/rel/varve
	ln -sf rel/varve $@

deps:
	@deploy/install-deps

run: deps
	@$(MAKE) --no-print-directory all
	build/varve serve --storage.path=varve-data --web.listen-address=:8428

# ---- one set of rules per flavour
define flavour
build/$(1)/obj/%.o: %.c
	@mkdir -p $$(@D)
	$$(if $(filter fuzz,$(1)),clang,$$(CC)) $$(CFLAGS_ALL) $$(CFLAGS_$(1)) -DVARVE_VERSION='"$$(VERSION)"' -DVARVE_REVISION='"$$(REVISION)"' -MMD -MP -c -o $$@ $$<

build/$(1)/libvarve.a: $$(LIBRARY_SOURCES:%.c=build/$(1)/obj/%.o)
	rm -f $$@ && ar rcs $$@ $$^

build/$(1)/varve: $$(MAIN:%.c=build/$(1)/obj/%.o) build/$(1)/libvarve.a
	$$(CC) $$(CFLAGS_ALL) $$(CFLAGS_$(1)) -o $$@ $$^ $$(LIBS_$(1))

build/$(1)/tests/%: build/$(1)/obj/tests/unit/%.o $$(SUPPORT_SOURCES:%.c=build/$(1)/obj/%.o) build/$(1)/libvarve.a
	@mkdir -p $$(@D)
	$$(CC) $$(CFLAGS_ALL) $$(CFLAGS_$(1)) -o $$@ $$^ -lcmocka $$(LIBS_$(1))
endef
$(foreach f,rel asan tsan fuzz,$(eval $(call flavour,$(f))))
-include $(wildcard build/*/obj/*/*.d build/*/obj/*/*/*.d build/*/obj/*/*/*/*.d)

clean:
	rm -rf build
