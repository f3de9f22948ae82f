# Builds the image with a container engine. "make image" builds the same without one, reproducibly and for two platforms, and is
# what releases are made with.
#
#   docker build --build-arg VERSION="$(hack/version.sh)" -t batch-scheduler .
FROM --platform=$BUILDPLATFORM golang:1.26 AS build
ARG TARGETARCH
ARG VERSION
WORKDIR /src
COPY . .
RUN --mount=type=cache,target=/go/pkg/mod --mount=type=cache,target=/root/.cache/go-build \
	RELEASE=1 VERSION=$VERSION GOOS=linux GOARCH=$TARGETARCH hack/build.sh -o /out/batch-scheduler ./cmd/batch-scheduler
RUN mkdir /out/etc && echo 'nonroot:x:65532:65532:nonroot:/:/sbin/nologin' >/out/etc/passwd

FROM scratch
COPY --from=build /out/ /
USER 65532:65532
WORKDIR /
ENTRYPOINT ["/batch-scheduler"]
