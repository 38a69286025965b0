package pipectl

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/pipectl/pipectl/stages"
)

// Main lists the operators that it is given beside those built in.
func TestMainOperators(t *testing.T) {
	out, err := os.Create(filepath.Join(t.TempDir(), "out"))
	if err != nil {
		t.Fatal(err)
	}
	args, stdout := os.Args, os.Stdout
	defer func() { os.Args, os.Stdout = args, stdout }()
	os.Args, os.Stdout = []string{"pipectl", "stages"}, out
	code := Main(stages.Operator{Block: stages.Prepare, Type: "mine", Summary: "Does my work.", New: func() any { return new(struct{}) }})
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(out.Name())
	if err != nil {
		t.Fatal(err)
	}
	if code != 0 || !regexp.MustCompile(`(?m)^prepare  mine +Does my work\.$`).Match(text) || !strings.Contains(string(text), "decode_jpeg") {
		t.Errorf("exit code %d with\n%s", code, text)
	}
}
