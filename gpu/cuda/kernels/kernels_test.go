package kernels

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The PTX that ships was made of the sources beside it.
func TestCompiled(t *testing.T) {
	sources, err := filepath.Glob("*.cu")
	if err != nil || len(sources) == 0 {
		t.Fatalf("sources %v, %v", sources, err)
	}
	headers, err := filepath.Glob("*.h")
	if err != nil {
		t.Fatal(err)
	}
	for _, source := range sources {
		sum := sha256.New()
		for _, file := range append(append([]string{source}, headers...), "build") {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			sum.Write(text)
		}
		file := strings.TrimSuffix(source, ".cu") + ".ptx"
		ptx, err := os.ReadFile(file)
		if err != nil {
			t.Errorf("%v: run make ptx", err)
			continue
		}
		want := fmt.Sprintf("// Made by the script build of sources with the SHA-256 %x.", sum.Sum(nil))
		if got, _, _ := strings.Cut(string(ptx), "\n"); got != want {
			t.Errorf("%s is not made of %s, the headers and build as they are: run make ptx\n got %s\nwant %s", file, source, got, want)
		}
	}
	compiled, err := filepath.Glob("*.ptx")
	if err != nil || len(compiled) != len(sources) {
		t.Errorf("there are %d .ptx files for %d .cu files: %v", len(compiled), len(sources), compiled)
	}
	if embedded := append(Modules(), TF32); len(embedded) != len(sources) {
		t.Errorf("%d modules are embedded, and there are %d .cu files", len(embedded), len(sources))
	}
}
