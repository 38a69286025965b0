package sources

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"

	"github.com/pipectl/pipectl/stages"
	"github.com/pipectl/pipectl/stages/storage"
)

// NPY holds the attributes of `load "npy"`.
type NPY struct {
	Files      []stages.Path `hcl:"files" doc:"The .npy files or .npz archives, or patterns (\x60\"part-*.npy\"\x60; \x60{0..9}\x60 counts, on web servers too). Their rows count on from one to the next."`
	Array      string        `hcl:"array,optional" doc:"The array to take of each .npz archive, such as \x60\"x_train\"\x60; \x60\"\"\x60 for the only one."`
	Labels     []stages.Path `hcl:"labels,optional" doc:"The .npy files or .npz archives with a label for each row: whole numbers of one dimension."`
	LabelArray string        `hcl:"label_array,optional" doc:"The array with the labels of each .npz archive, such as \x60\"y_train\"\x60; \x60\"\"\x60 for the only one."`
	Shuffle    bool          `hcl:"shuffle,optional" doc:"Give each epoch's items in a new order, drawn from the experiment's seed."`
}

func npyOperator() stages.Operator {
	return stages.Operator{
		Block:   stages.Load,
		Type:    "npy",
		Summary: "Reads the rows of numpy's .npy files and .npz archives.",
		Doc: `An item is a row: what an index of the array's first dimension gives. What it is follows from the array:

- float32, float64 or float16 of N×C×H×W is a tensor of C×H×W; of N×H×W, one of 1×H×W; of N×D, one of D×1×1; of N, one of 1×1×1. float64 is
  rounded to float32, as numpy's astype does;
- uint8 of N×H×W×3 is an image, and of N×H×W one in grey, whose values are given three times, for red, green and blue;
- whole numbers of other types, or bool, of N×L are L tokens, which must fit in an int32; of N, one token.

Rows are read from the file one by one, so that an array may be larger than the memory. Arrays must be in C order; both byte orders and the
format's versions 1 to 3 are known: https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html. Of a .npz archive that
numpy.savez wrote, rows are read from where they lie, without verifying the archive's checksums. What numpy.savez_compressed wrote is unpacked once, and verified, to a
temporary file without a name, which goes with the process: it needs as much room in the temporary folder (` + "`TMPDIR`" + `) as the array takes.`,
		New: func() any { return new(NPY) },
	}
}

// npyType returns the type of a row.
func npyType(h npyHeader) (stages.Type, error) {
	row := h.dims[1:]
	t := stages.Type{}
	float, bytes := h.kind() == 'f', h.dtype[1:] == "u1"
	switch dims := append(slices.Clone(row), 1, 1, 1); {
	case float && len(row) <= 1:
		t = stages.TensorType(dims[0], 1, 1)
	case float && len(row) == 2:
		t = stages.TensorType(1, dims[0], dims[1])
	case float && len(row) == 3:
		t = stages.TensorType(dims[0], dims[1], dims[2])
	case bytes && (len(row) == 2 || len(row) == 3 && row[2] == 3):
		t = stages.ImageType(dims[0], dims[1])
	case bytes:
		return t, fmt.Errorf("uint8 arrays are images of N×H×W×3 or N×H×W, and this one is of %s", dimensions(h.dims))
	case !float && len(row) <= 1:
		t = stages.Type{Kind: stages.Tokens, Shape: stages.Shape{dims[0]}}
	default:
		return t, fmt.Errorf("arrays of the type %q have at most %d dimensions, and this one is of %s; reshape it", h.dtype, map[bool]int{true: 4, false: 2}[float], dimensions(h.dims))
	}
	const mostRow = 2 << 30
	if n := h.row() * h.width(); n > mostRow {
		return t, fmt.Errorf("a row of %s is too large for an item; the first dimension must count the items", stages.Bytes(n))
	}
	return t, nil
}

func dimensions(dims []int) string {
	s := ""
	for i, d := range dims {
		if i > 0 {
			s += "×"
		}
		s += fmt.Sprint(d)
	}
	return s
}

// Validate reports files that can't be read or have no rows that can be items.
func (s *NPY) Validate() []stages.Problem {
	problems := checkFiles("files", s.Files, func(ctx context.Context, _ string, f storage.File) error {
		h, err := lookAtArray(ctx, f, "array", s.Array)
		if err == nil {
			_, err = npyType(h)
		}
		return err
	})
	if len(s.Labels) > 0 {
		problems = append(problems, checkFiles("labels", s.Labels, func(ctx context.Context, _ string, f storage.File) error {
			h, err := lookAtArray(ctx, f, "label_array", s.LabelArray)
			if err == nil {
				err = labelArray(h)
			}
			return err
		})...)
	} else if s.LabelArray != "" {
		problems = append(problems, stages.Problem{Attribute: "label_array", Summary: "Array of labels without files", Detail: "Say with labels which .npz archives have it, or leave label_array out."})
	}
	return slices.Compact(problems) // a wrong array is every file's
}

func labelArray(h npyHeader) error {
	if h.kind() == 'f' || len(h.dims) != 1 {
		return fmt.Errorf("labels are whole numbers of one dimension, and these are of the type %q and %s", h.dtype, dimensions(h.dims))
	}
	return nil
}

// Output returns the type of the first file's rows, or an unknown one while that can't be read.
func (s *NPY) Output() stages.Type {
	var t stages.Type
	checkFiles("files", s.Files[:min(1, len(s.Files))], func(ctx context.Context, _ string, f storage.File) error {
		h, err := lookAtArray(ctx, f, "array", s.Array)
		if err == nil && t.Kind == stages.Unknown {
			t, _ = npyType(h) // Validate tells of the error
		}
		return nil
	})
	return t
}

// Shuffled reports whether each epoch's items come in a new order.
func (s *NPY) Shuffled() bool { return s.Shuffle }

// Open reads the files' headers, and the labels.
func (s *NPY) Open(ctx context.Context, _ uint64) (stages.Source, error) {
	src := new(npySource)
	var err error
	src.fileSet, err = openFiles(ctx, s.Files, func(set *fileSet, _ string, f storage.File) (int, error) {
		a, err := openArray(ctx, f, "array", s.Array)
		if err != nil {
			return 0, err
		}
		src.arrays = append(src.arrays, a)
		t, err := npyType(a.npyHeader)
		if first := src.arrays[0]; err == nil && len(set.firsts) > 0 && (t != src.typ || a.dtype != first.dtype || a.row() != first.row()) {
			err = fmt.Errorf("its rows are %s of the type %q, and those of the files before it are %s of %q", t, a.dtype, src.typ, first.dtype)
		}
		src.typ = t
		return a.dims[0], err
	})
	if err == nil && len(s.Labels) > 0 {
		err = src.readLabels(ctx, s.Labels, s.LabelArray)
	}
	if err != nil {
		return nil, errors.Join(err, src.Close())
	}
	return src, nil
}

// npySource reads rows of a fixed size.
type npySource struct {
	*fileSet
	typ     stages.Type
	arrays  []npyArray // of each file
	labels  []int32    // nil without labels
	classes int
	buffers scratch

	labelFiles *fileSet // nil without labels; kept open for their versions
}

// Close closes the files.
func (s *npySource) Close() error {
	var errs []error
	for _, a := range s.arrays {
		errs = append(errs, a.Close())
	}
	for _, set := range []*fileSet{s.fileSet, s.labelFiles} {
		if set != nil {
			errs = append(errs, set.Close())
		}
	}
	return errors.Join(errs...)
}

// Files yields the paths of the files, the labels' too. It is nil where one isn't this machine's.
func (s *npySource) Files() iter.Seq[string] {
	if s.labelFiles == nil {
		return s.fileSet.Files()
	}
	return (&fileSet{paths: slices.Concat(s.paths, s.labelFiles.paths)}).Files()
}

// Versions yields the files with their sizes and versions, the labels' too. It is nil where a server doesn't tell one.
func (s *npySource) Versions() iter.Seq2[string, string] {
	if s.labelFiles == nil {
		return s.fileSet.Versions()
	}
	return (&fileSet{paths: slices.Concat(s.paths, s.labelFiles.paths), files: slices.Concat(s.files, s.labelFiles.files)}).Versions()
}

// readLabels reads the labels of all items.
func (s *npySource) readLabels(ctx context.Context, paths []stages.Path, array string) error {
	var err error
	s.labelFiles, err = openFiles(ctx, paths, func(_ *fileSet, _ string, f storage.File) (int, error) {
		a, err := openArray(ctx, f, "label_array", array)
		if err != nil {
			return 0, err
		}
		defer a.Close()
		if err := labelArray(a.npyHeader); err != nil {
			return 0, err
		}
		data := make([]byte, a.file.Size()-a.start)
		if err := readAt(ctx, a.file, data, a.start); err != nil {
			return 0, err
		}
		first := len(s.labels)
		s.labels = append(s.labels, make([]int32, a.dims[0])...)
		if err := a.ints(s.labels[first:], data); err != nil {
			return 0, err
		}
		for i, l := range s.labels[first:] {
			if l < 0 || l == math.MaxInt32 {
				return 0, fmt.Errorf("value %d is %d, where labels count from 0", i, l)
			}
			s.classes = max(s.classes, int(l)+1)
		}
		return a.dims[0], nil
	})
	if err != nil {
		return err
	}
	if len(s.labels) != s.count {
		return fmt.Errorf("there are %d rows and %d labels; give files that belong together", s.count, len(s.labels))
	}
	return nil
}

func (s *npySource) Classes() int { return s.classes }

// Name returns the file and the row.
func (s *npySource) Name(i int) string {
	file, row := s.locate(i)
	return fmt.Sprintf("%s, row %d", s.names[file], row)
}

// Read gives row i.
func (s *npySource) Read(c *stages.Call, i int, out *stages.Element) (label int32, err error) {
	file, row := s.locate(i)
	a := &s.arrays[file]
	size := a.row() * a.width()
	off := a.start + int64(row)*int64(size)
	if s.labels != nil {
		label = s.labels[i]
	}
	shape := s.typ.Shape
	if s.typ.Kind == stages.Image {
		dst := out.Image(shape[0], shape[1])
		if err := readAt(c.Context, a.file, dst[len(dst)-size:], off); err != nil {
			return 0, err
		}
		if size < len(dst) {
			for i, v := range dst[len(dst)-size:] { // each is read before the values that take its place are written
				dst[3*i], dst[3*i+1], dst[3*i+2] = v, v, v
			}
		}
		return label, nil
	}
	if s.typ.Kind == stages.Tensor && a.asInMemory() {
		return label, readAt(c.Context, a.file, bytesOf(out.Tensor(shape[0], shape[1], shape[2])), off)
	}
	buffer := s.buffers.get(size)
	defer s.buffers.put(buffer)
	if err := readAt(c.Context, a.file, *buffer, off); err != nil {
		return 0, err
	}
	if s.typ.Kind == stages.Tensor {
		a.floats(out.Tensor(shape[0], shape[1], shape[2]), *buffer)
		return label, nil
	}
	out.Type = s.typ
	out.I32 = slices.Grow(out.I32[:0], a.row())[:a.row()]
	return label, a.ints(out.I32, *buffer)
}
