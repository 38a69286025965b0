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
)

// ImageFolder holds the attributes of `load "image_folder"`.
type ImageFolder struct {
	Path    Path `hcl:"path" doc:"The folder with one sub-folder per class."`
	Shuffle bool `hcl:"shuffle,optional" doc:"Give each epoch's items in a new order, drawn from the experiment's seed."`
}

func imageFolderOperator() Operator {
	return Operator{
		Block:   Load,
		Type:    "image_folder",
		Summary: "Reads image files from one folder per class.",
		Doc: `As torchvision's ` + "`ImageFolder`" + `: the sub-folders of ` + "`path`" + ` are the classes, labelled 0, 1, … in the order of their names, and the items of
a class are the files anywhere below its folder whose names end in .jpg, .jpeg, .png, .ppm, .bmp, .pgm, .tif, .tiff or .webp, in upper or lower
case, in torchvision's order. Links are followed. A class without an image is an error.

Unlike torchvision it leaves out hidden files and folders (` + "`._photo.jpg`, `.ipynb_checkpoints`" + `), what is no regular file, and links to a
folder that they lie in.`,
		New: func() any { return new(ImageFolder) },
	}
}

// Validate reports a folder that is missing, can't be read, or holds no class.
func (s *ImageFolder) Validate() []Problem {
	classes, err := classFolders(string(s.Path))
	summary, detail := "", ""
	switch {
	case errors.Is(err, fs.ErrNotExist):
		summary, detail = "Folder not found", fmt.Sprintf("There is no folder %q.", s.Path)
	case err != nil:
		summary, detail = "Unreadable folder", fmt.Sprintf("The folder %q can't be read: %v.", s.Path, withoutPath(err))
	case len(classes) == 0:
		summary, detail = "No class folders", fmt.Sprintf("The folder %q has no sub-folders. Put the images of each class in a sub-folder of its own.", s.Path)
	default:
		return nil
	}
	return []Problem{{Attribute: "path", Summary: summary, Detail: detail}}
}

// Output returns the type of a file.
func (s *ImageFolder) Output() Type { return Type{Kind: Encoded} }

// Shuffled reports whether each epoch's items come in a new order.
func (s *ImageFolder) Shuffled() bool { return s.Shuffle }

// Open lists the files.
func (s *ImageFolder) Open(ctx context.Context, _ uint64) (Source, error) {
	classes, err := classFolders(string(s.Path))
	if err != nil {
		return nil, fmt.Errorf("listing the classes: %w", err)
	}
	if len(classes) == 0 {
		return nil, fmt.Errorf("no class folders in %s", s.Path)
	}
	if len(classes) > math.MaxInt32 {
		return nil, fmt.Errorf("%d classes are too many", len(classes))
	}
	src := &folderSource{classes: len(classes)}
	var empty []string
	for label, class := range classes {
		files, err := imageFiles(ctx, filepath.Join(string(s.Path), class))
		if err != nil {
			return nil, fmt.Errorf("listing class %s: %w", class, err)
		}
		if len(files) == 0 {
			empty = append(empty, class)
		}
		for _, f := range files {
			src.items = append(src.items, folderItem{f, int32(label)})
		}
	}
	if len(empty) > 0 {
		return nil, fmt.Errorf("no image in the class folders %s of %s: put some there, or remove the folders", strings.Join(empty, ", "), s.Path)
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

// imageFiles returns the paths of the image files below a folder, in the order of torchvision, which sorts the folders'
// paths as text, and then the names within each.
func imageFiles(ctx context.Context, root string) ([]string, error) {
	folders := []folder{}
	if err := walk(ctx, root, nil, &folders); err != nil {
		return nil, err
	}
	slices.SortFunc(folders, func(a, b folder) int { return cmp.Compare(a.path, b.path) })
	var files []string
	for _, f := range folders {
		for _, name := range f.images {
			files = append(files, filepath.Join(f.path, name))
		}
	}
	return files, nil
}

type folder struct {
	path   string
	images []string // names, sorted
}

// walk appends the folder at path and all below it. above are the folders that it lies in, as far as they have been
// walked.
func walk(ctx context.Context, path string, above []fs.FileInfo, folders *[]folder) error {
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
			if err := walk(ctx, filepath.Join(path, e.Name()), above, folders); err != nil {
				return err
			}
		case mode.IsRegular() && isImage(e.Name()):
			f.images = append(f.images, e.Name())
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

// isImage tells by a file's name whether torchvision takes it for an image (its IMG_EXTENSIONS).
func isImage(name string) bool {
	switch strings.ToLower(filepath.Ext(name)) {
	case ".jpg", ".jpeg", ".png", ".ppm", ".bmp", ".pgm", ".tif", ".tiff", ".webp":
		return true
	}
	return false
}

type folderItem struct {
	path  string
	label int32
}

// folderSource reads image files.
type folderSource struct {
	items   []folderItem
	classes int
}

func (s *folderSource) Len() int          { return len(s.items) }
func (s *folderSource) Name(i int) string { return s.items[i].path }
func (s *folderSource) Classes() int      { return s.classes }
func (s *folderSource) Close() error      { return nil }

// Files yields the images' paths.
func (s *folderSource) Files() iter.Seq[string] {
	return func(yield func(string) bool) {
		for _, it := range s.items {
			if !yield(it.path) {
				return
			}
		}
	}
}

// Read reads the file of item i.
func (s *folderSource) Read(_ *Call, i int, out *Element) (int32, error) {
	return s.items[i].label, readFile(s.items[i].path, out)
}

// maxFile is the size in bytes from which a file is taken for no image.
const maxFile = 2 << 30

// readFile makes out the bytes of a file, in out's own memory. Its errors leave the path to the caller.
func readFile(path string, out *Element) error {
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
		return fmt.Errorf("a file of %s is too large for an image", Bytes(info.Size()))
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

// withoutPath returns what is wrong with a file, for messages that name it already.
func withoutPath(err error) error {
	if p := (*fs.PathError)(nil); errors.As(err, &p) {
		return p.Err
	}
	return err
}
