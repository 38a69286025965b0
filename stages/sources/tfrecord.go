package sources

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"math"

	"github.com/pipectl/pipectl/stages"
	"github.com/pipectl/pipectl/stages/storage"
)

// TFRecord holds the attributes of `load "tfrecord"`.
type TFRecord struct {
	Files   []stages.Path `hcl:"files" doc:"The TFRecord files, or patterns (\x60\"train-*.tfrecord\"\x60; \x60{0..9}\x60 counts, on web servers too). Their records count on from one to the next."`
	Feature string        `hcl:"feature" doc:"The feature that an item is, such as \x60\"image/encoded\"\x60: one value of bytes, or a list of numbers."`
	Label   string        `hcl:"label,optional" doc:"The feature with an item's label, a whole number; \x60\"\"\x60 where they have none."`
	Classes int           `hcl:"classes,optional" min:"0" max:"2147483647" doc:"How many classes there are where there is a \x60label\x60: labels are from 0 to classes - 1."`
	Sample
	Shuffle bool `hcl:"shuffle,optional" doc:"Give each epoch's items in a new order, drawn from the experiment's seed."`
}

func tfRecordOperator() stages.Operator {
	return stages.Operator{
		Block:   stages.Load,
		Type:    "tfrecord",
		Summary: "Reads tf.train.Example messages from TensorFlow's TFRecord files.",
		Doc: `An item is one feature of a record, of bytes, floating-point or whole numbers. All checksums are verified. A damaged record is an error that says
where it is, or is skipped and counted with ` + "`on_error = \"skip\"`" + `. Where the damage hides where the next record starts, the rest of the file counts as one item.

The files have no index, so that one is made when they are opened (8 bytes of memory for each record). On this machine that reads little more
than the records' headers; a file elsewhere is fetched whole for it once. A file that
is compressed as a whole, by TFRecordOptions' GZIP or ZLIB, is unpacked then to a temporary file without a name, which goes with the process: it needs as
much room in the temporary folder (` + "`TMPDIR`" + `) as the records take. Where it can't be unpacked to its end, that is an
error; places of records are those in what was unpacked.`,
		New: func() any { return &TFRecord{Sample: Sample{Output: "auto"}} },
	}
}

// Validate reports files that are missing or of another format, and features that the first record doesn't have.
func (s *TFRecord) Validate() []stages.Problem {
	var problems []stages.Problem
	switch {
	case s.Label != "" && s.Classes == 0:
		problems = append(problems, stages.Problem{Attribute: "label", Summary: "Number of classes missing", Detail: "Say with classes how many there are: to find out, every record would have to be read."})
	case s.Label == "" && s.Classes > 0:
		problems = append(problems, stages.Problem{Attribute: "classes", Summary: "Classes without labels", Detail: "Say with label which feature has the items' labels, or leave classes out."})
	}
	_, more := s.look()
	return append(problems, more...)
}

// Output returns the type of an item, or an unknown one while no record can be read.
func (s *TFRecord) Output() stages.Type {
	t, _ := s.look()
	return t
}

// Shuffled reports whether each epoch's items come in a new order.
func (s *TFRecord) Shuffled() bool { return s.Shuffle }

// look reads a record of the first file that has one, and looks at the starts of the others.
func (s *TFRecord) look() (stages.Type, []stages.Problem) {
	var form recordForm
	problems := checkFiles("files", s.Files, func(ctx context.Context, _ string, f storage.File) error {
		table := crc32.MakeTable(crc32.Castagnoli)
		most, start := 1, int64(recordHeader)
		if !form.known {
			most, start = learnFrom, learnBytes
		}
		p, err := packingOf(ctx, table, f)
		if err == nil && p != nil {
			f, err = p.startOf(ctx, f, start)
		}
		if err != nil {
			return err
		}
		x, err := indexRecords(f.Size(), most, fileHeaders(ctx, f))
		if err != nil {
			return err
		}
		return s.learn(ctx, table, f, x, &form)
	})
	return form.typ, problems
}

// recordForm is what an item of every record is.
type recordForm struct {
	known bool
	kind  valueKind
	typ   stages.Type
}

// learnFrom is how many records of a file are tried before the next is.
const learnFrom = 16

// learnBytes is how much of a compressed file is unpacked for them.
const learnBytes = 16 << 20

// learn finds form by the first record of a file that isn't damaged, unless it is known.
func (s *TFRecord) learn(ctx context.Context, table *crc32.Table, f storage.File, x recordIndex, form *recordForm) error {
	if form.known {
		return nil
	}
	for i := range min(learnFrom, len(x.starts)-1) {
		e, err := readRecord(ctx, table, f, x.starts[i], make([]byte, x.starts[i+1]-x.starts[i]))
		if err != nil {
			continue // damaged: its reader will be told
		}
		found, err := e.find(s.Feature, s.Label)
		switch {
		case err != nil:
			return err
		case !found[0].there:
			return &problemError{Attribute: "feature", Summary: "No such feature", Detail: noSuch("feature", s.Feature, e.names())}
		case s.Label != "" && !found[1].there:
			return &problemError{Attribute: "label", Summary: "No such feature", Detail: noSuch("feature", s.Label, e.names())}
		case s.Label != "" && found[1].kind != integers:
			return &problemError{Attribute: "label", Summary: "No label", Detail: fmt.Sprintf("The feature %q has %s, where labels are whole numbers. Number the classes when the files are written.", s.Label, found[1].kind)}
		}
		form.known, form.kind = true, found[0].kind
		form.typ, err = s.typeOf(form.kind)
		return err
	}
	return nil
}

// Open finds the records.
func (s *TFRecord) Open(ctx context.Context, _ uint64) (stages.Source, error) {
	src := &recordSource{spec: *s, table: crc32.MakeTable(crc32.Castagnoli)}
	var err error
	src.fileSet, err = openFiles(ctx, s.Files, func(set *fileSet, path string, f storage.File) (int, error) {
		p, err := packingOf(ctx, src.table, f)
		if err != nil {
			return 0, err
		}
		if p != nil {
			spool, err := p.spool(ctx, set.client, path)
			if err != nil {
				return 0, err
			}
			src.spools = append(src.spools, spool)
			f = unpackedMember{f, spool.file, spool.end.Load()}
		}
		src.records = append(src.records, f)
		header := fileHeaders(ctx, f)
		if p == nil && storage.Remote(path) {
			r, err := set.client.Stream(ctx, path)
			if err != nil {
				return 0, err
			}
			defer r.Close()
			header = streamHeaders(r)
		}
		x, err := indexRecords(f.Size(), math.MaxInt-1, header)
		if err != nil {
			return 0, err
		}
		src.index = append(src.index, x)
		return x.items(), s.learn(ctx, src.table, f, x, &src.form)
	})
	if err == nil && !src.form.known {
		err = errors.New("no record can be read: all that were tried are damaged")
	}
	if err != nil {
		return nil, errors.Join(err, src.Close())
	}
	return src, nil
}

// recordSource reads records.
type recordSource struct {
	*fileSet
	spec    TFRecord
	form    recordForm
	records []storage.File // each file, or what was unpacked of it
	index   []recordIndex  // of each file
	spools  []*spoolFile
	table   *crc32.Table
	buffers scratch
}

// Close closes the files, and gives up what was unpacked.
func (s *recordSource) Close() error {
	var errs []error
	for _, spool := range s.spools {
		errs = append(errs, spool.Close())
	}
	if s.fileSet != nil {
		errs = append(errs, s.fileSet.Close())
	}
	return errors.Join(errs...)
}

func (s *recordSource) Classes() int { return s.spec.Classes }

// Name returns the file, the record's place in it, and where it starts.
func (s *recordSource) Name(i int) string {
	file, record := s.locate(i)
	return fmt.Sprintf("%s, record %d at byte %d", s.names[file], record, s.index[file].starts[record])
}

// Read gives the feature of record i.
func (s *recordSource) Read(c *stages.Call, i int, out *stages.Element) (int32, error) {
	file, record := s.locate(i)
	x := &s.index[file]
	if record == len(x.starts)-1 {
		return 0, x.broken
	}
	size := x.starts[record+1] - x.starts[record]
	if size > mostFile {
		return 0, fmt.Errorf("a record of %s is too large for an item", stages.Bytes(size))
	}
	buffer := s.buffers.get(int(size))
	defer s.buffers.put(buffer)
	e, err := readRecord(c.Context, s.table, s.records[file], x.starts[record], *buffer)
	if err != nil {
		return 0, err
	}
	found, err := e.find(s.spec.Feature, s.spec.Label)
	if err != nil {
		return 0, err
	}
	if !found[0].there {
		return 0, errors.New(noSuch("feature", s.spec.Feature, e.names()))
	}
	if found[0].kind != s.form.kind {
		return 0, fmt.Errorf("feature %q has %s, where another record has %s", s.spec.Feature, found[0].kind, s.form.kind)
	}
	if err := found[0].read(s.form.typ, out); err != nil {
		return 0, fmt.Errorf("feature %q: %w", s.spec.Feature, err)
	}
	if s.spec.Label == "" {
		return 0, nil
	}
	if !found[1].there {
		return 0, errors.New(noSuch("feature", s.spec.Label, e.names()))
	}
	label, err := found[1].label(s.spec.Classes)
	if err != nil {
		return 0, fmt.Errorf("feature %q: %w", s.spec.Label, err)
	}
	return label, nil
}
