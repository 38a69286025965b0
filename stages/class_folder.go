package stages

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pipectl/pipectl/stages/storage"
)

// ClassFolder is a folder of files with one sub-folder per class, as torchvision's DatasetFolder reads it: what
// `load "image_folder"` and its like for other kinds of file share.
type ClassFolder struct {
	Path  Path
	Kind  string                 // what a file is, after the article "an": "image", "audio file"
	Match func(name string) bool // whether a file is one, by its name
}

// Validate reports a folder that is missing, can't be read, or holds no class.
func (c ClassFolder) Validate() []Problem {
	if storage.Remote(string(c.Path)) {
		return c.validateRemote()
	}
	classes, err := classFolders(string(c.Path))
	summary, detail := "", ""
	switch {
	case errors.Is(err, fs.ErrNotExist):
		summary, detail = "Folder not found", fmt.Sprintf("There is no folder %q.", c.Path)
	case err != nil:
		summary, detail = "Unreadable folder", fmt.Sprintf("The folder %q can't be read: %v.", c.Path, withoutPath(err))
	case len(classes) == 0:
		summary, detail = "No class folders", fmt.Sprintf("The folder %q has no sub-folders. Put the %ss of each class in a sub-folder of its own.", c.Path, c.Kind)
	default:
		return nil
	}
	return []Problem{{Attribute: "path", Summary: summary, Detail: detail}}
}

// Open lists the files.
func (c ClassFolder) Open(ctx context.Context) (Source, error) {
	if storage.Remote(string(c.Path)) {
		return c.openRemote(ctx)
	}
	classes, err := classFolders(string(c.Path))
	if err != nil {
		return nil, fmt.Errorf("listing the classes: %w", err)
	}
	return c.source(classes, func(class string) ([]string, error) {
		return c.files(ctx, filepath.Join(string(c.Path), class))
	})
}

// source makes the source of the classes whose files a function lists.
func (c ClassFolder) source(classes []string, files func(class string) ([]string, error)) (*folderSource, error) {
	if len(classes) == 0 {
		return nil, fmt.Errorf("no class folders in %s", c.Path)
	}
	if len(classes) > math.MaxInt32 {
		return nil, fmt.Errorf("%d classes are too many", len(classes))
	}
	src := &folderSource{kind: c.Kind, classes: classes}
	var empty []string
	for label, class := range classes {
		files, err := files(class)
		if err != nil {
			return nil, fmt.Errorf("listing class %s: %w", class, err)
		}
		if len(files) == 0 {
			empty = append(empty, class)
		}
		for _, f := range files {
			src.items = append(src.items, folderItem{path: f, label: int32(label)})
		}
	}
	if len(empty) > 0 {
		return nil, fmt.Errorf("no %s in the class folders %s of %s: put some there, or remove the folders", c.Kind, strings.Join(empty, ", "), c.Path)
	}
	return src, nil
}

// classFolders returns the names of the folders in a folder, sorted.
func classFolders(path string) ([]string, error) {
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, e := range entries {
		if !hidden(e) && resolve(path, e).IsDir() {
			names = append(names, e.Name())
		}
	}
	return names, nil
}

// files returns the paths of the matching files below a folder, in the order of torchvision, which sorts the folders'
// paths as text, and then the names within each.
func (c ClassFolder) files(ctx context.Context, root string) ([]string, error) {
	folders := []folder{}
	if err := c.walk(ctx, root, nil, &folders); err != nil {
		return nil, err
	}
	slices.SortFunc(folders, func(a, b folder) int { return cmp.Compare(a.path, b.path) })
	var files []string
	for _, f := range folders {
		for _, name := range f.files {
			files = append(files, filepath.Join(f.path, name))
		}
	}
	return files, nil
}

type folder struct {
	path  string
	files []string // names, sorted
}

// walk appends the folder at path and all below it. above are the folders that it lies in, as far as they have been
// walked.
func (c ClassFolder) walk(ctx context.Context, path string, above []fs.FileInfo, folders *[]folder) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	self, err := os.Stat(path)
	if err != nil {
		return err
	}
	for _, f := range above {
		if os.SameFile(f, self) {
			return nil
		}
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return err
	}
	above = append(slices.Clip(above), self)
	f := folder{path: path}
	for _, e := range entries {
		switch mode := resolve(path, e); {
		case hidden(e):
		case mode.IsDir():
			if err := c.walk(ctx, filepath.Join(path, e.Name()), above, folders); err != nil {
				return err
			}
		case mode.IsRegular() && c.Match(e.Name()):
			f.files = append(f.files, e.Name())
		}
	}
	*folders = append(*folders, f)
	return nil
}

func hidden(e fs.DirEntry) bool { return strings.HasPrefix(e.Name(), ".") }

// resolve returns the type of what e, an entry of the folder at path, is or links to. A link that leads nowhere counts as
// a file, so that it is reported when it is to be read instead of being passed over.
func resolve(path string, e fs.DirEntry) fs.FileMode {
	if e.Type()&fs.ModeSymlink == 0 {
		return e.Type()
	}
	info, err := os.Stat(filepath.Join(path, e.Name()))
	if err != nil {
		return 0
	}
	return info.Mode().Type()
}

type folderItem struct {
	path    string
	label   int32
	version string // of a remote file; "" for one of this machine
}

// folderSource reads the files.
type folderSource struct {
	kind    string
	items   []folderItem
	classes []string
	client  *storage.Client // of remote files; nil for a folder of this machine
}

func (s *folderSource) Len() int          { return len(s.items) }
func (s *folderSource) Name(i int) string { return s.items[i].path }
func (s *folderSource) Classes() int      { return len(s.classes) }

// ClassNames returns the names of the folders.
func (s *folderSource) ClassNames() []string { return s.classes }

func (s *folderSource) Close() error {
	if s.client != nil {
		s.client.Close()
	}
	return nil
}

// Files yields the paths of this machine's files.
func (s *folderSource) Files() iter.Seq[string] {
	if s.client != nil {
		return nil
	}
	return func(yield func(string) bool) {
		for _, it := range s.items {
			if !yield(it.path) {
				return
			}
		}
	}
}

// Read reads the file of item i.
func (s *folderSource) Read(c *Call, i int, out *Element) (int32, error) {
	if s.client != nil {
		return s.items[i].label, s.readRemote(c.Context, s.items[i].path, out)
	}
	return s.items[i].label, s.read(s.items[i].path, out)
}

// maxFile is the size in bytes from which a file is refused.
const maxFile = 2 << 30

// read makes out the bytes of a file, in out's own memory. Its errors leave the path to the caller.
func (s *folderSource) read(path string, out *Element) error {
	f, err := os.Open(path)
	if err != nil {
		return withoutPath(err)
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil:
		return withoutPath(err)
	case !info.Mode().IsRegular():
		return errors.New("not a regular file")
	case info.Size() > maxFile:
		return s.tooLarge(info.Size())
	}
	data := out.Bytes(Type{Kind: Encoded}, int(info.Size()))
	n, err := io.ReadFull(f, data)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("the file shrank while it was read, from %d bytes to %d", len(data), n)
	}
	if err != nil {
		return fmt.Errorf("reading: %w", withoutPath(err))
	}
	return nil
}

func (s *folderSource) tooLarge(size int64) error {
	return fmt.Errorf("a file of %s is too large for an %s", Bytes(size), s.kind)
}

// withoutPath returns what is wrong with a file, for messages that name it already.
func withoutPath(err error) error {
	if p := (*fs.PathError)(nil); errors.As(err, &p) {
		return p.Err
	}
	return err
}
