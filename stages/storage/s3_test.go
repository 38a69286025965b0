package storage

import (
	"bytes"
	"context"
	"crypto/md5"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pipectl/pipectl/internal/tests3"
)

func TestS3(t *testing.T) {
	server := tests3.Start(t)
	c := New()
	defer c.Close()

	t.Run("list", func(t *testing.T) {
		want := []Entry{}
		for _, key := range []string{
			"odd/ space", "odd/%41", "odd/%zz", "odd/+plus", "odd/a//b", "odd/a/", "odd/a/..c/d", "odd/quote\"'&<>", "odd/tilde~*()!", "odd/ü/日本語.jpg", "odd/?q=1#x",
		} {
			data := []byte(key)
			if strings.HasSuffix(key, "/") {
				data = nil
			} else {
				want = append(want, Entry{Path: "s3://bucket/" + key, Size: int64(len(data)), Version: fmt.Sprintf("\"%x\"", md5.Sum(data))})
			}
			server.Put("bucket", key, data)
		}
		server.Put("bucket", "oddity", nil)
		for _, folder := range []string{"s3://bucket/odd", "s3://bucket/odd/"} {
			got, err := c.List(t.Context(), folder)
			if err != nil {
				t.Fatal(err)
			}
			sorted := cmp.Transformer("sorted", func(l []Entry) map[Entry]bool {
				m := make(map[Entry]bool)
				for _, e := range l {
					m[e] = true
				}
				return m
			})
			if diff := cmp.Diff(want, got, sorted); diff != "" {
				t.Error(diff)
			}
		}
		for _, e := range want {
			if got := read(t, c, e.Path); "s3://bucket/"+got != e.Path {
				t.Errorf("%s is %q", e.Path, got)
			}
		}
	})

	t.Run("pages", func(t *testing.T) {
		for i := range 1001 {
			server.Put("bucket", fmt.Sprintf("many/%04d", i), []byte("1"))
		}
		got, err := c.List(t.Context(), "s3://bucket/many")
		if err != nil || len(got) != 1001 || got[1000].Path != "s3://bucket/many/1000" {
			t.Errorf("%d objects, error %v", len(got), err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := c.List(ctx, "s3://bucket/many"); !errors.Is(err, context.Canceled) {
			t.Errorf("listed after the end with error %v", err)
		}
	})

	t.Run("read", func(t *testing.T) {
		data := random(3 << 20)
		server.Put("bucket", "big", data)
		f, err := c.Open(t.Context(), "s3://bucket/big")
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		p := make([]byte, 1000)
		if n, err := f.ReadAt(p, 1<<20); err != nil || !bytes.Equal(p, data[1<<20:][:1000]) || f.Size() != 3<<20 {
			t.Errorf("read %d bytes of %d, error %v", n, f.Size(), err)
		}
		s, err := c.Stream(t.Context(), "s3://bucket/big")
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		if got, err := io.ReadAll(s); err != nil || !bytes.Equal(got, data) {
			t.Errorf("streamed %d bytes, error %v", len(got), err)
		}
		data[0]++
		server.Put("bucket", "big", data)
		if n, err := f.ReadAt(p, 0); !errors.Is(err, errChanged) {
			t.Errorf("read %d bytes of a file that has changed, error %v", n, err)
		}
	})

	t.Run("errors", func(t *testing.T) {
		server.Put("public", "a", []byte("public"))
		for _, tt := range []struct {
			path string
			env  map[string]string
			err  string
			is   error
		}{
			{"s3://bucket/none", nil, "open s3://bucket/none: 404 Not Found: NoSuchKey", fs.ErrNotExist},
			{"s3://no-bucket/a", nil, "open s3://no-bucket/a: 404 Not Found: NoSuchBucket: The specified bucket does not exist", fs.ErrNotExist},
			{
				"s3://bucket/many/0001", map[string]string{"AWS_SECRET_ACCESS_KEY": "wrong"},
				"open s3://bucket/many/0001: 403 Forbidden: SignatureDoesNotMatch: as the test wants it", fs.ErrPermission,
			},
			{
				"s3://bucket/many/0001", map[string]string{"AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": ""},
				"open s3://bucket/many/0001: 403 Forbidden: AccessDenied: as the test wants it; no credentials were found: set AWS_ACCESS_KEY_ID and " +
					"AWS_SECRET_ACCESS_KEY, or AWS_PROFILE", fs.ErrPermission,
			},
			{"s3://public/a", map[string]string{"AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": ""}, "", nil},
			{"s3://public/a", map[string]string{"AWS_REGION": "elsewhere"}, "", nil},
			{
				"s3://public/a", map[string]string{"AWS_ENDPOINT_URL_S3": "localhost:9000"},
				`open s3://public/a: the endpoint "localhost:9000" of S3 (AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL or endpoint_url) is not a URL such as ` +
					"https://host:9000", nil,
			},
		} {
			t.Run(tt.path, func(t *testing.T) {
				for name, value := range tt.env {
					t.Setenv(name, value)
				}
				f, err := Open(t.Context(), tt.path)
				if err == nil {
					f.Close()
				}
				if message(err) != tt.err || tt.is != nil && !errors.Is(err, tt.is) {
					t.Errorf("error %q, want %q", message(err), tt.err)
				}
			})
		}
		for folder, want := range map[string]string{
			"s3://bucket/none": "list s3://bucket/none: 404 Not Found: no object's key starts with none/",
			"s3://":            "list s3://: a folder's URL is s3://bucket/folder",
		} {
			if _, err := List(t.Context(), folder); message(err) != want {
				t.Errorf("error %q, want %q", message(err), want)
			}
		}
	})

	t.Run("profile", func(t *testing.T) {
		dir := t.TempDir()
		write(t, dir, map[string]string{
			"config":      "[default]\nregion = elsewhere\n[profile work]\nregion = " + tests3.Region + "\nendpoint_url = " + server.URL + "\ns3 =\n  max_queue_size = 1\n",
			"credentials": "[work]\naws_access_key_id = " + tests3.AccessKey + "\naws_secret_access_key = " + tests3.SecretKey + "\n",
		})
		for name, value := range map[string]string{
			"AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": "", "AWS_REGION": "", "AWS_ENDPOINT_URL": "", "AWS_PROFILE": "work",
			"AWS_CONFIG_FILE": filepath.Join(dir, "config"), "AWS_SHARED_CREDENTIALS_FILE": filepath.Join(dir, "credentials"),
		} {
			t.Setenv(name, value)
		}
		c := New()
		defer c.Close()
		if got := read(t, c, "s3://bucket/many/0001"); got != "1" {
			t.Errorf("read %q", got)
		}
	})
}

// read returns what is in a file.
func read(t *testing.T, c *Client, path string) string {
	t.Helper()
	var data []byte
	err := c.ReadFile(t.Context(), path, func(size int64) ([]byte, error) {
		data = make([]byte, size)
		return data, nil
	})
	if err != nil {
		t.Error(err)
	}
	return string(data)
}

// TestS3Lists checks what Amazon's own lists have and the tests' server hasn't: escaped keys, and lists without an end.
func TestS3Lists(t *testing.T) {
	for _, tt := range []struct {
		pages []string
		want  []Entry
		err   string
	}{
		{
			pages: []string{
				`<ListBucketResult><EncodingType>url</EncodingType><IsTruncated>true</IsTruncated><NextContinuationToken>t+1</NextContinuationToken>` +
					`<Contents><Key>f/b+%2B%25%C3%BC</Key><Size>7</Size></Contents></ListBucketResult>`,
				`<ListBucketResult><EncodingType>url</EncodingType><Contents><Key>f/a</Key><ETag>&quot;1&quot;</ETag><Size>5000000000</Size></Contents></ListBucketResult>`,
			},
			want: []Entry{{"s3://b/f/a", 5_000_000_000, `"1"`}, {"s3://b/f/b +%ü", 7, ""}},
		},
		{
			pages: []string{`<ListBucketResult><IsTruncated>true</IsTruncated></ListBucketResult>`},
			err:   "list s3://b/f: the server says that its list goes on, but not where",
		},
		{
			pages: []string{`<ListBucketResult><EncodingType>url</EncodingType><Contents><Key>%zz</Key></Contents></ListBucketResult>`},
			err:   `list s3://b/f: the server's list can't be read: invalid URL escape "%zz"`,
		},
		{pages: []string{`<ListBucketResult><Cont`}, err: "list s3://b/f: the server's list can't be read: XML syntax error on line 1: unexpected EOF"},
	} {
		for name, value := range map[string]string{
			"AWS_ENDPOINT_URL": "http://host/path/", "AWS_EC2_METADATA_DISABLED": "true", "AWS_SHARED_CREDENTIALS_FILE": os.DevNull, "AWS_CONFIG_FILE": os.DevNull,
		} {
			t.Setenv(name, value)
		}
		page := 0
		c := serve(t, func(w http.ResponseWriter, r *http.Request) {
			token := ""
			if page > 0 {
				token = "t+1"
			}
			want := url.Values{"list-type": {"2"}, "encoding-type": {"url"}, "prefix": {"f/"}}
			if token != "" {
				want.Set("continuation-token", token)
			}
			if diff := cmp.Diff(want, r.URL.Query()); diff != "" || r.URL.Path != "/path/b/" {
				t.Errorf("asked for %s: %s", r.URL.Path, diff)
			}
			_, _ = io.WriteString(w, tt.pages[page])
			page++
		})
		got, err := c.List(t.Context(), "s3://b/f")
		if message(err) != tt.err {
			t.Errorf("error %q, want %q", message(err), tt.err)
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Error(diff)
		}
	}
}

// TestS3Region checks that a server is understood that names the bucket's region in its reply's body alone.
func TestS3Region(t *testing.T) {
	for name, value := range map[string]string{
		"AWS_ENDPOINT_URL": "http://host", "AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret", "AWS_REGION": "here",
	} {
		t.Setenv(name, value)
	}
	var scopes []string
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		scope := strings.Split(r.Header.Get("Authorization"), "/")[2]
		scopes = append(scopes, scope)
		if scope == "here" {
			w.WriteHeader(http.StatusBadRequest)
			_, _ = io.WriteString(w, "<Error><Code>AuthorizationHeaderMalformed</Code><Region>there</Region></Error>")
			return
		}
		_, _ = io.WriteString(w, "data")
	})
	for range 2 {
		if got := read(t, c, "s3://b/k"); got != "data" {
			t.Errorf("read %q", got)
		}
	}
	if diff := cmp.Diff([]string{"here", "there", "there"}, scopes); diff != "" {
		t.Error(diff)
	}
}

func TestS3URL(t *testing.T) {
	for _, tt := range []struct{ bucket, key, region, want string }{
		{"b", "k/a b+%ü", "us-east-1", "https://b.s3.us-east-1.amazonaws.com/k/a%20b%2B%25%C3%BC"},
		{"b.c", "k", "eu-west-1", "https://s3.eu-west-1.amazonaws.com/b.c/k"},
		{"b", "", "cn-north-1", "https://b.s3.cn-north-1.amazonaws.com.cn/"},
	} {
		if got := new(s3).url(tt.bucket, tt.key, tt.region).String(); got != tt.want {
			t.Errorf("%s, want %s", got, tt.want)
		}
	}
}
