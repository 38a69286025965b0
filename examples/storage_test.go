package examples_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestStorage keeps the photos at each place. What is kept is served without the stages above it, until the photos change, even if their sizes and
// times of change don't.
func TestStorage(t *testing.T) {
	bin := build(t, "../cmd/pipectl")
	checkTable(t, bin)
	for _, c := range []struct {
		keep, compress string
		bytes          int64
		above          string // a stage
	}{
		{"read", "none", 1479627, ""},
		{"decoded", "none", 5763600 * 3, "prepare.decode"}, // pixels of all photos
		{"cropped", "none", 48 * 224 * 224 * 3, "prepare.crop"},
		{"cropped", "zstd", 48 * 224 * 224 * 3, "prepare.crop"},
		{"floats", "none", 48 * 224 * 224 * 3 * 4, "prepare.normalize"},
	} {
		t.Run(c.keep+" "+c.compress, func(t *testing.T) {
			dir := t.TempDir()
			photos, file := filepath.Join(dir, "photos"), filepath.Join(dir, "storage.hcl")
			content, err := os.ReadFile("storage/storage.hcl")
			content = bytes.Replace(content, []byte("  train "), []byte("  bisect {\n    warmup = 1\n    steps  = 2\n  }\n  train "), 1)
			if err := errors.Join(err, os.WriteFile(file, content, 0o666), os.CopyFS(photos, os.DirFS("photos/photos"))); err != nil {
				t.Fatal(err)
			}
			run := func(args ...string) (string, error) {
				args = append([]string{"run", "-q", "--var", "keep=" + c.keep, "--var", "compress=" + c.compress, "--var", "photos=" + photos}, args...)
				out, err := exec.Command(bin, append(args, file)...).CombinedOutput()
				return string(out), err
			}
			if out, err := run("--epochs", "1"); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			checkStored(t, bin, dir, c.bytes, c.compress != "none")
			idle := regexp.MustCompile(`"address":"` + c.above + `","workers":\d+,"items":0,`)
			if out, err := run("--probe", "baseline", "--json"); err != nil || c.above != "" && !idle.MatchString(out) {
				t.Errorf("what is kept isn't served: %v\n%s", err, out)
			}
			destroy(t, photos)
			if out, err := run("--epochs", "1"); err == nil || !strings.Contains(out, "not a JPEG file") {
				t.Errorf("what is kept of other photos is served: %v\n%s", err, out)
			}
		})
	}
}

// checkStored checks that there is one cache, of all photos, with so many bytes of samples, in a file that is larger by its index, or
// smaller.
func checkStored(t *testing.T, bin, dir string, want int64, compressed bool) {
	t.Helper()
	out, err := exec.Command(bin, "cache", "ls", "--json", "--path", dir).Output()
	if err != nil {
		t.Fatal(err)
	}
	var list struct {
		Caches []struct {
			State string
			Items int
			Bytes int64
			File  int64 `json:"file_bytes"`
		}
	}
	if err := json.Unmarshal(out, &list); err != nil {
		t.Fatal(err)
	}
	if len(list.Caches) != 1 {
		t.Fatalf("%d caches: %s", len(list.Caches), out)
	}
	c := list.Caches[0]
	if c.State != "whole" || c.Items != 48 || c.Bytes != want {
		t.Errorf("kept %+v, want %d bytes of 48 photos", c, want)
	}
	if index := c.File - c.Bytes; (index < 0) != compressed || index > 10<<10 {
		t.Errorf("a file of %d bytes for %d bytes", c.File, c.Bytes)
	}
}

// destroy makes all files in a folder unreadable as photos, with their sizes and times of change as before.
func destroy(t *testing.T, dir string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*", "*.jpg"))
	if err != nil || len(files) != 48 {
		t.Fatalf("%d photos, %v", len(files), err)
	}
	for _, path := range files {
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, make([]byte, info.Size()), 0o666); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, info.ModTime(), info.ModTime()); err != nil {
			t.Fatal(err)
		}
	}
}

// checkTable runs the program that measures all places, as shortly as it can.
func checkTable(t *testing.T, bin string) {
	t.Helper()
	out, err := exec.Command(build(t, "./storage"), "-pipectl", bin, "-photos", "photos/photos", "-copies", "1", "-rounds", "1").Output()
	if err != nil {
		t.Fatal(err)
	}
	missing := map[string]string{"nothing": "0 B", "read": "MiB", "decoded": "16.5 MiB", "decoded, zstd": "MiB", "cropped": "6.89 MiB", "cropped, zstd": "MiB",
		"floats": "27.6 MiB", "floats, zstd": "MiB"}
	for line := range strings.Lines(string(out)) {
		place, _, _ := strings.Cut(line, "  ")
		if size, ok := missing[place]; ok && strings.Contains(line, size) {
			delete(missing, place)
		}
	}
	if len(missing) > 0 {
		t.Errorf("rows %v are missing in\n%s", missing, out)
	}
}
