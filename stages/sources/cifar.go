package sources

import (
	"context"
	"errors"
	"fmt"

	"github.com/pipectl/pipectl/stages"
	"github.com/pipectl/pipectl/stages/storage"
)

// CIFAR holds the attributes of `load "cifar"`.
type CIFAR struct {
	Files   []stages.Path `hcl:"files" doc:"The binary version's files, such as \x60data_batch_1.bin\x60, or patterns (\x60\"data_batch_*.bin\"\x60; \x60{0..9}\x60 counts, on web servers too)."`
	Dataset string        `hcl:"dataset,optional" enum:"auto,cifar10,cifar100" doc:"Which of the two it is. By default the files' sizes tell."`
	Labels  string        `hcl:"labels,optional" enum:"fine,coarse" doc:"Which of CIFAR-100's two labels an item has: one of 100 classes, or one of 20 superclasses."`
	Shuffle bool          `hcl:"shuffle,optional" doc:"Give each epoch's items in a new order, drawn from the experiment's seed."`
}

func cifarOperator() stages.Operator {
	return stages.Operator{
		Block:   stages.Load,
		Type:    "cifar",
		Summary: "Reads the images and labels of CIFAR-10's or CIFAR-100's binary files.",
		Doc: `Items are uint8 images of 32×32×3, decoded already. A record is a label of one byte (CIFAR-100: two, coarse and fine) and the image's 1024 red, 1024
green and 1024 blue values.

The format: https://www.cs.toronto.edu/~kriz/cifar.html, "binary version".`,
		New: func() any { return &CIFAR{Dataset: "auto", Labels: "fine"} },
	}
}

const (
	cifarEdge   = 32
	cifarPlane  = cifarEdge * cifarEdge
	cifarPixels = 3 * cifarPlane
)

// cifarFormat says how a record begins.
type cifarFormat struct {
	name    string
	header  int      // bytes before the pixels
	classes [2]int32 // that each of the header's bytes counts
}

func (f cifarFormat) record() int { return f.header + cifarPixels }

func cifarFormats() (ten, hundred cifarFormat) {
	return cifarFormat{"cifar10", 1, [2]int32{10}}, cifarFormat{"cifar100", 2, [2]int32{20, 100}}
}

// format tells by a file's size which of the formats it has.
func (s *CIFAR) format(size int64) (cifarFormat, error) {
	ten, hundred := cifarFormats()
	fits := func(f cifarFormat) bool {
		return size%int64(f.record()) == 0 && (s.Dataset == "auto" || s.Dataset == f.name)
	}
	switch {
	case size == 0:
		return ten, errors.New("it is empty")
	case fits(ten) && fits(hundred):
		return ten, errors.New(`its size fits both data sets; set dataset to "cifar10" or "cifar100"`)
	case fits(ten):
		return ten, nil
	case fits(hundred):
		return hundred, nil
	}
	what := map[string]string{"auto": "3073 (CIFAR-10) or 3074 (CIFAR-100)", ten.name: "3073", hundred.name: "3074"}[s.Dataset]
	return ten, fmt.Errorf("its %d bytes are no whole number of records of %s bytes; give the .bin files of the binary version, unpacked and whole", size, what)
}

// Validate reports files that are missing or don't hold whole records.
func (s *CIFAR) Validate() []stages.Problem {
	return checkFiles("files", s.Files, func(_ context.Context, _ string, f storage.File) error {
		_, err := s.format(f.Size())
		return err
	})
}

// Output returns the type of an image.
func (s *CIFAR) Output() stages.Type { return stages.ImageType(cifarEdge, cifarEdge) }

// Shuffled reports whether each epoch's items come in a new order.
func (s *CIFAR) Shuffled() bool { return s.Shuffle }

// Open opens the files.
func (s *CIFAR) Open(ctx context.Context, _ uint64) (stages.Source, error) {
	src := new(cifarSource)
	var err error
	src.fileSet, err = openFiles(ctx, s.Files, func(set *fileSet, _ string, f storage.File) (int, error) {
		format, err := s.format(f.Size())
		if err == nil && len(set.firsts) > 0 && format != src.format {
			err = fmt.Errorf("it is of %s and the files before it are of %s; load one of them", format.name, src.format.name)
		}
		src.format = format
		return int(f.Size() / int64(format.record())), err
	})
	if err != nil {
		return nil, err
	}
	if s.Labels == "fine" {
		src.label = src.format.header - 1
	}
	return src, nil
}

// cifarSource reads images from records of a fixed size.
type cifarSource struct {
	*fileSet
	format  cifarFormat
	label   int // the header's byte that is the label
	buffers scratch
}

func (s *cifarSource) Classes() int { return int(s.format.classes[s.label]) }

// Name returns the file and the record's place in it.
func (s *cifarSource) Name(i int) string {
	file, record := s.locate(i)
	return fmt.Sprintf("%s, image %d", s.names[file], record)
}

// Read gives image i with its channels interleaved.
func (s *cifarSource) Read(c *stages.Call, i int, out *stages.Element) (int32, error) {
	file, record := s.locate(i)
	size := s.format.record()
	buffer := s.buffers.get(size)
	defer s.buffers.put(buffer)
	data := *buffer
	off := int64(record) * int64(size)
	if err := readAt(c.Context, s.files[file], data, off); err != nil {
		return 0, err
	}
	label := int32(data[s.label])
	if label >= s.format.classes[s.label] {
		return 0, fmt.Errorf("the label is %d at byte %d, where %s has labels below %d: the file is damaged, or of another data set", label, off+int64(s.label), s.format.name, s.format.classes[s.label])
	}
	pixels := data[s.format.header:]
	red, green, blue := pixels[:cifarPlane], pixels[cifarPlane:2*cifarPlane], pixels[2*cifarPlane:][:cifarPlane]
	dst := out.Image(cifarEdge, cifarEdge)
	for i, r := range red {
		d := dst[3*i:][:3]
		d[0], d[1], d[2] = r, green[i], blue[i]
	}
	return label, nil
}
