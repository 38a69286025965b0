package sources

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pipectl/pipectl/internal/tests3"
	"github.com/pipectl/pipectl/stages"
	"github.com/pipectl/pipectl/stages/storage"
)

func newWebDataset(shards ...stages.Path) *WebDataset {
	spec := webDatasetOperator().New().(*WebDataset)
	spec.Shards = shards
	return spec
}

// shard makes a tar archive of members, given as names and contents in turn.
func shard(members ...string) string {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for i := 0; i < len(members); i += 2 {
		err := w.WriteHeader(&tar.Header{Name: members[i], Size: int64(len(members[i+1])), Mode: 0o644, Format: tar.FormatUSTAR})
		if err == nil {
			_, err = io.WriteString(w, members[i+1])
		}
		if err != nil {
			panic(err)
		}
	}
	w.Close()
	return b.String()
}

// TestWebDatasetFormats compares what is found in shards that Python wrote with what Python finds in them.
func TestWebDatasetFormats(t *testing.T) {
	data, err := os.ReadFile("testdata/webdataset/samples.json")
	if err != nil {
		t.Fatal(err)
	}
	var shards map[string][]struct {
		Key     string
		Members map[string][3]any // name, offset, size
	}
	if err := json.Unmarshal(data, &shards); err != nil {
		t.Fatal(err)
	}
	for name, samples := range shards {
		spec := newWebDataset()
		var want []wdsSample
		for _, s := range samples {
			for _, extension := range append(strings.Split(spec.Data, ";"), "npy") {
				if m := s.Members[extension]; m[0] != nil {
					want = append(want, wdsSample{name: m[0].(string), off: int64(m[1].(float64)), size: int64(m[2].(float64))})
					break
				}
			}
		}
		spec.Label = ""
		if name == "npy" {
			spec.Data = "npy"
		}
		for _, window := range []int{512, 4 << 10, 64 << 10} {
			f, err := storage.Open(t.Context(), "testdata/webdataset/"+name+".tar")
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			got, err := spec.index(t.Context(), f, window, math.MaxInt)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(wdsShard{samples: want}, got, cmp.AllowUnexported(wdsShard{}, wdsSample{})); diff != "" {
				t.Errorf("%s: %s", name, diff)
			}
		}
	}
}

func TestWebDataset(t *testing.T) {
	const encoded = "encoded bytes"
	dir := folder(t, map[string]string{
		"a-00.tar": shard("0.jpg", "jpeg 0", "0.cls", "2", "1.cls", " 0 \n", "1.png", "png 1", "1.jpg", "jpeg 1"),
		"a-01.tar": shard(),
		"a-02.tar": shard("1.jpg", "another 1", "1.cls", "0"),
		"json.tar": shard("0.txt", "text", "0.json", `{"label": 7, "name": "dog"}`, "1.txt", "é", "1.json", `{"label": 0, "name": "cat"}`),
	})
	for _, tt := range []struct {
		name    string
		shards  string
		set     func(*WebDataset)
		want    []item
		classes int
		names   []string
	}{
		{"numbers", "DIR/a-{00..02}.tar", func(*WebDataset) {}, []item{
			{"DIR/a-00.tar, 0.jpg", 2, encoded, "jpeg 0", nil, nil},
			{"DIR/a-00.tar, 1.jpg", 0, encoded, "jpeg 1", nil, nil},
			{"DIR/a-02.tar, 1.jpg", 0, encoded, "another 1", nil, nil},
		}, 3, nil},
		{"order of extensions", "DIR/a-0[02].tar", func(s *WebDataset) { s.Data, s.Label = "png;jpg", "" }, []item{
			{"DIR/a-00.tar, 0.jpg", 0, encoded, "jpeg 0", nil, nil},
			{"DIR/a-00.tar, 1.png", 0, encoded, "png 1", nil, nil},
			{"DIR/a-02.tar, 1.jpg", 0, encoded, "another 1", nil, nil},
		}, 0, nil},
		{"text", "DIR/json.tar", func(s *WebDataset) { s.Data, s.Label, s.LabelKey = "txt", "json", "label" }, []item{
			{"DIR/json.tar, 0.txt", 7, "opaque bytes [?]", "text", nil, nil},
			{"DIR/json.tar, 1.txt", 0, "opaque bytes [?]", "é", nil, nil},
		}, 8, nil},
		{"names", "DIR/json.tar", func(s *WebDataset) { s.Data, s.Label, s.LabelKey, s.Labels = "txt", "json", "name", "names" }, []item{
			{"DIR/json.tar, 0.txt", 1, "opaque bytes [?]", "text", nil, nil},
			{"DIR/json.tar, 1.txt", 0, "opaque bytes [?]", "é", nil, nil},
		}, 2, []string{"cat", "dog"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			spec := newWebDataset(stages.Path(strings.ReplaceAll(tt.shards, "DIR", dir)))
			tt.set(spec)
			if p := spec.Validate(); p != nil {
				t.Errorf("problems %v", p)
			}
			src := opened(t, spec)
			got := items(t, src)
			for i := range got {
				got[i].Name = strings.ReplaceAll(got[i].Name, dir, "DIR")
			}
			if diff := cmp.Diff(tt.want, got); diff != "" || src.Classes() != tt.classes {
				t.Errorf("%d classes, %s", src.Classes(), diff)
			}
			if got := src.(stages.ClassNamer).ClassNames(); !slices.Equal(got, tt.names) {
				t.Errorf("classes %q", got)
			}
			if got := slices.Collect(src.(stages.FileLister).Files()); len(got) == 0 || filepath.Dir(got[0]) != dir {
				t.Errorf("files %q", got)
			}
		})
	}
}

func TestWebDatasetArrays(t *testing.T) {
	spec := newWebDataset("testdata/webdataset/npy.tar")
	spec.Data = "npy"
	if got, want := spec.Output(), stages.TensorType(1, 2, 3); got != want {
		t.Errorf("its items are %s, want %s", got, want)
	}
	src := opened(t, spec)
	for i, want := range [][]float32{{0, 0.25, 0.5, 0.75, 1, 1.25}, {0, -1, -2, -3, -4, -5}} {
		out := new(stages.Element)
		label, err := src.Read(&stages.Call{Context: t.Context()}, i, out)
		if err != nil || int(label) != i || !slices.Equal(out.F32, want) || out.Type != spec.Output() {
			t.Errorf("item %d is %s %v with label %d, error %v", i, out.Type, out.F32, label, err)
		}
	}
	if got, want := readError(t, src, 2), "member 2.npy at byte 4608: its array is float32 1×2×2, and the first sample's float32 1×2×3: all must be of one shape"; got != want {
		t.Errorf("error %q, want %q", got, want)
	}

	dir := folder(t, map[string]string{
		"tokens.tar": shard("0.npy", npyFile("'<i4'", "False", "(2,)", "\x01\x00\x00\x00\x02\x00\x00\x00"), "1.npy", npyFile("'<u2'", "False", "(3,)", "\x01\x00\x02\x00\x03\x00")),
		"grey.tar":   shard("0.npy", npyFile("'|u1'", "False", "(1, 2)", "\x01\x02"), "1.npy", npyFile("'|u1'", "False", "(1, 2, 3)", "\x01\x02\x03\x04\x05\x06")),
	})
	for name, want := range map[string][]item{
		"tokens.tar": {{"0.npy", 0, "int32 tokens [2]", "", nil, []int32{1, 2}}, {"1.npy", 0, "int32 tokens [3]", "", nil, []int32{1, 2, 3}}},
		"grey.tar": {
			{"0.npy", 0, "uint8 image 1×2×3", "\x01\x01\x01\x02\x02\x02", nil, nil},
			{"1.npy", 0, "uint8 image 1×2×3", "\x01\x02\x03\x04\x05\x06", nil, nil},
		},
	} {
		spec := newWebDataset(in(dir, name)...)
		spec.Data, spec.Label = "npy", ""
		for i := range want {
			want[i].Name = filepath.Join(dir, name) + ", " + want[i].Name
		}
		if diff := cmp.Diff(want, items(t, opened(t, spec))); diff != "" {
			t.Error(diff)
		}
	}
}

// TestWebDatasetFaults checks that what is wrong with a sample is an error of its item, and the others are read.
func TestWebDatasetFaults(t *testing.T) {
	whole := shard("0.jpg", "jpeg 0", "0.cls", "1", "1.jpg", strings.Repeat("jpeg 1", 1000), "1.cls", "1")
	sparseHeader := []byte(whole)
	copy(sparseHeader[257:], "ustar  \x00")
	sparseHeader[156] = 'S'
	copy(sparseHeader[345:], make([]byte, 167)) // the map of what it doesn't leave out: 6 bytes from 0
	copy(sparseHeader[386:], "00000000000\x0000000000006\x00")
	copy(sparseHeader[483:], "00000000006\x00")
	sumHeader(sparseHeader[:512])
	links := []byte(shard("0.jpg", "", "0.cls", "1", "1.jpg", "b", "1.cls", "1", "1.txt", ""))
	for _, at := range []int{0, 3584} {
		links[at+156] = tar.TypeSymlink
		copy(links[at+157:], "elsewhere")
		sumHeader(links[at : at+512])
	}
	huge := []byte(whole)
	copy(huge[124:], "\x80\x00\x00\x00\x7f\xff\xff\xff\xff\xff\xff\xff")
	sumHeader(huge[:512])
	type fault struct{ Name, Err string }
	good := fault{"0.jpg", ""}
	for _, tt := range []struct {
		name, shard string
		set         func(*WebDataset)
		want        []fault
	}{
		{"cut in data", whole[:2048+600], nil, []fault{good, {"1", "member 1.jpg at byte 2560 has 6000 bytes, and the shard ends after 88 of them: it is truncated"}}},
		{"cut in a header", whole[:2048+100], nil, []fault{good, {"rest from byte 2048", "the shard ends at byte 2148, where a member or its header goes on: it is truncated"}}},
		{"joined", whole + whole, nil, []fault{good, {"1.jpg", ""}, {"rest from byte 10752", "at byte 10752 more follows after the mark that ends the archive, as where archives were joined, which tar doesn't read: pack what is in them as one"}}},
		{"links", string(links), nil, []fault{
			{"0", "member 0.jpg at byte 512 is a link to elsewhere, which isn't followed; make the shard anew, with tar's --dereference and --hard-dereference"}, {"1.jpg", ""},
		}},
		{"damaged header", whole[:2048] + "x" + whole[2049:], nil, []fault{good, {"rest from byte 2048", "at byte 2048 there is no header of a member, or a damaged one (invalid tar header)"}}},
		{"bad label", shard("0.jpg", "a", "0.cls", "1", "1.jpg", "b", "1.cls", "cat", "2.jpg", "c", "2.cls", "-1", "3.jpg", "d", "3.cls", ""), nil, []fault{
			good,
			{"1.jpg", `member 1.cls at byte 3584: the label is "cat", which is no whole number from 0; set labels = "names" if it is a class's name`},
			{"2.jpg", `member 2.cls at byte 5632: the label is "-1", which is no whole number from 0; set labels = "names" if it is a class's name`},
			{"3.jpg", `member 3.cls at byte 7680: the label is "", which is no whole number from 0; set labels = "names" if it is a class's name`},
		}},
		{"missing members", shard("0.jpg", "a", "0.cls", "1", "1.jpg", "b", "1.txt", "t", "2.cls", "1"), nil, []fault{
			good,
			{"1.jpg", "the sample 1 at byte 2560 has no member cls for label; it has jpg, txt. A sample's members must stand together, as tar --sort=name packs them"},
			{"2", "the sample 2 at byte 4608 has no member jpg;jpeg;png;webp;ppm;pgm;bmp;tif;tiff for data; it has cls. A sample's members must stand together, as tar --sort=name packs them"},
		}},
		{"twice", shard("0.jpg", "a", "0.cls", "1", "1.jpg", "b", "1.JPG", "c", "1.cls", "1"), nil, []fault{good, {"1", "member 1.JPG at byte 3584 is there twice"}}},
		{"sparse", string(sparseHeader), nil, []fault{
			{"0", "member 0.jpg at byte 512 is sparse, which isn't supported; make the shard anew, without tar's --sparse"}, {"1.jpg", ""},
		}},
		{"huge", string(huge), nil, []fault{{"0", fmt.Sprintf("member 0.jpg at byte 512 has 9223372036854775807 bytes, and the shard ends after %d of them: it is truncated", len(whole)-512)}}},
		{"huge label", shard("0.jpg", "a", "0.cls", strings.Repeat(" ", 1<<20+1)), nil, []fault{{"0", "member 0.cls at byte 1536 has 1048577 bytes, too many for a label"}}},
		{
			"json", shard("0.jpg", "a", "0.json", `{"l": 3}`, "1.jpg", "b", "1.json", `{"m": 3}`, "2.jpg", "c", "2.json", `{"l"`, "3.jpg", "d", "3.json", `{"l": [3]}`),
			func(s *WebDataset) { s.Label, s.LabelKey = "json", "l" }, []fault{
				good,
				{"1.jpg", `member 1.json at byte 3584: it has no key "l"`},
				{"2.jpg", "member 2.json at byte 5632: it is no JSON object: unexpected end of JSON input"},
				{"3.jpg", `member 3.json at byte 7680: the label is "[3]", which is no whole number from 0; set labels = "names" if it is a class's name`},
			},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			path := written(t, "s.tar", tt.shard)
			spec := newWebDataset(path)
			if tt.set != nil {
				tt.set(spec)
			}
			src := opened(t, spec)
			var got []fault
			for i := range src.Len() {
				got = append(got, fault{strings.TrimPrefix(src.Name(i), string(path)+", "), readError(t, src, i)})
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
			told := make([]string, src.Len())
			for i, err := range src.(stages.Inspected).Faults() {
				told[i] = err.Error()
			}
			for i, f := range tt.want {
				if told[i] != f.Err {
					t.Errorf("of item %d it is told that %q, want %q", i, told[i], f.Err)
				}
			}
		})
	}
}

// TestWebDatasetEnd checks what is made of a shard that ends after a member: without the mark, with half of it, and with more than it.
func TestWebDatasetEnd(t *testing.T) {
	whole := shard("0.jpg", "a", "0.cls", "1")
	for name, tt := range map[string]struct{ shard, want string }{
		"whole":     {whole, ""},
		"padded":    {whole + strings.Repeat("\x00", 9000), ""},
		"half mark": {whole[:len(whole)-512], ""},
		"no mark": {whole[:len(whole)-1024], "The shard DIR/s.tar ends at byte 2048, after a member and without the mark that ends an archive; and 1 more. If whoever wrote it " +
			"was interrupted, or not all of it was copied, samples are missing."},
	} {
		dir := folder(t, map[string]string{"s.tar": tt.shard, "t.tar": tt.shard})
		spec := newWebDataset(in(dir, "s.tar", "t.tar")...)
		spec.Index = stages.Path(t.TempDir())
		for range 2 { // the second time from the index
			src := opened(t, spec).(interface {
				stages.Source
				stages.Inspected
			})
			if got := strings.ReplaceAll(src.Warning(), dir, "DIR"); got != tt.want || src.Len() != 2 {
				t.Errorf("%s: %d items, warning %q, want %q", name, src.Len(), got, tt.want)
			}
		}
	}
}

// sumHeader writes a header's checksum anew.
func sumHeader(header []byte) {
	copy(header[148:156], "        ")
	sum := 0
	for _, b := range header {
		sum += int(b)
	}
	copy(header[148:156], fmt.Sprintf("%06o\x00 ", sum))
}

func TestWebDatasetProblems(t *testing.T) {
	dir := folder(t, map[string]string{
		"good.tar": shard("0.jpg", "a", "0.cls", "1"), "gz.tar": "\x1f\x8b\x08\x00\x00", "empty.tar": "", "text.tar": strings.Repeat("text ", 1000), "none.tar": shard(),
	})
	unusable := func(name, why string) stages.Problem {
		return stages.Problem{Attribute: "shards", Summary: "Unusable file", Detail: fmt.Sprintf("The file %q can't be used: %s.", "DIR/"+name, why)}
	}
	for _, tt := range []struct {
		shard string
		set   func(*WebDataset)
		want  stages.Problem
	}{
		{"gone-{0..1}.tar", nil, stages.Problem{Attribute: "shards", Summary: "File not found", Detail: `There is no file "DIR/gone-0.tar".`}},
		{"gz.tar", nil, unusable("gz.tar", "it is compressed by gzip; unpack it: gunzip --keep")},
		{"empty.tar", nil, unusable("empty.tar", "it is empty")},
		{"text.tar", nil, unusable("text.tar", "it doesn't start as a tar archive does")},
		{"s-{0..9999999}.tar", nil, stages.Problem{Attribute: "shards", Summary: "Too many files", Detail: "There are too many files: the pattern DIR/s-{0..9999999}.tar stands for more than 1048576 names."}},
		{"good.tar", func(s *WebDataset) { s.Data = ".jpg" }, stages.Problem{Attribute: "data", Summary: "Not an extension", Detail: `Write the extension ".jpg" in lower case and without the dot before it.`}},
		{"good.tar", func(s *WebDataset) { s.Data = "jpg;" }, stages.Problem{Attribute: "data", Summary: "Empty extension", Detail: `Give the extension of the members that are the items, such as "jpg", or several: "jpg;png".`}},
		{"good.tar", func(s *WebDataset) { s.Data = "jpg;npy" }, stages.Problem{Attribute: "data", Summary: "Arrays and others", Detail: `Items are all arrays or all others: give data = "npy" alone, or leave npy out.`}},
		{"good.tar", func(s *WebDataset) { s.Label = "json" }, stages.Problem{Attribute: "label", Summary: "Label without a key", Detail: "The label's member is a JSON object: give label_key, the key that the label is under."}},
		{"good.tar", func(s *WebDataset) { s.Buffer = 10 }, stages.Problem{Attribute: "buffer", Summary: "Buffer without shuffling", Detail: "The buffer is what shards are shuffled in: set shuffle = true, or leave buffer out."}},
		{"good.tar", func(s *WebDataset) { s.Label, s.LabelKey = "", "a" }, stages.Problem{Attribute: "label_key", Summary: "Key without a member", Detail: `Say which member the key is in, such as label = "json".`}},
	} {
		spec := newWebDataset(in(dir, tt.shard)...)
		if tt.set != nil {
			tt.set(spec)
		}
		got := problems(spec, dir)
		if diff := cmp.Diff([]stages.Problem{tt.want}, got[:min(1, len(got))]); diff != "" {
			t.Error(diff)
		}
	}
	for name, want := range map[string]string{
		"gz.tar":               "reading DIR/gz.tar: it is compressed by gzip; unpack it: gunzip --keep",
		"none.tar":             "there are no samples in DIR/none.tar",
		"{good,gone,good}.tar": "stat DIR/gone.tar: no such file or directory",
	} {
		_, err := newWebDataset(in(dir, name)...).Open(t.Context(), 1)
		if got := strings.ReplaceAll(text(err), dir, "DIR"); got != want {
			t.Errorf("error %q, want %q", got, want)
		}
	}
}

// TestWebDatasetRemote checks that shards on servers give what shards on a disk do, however many workers read them.
func TestWebDatasetRemote(t *testing.T) {
	files := make(map[string]string)
	for i := range 3 {
		var members []string
		for j := range 20 {
			members = append(members, fmt.Sprintf("%d/%d.jpg", i, j), strings.Repeat(fmt.Sprint(i, j), 1+i*j*1000), fmt.Sprintf("%d/%d.cls", i, j), fmt.Sprint(j))
		}
		files[fmt.Sprintf("s-%d.tar", i)] = shard(members...)
	}
	dir := folder(t, files)
	server := tests3.Start(t)
	for name, data := range files {
		server.Put("bucket", "shards 1/"+name, []byte(data))
	}
	site := httptest.NewServer(http.FileServer(http.Dir(dir)))
	defer site.Close()
	want := items(t, opened(t, newWebDataset(in(dir, "s-*.tar")...)))
	for _, pattern := range []string{site.URL + "/s-{0..2}.tar", "s3://bucket/shards 1/s-*.tar", "s3://bucket/shards 1/s-{0,1,2}.tar"} {
		spec := newWebDataset(stages.Path(pattern))
		if strings.HasSuffix(pattern, "*.tar") {
			spec.Shuffle = true // each sample in a request of its own
		}
		if p := spec.Validate(); p != nil {
			t.Errorf("problems %v", p)
		}
		src := opened(t, spec)
		if src.(stages.FileLister).Files() != nil {
			t.Errorf("%s lists files of this machine", pattern)
		}
		got := make([]item, src.Len())
		var workers sync.WaitGroup
		for w := range 8 {
			workers.Go(func() {
				out := new(stages.Element)
				for i := w; i < src.Len(); i += 8 {
					label, err := src.Read(&stages.Call{Context: t.Context()}, i, out)
					if err != nil {
						t.Error(err)
					}
					name := filepath.Join(dir, filepath.Base(src.Name(i)[:strings.Index(src.Name(i), ",")])) + src.Name(i)[strings.Index(src.Name(i), ","):]
					got[i] = item{Name: name, Label: label, Type: out.Type.String(), U8: string(out.U8)}
				}
			})
		}
		workers.Wait()
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", pattern, diff)
		}
	}
}

// TestWebDatasetBuffer checks that a buffer's order is one of shards and of windows, and that it takes few requests.
func TestWebDatasetBuffer(t *testing.T) {
	files := make(map[string]string)
	sizes := []int{40, 0, 60, 20}
	for i, n := range sizes {
		var members []string
		for j := range n {
			members = append(members, fmt.Sprintf("%d.jpg", j), strings.Repeat("x", 100_000))
		}
		files[fmt.Sprintf("%d.tar", i)] = shard(members...)
	}
	var requests atomic.Int64
	serve := http.FileServer(http.Dir(folder(t, files)))
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		serve.ServeHTTP(w, r)
	}))
	defer site.Close()
	spec := newWebDataset(stages.Path(site.URL + "/{0..3}.tar"))
	spec.Label, spec.Shuffle, spec.Buffer = "", true, 20
	src := opened(t, spec)
	order := func(epoch uint64) []int32 {
		list := make([]int32, src.Len())
		src.(stages.Orderer).Order(rand.New(rand.NewPCG(1, epoch)), list)
		return list
	}
	got := order(0)
	if slices.Equal(got, order(1)) || !slices.Equal(got, order(0)) {
		t.Error("the order doesn't follow from the epoch")
	}
	// A window holds samples of one shard here, as the shards' sizes are multiples of it.
	var stream []int32
	moved := false
	for window := range slices.Chunk(slices.Clone(got), spec.Buffer) {
		moved = moved || !slices.IsSorted(window)
		slices.Sort(window)
		stream = append(stream, window...)
	}
	shardOf := func(i int32) int {
		shard, _ := src.(*bufferedSource).locate(int(i))
		return shard
	}
	var shards []int
	for i, item := range stream[1:] {
		if shardOf(item) != shardOf(stream[i]) {
			shards = append(shards, shardOf(item))
		}
	}
	slices.Sort(stream)
	if !moved || len(shards) != 2 || stream[0] != 0 || stream[119] != 119 || len(slices.Compact(stream)) != 120 {
		t.Errorf("the order %d isn't one of shards and windows", got)
	}
	requests.Store(0)
	for _, i := range got {
		if e := readError(t, src, int(i)); e != "" {
			t.Error(e)
		}
	}
	if n := requests.Load(); n > 4 { // of 4 MiB: 1, 2 and 1
		t.Errorf("%d requests", n)
	}
}

// TestWebDatasetIndex checks that what was found in shards isn't looked for again, unless a shard or what is looked for has changed.
func TestWebDatasetIndex(t *testing.T) {
	var members []string
	for i := range 5 {
		members = append(members, fmt.Sprintf("%d.jpg", i), strings.Repeat("x", 100_000), fmt.Sprintf("%d.cls", i), fmt.Sprint(i), fmt.Sprintf("%d.id", i), "7")
	}
	members = append(members, "bad.cls", "0")
	var requests atomic.Int64
	data, tag := []byte(shard(members...)), "1"
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		w.Header().Set("ETag", strconv.Quote(tag))
		http.ServeContent(w, r, "s.tar", time.Time{}, bytes.NewReader(data))
	}))
	defer site.Close()
	kept := filepath.Join(t.TempDir(), "new", "index")
	open := func(label string, looked bool) {
		t.Helper()
		spec := newWebDataset(stages.Path(site.URL + "/s.tar"))
		spec.Label, spec.Index = label, stages.Path(kept)
		requests.Store(0)
		src := opened(t, spec)
		if n := requests.Load(); n == 0 || looked != (n > 1) {
			t.Errorf("%d requests", n)
		}
		want := map[string]int32{"cls": 3, "id": 7}[label]
		if got, err := src.Read(&stages.Call{Context: t.Context()}, 3, new(stages.Element)); err != nil || got != want {
			t.Errorf("label %d, want %d, error %v", got, want, err)
		}
		if got, want := readError(t, src, 5), "the sample bad at byte "; src.Len() != 6 || !strings.HasPrefix(got, want) {
			t.Errorf("%d items, error %q", src.Len(), got)
		}
	}
	open("cls", true)
	open("cls", false)
	open("id", true)
	tag = "2"
	open("cls", true)
	files, err := filepath.Glob(kept + "/*")
	if err != nil || len(files) != 3 {
		t.Fatalf("files %q, error %v", files, err)
	}
	for _, f := range files {
		if err := os.Truncate(f, 50); err != nil {
			t.Fatal(err)
		}
	}
	open("cls", true)
	open("cls", false)
}

func TestBraces(t *testing.T) {
	for pattern, want := range map[string][]string{
		"a":               {"a"},
		"a{1,2}b":         {"a1b", "a2b"},
		"{00..02}{a,b}":   {"00a", "00b", "01a", "01b", "02a", "02b"},
		"{8..10}":         {"8", "9", "10"},
		"{08..10}":        {"08", "09", "10"},
		"{3..0..2}":       {"3", "1"},
		"{0..5..2}.tar":   {"0.tar", "2.tar", "4.tar"},
		"{a,{0..1}{x,}}z": {"az", "0xz", "0z", "1xz", "1z"},
		"{a}{,b}":         {"{a}", "{a}b"},
		"{a..c}{":         {"{a..c}{"},
		"{a{1,2}":         {"{a1", "{a2"},
		"}{":              {"}{"},
	} {
		got, err := braces(pattern)
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%s: error %v, %s", pattern, err, diff)
		}
	}
	for _, pattern := range []string{"{0..1048576}", "{0..1023}{0..1024}", "{0..9223372036854775807}", "{9223372036854775807..0}"} {
		if got, err := braces(pattern); err == nil {
			t.Errorf("%s stands for %d names", pattern, len(got))
		}
	}
}

// FuzzWebDataset checks that no shard makes indexing panic or an item lie outside of it.
func FuzzWebDataset(f *testing.F) {
	f.Add([]byte(shard("0.jpg", "a", "0.cls", "1", "1.jpg", "b")))
	f.Add([]byte(shard("0.npy", npyFile("'<i4'", "False", "(1,)", "\x01\x00\x00\x00"), "0.cls", "1"))[:2000])
	f.Fuzz(func(t *testing.T, data []byte) {
		spec := newWebDataset()
		found, err := spec.index(t.Context(), member{bytes.NewReader(data)}, 512, 1000)
		if err != nil {
			return
		}
		for _, s := range found.samples {
			if s.err == nil && (s.off < 512 || s.size < 0 || s.off+s.size > int64(len(data))) {
				t.Errorf("%s lies from %d, %d bytes, in a shard of %d", s.name, s.off, s.size, len(data))
			}
		}
	})
}

func BenchmarkWebDataset(b *testing.B) {
	var members []string
	for i := range 1000 {
		members = append(members, fmt.Sprintf("%d.jpg", i), strings.Repeat("x", 100_000), fmt.Sprintf("%d.cls", i), "1")
	}
	path := written(b, "s.tar", shard(members...))
	b.Run("read", func(b *testing.B) { benchmarkSource(b, newWebDataset(path)) })
	b.Run("open", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			src, err := newWebDataset(path).Open(b.Context(), 1)
			if err != nil {
				b.Fatal(err)
			}
			src.Close()
		}
	})
}
