package sources

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pipectl/pipectl/stages"
)

// cifarImage returns the values of testdata/formats/make.py's image k.
func cifarImage(k int) string {
	var b []byte
	for y := range 32 {
		for x := range 32 {
			for c := range 3 {
				b = append(b, byte(7*y+13*x+101*c+50*k))
			}
		}
	}
	return string(b)
}

func TestCIFAR(t *testing.T) {
	for _, tt := range []struct {
		file, labels string
		first        int32
		classes      int
	}{
		{"cifar10.bin", "fine", 3, 10},
		{"cifar10.bin", "coarse", 3, 10},
		{"cifar100.bin", "fine", 70, 100},
		{"cifar100.bin", "coarse", 11, 20},
	} {
		t.Run(tt.file+" "+tt.labels, func(t *testing.T) {
			path := formats(tt.file)
			spec := &CIFAR{Files: []stages.Path{path, path}, Dataset: "auto", Labels: tt.labels}
			if got := spec.Validate(); got != nil {
				t.Errorf("Validate() = %v", got)
			}
			src := opened(t, spec)
			if src.Classes() != tt.classes {
				t.Errorf("%d classes, want %d", src.Classes(), tt.classes)
			}
			var want []item
			for i := range 4 {
				want = append(want, item{
					Name:  string(path) + ", image " + string(rune('0'+i%2)),
					Label: tt.first + int32(i%2), Type: "uint8 image 32×32×3", U8: cifarImage(i % 2),
				})
			}
			if diff := cmp.Diff(want, items(t, src)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestCIFARProblems(t *testing.T) {
	dir := folder(t, map[string]string{"short": strings.Repeat("x", 3000), "empty": "", "both": strings.Repeat("x", 3073*3074)})
	size := `its 3000 bytes are no whole number of records of 3073 (CIFAR-10) or 3074 (CIFAR-100) bytes; give the .bin files of the binary version, unpacked and whole`
	for _, tt := range []struct {
		dataset string
		files   []string
		want    []stages.Problem
	}{
		{"auto", []string{"short", "empty", "none"}, []stages.Problem{
			{Attribute: "files", Summary: "Unusable file", Detail: `The file "DIR/short" can't be used: ` + size + "."},
			{Attribute: "files", Summary: "Unusable file", Detail: `The file "DIR/empty" can't be used: it is empty.`},
			{Attribute: "files", Summary: "File not found", Detail: `There is no file "DIR/none".`},
		}},
		{"auto", []string{"both"}, []stages.Problem{
			{Attribute: "files", Summary: "Unusable file", Detail: `The file "DIR/both" can't be used: its size fits both data sets; set dataset to "cifar10" or "cifar100".`},
		}},
		{"cifar100", []string{"both"}, nil},
		{"auto", []string{"no*"}, []stages.Problem{
			{Attribute: "files", Summary: "Unreadable file", Detail: `The file "DIR/no*" can't be read: no file matches this pattern.`},
		}},
		{"auto", []string{"short", "none/*"}, []stages.Problem{{Attribute: "files", Summary: "File not found", Detail: `There is no file "DIR/none/".`}}},
		{"auto", []string{""}, []stages.Problem{
			{Attribute: "files", Summary: "Unreadable file", Detail: `The file "DIR" can't be read: not a regular file.`},
		}},
		{"auto", nil, []stages.Problem{{Attribute: "files", Summary: "No files", Detail: `List the files to read, or give a pattern such as "data/*".`}}},
	} {
		if diff := cmp.Diff(tt.want, problems(&CIFAR{Files: in(dir, tt.files...), Dataset: tt.dataset}, dir)); diff != "" {
			t.Errorf("%s %q: %s", tt.dataset, tt.files, diff)
		}
	}
}

func TestCIFARErrors(t *testing.T) {
	mixed := &CIFAR{Files: []stages.Path{formats("cifar10.bin"), formats("cifar100.bin")}, Dataset: "auto", Labels: "fine"}
	want := "reading testdata/formats/cifar100.bin: it is of cifar100 and the files before it are of cifar10; load one of them"
	if _, err := mixed.Open(t.Context(), 1); text(err) != want {
		t.Errorf("Open: %v\nwant  %s", err, want)
	}

	records, err := os.ReadFile(string(formats("cifar10.bin")))
	if err != nil {
		t.Fatal(err)
	}
	records[3073] = 10
	path := written(t, "damaged.bin", string(records))
	src := opened(t, &CIFAR{Files: []stages.Path{path}, Dataset: "auto", Labels: "fine"})
	if got, want := readError(t, src, 1), "the label is 10 at byte 3073, where cifar10 has labels below 10: the file is damaged, or of another data set"; got != want {
		t.Errorf("a wrong label: %q\nwant %q", got, want)
	}
	if err := os.Truncate(string(path), 5000); err != nil {
		t.Fatal(err)
	}
	if got, want := readError(t, src, 1), "the file ends at byte 5000, within the 3073 bytes from 3073 that should be there: it is truncated"; got != want {
		t.Errorf("a file that was cut off: %q\nwant %q", got, want)
	}
}

func FuzzCIFAR(f *testing.F) {
	for _, name := range []string{"cifar10.bin", "cifar100.bin"} {
		data, err := os.ReadFile(string(formats(name)))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	path := filepath.Join(f.TempDir(), "file.bin")
	f.Fuzz(func(t *testing.T, data []byte) {
		if err := os.WriteFile(path, data, 0o644); err != nil {
			t.Fatal(err)
		}
		src, err := (&CIFAR{Files: []stages.Path{stages.Path(path)}, Dataset: "auto", Labels: "fine"}).Open(t.Context(), 1)
		if err != nil {
			return
		}
		defer src.Close()
		for i := range src.Len() {
			out := new(stages.Element)
			label, err := src.Read(&stages.Call{Context: t.Context()}, i, out)
			if err == nil && (int(label) >= src.Classes() || out.Type != stages.ImageType(32, 32)) {
				t.Errorf("item %d: label %d of %d, %v", i, label, src.Classes(), out.Type)
			}
		}
	})
}

func BenchmarkCIFAR(b *testing.B) {
	path := written(b, "data.bin", strings.Repeat("\x03"+strings.Repeat("x", 3072), 1000))
	benchmarkSource(b, &CIFAR{Files: []stages.Path{path}, Dataset: "auto", Labels: "fine"})
}
