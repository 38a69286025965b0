package examples_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestStorage keeps the photos at each place, then destroys them so that the program can't notice: what it trains on then is what it kept.
func TestStorage(t *testing.T) {
	bin := build(t, "../cmd/pipectl")
	checkTable(t, bin)
	for _, c := range []struct {
		keep, compress string
		bytes          int64
	}{
		{"read", "none", 1479627},
		{"decoded", "none", 5763600 * 3}, // pixels of all photos
		{"cropped", "none", 48 * 224 * 224 * 3},
		{"cropped", "zstd", 48 * 224 * 224 * 3},
		{"floats", "none", 48 * 224 * 224 * 3 * 4},
	} {
		t.Run(c.keep+" "+c.compress, func(t *testing.T) {
			dir := t.TempDir()
			photos, file := filepath.Join(dir, "photos"), filepath.Join(dir, "storage.hcl")
			content, err := os.ReadFile("storage/storage.hcl")
			if err := errors.Join(err, os.WriteFile(file, content, 0o666), os.CopyFS(photos, os.DirFS("photos/photos"))); err != nil {
				t.Fatal(err)
			}
			train := func(keep string) error {
				out, err := exec.Command(bin, "run", "-q", "--epochs", "1", "--var", "keep="+keep, "--var", "compress="+c.compress, "--var", "photos="+photos,
					file).CombinedOutput()
				if err != nil {
					return fmt.Errorf("%w\n%s", err, out)
				}
				return nil
			}
			if err := train(c.keep); err != nil {
				t.Fatal(err)
			}
			checkStored(t, bin, dir, c.bytes, c.compress != "none")
			destroy(t, photos)
			if err := train(c.keep); err != nil {
				t.Errorf("what is kept isn't served: %v", err)
			}
			if train("nothing") == nil {
				t.Error("photos that are destroyed can be decoded")
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
