package stages

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/bits"
	"os"
)

// IDX holds the attributes of `load "idx"`.
type IDX struct {
	Images  Path `hcl:"images" doc:"The file with the images."`
	Labels  Path `hcl:"labels" doc:"The file with a label for each image."`
	Shuffle bool `hcl:"shuffle,optional" doc:"Give each epoch's items in a new order, drawn from the experiment's seed."`
}

func idxOperator() Operator {
	return Operator{
		Block:   Load,
		Type:    "idx",
		Summary: "Reads the images and labels of MNIST's idx files.",
		Doc: `Items are uint8 images of H×W×3, decoded already. The images file is idx3 (N×H×W, grey: each value is given three times, for red, green and blue) or
idx4 (N×H×W×3); the labels file is idx1. Both are of unsigned bytes, plain or compressed by gzip, and are held in memory as they are in the file.

The format: http://yann.lecun.com/exdb/mnist/.`,
		New: func() any { return new(IDX) },
	}
}

// Validate reports files that can't be read, are no idx files of images and labels, or don't belong together.
func (s *IDX) Validate() []Problem {
	var problems []Problem
	header := func(attribute string, path Path, check func(idxHeader) error) (h idxHeader) {
		h, err := readIDXHeader(string(path))
		if err == nil {
			err = check(h)
		}
		if err != nil {
			problems = append(problems, Problem{Attribute: attribute, Summary: "Not a readable idx file", Detail: fmt.Sprintf("The file %q can't be used: %v.", path, withoutPath(err))})
		}
		return h
	}
	images := header("images", s.Images, idxHeader.images)
	labels := header("labels", s.Labels, idxHeader.labels)
	if len(problems) == 0 && images.dims[0] != labels.dims[0] {
		problems = append(problems, Problem{
			Attribute: "labels",
			Summary:   "Images and labels don't match",
			Detail:    fmt.Sprintf("There are %d images, but %d labels. Give the two files that belong together.", images.dims[0], labels.dims[0]),
		})
	}
	return problems
}

// Output returns the type of an image as large as the file's header says, or an unknown one while that can't be read.
func (s *IDX) Output() Type {
	h, err := readIDXHeader(string(s.Images))
	if err != nil || h.images() != nil {
		return Type{}
	}
	return ImageType(h.dims[1], h.dims[2])
}

// Shuffled reports whether each epoch's items come in a new order.
func (s *IDX) Shuffled() bool { return s.Shuffle }

// Open reads both files.
func (s *IDX) Open(_ context.Context, _ uint64) (Source, error) {
	images, pixels, err := readIDX(string(s.Images), idxHeader.images)
	if err != nil {
		return nil, fmt.Errorf("reading images %s: %w", s.Images, withoutPath(err))
	}
	labels, classes, err := readIDX(string(s.Labels), idxHeader.labels)
	if err != nil {
		return nil, fmt.Errorf("reading labels %s: %w", s.Labels, withoutPath(err))
	}
	if images.dims[0] != labels.dims[0] {
		return nil, fmt.Errorf("%d images in %s, but %d labels in %s", images.dims[0], s.Images, labels.dims[0], s.Labels)
	}
	src := &idxSource{path: string(s.Images), h: images.dims[1], w: images.dims[2], pixels: pixels, labels: classes}
	src.channels = len(pixels) / (images.dims[0] * src.h * src.w)
	for _, l := range classes {
		src.classes = max(src.classes, int(l)+1)
	}
	return src, nil
}

// idxHeader holds the dimensions of an idx file of unsigned bytes, the number of items first.
type idxHeader struct{ dims []int }

// images returns nil if the file holds images.
func (h idxHeader) images() error {
	if len(h.dims) != 3 && len(h.dims) != 4 {
		return fmt.Errorf("it has %d dimensions, where images have 3 (N×H×W) or 4 (N×H×W×3)", len(h.dims))
	}
	if len(h.dims) == 4 && h.dims[3] != 3 {
		return fmt.Errorf("its images have %d channels instead of 3", h.dims[3])
	}
	return nil
}

// labels returns nil if the file holds labels.
func (h idxHeader) labels() error {
	if len(h.dims) != 1 {
		return fmt.Errorf("it has %d dimensions, where labels have 1", len(h.dims))
	}
	return nil
}

// parseIDXHeader reads the header of an idx file.
func parseIDXHeader(r io.Reader) (idxHeader, error) {
	var magic [4]byte
	if _, err := io.ReadFull(r, magic[:]); err != nil {
		return idxHeader{}, truncatedIDX(err)
	}
	const unsignedByte = 8
	if magic[0] != 0 || magic[1] != 0 || magic[3] == 0 {
		return idxHeader{}, fmt.Errorf("it starts with % x, which is not how an idx file starts", magic)
	}
	if magic[2] != unsignedByte {
		return idxHeader{}, fmt.Errorf("its values have the type 0x%02x instead of 0x08, unsigned bytes", magic[2])
	}
	h := idxHeader{make([]int, magic[3])}
	size := uint64(1)
	for i := range h.dims {
		var dim [4]byte
		if _, err := io.ReadFull(r, dim[:]); err != nil {
			return idxHeader{}, truncatedIDX(err)
		}
		n := binary.BigEndian.Uint32(dim[:])
		if n == 0 {
			return idxHeader{}, errors.New("it is empty: one of its dimensions is 0")
		}
		hi, lo := bits.Mul64(size, uint64(n))
		if size = lo; hi != 0 || size > 1<<40 {
			return idxHeader{}, errors.New("its header says that it holds more than a TiB")
		}
		h.dims[i] = int(n)
	}
	return h, nil
}

// parseIDX reads an idx file whose header passes check, and its values. It takes memory for what is in the file, not for
// what the header says.
func parseIDX(r io.Reader, check func(idxHeader) error) (idxHeader, []byte, error) {
	h, err := parseIDXHeader(r)
	if err == nil {
		err = check(h)
	}
	if err != nil {
		return idxHeader{}, nil, err
	}
	size := 1
	for _, n := range h.dims {
		size *= n
	}
	var values bytes.Buffer
	if _, err := io.CopyN(&values, r, int64(size)); err != nil {
		return idxHeader{}, nil, truncatedIDX(err)
	}
	if n, err := io.CopyN(io.Discard, r, 1); n != 0 {
		return idxHeader{}, nil, fmt.Errorf("more data than the %d bytes that its header says", size)
	} else if !errors.Is(err, io.EOF) {
		return idxHeader{}, nil, truncatedIDX(err) // in gzip's checksum
	}
	return h, values.Bytes(), nil
}

func truncatedIDX(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errors.New("it is truncated")
	}
	return err
}

// readIDXHeader reads a file's header.
func readIDXHeader(path string) (h idxHeader, err error) {
	err = withIDX(path, func(r io.Reader) error {
		h, err = parseIDXHeader(r)
		return err
	})
	return h, err
}

// readIDX reads a file whose header passes check.
func readIDX(path string, check func(idxHeader) error) (h idxHeader, values []byte, err error) {
	err = withIDX(path, func(r io.Reader) error {
		h, values, err = parseIDX(r, check)
		return err
	})
	return h, values, err
}

// withIDX opens a file, plain or compressed, for the time of a call.
func withIDX(path string, read func(io.Reader) error) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() { // to open a pipe would wait for a writer
		return errors.New("it is no regular file")
	}
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	r, err := plain(f)
	if err != nil {
		return err
	}
	return read(r)
}

// plain takes off gzip's compression, which it tells by the first two bytes.
func plain(r io.Reader) (io.Reader, error) {
	b := bufio.NewReader(r)
	if magic, _ := b.Peek(2); string(magic) != "\x1f\x8b" {
		return b, nil // an error of Peek comes again when b is read
	}
	z, err := gzip.NewReader(b)
	if err != nil {
		return nil, truncatedIDX(err)
	}
	return z, nil
}

// idxSource gives images from memory.
type idxSource struct {
	path           string
	h, w, channels int // 1 or 3 channels
	pixels         []byte
	labels         []byte
	classes        int
}

func (s *idxSource) Len() int          { return len(s.labels) }
func (s *idxSource) Name(i int) string { return fmt.Sprintf("%s, image %d", s.path, i) }
func (s *idxSource) Classes() int      { return s.classes }
func (s *idxSource) Close() error      { return nil }

// Read gives image i in RGB.
func (s *idxSource) Read(_ *Call, i int, out *Element) (int32, error) {
	size := s.h * s.w * s.channels
	src, dst := s.pixels[i*size:][:size], out.Image(s.h, s.w)
	if s.channels == 3 {
		copy(dst, src)
	} else {
		for _, v := range src {
			dst[0], dst[1], dst[2] = v, v, v
			dst = dst[3:]
		}
	}
	return int32(s.labels[i]), nil
}
