# Everything a developer and CI run. `make run` needs only Go; the checks install their pinned tools into .bin.
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := build

BIN   := $(CURDIR)/.bin
CACHE := $(CURDIR)/.cache
# The product is always built without C, without the builder's paths, and without gRPC's trace pages, which nobody sees and
# which cost a megabyte of memory in each process.
BUILD := CGO_ENABLED=0 go build -trimpath -buildvcs=auto -tags grpcnotrace
TOOL  := cd buildtools && go run

BUF    := v1.75.0
GENGO  := v1.36.12
GENRPC := v1.6.2
STATIC := v0.8.2
FUMPT  := v0.12.0
CODEX  := 0.171.0

PLUGINS := $(patsubst plugins/%/main.go,%,$(wildcard plugins/*/main.go))
GOFILES := $(shell find . -name '*.go' -not -path './.cache/*' -not -name '*.pb.go' -not -name '*.gen.go')

.PHONY: run product build test check e2e rules mutants bench proto codex tools lint generated cross clean

# At a terminal the host gets a process group of its own, so that Ctrl-C is for the host alone and make ends with its status.
run: product
	@if [ -t 0 ] && [ -t 1 ]; then set -m; fi; bin/openphone up $(ARGS) || exit

build: product
	@$(BUILD) -o bin/ ./cmd/...

# The pins say which plugin executables belong to this build; the host starts no other without being told to.
product:
	@mkdir -p bin
	@$(BUILD) -o bin/ ./cmd/openphone
	@for p in $(PLUGINS); do $(BUILD) -o bin/openphone-runtime-$$p$$(go env GOEXE) ./plugins/$$p; done
	@cd buildtools && CGO_ENABLED=0 go run -trimpath ./pins -dir ../bin # with the flags above, so that nothing is compiled twice

# -short is never used: nothing is skipped (TEST-04).
test: export OPENPHONE_TEST_CODEX := $(CACHE)/codex/node_modules/.bin/codex
test: build codex
	go test -race -tags integration -timeout 10m ./...
	cd buildtools && go test -timeout 5m ./...

check: tools lint generated cross

lint:
	@bad=$$($(BIN)/gofumpt -l $(GOFILES)); [ -z "$$bad" ] || { echo "run .bin/gofumpt -w on:"; echo "$$bad"; exit 1; }
	go vet -tags integration ./...
	cd buildtools && go vet ./...
	$(BIN)/staticcheck -tags integration ./...
	cd buildtools && $(BIN)/staticcheck ./...
	$(BIN)/buf lint
	$(BIN)/buf format --diff --exit-code
	@tag=$$(git describe --tags --abbrev=0 2>/dev/null || true); [ -z "$$tag" ] || $(BIN)/buf breaking --against ".git#tag=$$tag"
	$(TOOL) ./check -root ..
	@rm -rf $(CACHE)/released && mkdir -p $(CACHE)/released
	@tag=$$(git describe --tags --abbrev=0 2>/dev/null || true); [ -z "$$tag" ] || for f in protocol/openphone-*.json; do \
	  ! git cat-file -e "$$tag:$$f" 2>/dev/null || git show "$$tag:$$f" > "$(CACHE)/released/$${f#protocol/}"; done
	$(TOOL) ./manifests -root .. -against $(CACHE)/released

# Generated code is committed; a stale file fails here.
generated:
	@rm -rf $(CACHE)/generated && mkdir -p $(CACHE)/generated
	@PATH=$(BIN):$$PATH $(BIN)/buf generate -o $(CACHE)/generated
	@cd $(CACHE)/generated && find . -type f | while read -r f; do \
	  cmp -s "$$f" "$(CURDIR)/$$f" || { echo "$$f is stale: run make proto"; exit 1; }; done
	@for f in $$(git ls-files 'proto/*.pb.go' 'sdk/*/*.gen.go'); do \
	  [ -f "$(CACHE)/generated/$$f" ] || { echo "$$f is generated from nothing: delete it"; exit 1; }; done
	$(TOOL) ./codegen -root .. -check

cross:
	CGO_ENABLED=0 GOOS=windows GOARCH=amd64 go build -o $(CACHE)/cross/windows/ ./cmd/... 
	CGO_ENABLED=0 GOOS=windows GOARCH=amd64 go vet ./...
	CGO_ENABLED=0 GOOS=darwin GOARCH=arm64 go build -o $(CACHE)/cross/darwin/ ./cmd/...
	CGO_ENABLED=0 GOOS=darwin GOARCH=arm64 go vet ./...

e2e: build codex
	$(TOOL) ./e2e -root ..

rules:
	@$(TOOL) ./rulecheck -root .. $(ARGS)

mutants:
	@$(TOOL) ./mutants -root .. $(ARGS)

# It builds what it measures; leave the computer alone meanwhile.
bench:
	@$(TOOL) ./bench -root .. $(ARGS)

proto: tools
	PATH=$(BIN):$$PATH $(BIN)/buf generate
	$(TOOL) ./codegen -root ..

# The real Codex, for integration tests and e2e; the path is $(CACHE)/codex/node_modules/.bin/codex.
codex: $(CACHE)/codex/.$(CODEX)
$(CACHE)/codex/.$(CODEX):
	@mkdir -p $(@D)
	npm install --ignore-scripts --silent --no-audit --no-fund --no-save --prefix $(@D) @openai/codex@$(CODEX)
	@$(@D)/node_modules/.bin/codex --version
	@touch $@

tools: $(BIN)/.buf-$(BUF) $(BIN)/.gengo-$(GENGO) $(BIN)/.genrpc-$(GENRPC) $(BIN)/.static-$(STATIC) $(BIN)/.fumpt-$(FUMPT)
	@cd buildtools && go build -o $(BIN)/protoc-gen-sdk ./protoc-gen-sdk
$(BIN)/.buf-$(BUF):       MODULE := github.com/bufbuild/buf/cmd/buf@$(BUF)
$(BIN)/.gengo-$(GENGO):   MODULE := google.golang.org/protobuf/cmd/protoc-gen-go@$(GENGO)
$(BIN)/.genrpc-$(GENRPC): MODULE := google.golang.org/grpc/cmd/protoc-gen-go-grpc@$(GENRPC)
$(BIN)/.static-$(STATIC): MODULE := honnef.co/go/tools/cmd/staticcheck@$(STATIC)
$(BIN)/.fumpt-$(FUMPT):   MODULE := mvdan.cc/gofumpt@$(FUMPT)
$(BIN)/.%:
	@mkdir -p $(BIN)
	GOBIN=$(BIN) go install $(MODULE)
	@touch $@

clean:
	rm -rf bin .bin .cache
