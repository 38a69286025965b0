package sources

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"math/rand/v2"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/pipectl/pipectl/stages"
	"github.com/pipectl/pipectl/stages/storage"
)

// WebDataset holds the attributes of `load "webdataset"`.
type WebDataset struct {
	Shards   []stages.Path `hcl:"shards" doc:"The tar files, or patterns: \x60\"data-{000000..000127}.tar\"\x60 counts as in bash, \x60\"data-*.tar\"\x60 matches the files there are; \x60https://…\x60 and \x60s3://bucket/…\x60 are read where they are."`
	Data     string        `hcl:"data,optional" doc:"The extension of the member that is the item, or several by \x60;\x60, of which the first that a sample has counts."`
	Label    string        `hcl:"label,optional" doc:"The extension of the member with the label; \x60\"\"\x60 where samples have none."`
	LabelKey string        `hcl:"label_key,optional" doc:"Where the label's member is JSON, the key of its object that holds the label."`
	Labels   string        `hcl:"labels,optional" enum:"numbers,names" doc:"What labels are: whole numbers from 0, or names of classes, which are numbered 0, 1, … in the order of their names."`
	Index    stages.Path   `hcl:"index,optional" doc:"A folder for what was found in the shards, from which later runs take it; it is made where there is none."`
	Shuffle  bool          `hcl:"shuffle,optional" doc:"Give each epoch's items in a new order, drawn from the experiment's seed."`
	Buffer   int           `hcl:"buffer,optional" min:"0" doc:"With \x60shuffle\x60: shuffle the shards, and then so many samples at a time, as they come. 0 shuffles all samples."`
}

func webDatasetOperator() stages.Operator {
	return stages.Operator{
		Block:   stages.Load,
		Type:    "webdataset",
		Summary: "Reads the samples in WebDataset's tar shards.",
		Doc: `A sample is the members of a shard that follow each other and whose names are the same up to the first dot of their last part: ` + "`n01/cat.jpg`" + ` and
` + "`n01/cat.cls`" + ` are a sample with the extensions ` + "`jpg` and `cls`" + `, which count in lower case. Names without an extension, hidden files, and ` + "`__names__`" + ` set
apart by underscores are left out. The format: https://github.com/webdataset/webdataset.

The item is the bytes of the member that ` + "`data`" + ` names; with ` + "`data = \"npy\"`" + ` it is the array in it, of the kinds that load "npy" has (a sample's array is one of
its rows), all of one shape, except for tokens. Text (` + "`txt`, `json`" + `) is opaque bytes.

Opening a data set reads the headers of all members, and the labels, but passes over the rest: one short read a sample, so that every item can be
read by itself. For many samples on a server that takes minutes: ` + "`index`" + ` keeps what was found, for as long as a shard's size and version (its time of change, or the
server's tag) stay what they are. So ` + "`shuffle`" + ` draws from all items evenly, and each item from a server is one request; more ` + "`workers`" + ` have more of them under way.
With ` + "`buffer`" + ` the shards come in a new order, and the samples of that stream are shuffled in windows of so many: less evenly, but from servers in requests of
4 MiB, ahead of the readers, as without ` + "`shuffle`" + `. Memory holds two windows of samples then, and 64 MiB besides.

A sample without one of the members or with a label that can't be read is an error of its item, which ` + "`on_error = \"skip\"`" + ` passes over and counts. So is
the rest of a shard that is truncated or damaged, or has another archive behind its end: one item stands for all that can't be found in it. All of these are told of
before the first item is read. A shard that ends after a whole member, but without the mark that ends an archive, is read with a warning. Compressed shards are
refused, and so are members that are sparse or links.`,
		New: func() any {
			return &WebDataset{Data: "jpg;jpeg;png;webp;ppm;pgm;bmp;tif;tiff", Label: "cls", Labels: "numbers"}
		},
	}
}

const mostData = 1<<31 - 1 // bytes in an item

// Validate reports shards that can't be read, and attributes that don't belong together.
func (s *WebDataset) Validate() []stages.Problem {
	var problems []stages.Problem
	add := func(attribute, summary, detail string) {
		problems = append(problems, stages.Problem{Attribute: attribute, Summary: summary, Detail: detail})
	}
	extensions := strings.Split(s.Data, ";")
	for _, e := range append(extensions, s.Label) {
		if strings.HasPrefix(e, ".") || e != strings.ToLower(e) {
			add("data", "Not an extension", fmt.Sprintf("Write the extension %q in lower case and without the dot before it.", e))
			break
		}
	}
	if slices.Contains(extensions, "") {
		add("data", "Empty extension", `Give the extension of the members that are the items, such as "jpg", or several: "jpg;png".`)
	}
	if slices.Contains(extensions, "npy") && len(extensions) > 1 {
		add("data", "Arrays and others", `Items are all arrays or all others: give data = "npy" alone, or leave npy out.`)
	}
	if s.Buffer > 0 && !s.Shuffle {
		add("buffer", "Buffer without shuffling", "The buffer is what shards are shuffled in: set shuffle = true, or leave buffer out.")
	}
	if s.LabelKey != "" && s.Label == "" {
		add("label_key", "Key without a member", `Say which member the key is in, such as label = "json".`)
	}
	if s.LabelKey == "" && (s.Label == "json" || strings.HasSuffix(s.Label, ".json")) {
		add("label", "Label without a key", "The label's member is a JSON object: give label_key, the key that the label is under.")
	}
	return append(problems, checkFiles("shards", s.Shards, func(ctx context.Context, path string, f storage.File) error {
		r := &tarReader{ctx: ctx, f: f, window: make([]byte, 0, window(path))}
		if err := r.compressed(); err != nil {
			return err
		}
		if _, err := tar.NewReader(r).Next(); r.err != nil {
			return r.err
		} else if err != nil && !errors.Is(err, io.EOF) {
			return errors.New("it doesn't start as a tar archive does")
		}
		return nil
	})...)
}

// window returns how many bytes of a shard are read to find a header. A small member's next header is among them.
func window(path string) int {
	if storage.Remote(path) {
		return 64 << 10 // which takes a server hardly longer than less
	}
	return 4 << 10
}

// Output returns the type of a member; for arrays that of the first sample's, or an unknown one while that can't be read.
func (s *WebDataset) Output() stages.Type {
	text := true
	for e := range strings.SplitSeq(s.Data, ";") {
		text = text && slices.Contains([]string{"txt", "text", "json", "cls", "csv", "html", "xml", "md"}, e[strings.LastIndexByte(e, '.')+1:])
	}
	switch {
	case text:
		return stages.Type{Kind: stages.Opaque}
	case s.Data != "npy":
		return stages.Type{Kind: stages.Encoded}
	}
	var t stages.Type
	shards, err := expandBraces(s.Shards)
	if err != nil || len(shards) == 0 {
		return t
	}
	checkFiles("shards", shards[:1], func(ctx context.Context, path string, f storage.File) error {
		found, err := s.index(ctx, f, window(path), 1)
		samples := found.samples
		if err != nil || len(samples) == 0 || samples[0].err != nil || t.Kind != stages.Unknown {
			return err
		}
		data := make([]byte, samples[0].size)
		if err := readAt(ctx, f, data, samples[0].off); err != nil {
			return err
		}
		_, t, err = parseArray(data)
		return err
	})
	return t
}

// Shuffled reports whether each epoch's items come in a new order.
func (s *WebDataset) Shuffled() bool { return s.Shuffle }

// Open finds the samples of all shards.
func (s *WebDataset) Open(ctx context.Context, _ uint64) (stages.Source, error) {
	src := &wdsSource{fileSet: &fileSet{client: storage.New()}, typ: s.Output(), array: s.Data == "npy"}
	if err := src.open(ctx, s); err != nil {
		return nil, errors.Join(err, src.Close())
	}
	if !s.Shuffle || s.Buffer > 0 {
		src.stream(s.Buffer)
	}
	if s.Buffer > 0 {
		return &bufferedSource{src, s.Buffer}, nil
	}
	return src, nil
}

// wdsSource reads members of shards.
type wdsSource struct {
	*fileSet
	typ     stages.Type
	array   bool // members are .npy files
	samples [][]wdsSample
	endless []int            // the shards without the mark that ends an archive
	labels  map[string]int32 // the number of each class's name; nil where labels are numbers
	classes int
	named   []string // the classes' names; nil where labels are numbers
	buffers scratch
	cache   *storage.Cache // of remote shards whose samples are read close to each other; nil otherwise
}

// stream makes remote shards be read in large pieces, for samples that are read in windows of so many.
func (s *wdsSource) stream(window int) {
	if s.Files() != nil {
		return
	}
	var bytes int64
	for _, f := range s.files {
		bytes += f.Size()
	}
	s.cache = storage.NewCache(streamed + 2*int64(window)*(bytes/int64(s.count)+1))
	for i, f := range s.files {
		s.files[i] = s.cache.File(f)
	}
}

const streamed = 64 << 20 // bytes of the shards that are kept besides the windows

func (s *wdsSource) Close() error {
	err := s.fileSet.Close()
	if s.cache != nil {
		s.cache.Wait()
	}
	return err
}

// bufferedSource is shuffled by shards and windows.
type bufferedSource struct {
	*wdsSource
	window int
}

// Order gives the shards in an order drawn from r, and their samples in windows each of which is in an order of its own.
func (s *bufferedSource) Order(r *rand.Rand, order []int32) {
	shuffleBlocks(r, order, s.firsts, s.window)
}

func (s *wdsSource) open(ctx context.Context, spec *WebDataset) error {
	var err error
	if s.paths, err = expand(ctx, s.client, spec.Shards); err != nil {
		return err
	}
	s.files, s.samples = make([]storage.File, len(s.paths)), make([][]wdsSample, len(s.paths))
	endless := make([]bool, len(s.paths))
	group, within := errgroup.WithContext(ctx)
	group.SetLimit(indexers(s.paths))
	for i, path := range s.paths {
		s.names = append(s.names, storage.Redacted(path))
		group.Go(func() (err error) {
			if s.files[i], err = s.client.Open(ctx, path); err != nil { // for as long as the source is open
				return err
			}
			found, err := spec.shard(within, path, s.files[i])
			if err != nil {
				return fmt.Errorf("reading %s: %w", storage.Redacted(path), withoutPath(err))
			}
			s.samples[i], endless[i] = found.samples, found.endless
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		s.files = slices.DeleteFunc(s.files, func(f storage.File) bool { return f == nil })
		return err
	}
	for i, samples := range s.samples {
		s.firsts = append(s.firsts, s.count)
		s.count += len(samples)
		if endless[i] {
			s.endless = append(s.endless, i)
		}
	}
	if s.count == 0 {
		return errors.New("there are no samples in " + strings.Join(s.names, ", "))
	}
	s.countClasses(spec)
	return nil
}

// indexers returns how many shards are read at a time.
func indexers(paths []string) int {
	if slices.ContainsFunc(paths, storage.Remote) {
		return 16
	}
	return runtime.GOMAXPROCS(0)
}

// countClasses counts the classes, and numbers them where they have names.
func (s *wdsSource) countClasses(spec *WebDataset) {
	if spec.Label == "" {
		return
	}
	if spec.Labels == "names" {
		s.labels = make(map[string]int32)
	}
	for _, samples := range s.samples {
		for _, it := range samples {
			switch {
			case it.err != nil:
			case s.labels != nil:
				s.labels[it.label] = 0
			default:
				n, _ := strconv.Atoi(it.label) // which index has tried
				s.classes = max(s.classes, n+1)
			}
		}
	}
	if s.labels == nil {
		return
	}
	s.named = slices.Sorted(maps.Keys(s.labels))
	for i, name := range s.named {
		s.labels[name] = int32(i)
	}
	s.classes = len(s.named)
}

// ClassNames returns the classes' names, nil where labels are numbers.
func (s *wdsSource) ClassNames() []string { return s.named }

func (s *wdsSource) Classes() int { return s.classes }

// Faults yields the samples that were found to be faulty.
func (s *wdsSource) Faults() iter.Seq2[int, error] {
	return func(yield func(int, error) bool) {
		for shard, samples := range s.samples {
			for n := range samples {
				if err := samples[n].err; err != nil && !yield(s.firsts[shard]+n, err) {
					return
				}
			}
		}
	}
}

// Warning says which shards may have lost their end.
func (s *wdsSource) Warning() string {
	if len(s.endless) == 0 {
		return ""
	}
	first := s.endless[0]
	return fmt.Sprintf("The shard %s ends at byte %d, after a member and without the mark that ends an archive%s. If whoever wrote it was interrupted, or not all "+
		"of it was copied, samples are missing.", s.names[first], s.files[first].Size(), more(len(s.endless)-1))
}

// Name returns the shard and the member.
func (s *wdsSource) Name(i int) string {
	shard, n := s.locate(i)
	return s.names[shard] + ", " + s.samples[shard][n].name
}

// Read gives the member of sample i.
func (s *wdsSource) Read(c *stages.Call, i int, out *stages.Element) (label int32, err error) {
	shard, n := s.locate(i)
	it := &s.samples[shard][n]
	if it.err != nil {
		return 0, it.err
	}
	if s.labels != nil {
		label = s.labels[it.label]
	} else if it.label != "" {
		n, _ := strconv.Atoi(it.label)
		label = int32(n)
	}
	if !s.array {
		err = readAt(c.Context, s.files[shard], out.Bytes(s.typ, int(it.size)), it.off)
	} else {
		err = s.readArray(c.Context, s.files[shard], it, out)
	}
	if err != nil {
		return 0, fmt.Errorf("member %s at byte %d: %w", it.name, it.off, err)
	}
	return label, nil
}

// readArray makes out the array in a .npy member.
func (s *wdsSource) readArray(ctx context.Context, f storage.File, it *wdsSample, out *stages.Element) error {
	buffer := s.buffers.get(int(it.size))
	defer s.buffers.put(buffer)
	if err := readAt(ctx, f, *buffer, it.off); err != nil {
		return err
	}
	h, t, err := parseArray(*buffer)
	if err != nil {
		return err
	}
	if t.Kind != s.typ.Kind || t.Kind != stages.Tokens && t != s.typ {
		return fmt.Errorf("its array is %s, and the first sample's %s: all must be of one shape", t, s.typ)
	}
	values := (*buffer)[h.start:]
	switch t.Kind {
	case stages.Tensor:
		h.floats(out.Tensor(t.Shape[0], t.Shape[1], t.Shape[2]), values)
	case stages.Image:
		dst := out.Image(t.Shape[0], t.Shape[1])
		if len(values) == len(dst) {
			copy(dst, values)
			break
		}
		for i, v := range values {
			dst[3*i], dst[3*i+1], dst[3*i+2] = v, v, v
		}
	case stages.Tokens:
		out.Type = stages.Type{Kind: stages.Tokens, Shape: stages.Shape{h.row()}}
		out.I32 = slices.Grow(out.I32[:0], h.row())[:h.row()]
		return h.ints(out.I32, values)
	}
	return nil
}

// parseArray reads what a .npy member says of its array, and returns what the array is as an item. The length of tokens may differ.
func parseArray(data []byte) (npyHeader, stages.Type, error) {
	h, err := readNpyHeader(context.Background(), member{bytes.NewReader(data)})
	if err != nil {
		return h, stages.Type{}, err
	}
	h.dims = append([]int{1}, h.dims...) // as load "npy" has it: the first dimension counts the items
	t, err := npyType(h)
	if t.Kind == stages.Tokens {
		t.Shape[0] = 0
	}
	return h, t, err
}

// member is a member in memory as a file.
type member struct{ *bytes.Reader }

func (m member) ReadAtContext(_ context.Context, p []byte, off int64) (int, error) {
	return m.ReadAt(p, off)
}
func (m member) Version() string { return "" }
func (m member) Close() error    { return nil }
