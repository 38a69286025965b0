package sources

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pipectl/pipectl/stages"
)

// TestRemote reads each format from a web server, and compares the items to those of the local files.
func TestRemote(t *testing.T) {
	server := httptest.NewServer(http.FileServer(http.Dir("testdata/formats")))
	defer server.Close()
	lists := httptest.NewServer(http.FileServer(http.Dir(folder(t, map[string]string{
		"list.csv":  "path,label\n" + server.URL + "/vectors.npy,cat\nlines.txt,dog\n",
		"lines.txt": "one\r\n\ntwo",
	}))))
	defer lists.Close()
	for _, tt := range []struct {
		name string
		spec func(at string) stages.SourceSpec
	}{
		{"cifar", func(at string) stages.SourceSpec {
			return &CIFAR{Files: []stages.Path{stages.Path(at + "cifar10.bin")}, Dataset: "auto", Labels: "fine"}
		}},
		{"npy", func(at string) stages.SourceSpec {
			return &NPY{Files: []stages.Path{stages.Path(at + "vectors.npy")}, Labels: []stages.Path{stages.Path(at + "labels.npy")}}
		}},
		{"npz", func(at string) stages.SourceSpec {
			return &NPY{Files: []stages.Path{stages.Path(at + "packed.npz")}, Array: "big_f8", Labels: []stages.Path{stages.Path(at + "packed.npz")}, LabelArray: "labels"}
		}},
		{"stored npz", func(at string) stages.SourceSpec {
			return &NPY{Files: []stages.Path{stages.Path(at + "numbers.npz")}, Array: "little_f4"}
		}},
		{"text_lines", func(at string) stages.SourceSpec {
			return &TextLines{Files: []stages.Path{stages.Path(at + "make.py")}}
		}},
		{"tfrecord", func(at string) stages.SourceSpec {
			return newTFRecord("tokens", stages.Path(at+"packed.tfrecord"), stages.Path(at+"unpacked.tfrecord"), stages.Path(at+"gzip.tfrecord"))
		}},
		{"parquet", func(at string) stages.SourceSpec {
			s := newParquet("embedding", stages.Path(at+"{arrow_pages,duckdb_gzip}.parquet"))
			s.LabelColumn = "name"
			return s
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			local, remote := tt.spec("testdata/formats/"), tt.spec(server.URL+"/")
			if got := remote.(stages.Validator).Validate(); got != nil {
				t.Errorf("Validate() = %v", got)
			}
			if got, want := remote.Output(), local.Output(); got != want {
				t.Errorf("Output() = %v, want %v", got, want)
			}
			want := items(t, opened(t, local))
			for i := range want {
				want[i].Name = strings.Replace(want[i].Name, "testdata/formats", server.URL, 1)
			}
			src := opened(t, remote)
			if diff := cmp.Diff(want, items(t, src)); diff != "" {
				t.Error(diff)
			}
			if files := src.(stages.FileLister).Files(); files != nil {
				t.Error("files on a server are listed as this machine's")
			}
			missing := tt.spec(server.URL + "/none/")
			if got := missing.(stages.Validator).Validate(); len(got) == 0 || got[0].Summary != "File not found" || !strings.Contains(got[0].Detail, server.URL+"/none/") {
				t.Errorf("Validate() of files that aren't there = %v", got)
			}
		})
	}
	t.Run("csv", func(t *testing.T) {
		spec := newCSV(stages.Path(lists.URL + "/list.csv"))
		if got := spec.Validate(); got != nil {
			t.Errorf("Validate() = %v", got)
		}
		want := []item{
			{Name: server.URL + "/vectors.npy (" + lists.URL + "/list.csv, line 2)", Type: "encoded bytes", U8: golden(t, "vectors.npy")},
			{Name: lists.URL + "/lines.txt (" + lists.URL + "/list.csv, line 3)", Label: 1, Type: "encoded bytes", U8: "one\r\n\ntwo"},
		}
		if diff := cmp.Diff(want, items(t, opened(t, spec))); diff != "" {
			t.Error(diff)
		}
	})
}

// TestRemotePatterns checks that a pattern that a web server can't answer is told as such.
func TestRemotePatterns(t *testing.T) {
	server := httptest.NewServer(http.FileServer(http.Dir("testdata/formats")))
	defer server.Close()
	want := []stages.Problem{{Attribute: "files", Summary: "Unreadable file", Detail: `The file "` + server.URL + `/*.txt" can't be read: 404 Not Found, ` +
		"and a web server doesn't list its files, so that * and [ match none there; count them out, such as data-{000..127}.tar."}}
	if diff := cmp.Diff(want, (&TextLines{Files: []stages.Path{stages.Path(server.URL + "/*.txt")}}).Validate()); diff != "" {
		t.Error(diff)
	}
}

// TestDefaults looks at specs without what is required, as the operators of a file that isn't finished are.
func TestDefaults(t *testing.T) {
	r := new(stages.Registry)
	Add(r)
	for _, op := range r.Operators() {
		spec := op.New().(stages.SourceSpec)
		if got := spec.(stages.Validator).Validate(); len(got) == 0 {
			t.Errorf("%s: no problem without files", op.Type)
		}
		spec.Output()
		if spec.Shuffled() {
			t.Errorf("%s shuffles by default", op.Type)
		}
	}
}
