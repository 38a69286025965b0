package stages

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// tree makes files below a new folder, each with its own path as its content; a path that ends in a slash is a folder,
// and "a -> b" a link from a to b.
func tree(tb testing.TB, paths ...string) string {
	tb.Helper()
	root := tb.TempDir()
	for _, p := range paths {
		name, target, link := strings.Cut(p, " -> ")
		path := filepath.Join(root, name)
		err := os.MkdirAll(filepath.Dir(path), 0o755)
		switch {
		case err != nil:
		case link:
			err = os.Symlink(target, path)
		case strings.HasSuffix(p, "/"):
			err = os.MkdirAll(path, 0o755)
		default:
			err = os.WriteFile(path, []byte(p), 0o644)
		}
		if err != nil {
			tb.Fatal(err)
		}
	}
	return root
}

// openSource opens a source that is closed at the test's end.
func openSource(tb testing.TB, spec SourceSpec, seed uint64) Source {
	tb.Helper()
	src, err := spec.Open(tb.Context(), seed)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := src.Close(); err != nil {
			tb.Error(err)
		}
	})
	return src
}

func TestImageFolder(t *testing.T) {
	root := tree(t,
		"dog/b.jpg", "dog/a.JPEG", "dog/notes.txt", "dog/.hidden.jpg", "dog/._a.jpg", "dog/.cache/x.jpg",
		"cat/a/z.png", "cat/a/deep/d.jpg", "cat/a-b/y.tiff", "cat/x.webp", "cat/a/.jpg", "cat/pictures.jpg/inner.bmp", "cat/up -> ..", "cat/up2 -> ../cat",
		"Zebra/z.ppm", "Zebra/twin -> ../dog", "Zebra/lost.pgm -> nowhere", "Zebra/also.tif -> z.ppm", "Zebra/é.Png",
		"linked -> dog", ".git/x.jpg", "top.jpg",
	)
	src := openSource(t, &ImageFolder{Path: Path(root)}, 1)
	type item struct {
		Path  string
		Label int32
	}
	var got []item
	for i := range src.Len() {
		rel, err := filepath.Rel(root, src.Name(i))
		if err != nil {
			t.Fatal(err)
		}
		out := new(Element)
		label, err := src.Read(new(Call), i, out)
		if strings.HasSuffix(rel, "lost.pgm") {
			if err == nil || err.Error() != "no such file or directory" {
				t.Errorf("a link to nowhere is read with error %v", err)
			}
		} else if err != nil || out.Type != (Type{Kind: Encoded}) || len(out.U8) == 0 {
			t.Errorf("%s: %v, %q, error %v", rel, out.Type, out.U8, err)
		}
		got = append(got, item{rel, label})
	}
	want := []item{
		{"Zebra/also.tif", 0}, {"Zebra/lost.pgm", 0}, {"Zebra/z.ppm", 0}, {"Zebra/é.Png", 0}, {"Zebra/twin/a.JPEG", 0}, {"Zebra/twin/b.jpg", 0},
		// up leads to the root, from where the other classes are below cat too; but not cat, in which it lies.
		{"cat/x.webp", 1}, {"cat/a/z.png", 1}, {"cat/a-b/y.tiff", 1}, {"cat/a/deep/d.jpg", 1}, {"cat/pictures.jpg/inner.bmp", 1}, {"cat/up/top.jpg", 1},
		{"cat/up/Zebra/also.tif", 1}, {"cat/up/Zebra/lost.pgm", 1}, {"cat/up/Zebra/z.ppm", 1}, {"cat/up/Zebra/é.Png", 1},
		{"cat/up/Zebra/twin/a.JPEG", 1}, {"cat/up/Zebra/twin/b.jpg", 1},
		{"cat/up/dog/a.JPEG", 1}, {"cat/up/dog/b.jpg", 1}, {"cat/up/linked/a.JPEG", 1}, {"cat/up/linked/b.jpg", 1},
		{"dog/a.JPEG", 2}, {"dog/b.jpg", 2},
		{"linked/a.JPEG", 3}, {"linked/b.jpg", 3},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	var files []string
	for path := range src.(FileLister).Files() {
		files = append(files, path)
	}
	if len(files) != len(want) || files[7] != src.Name(7) {
		t.Errorf("%d files, %q", len(files), files)
	}
	if names := src.(ClassNamer).ClassNames(); src.Classes() != 4 || !slices.Equal(names, []string{"Zebra", "cat", "dog", "linked"}) {
		t.Errorf("%d classes, %q", src.Classes(), names)
	}
}

func TestImageFolderContent(t *testing.T) {
	root := tree(t, "a/long name.jpg", "b/s.jpg")
	src := openSource(t, &ImageFolder{Path: Path(root)}, 1)
	out := new(Element)
	for i, want := range []string{"a/long name.jpg", "b/s.jpg"} {
		if _, err := src.Read(new(Call), i, out); err != nil || string(out.U8) != want {
			t.Errorf("item %d is %q with error %v, want %q", i, out.U8, err, want)
		}
	}
	if err := os.Remove(filepath.Join(root, "b/s.jpg")); err != nil {
		t.Fatal(err)
	}
	if _, err := src.Read(new(Call), 1, out); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a file that vanished is read with error %v", err)
	}
	if err := os.Mkdir(filepath.Join(root, "b/s.jpg"), 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := src.Read(new(Call), 1, out); err == nil || err.Error() != "not a regular file" {
		t.Errorf("a folder in a file's place is read with error %v", err)
	}
	if err := os.Truncate(filepath.Join(root, "a/long name.jpg"), maxFile+1); err != nil {
		t.Fatal(err)
	}
	if _, err := src.Read(new(Call), 0, out); err == nil || err.Error() != "a file of 2.00 GiB is too large for an image" {
		t.Errorf("a huge file is read with error %v", err)
	}
}

func TestImageFolderProblems(t *testing.T) {
	root := tree(t, "file", "flat/a.jpg", "hidden/.git/x.jpg")
	for _, tt := range []struct {
		path, summary, detail string
	}{
		{"none", "Folder not found", `There is no folder "ROOT/none".`},
		{"file", "Unreadable folder", `The folder "ROOT/file" can't be read: not a directory.`},
		{"flat", "No class folders", `The folder "ROOT/flat" has no sub-folders. Put the images of each class in a sub-folder of its own.`},
		{"hidden", "No class folders", `The folder "ROOT/hidden" has no sub-folders. Put the images of each class in a sub-folder of its own.`},
	} {
		spec := &ImageFolder{Path: Path(filepath.Join(root, tt.path))}
		want := []Problem{{Attribute: "path", Summary: tt.summary, Detail: strings.ReplaceAll(tt.detail, "ROOT", root)}}
		if diff := cmp.Diff(want, spec.Validate()); diff != "" {
			t.Error(diff)
		}
		if _, err := spec.Open(t.Context(), 1); err == nil {
			t.Errorf("%s is opened", tt.path)
		}
	}
	if got := (&ImageFolder{Path: Path(tree(t, "a/b.jpg"))}).Validate(); got != nil {
		t.Errorf("Validate() = %v, want nothing", got)
	}
}

func TestImageFolderOpenErrors(t *testing.T) {
	root := tree(t, "a/x.jpg", "b/notes.txt", "c/")
	_, err := (&ImageFolder{Path: Path(root)}).Open(t.Context(), 1)
	if want := "no image in the class folders b, c of " + root + ": put some there, or remove the folders"; err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := (&ImageFolder{Path: Path(root)}).Open(ctx, 1); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want the context's", err)
	}
}

func BenchmarkImageFolder(b *testing.B) {
	src := openSource(b, &ImageFolder{Path: "../examples/photos/photos"}, 1)
	c, out := new(Call), new(Element)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		if _, err := src.Read(c, i%src.Len(), out); err != nil {
			b.Fatal(err)
		}
	}
}
