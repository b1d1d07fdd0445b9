# Rules of the static flavours (static-amd64, static-arm64); included by the Makefile. See README.md here.

HOST_ARCH := $(patsubst x86_64,amd64,$(patsubst aarch64,arm64,$(shell uname -m)))
ARCH ?= $(HOST_ARCH)
STATIC_ARCHES := amd64 arm64

# Sources, compilers and libraries; another folder may be named, to share one between working trees.
MUSL ?= build/musl
MUSL_LIBRARIES := zstd roaring pcre2 http_parser uv z jemalloc xxhash
MUSL_VERSION := $(shell awk '$$1 == "musl-amd64" { print $$3 }' deploy/musl/sources.txt)

$(MUSL)/sources.done: deploy/musl/sources.txt deploy/musl/fetch
	@mkdir -p $(@D)
	$(Q)deploy/musl/fetch $(MUSL)/sources
	@touch $@

# ARCH: the compiler, the libraries, and what they mean for the flavour static-ARCH
define static_arch
$(MUSL)/$(1)/toolchain.done: $(MUSL)/sources.done $(addprefix deploy/musl/,toolchain cc musl.specs relro.c)
	@mkdir -p $$(@D)
	@echo "  musl  the compiler  ($(1))"
	$$(Q)deploy/musl/toolchain $(1) $(MUSL)/sources $(MUSL)/$(1)
	@touch $$@

$(MUSL)/$(1)/%.done: deploy/musl/recipes/%.sh deploy/musl/library $(MUSL)/$(1)/toolchain.done
	@echo "  musl  $$*  ($(1))"
	$$(Q)JOBS=1 deploy/musl/library $$* $(1) $(MUSL)/sources $(MUSL)/$(1)
	@touch $$@

CC_static-$(1) := $(filter %ccache ccache,$(CC)) $(MUSL)/$(1)/bin/cc
CFLAGS_static-$(1) := -DVARVE_LIBC='"musl $(MUSL_VERSION)"' -O2 -fPIE -fstack-protector-strong -ffunction-sections -fdata-sections \
	-ffile-prefix-map=$(abspath $(MUSL))=musl -isystem $(abspath $(MUSL))/$(1)/include
AR_static-$(1) := $(MUSL)/$(1)/bin/ar
LIBS_static-$(1) := -L$(MUSL)/$(1)/lib -Wl,--gc-sections -ljemalloc $(filter -l%,$(LIBS_COMMON))
NEEDS_static-$(1) := $(MUSL_LIBRARIES:%=$(MUSL)/$(1)/%.done)
NEEDS_TEST_static-$(1) := $(MUSL)/$(1)/cmocka.done

# The program is shipped without its symbols; those lie beside it for debuggers.
FINISH_static-$(1) = && cd $$(@D) && $(abspath $(MUSL))/$(1)/bin/objcopy --only-keep-debug varve varve.debug && \
	$(abspath $(MUSL))/$(1)/bin/strip varve && \
	$(abspath $(MUSL))/$(1)/bin/objcopy --add-gnu-debuglink=varve.debug varve
endef
$(foreach arch,$(STATIC_ARCHES),$(eval $(call static_arch,$(arch))))

.PHONY: static static-libraries deps-static
deps-static:
	@deploy/install-deps --static

static: deps-static
	@$(MAKE) --no-print-directory -j$(JOBS) build/static-$(ARCH)/varve

# The libraries alone: a container image caches them as a layer of their own. This file alone is enough for that
# (make -f), so that the layer does not change with the Makefile.
static-libraries: deps-static
	@$(MAKE) --no-print-directory -f deploy/musl/rules.mk -j$(or $(JOBS),$(shell nproc)) Q=$(Q) $(NEEDS_static-$(ARCH))

# Unit tests of the architecture that is not the host's, run under qemu-user by tests/static: all that computes.
# Left out: *_tsan (they look for races, which an emulator orders), the long random histories (sim, bitflip,
# oracle), and of the server what is sockets and files: tests/static runs the whole server instead.
FOREIGN_ARCH := $(filter-out $(HOST_ARCH),$(STATIC_ARCHES))
FOREIGN_TESTS := $(filter-out %_tsan storage/test_sim storage/test_bitflip query/test_oracle, \
	$(filter base/% ingest/% storage/% query/% $(addprefix server/test_,config http params answer),$(TESTS)))
STATIC_TEST_BINARIES := $(STATIC_ARCHES:%=build/static-%/varve) $(FOREIGN_TESTS:%=build/static-$(FOREIGN_ARCH)/tests/%)
