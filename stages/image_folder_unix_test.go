//go:build unix

package stages

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// TestImageFolderPipe puts a pipe and a link to it among the images: both are left out, since to read one would wait for a
// writer.
func TestImageFolderPipe(t *testing.T) {
	root := t.TempDir()
	class := filepath.Join(root, "a")
	if err := os.Mkdir(class, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(class, "image.jpg"), []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(filepath.Join(class, "pipe.jpg"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("pipe.jpg", filepath.Join(class, "link.jpg")); err != nil {
		t.Fatal(err)
	}
	src := openSource(t, &ImageFolder{Path: Path(root)}, 1)
	if src.Len() != 1 || src.Name(0) != filepath.Join(class, "image.jpg") {
		t.Errorf("%d items, the first %s, want image.jpg alone", src.Len(), src.Name(0))
	}
}

// TestIDXPipe gives a pipe for the files.
func TestIDXPipe(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	s := &IDX{Images: Path(pipe), Labels: Path(pipe)}
	if got := s.Validate(); len(got) != 2 {
		t.Errorf("Validate() = %v, want a problem for each file", got)
	}
	if _, err := s.Open(t.Context(), 1); err == nil {
		t.Error("a pipe was opened")
	}
}
