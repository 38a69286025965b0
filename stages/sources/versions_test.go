package sources

import (
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pipectl/pipectl/stages"
)

// TestVersions asks a web server for files' versions: tags, times of change, and none.
func TestVersions(t *testing.T) {
	tag, changed := "", time.Time{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if tag != "" {
			w.Header().Set("ETag", tag)
		}
		http.ServeContent(w, r, "x.txt", changed, strings.NewReader("one\ntwo\n"))
	}))
	defer server.Close()
	for _, test := range []struct {
		tag     string
		changed time.Time
		want    map[string]string
	}{
		{`"a"`, time.Time{}, map[string]string{server.URL + "/x.txt": `8 "a"`}},
		{`"b"`, time.Time{}, map[string]string{server.URL + "/x.txt": `8 "b"`}},
		{"", time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), map[string]string{server.URL + "/x.txt": "8 Fri, 02 Jan 2026 03:04:05 GMT"}},
		{`W/"a"`, time.Time{}, nil},
		{"", time.Now(), nil},
		{"", time.Time{}, nil},
	} {
		tag, changed = test.tag, test.changed
		src, err := (&TextLines{Files: []stages.Path{stages.Path(server.URL + "/x.txt")}}).Open(t.Context(), 0)
		if err != nil {
			t.Fatal(err)
		}
		var got map[string]string
		if versions := src.(stages.Versioner).Versions(); versions != nil {
			got = maps.Collect(versions)
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("tag %s, changed %v (-want +got):\n%s", test.tag, test.changed, diff)
		}
		if err := src.(io.Closer).Close(); err != nil {
			t.Error(err)
		}
	}
}
