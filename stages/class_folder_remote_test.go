package stages

import (
	"context"
	"crypto/md5"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pipectl/pipectl/internal/tests3"
)

// TestRemoteFolder checks that a folder in a bucket gives what the same folder on a disk does.
func TestRemoteFolder(t *testing.T) {
	keys := []string{
		"dog/b.jpg", "dog/a.JPEG", "dog/notes.txt", "dog/.hidden.jpg", "dog/.cache/x.jpg", "cat/a/z.png", "cat/a/deep/d 1+%.jpg", "cat/a-b/y.tiff", "cat/x.webp",
		"Zebra/é.Png", ".git/x.jpg", "top.jpg",
	}
	server := tests3.Start(t)
	for _, key := range append(keys, "dog/", "") {
		server.Put("bucket", "photos/"+key, []byte(strings.TrimSuffix(key, "/")))
	}
	root := tree(t, keys...)
	remote := &ImageFolder{Path: "s3://bucket/photos"}
	if problems := remote.Validate(); problems != nil {
		t.Errorf("problems %v", problems)
	}
	type item struct {
		Name, Data string
		Label      int32
	}
	read := func(spec *ImageFolder) (items []item) {
		src := openSource(t, spec, 1)
		for i := range src.Len() {
			out := new(Element)
			label, err := src.Read(&Call{Context: t.Context()}, i, out)
			if err != nil {
				t.Error(err)
			}
			items = append(items, item{strings.TrimPrefix(src.Name(i), string(spec.Path)+"/"), string(out.U8), label})
		}
		return items
	}
	got := read(remote)
	if diff := cmp.Diff(read(&ImageFolder{Path: Path(root)}), got); diff != "" || len(got) != 7 {
		t.Error(diff)
	}
	src := openSource(t, remote, 1)
	if src.(FileLister).Files() != nil {
		t.Error("it lists files of this machine")
	}
	versions := maps.Collect(src.(Versioner).Versions())
	if v := versions["s3://bucket/photos/cat/x.webp"]; len(versions) != 7 || v != fmt.Sprintf("\"%x\"", md5.Sum([]byte("cat/x.webp"))) {
		t.Errorf("versions %q", versions)
	}
	if openSource(t, &ImageFolder{Path: Path(root)}, 1).(Versioner).Versions() != nil {
		t.Error("a folder of this machine lists versions besides its files")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := src.Read(&Call{Context: ctx}, 0, new(Element)); !errors.Is(err, context.Canceled) {
		t.Errorf("read after the end with error %v", err)
	}

	server.Put("bucket", "empty/cat/a.txt", nil)
	for path, want := range map[Path]string{
		"s3://bucket/empty":      "no image in the class folders cat of s3://bucket/empty: put some there, or remove the folders",
		"s3://bucket/photos/dog": "no class folders in s3://bucket/photos/dog",
	} {
		if _, err := (&ImageFolder{Path: path}).Open(t.Context(), 1); err == nil || err.Error() != want {
			t.Errorf("%s opens with error %v, want %s", path, err, want)
		}
	}
}

func TestRemoteFolderProblems(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	for name, value := range map[string]string{"AWS_ENDPOINT_URL": server.URL, "AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret"} {
		t.Setenv(name, value)
	}
	for path, want := range map[Path]Problem{
		"https://user:secret@host/photos?key=secret": {
			Summary: "No list of files", Detail: "A web server doesn't list the files in \"https://user:xxxxx@host/photos?…\". Copy them to a folder or to an S3 bucket, whose path is " +
				`s3://bucket/folder; or name them one by one in the file of a load "csv".`,
		},
		"s3://bucket/photos": {Summary: "Folder not found", Detail: `There is no folder "s3://bucket/photos": 404 Not Found.`},
		"s3://":              {Summary: "Unreadable folder", Detail: `The folder "s3://" can't be listed: a folder's URL is s3://bucket/folder.`},
	} {
		want.Attribute = "path"
		if diff := cmp.Diff([]Problem{want}, (&ImageFolder{Path: path}).Validate()); diff != "" {
			t.Error(diff)
		}
	}
}
