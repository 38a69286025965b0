package storage

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"io/fs"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
)

const url1 = "http://user:secret@host/dir/a%20b.tar?signature=secret"

// random returns bytes that differ from place to place.
func random(n int) []byte {
	p := make([]byte, n)
	r := rand.NewChaCha8([32]byte{1})
	_, _ = r.Read(p)
	return p
}

func TestReadAt(t *testing.T) {
	data := random(300_000)
	for _, tt := range []struct {
		name     string
		site     *site
		off, n   int
		requests []string
		took     time.Duration // at least
		err      string
	}{
		{name: "part", off: 10, n: 20, requests: []string{"bytes=0-0", "bytes=10-29"}},
		{name: "end", off: 299_990, n: 20, requests: []string{"bytes=0-0", "bytes=299990-299999"}, err: "EOF"},
		{name: "behind the end", off: 300_000, n: 1, requests: []string{"bytes=0-0"}, err: "EOF"},
		{
			name: "cut off", site: &site{faults: []fault{{}, {cut: 100_000}, {cut: 100_000}}}, off: 1, n: 290_000,
			requests: []string{"bytes=0-0", "bytes=1-290000", "bytes=100001-290000", "bytes=200001-290000"},
		},
		{
			name: "stalled", site: &site{faults: []fault{{stall: true}, {}, {stall: true, cut: 1000}}}, off: 0, n: 5000,
			requests: []string{"bytes=0-0", "bytes=0-0", "bytes=0-4999", "bytes=1000-4999"}, took: 2 * stall,
		},
		{
			name: "busy", site: &site{faults: []fault{{status: 503}, {status: 429, retryAfter: "20"}, {status: 500}}}, off: 0, n: 1,
			requests: []string{"bytes=0-0", "bytes=0-0", "bytes=0-0", "bytes=0-0", "bytes=0-0"}, took: 20 * time.Second,
		},
		{
			name: "no parts", site: &site{noRanges: true, faults: []fault{{cut: 70_000}}}, off: 150_000, n: 1000,
			requests: []string{"bytes=0-0", "bytes=70000-"},
		},
		{name: "no size", site: &site{noSize: true}, off: 150_000, n: 1000, requests: []string{"bytes=0-0"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				site := cmp.Or(tt.site, new(site))
				site.data, site.tag = data, `"1"`
				c := serve(t, site.ServeHTTP)
				start := time.Now()
				f, err := c.Open(t.Context(), url1)
				if err != nil {
					t.Fatal(err)
				}
				defer f.Close()
				p := make([]byte, tt.n)
				n, err := f.ReadAt(p, int64(tt.off))
				if got := message(err); got != tt.err {
					t.Errorf("error %q, want %q", got, tt.err)
				}
				if want := data[tt.off:min(tt.off+tt.n, len(data))]; !bytes.Equal(p[:n], want) {
					t.Errorf("%d bytes that aren't the %d of the file", n, len(want))
				}
				if f.Size() != int64(len(data)) || f.Version() != `"1"` {
					t.Errorf("size %d, version %s", f.Size(), f.Version())
				}
				if took := time.Since(start); took < tt.took || took > tt.took+10*time.Second {
					t.Errorf("it took %s", took)
				}
				site.mu.Lock()
				defer site.mu.Unlock()
				if diff := gocmp.Diff(tt.requests, site.requests); diff != "" {
					t.Error(diff)
				}
			})
		})
	}
}

// message returns an error's text, "" if there is none.
func message(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func TestOpenErrors(t *testing.T) {
	all := func(f fault) []fault {
		faults := make([]fault, 100)
		for i := range faults {
			faults[i] = f
		}
		return faults
	}
	const shown = "open http://user:xxxxx@host/dir/a%20b.tar?…: "
	for _, tt := range []struct {
		name   string
		faults []fault
		err    string
		is     error
		took   time.Duration // at most
	}{
		{"missing", all(fault{status: 404}), "404 Not Found", fs.ErrNotExist, 0},
		{"forbidden", all(fault{status: 403}), "403 Forbidden", fs.ErrPermission, 0},
		{"gone", []fault{{status: 500}, {status: 410}}, "410 Gone", fs.ErrNotExist, time.Second},
		{"down", all(fault{status: 503}), "503 Service Unavailable, after 8 tries", nil, time.Minute},
		{"asks too much", all(fault{status: 429, retryAfter: "600"}), "429 Too Many Requests, and the server asks to wait for 10m0s", nil, 0},
		{"stalls", all(fault{stall: true}), "the server has sent nothing for 15s, after 8 tries", nil, 8*stall + time.Minute},
		{"unimplemented", all(fault{status: 501}), "501 Not Implemented", nil, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				site := &site{data: []byte("1"), faults: tt.faults}
				c := serve(t, site.ServeHTTP)
				start := time.Now()
				_, err := c.Open(t.Context(), url1)
				if got := message(err); got != shown+tt.err || tt.is != nil && !errors.Is(err, tt.is) {
					t.Errorf("error %q, want %q", got, shown+tt.err)
				}
				if took := time.Since(start); took > tt.took {
					t.Errorf("it took %s", took)
				}
			})
		})
	}
}

// TestGivenUp checks that an error tells what was tried again for when the time was over.
func TestGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := serve(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) })
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := c.Open(ctx, "http://host/a")
		if want := "open http://host/a: context deadline exceeded: 503 Service Unavailable"; message(err) != want || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error %q, want %q", message(err), want)
		}
	})
}

func TestBadURL(t *testing.T) {
	for path, want := range map[string]string{
		"http:///a":      "open http:///a: not a valid URL",
		"http://ho st/a": "open a URL that can't be read: not a valid URL",
		"s3://":          "open s3://: an object's URL is s3://bucket/key",
		"s3://bucket/":   "open s3://bucket/: an object's URL is s3://bucket/key",
	} {
		if _, err := Open(t.Context(), path); message(err) != want {
			t.Errorf("error %q, want %q", message(err), want)
		}
	}
}

func TestStream(t *testing.T) {
	data := random(5 << 20)
	for _, tt := range []struct {
		name     string
		site     *site
		requests int
	}{
		{"parts", &site{}, 6},
		{"faults", &site{faults: []fault{{}, {cut: 100_000}, {status: 503}, {stall: true, cut: 10}}}, 9},
		{"no parts", &site{noRanges: true, faults: []fault{{cut: 1 << 20}, {status: 502}, {stall: true, cut: 4 << 20}}}, 4},
		{"no size", &site{noSize: true, faults: []fault{{cut: 3 << 20}}}, 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				site := cmp.Or(tt.site, new(site))
				site.data, site.tag = data, `"1"`
				c := serve(t, site.ServeHTTP)
				s, err := c.Stream(t.Context(), url1)
				if err != nil {
					t.Fatal(err)
				}
				defer s.Close()
				got, err := io.ReadAll(s)
				if err != nil || !bytes.Equal(got, data) {
					t.Errorf("%d bytes, error %v", len(got), err)
				}
				site.mu.Lock()
				defer site.mu.Unlock()
				if len(site.requests) != tt.requests {
					t.Errorf("%d requests, %q", len(site.requests), site.requests)
				}
			})
		})
	}
}

func TestReadFile(t *testing.T) {
	data := random(200_000)
	for _, tt := range []struct {
		name     string
		site     *site
		requests []string
	}{
		{"at once", &site{}, []string{""}},
		{"faults", &site{faults: []fault{{status: 503}, {cut: 100_000}}}, []string{"", "", "bytes=100000-"}},
		{"no size", &site{noSize: true}, []string{""}},
		{"no parts", &site{noRanges: true, faults: []fault{{cut: 100_000}}}, []string{"", "bytes=100000-"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				site := cmp.Or(tt.site, new(site))
				site.data = data
				c := serve(t, site.ServeHTTP)
				var got []byte
				err := c.ReadFile(t.Context(), url1, func(size int64) ([]byte, error) {
					got = make([]byte, size)
					return got, nil
				})
				if err != nil || !bytes.Equal(got, data) {
					t.Errorf("%d bytes, error %v", len(got), err)
				}
				site.mu.Lock()
				defer site.mu.Unlock()
				if diff := gocmp.Diff(tt.requests, site.requests); diff != "" {
					t.Error(diff)
				}
			})
		})
	}
}

func TestEmpty(t *testing.T) {
	for _, noRanges := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			c := serve(t, (&site{noRanges: noRanges}).ServeHTTP)
			f, err := c.Open(t.Context(), url1)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			if n, err := f.ReadAt(make([]byte, 1), 0); n != 0 || err != io.EOF || f.Size() != 0 {
				t.Errorf("read %d of %d bytes, error %v", n, f.Size(), err)
			}
			s, err := c.Stream(t.Context(), url1)
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			if got, err := io.ReadAll(s); err != nil || len(got) != 0 {
				t.Errorf("read %q, error %v", got, err)
			}
		})
	}
}

func TestChanged(t *testing.T) {
	const want = "read http://user:xxxxx@host/dir/a%20b.tar?…: the file has changed while it was read"
	for name, change := range map[string]func(*site){
		"tag":    func(s *site) { s.tag = `"2"` },
		"weak":   func(s *site) { s.tag = `W/"2"` },
		"longer": func(s *site) { s.data = append(s.data, 1) },
		"short":  func(s *site) { s.data = s.data[:10] },
		"whole":  func(s *site) { s.data, s.tag, s.noRanges = s.data[:100], "", true },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				site := &site{data: random(1000), tag: `"1"`}
				if name == "weak" {
					site.tag = `W/"1"`
				}
				c := serve(t, site.ServeHTTP)
				f, err := c.Open(t.Context(), url1)
				if err != nil {
					t.Fatal(err)
				}
				defer f.Close()
				site.mu.Lock()
				change(site)
				site.mu.Unlock()
				if n, err := f.ReadAt(make([]byte, 10), 500); n != 0 || message(err) != want {
					t.Errorf("read %d bytes, error %v", n, err)
				}
			})
		})
	}
}

// TestEncoded refuses what a server has compressed on its own account, and takes what S3 only says so of.
func TestEncoded(t *testing.T) {
	for encoding, want := range map[string]string{
		"identity":    "",
		"aws-chunked": "",
		"gzip": "open http://user:xxxxx@host/dir/a%20b.tar?…: the server sends the file compressed (Content-Encoding: gzip), though it was asked not to, so that no place in it can be " +
			"found: have it sent or stored as it is",
	} {
		synctest.Test(t, func(t *testing.T) {
			site := &site{data: random(1000)}
			c := serve(t, func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Encoding", encoding)
				site.ServeHTTP(w, r)
			})
			f, err := c.Open(t.Context(), url1)
			if message(err) != want {
				t.Errorf("%s: error %v", encoding, err)
			}
			if err == nil {
				f.Close()
			}
		})
	}
}

// TestValidators takes for a version only what no other content can have.
func TestValidators(t *testing.T) {
	const changed, soon, later = "Fri, 02 Jan 2026 03:04:05 GMT", "Fri, 02 Jan 2026 03:05:04 GMT", "Fri, 02 Jan 2026 03:05:05 GMT"
	for _, test := range []struct{ tag, modified, date, version, strong string }{
		{`"1"`, "", soon, `"1"`, `"1"`},
		{`"1"`, changed, later, `"1"`, `"1"`},
		{`W/"1"`, "", later, `W/"1"`, ""},
		{`W/"1"`, changed, soon, `W/"1"`, ""},
		{`W/"1"`, changed, later, `W/"1"`, changed},
		{"", changed, later, changed, changed},
		{"", changed, soon, changed, ""},
		{"", changed, changed, changed, ""},
		{"", changed, "", changed, ""},
		{"", later, changed, later, ""},
		{"", "yesterday", later, "yesterday", ""},
		{"", "", later, "", ""},
	} {
		h := http.Header{}
		for name, value := range map[string]string{"ETag": test.tag, "Last-Modified": test.modified, "Date": test.date} {
			if value != "" {
				h.Set(name, value)
			}
		}
		if version, strong := validators(h); version != test.version || strong != test.strong {
			t.Errorf("%q: %q, %q", h, version, strong)
		}
	}
}

// TestUnreachable counts how often connecting is tried, before anything runs and in the middle of a run.
func TestUnreachable(t *testing.T) {
	for _, tt := range []struct {
		name  string
		look  func(context.Context) context.Context
		err   error
		tries int
		took  time.Duration // at most
		want  string
	}{
		{"refused, first", FirstLook, syscall.ECONNREFUSED, 3, 300 * time.Millisecond, "the server can't be reached: dial tcp host:80: connection refused"},
		{"no name, first", FirstLook, &net.DNSError{Err: "server misbehaving", Name: "host", IsTemporary: true}, 3, 300 * time.Millisecond, "the server can't be reached: dial tcp host:80: lookup host: server misbehaving"},
		{"slow, first", FirstLook, nil, 1, 2 * time.Second, "the server can't be reached: dial tcp host:80: i/o timeout"},
		{"refused", func(ctx context.Context) context.Context { return ctx }, syscall.ECONNREFUSED, 8, 13 * time.Second, "dial tcp host:80: connection refused, after 8 tries"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := New()
				defer c.Close()
				tries, begun := 0, time.Now()
				transport := c.http.Transport.(*http.Transport)
				transport.DialContext = dialling(func(ctx context.Context, network, _ string) (net.Conn, error) {
					tries++
					err := tt.err
					if err == nil {
						<-ctx.Done()
						err = os.ErrDeadlineExceeded
					}
					return nil, &net.OpError{Op: "dial", Net: network, Addr: address("host:80"), Err: err}
				})
				_, err := c.Open(tt.look(t.Context()), "http://host/a")
				if message(err) != "open http://host/a: "+tt.want || tries != tt.tries || time.Since(begun) > tt.took {
					t.Errorf("%d tries in %s, error %v", tries, time.Since(begun), err)
				}
			})
		})
	}
}

type address string

func (address) Network() string  { return "tcp" }
func (a address) String() string { return string(a) }

func TestCancel(t *testing.T) {
	for _, noRanges := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			site := &site{data: random(1 << 20), noRanges: noRanges, faults: []fault{{}, {stall: true}, {stall: true}, {}, {stall: true}, {stall: true}, {stall: true}}}
			if noRanges {
				site.faults = []fault{{stall: true, cut: 10}, {stall: true, cut: 10}}
			}
			c := serve(t, site.ServeHTTP)
			f, err := c.Open(t.Context(), url1)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			start := time.Now()
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			if _, err := f.ReadAtContext(ctx, make([]byte, 100), 0); !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != time.Second {
				t.Errorf("read with error %v after %s", err, time.Since(start))
			}
			go func() {
				time.Sleep(time.Second)
				f.Close()
			}()
			if _, err := f.ReadAt(make([]byte, 100), 0); !errors.Is(err, errClosed) || time.Since(start) != 2*time.Second {
				t.Errorf("read of a file that is being closed with error %v after %s", err, time.Since(start))
			}
			ctx, cancel = context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			s, err := c.Stream(ctx, url1)
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			if got, err := io.ReadAll(s); !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != 3*time.Second {
				t.Errorf("streamed %d bytes with error %v after %s", len(got), err, time.Since(start))
			}
		})
	}
}

func TestConnectionLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var open, most atomic.Int64
		site := &site{data: random(1000)}
		c := serve(t, func(w http.ResponseWriter, r *http.Request) {
			n := open.Add(1)
			defer open.Add(-1)
			time.Sleep(time.Second)
			if n > most.Load() {
				most.Store(n)
			}
			site.ServeHTTP(w, r)
		})
		done := make(chan error)
		for range 3 * connections {
			go func() {
				done <- c.ReadFile(t.Context(), url1, func(n int64) ([]byte, error) { return make([]byte, n), nil })
			}()
		}
		for range 3 * connections {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
		if most.Load() != connections {
			t.Errorf("%d requests at a time, want %d", most.Load(), connections)
		}
	})
}

// TestConnectionReuse checks that one request after the other takes one connection.
func TestConnectionReuse(t *testing.T) {
	for _, noRanges := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			c, p := servePipes(t, (&site{data: random(1_000_000), noRanges: noRanges}).ServeHTTP)
			for range 3 {
				f, err := c.Open(t.Context(), url1)
				if err != nil {
					t.Fatal(err)
				}
				for off := range int64(5) {
					if _, err := f.ReadAt(make([]byte, 1000), 995_000+off*1000); err != nil {
						t.Error(err)
					}
				}
				synctest.Wait()
				f.Close()
				if err := c.ReadFile(t.Context(), url1, func(n int64) ([]byte, error) { return make([]byte, n), nil }); err != nil {
					t.Error(err)
				}
			}
			if n := p.dialled.Load(); n != 1 {
				t.Errorf("%d connections", n)
			}
		})
	}
}

func TestListUnsupported(t *testing.T) {
	_, err := List(t.Context(), url1)
	want := "list http://user:xxxxx@host/dir/a%20b.tar?…: a web server doesn't list its files; name them one by one"
	if message(err) != want || !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("error %q", message(err))
	}
}

func BenchmarkRead(b *testing.B) {
	data := random(32 << 20)
	server := httptest.NewServer((&site{data: data}))
	defer server.Close()
	c := New()
	defer c.Close()
	b.Run("ReadAt", func(b *testing.B) {
		f, err := c.Open(b.Context(), server.URL)
		if err != nil {
			b.Fatal(err)
		}
		defer f.Close()
		p := make([]byte, 100_000)
		b.SetBytes(int64(len(p)))
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			if _, err := f.ReadAt(p, int64(i%300*len(p))); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("Stream", func(b *testing.B) {
		b.SetBytes(int64(len(data)))
		b.ReportAllocs()
		for b.Loop() {
			s, err := c.Stream(b.Context(), server.URL)
			if err != nil {
				b.Fatal(err)
			}
			if n, err := io.Copy(io.Discard, s); err != nil || n != int64(len(data)) {
				b.Fatal(n, err)
			}
			s.Close()
		}
	})
}
