package examples_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// workflow is what these tests read of a GitHub Actions workflow.
type workflow struct {
	Name        string
	On          map[string]any
	Permissions map[string]string
	Env         map[string]string
	Jobs        map[string]struct {
		RunsOn string `yaml:"runs-on"`
		Steps  []step
	}
}

type step struct {
	Name, If, Uses, Run string
	With                map[string]string
}

// TestCIWorkflow checks the workflow, and runs its own commands as a push to main and two pull requests would, one of which makes
// the pipeline slower. What lies between them, the actions of others, is done here by leaving main.db where it is.
func TestCIWorkflow(t *testing.T) {
	text, err := os.ReadFile("ci/pipectl.yml")
	if err != nil {
		t.Fatal(err)
	}
	var w workflow
	d := yaml.NewDecoder(bytes.NewReader(text))
	d.KnownFields(true)
	if err := d.Decode(&w); err != nil {
		t.Fatal(err)
	}
	steps := w.Jobs["throughput"].Steps
	pinned := regexp.MustCompile(`^[a-z-]+/[a-z/-]+@v\d+$`)
	for i, s := range steps {
		if (s.Uses == "") == (s.Run == "") {
			t.Errorf("step %d, %s: want an action or a command", i, s.Name)
		}
		if s.Uses != "" && !pinned.MatchString(s.Uses) {
			t.Errorf("%s is no action of some version", s.Uses)
		}
	}

	dir := t.TempDir()
	bin := filepath.Dir(build(t, "../cmd/pipectl"))
	pipeline, err := os.ReadFile("ci/pipeline.hcl")
	if err != nil {
		t.Fatal(err)
	}
	write := func(text string) {
		t.Helper()
		path := filepath.Join(dir, filepath.FromSlash(w.Env["PIPELINE"]), "pipeline.hcl")
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	// job runs the commands of the steps that an event has, and returns the error of the first that fails.
	job := func(event string) error {
		t.Helper()
		for _, s := range steps {
			if s.Run == "" || s.Name == "Install pipectl" || strings.Contains(s.If, "event_name") && !strings.Contains(s.If, "'"+event+"'") {
				continue
			}
			cmd := exec.Command("bash", "-e", "-c", s.Run)
			cmd.Dir = dir
			cmd.Env = append(os.Environ(), "PATH="+bin+string(os.PathListSeparator)+os.Getenv("PATH"), "GITHUB_STEP_SUMMARY=summary.md", "PIPECTL_DB=")
			for k, v := range w.Env {
				cmd.Env = append(cmd.Env, k+"="+v)
			}
			cmd.Env = append(cmd.Env, "RUNS=4")
			if out, err := cmd.CombinedOutput(); err != nil {
				return fmt.Errorf("%s: %w\n%s", s.Name, err, out)
			}
		}
		return nil
	}
	write(string(pipeline))
	if err := job("push"); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "main.db")); err != nil {
		t.Fatalf("the push leaves no baseline: %v", err)
	}

	slower := strings.Replace(string(pipeline), `time = "2ms"`, `time = "8ms"`, 1)
	if slower == string(pipeline) {
		t.Fatal("the pipeline has no time to change")
	}
	write(slower)
	err = job("pull_request")
	if err == nil || !strings.Contains(err.Error(), "Compare: exit status 4\nError: new.db is slower than main.db by more than the 5.0 % allowed: B is ") {
		t.Fatalf("a pull request that makes the pipeline slower: %v", err)
	}
	summary, err := os.ReadFile(filepath.Join(dir, "summary.md"))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.HasPrefix(summary, []byte("**Result:** B is ")) || !bytes.Contains(summary, []byte(`- prepare.fetch.time: "2ms" → "8ms"`)) {
		t.Errorf("the summary is\n%s", summary)
	}

	write(strings.Replace(string(pipeline), `time = "2ms"`, `time = "200us"`, 1))
	if err := os.Remove(filepath.Join(dir, "new.db")); err != nil {
		t.Fatal(err)
	}
	if err := job("pull_request"); err != nil {
		t.Errorf("a pull request that makes the pipeline faster: %v", err)
	}
}
