# Varve's images, for linux/amd64 and linux/arm64 (BuildKit or buildah):
#
#   docker build -t varve .                      the static program alone, from scratch
#   docker build -t varve:debian --target debian .   linked to Debian's shared libraries, with a shell
#
# The first is cross-built on the builder's own platform, the second in an image of the target's.
# make image builds the first for both platforms and joins them to one OCI image (deploy/README.md).

# The built-in page (server/page) is made by npm's packages: here, or, where npm's registry can't be reached from a build,
# before it (--build-arg PAGE=context takes build/page/assets.c, which make leaves; make image does that).
ARG PAGE=built

FROM scratch AS page-context
COPY build/page/assets.c /

FROM --platform=$BUILDPLATFORM debian:bookworm-slim AS page-built
WORKDIR /src
RUN apt-get -qq update && apt-get install -qq -y --no-install-recommends ca-certificates make nodejs npm
COPY . .
RUN make build/page/assets.c REVISION=unknown && cp build/page/assets.c /

FROM page-${PAGE} AS page

# ---- build: the musl flavour, for the target, on the builder's platform
FROM --platform=$BUILDPLATFORM debian:bookworm-slim AS build
SHELL ["/bin/bash", "-euo", "pipefail", "-c"]
WORKDIR /src
ENV VARVE_PAGE_READY=1
COPY deploy/install-deps deploy/
RUN deploy/install-deps --static && apt-get install -qq -y --no-install-recommends ca-certificates
# What changes least comes first: sources and libraries stay in the cache while only our own code changes.
COPY deploy/musl deploy/musl
RUN make -f deploy/musl/rules.mk Q=@ build/musl/sources.done
ARG TARGETARCH
RUN make -f deploy/musl/rules.mk Q=@ static-libraries ARCH=$TARGETARCH
COPY . .
COPY --from=page /assets.c build/page/
# A layer from the cache can be older than the files just copied; what it was made of is the same.
RUN find build/musl -name '*.done' -exec touch --date=@$(date +%s) {} +
ARG REVISION=unknown
ARG SOURCE_DATE_EPOCH=1
RUN make -o build/page/assets.c -j"$(nproc)" build/static-$TARGETARCH/varve REVISION=$REVISION \
    && deploy/image/stage $TARGETARCH $REVISION /out

# ---- debian: the C-linked flavour
FROM debian:bookworm-slim AS build-debian
WORKDIR /src
ENV VARVE_PAGE_READY=1
COPY deploy/install-deps deploy/
RUN deploy/install-deps
COPY . .
COPY --from=page /assets.c build/page/
ARG REVISION=unknown
RUN make -o build/page/assets.c -j"$(nproc)" build/rel/varve REVISION=$REVISION && strip build/rel/varve

FROM debian:bookworm-slim AS debian
RUN apt-get -qq update \
    && apt-get install -qq -y --no-install-recommends ca-certificates libhttp-parser2.9 libjemalloc2 libpcre2-8-0 \
        libroaring0 libuv1 libzstd1 zlib1g \
    && rm -rf /var/lib/apt/lists/* /var/cache/apt/* \
    && mkdir -m 0770 /data && chown 65532:0 /data
COPY --from=build-debian /src/build/rel/varve /usr/bin/varve
RUN ["/usr/bin/varve", "version"]
USER 65532:65532
VOLUME /data
EXPOSE 8428
STOPSIGNAL SIGTERM
ENV VARVE_STORAGE_PATH=/data
HEALTHCHECK --interval=15s --timeout=6s --start-period=60s CMD ["/usr/bin/varve", "health"]
ENTRYPOINT ["/usr/bin/varve"]
CMD ["serve"]
LABEL org.opencontainers.image.title="Varve" \
    org.opencontainers.image.description="Single-node time-series database: PromQL, remote write" \
    org.opencontainers.image.licenses="Apache-2.0"

# ---- the image
FROM scratch
COPY --from=build /out/ /
USER 65532:65532
VOLUME /data
EXPOSE 8428
STOPSIGNAL SIGTERM
ENV VARVE_STORAGE_PATH=/data
HEALTHCHECK --interval=15s --timeout=6s --start-period=60s CMD ["/varve", "health"]
ENTRYPOINT ["/varve"]
CMD ["serve"]
ARG VERSION=unknown
ARG REVISION=unknown
LABEL org.opencontainers.image.title="Varve" \
    org.opencontainers.image.description="Single-node time-series database: PromQL, remote write" \
    org.opencontainers.image.licenses="Apache-2.0" \
    org.opencontainers.image.version=$VERSION \
    org.opencontainers.image.revision=$REVISION
