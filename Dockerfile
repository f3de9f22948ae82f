FROM golang:1.26 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
RUN CGO_ENABLED=0 go build -trimpath -ldflags=-s -o /batch-scheduler ./cmd/batch-scheduler

FROM gcr.io/distroless/static:nonroot
COPY --from=build /batch-scheduler /batch-scheduler
ENTRYPOINT ["/batch-scheduler"]
