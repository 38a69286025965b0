# pipectl needs Go and gcc. What else it needs is libjpeg-turbo's headers: `make deps` installs them, and without them
# pipectl is built with Go's own JPEG decoder. The tests need g++ and PyTorch too, and install them.
.DEFAULT_GOAL := build
SHELL := /bin/sh
comma := ,

GO      ?= go
BIN     := bin/pipectl
# The build tags of a build: purejpeg where libjpeg's header can't be found, and what TAGS adds (openblas).
JPEG     = $(shell echo 'int x;' | $(CC) -include stdio.h -include jpeglib.h -fsyntax-only -x c - 2>/dev/null || echo purejpeg)
TAGGED   = -tags '$(strip $(JPEG) $(CUDA) $(TAGS))'
BUILD    = $(GO) build -trimpath -buildvcs=auto $(TAGGED)
# CUDA is in every build for a processor that gpu/cuda/driver knows, driver or no driver; NO_CUDA=1 leaves it out. To Go's own
# flags for cgo come our cuda.h and what lets the binary start without the libraries: a libcuda.so.1 of the machine isn't linked,
# and go-nvml's functions are looked up when they are called, though some distributions' gcc would have it at the start.
CUDA     = $(if $(NO_CUDA),,$(if $(filter linux/amd64 linux/arm64,$(shell $(GO) env GOOS)/$(shell $(GO) env GOARCH)),cuda))
export CGO_CFLAGS  := $(or $(CGO_CFLAGS),-O2 -g) $(if $(CUDA),-I$(CURDIR)/gpu/cuda/driver/include -Wno-deprecated-declarations)
export CGO_LDFLAGS := $(or $(CGO_LDFLAGS),-O2 -g) $(if $(CUDA),-Wl$(comma)--as-needed$(comma)-z$(comma)lazy)
EMULATOR = bin/emulator/libcuda.so.1
# The race detector needs one of the platforms it knows.
RACE     = $(if $(filter linux/amd64 linux/arm64 darwin/amd64 darwin/arm64,$(shell $(GO) env GOOS)/$(shell $(GO) env GOARCH)),-race)
TEST     = $(GO) test $(TAGGED)
PACKAGES = ./...

help: ## print this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-14s %s\n", $$1, $$2}'

deps: ## install libjpeg-turbo's headers where they are missing, as root or through sudo
	@tools/deps

deps-python: ## install PyTorch and torchvision where no python3 has them, as root or through sudo
	@tools/deps python >/dev/null

build: deps ## build bin/pipectl
	$(BUILD) -o $(BIN) ./cmd/pipectl

demo: build ## bisect a real image pipeline on the bundled photos: set-up and all, about a minute
	$(BIN) run examples/photos -e photos

test: deps-python tests ## run all tests, with the race detector where it can

test-core: override TAGS += core
test-core: tests ## run the tests that need no PyTorch

tests: deps test-cuda
	$(TEST) $(RACE) -timeout 12m $(PACKAGES)
	$(if $(RACE),$(TEST) -run 'TestLearnsFashion|TestNoAllocation|TestFaults' ./gpu/cpu ./engine ./results) # what the race detector is too slow for

emulator: $(EMULATOR) ## build an emulated CUDA driver for tests, with g++ alone

$(EMULATOR): gpu/cuda/emulator/build $(wildcard $(addprefix gpu/cuda/,emulator/*.h emulator/*.cpp emulator/testdata/*.cu kernels/*.h kernels/*.cu driver/include/*.h))
	@tools/deps $(CXX)
	gpu/cuda/emulator/build $@

test-cuda: $(if $(CUDA),$(EMULATOR)) ## run the tests of CUDA on the emulated driver
	$(if $(CUDA),PIPECTL_LIBCUDA=$(CURDIR)/$(EMULATOR) PIPECTL_REQUIRE_CUDA=1 $(TEST) $(RACE) ./gpu/cuda/... ./gpu/devices ./gpu/nvml)
	$(if $(CUDA),PIPECTL_LIBCUDA=$(CURDIR)/$(EMULATOR) PIPECTL_REQUIRE_CUDA=1 $(TEST) $(RACE) -run CUDA ./engine)

ptx: ## compile the GPU's kernels anew, with clang
	@tools/deps clang-14
	gpu/cuda/kernels/build

gpu-check: ## pack bin/gpu-check.tar: checks and measures the GPU of a machine without Go, by the script run in it
	rm -rf bin/gpu-check && mkdir -p bin/gpu-check
	$(GO) build -trimpath -tags 'purejpeg cuda' -o bin/gpu-check/ ./gpu/cuda/check ./cmd/pipectl
	cp gpu/cuda/check/run bin/gpu-check/ && cp -r examples/photos bin/gpu-check/ && rm -rf bin/gpu-check/photos/.pipectl
	tar -C bin -cf bin/gpu-check.tar gpu-check

check-cuda-h: ## compare our cuda.h with a toolkit's: CUDA_H=FILE
	gpu/cuda/driver/compare $(CUDA_H)

check: deps ## check format, vet, staticcheck and generated files
	@unformatted=$$(gofmt -l $$(git ls-files '*.go' 2>/dev/null || find . -name '*.go')); \
	  if [ -n "$$unformatted" ]; then echo "gofmt would change: $$unformatted"; echo "Run make fmt."; exit 1; fi
	$(GO) vet $(TAGGED) $(PACKAGES)
	$(GO) tool staticcheck -tags '$(subst $() $(),$(comma),$(strip $(JPEG) $(CUDA) $(TAGS)))' $(PACKAGES)
	$(GO) run $(TAGGED) ./internal/docgen -check
	$(GO) mod tidy -diff
	$(GO) run $(TAGGED) ./cmd/pipectl fmt --check examples

fmt: ## format the Go files and the examples
	gofmt -w $$(git ls-files '*.go')
	$(GO) run $(TAGGED) ./cmd/pipectl fmt examples

docs: ## write docs/language.md and docs/stages.md anew from the specs
	$(GO) run $(TAGGED) ./internal/docgen

golden: ## write the tests' expected outputs anew: read the diff before you commit it
	$(TEST) ./hcl/config ./internal/cli -update

bench: deps ## run all benchmarks
	$(TEST) -run '^$$' -bench . -benchtime 0.5s $(PACKAGES)

bench-peers: deps deps-python ## compare with PyTorch's DataLoader and with the limit of the machine, on images made of Debian's: 20 minutes
	python=$$(tools/deps python) && $$python bench/peers/make_dataset.py bin/peers
	$(CC) -O3 -mavx2 -mfma -o bin/peers/limit bench/peers/limit/limit.c -ljpeg -lm -lpthread
	$(GO) run $(TAGGED) ./bench/peers -python "$$(tools/deps python)" bin/peers/images
	$(GO) run $(TAGGED) ./bench/peers -python "$$(tools/deps python)" -modes pil,draft -batches 3 bin/peers/photos

FUZZTIME = 10m
fuzz: deps ## run every fuzz target in turn, each for FUZZTIME (10m)
	@tools/fuzz $(FUZZTIME) $(TAGGED)

accuracy: build ## plant bottlenecks in 5,000 pipelines in virtual time and 200 in real time, and print how often the search is right: hours
	$(TEST) ./engine/bisect -run TestAccuracy -accuracy 5000 -v -timeout 60m
	$(GO) run ./tools/accuracy -n 200 $(BIN)

examples: build ## run every example, in turn
	@tools/examples

clean: ## remove what was built
	rm -rf bin

.PHONY: help accuracy deps deps-python build demo test test-core tests emulator test-cuda ptx gpu-check check-cuda-h check fmt docs golden bench fuzz examples bench-peers clean
