package stages

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/pipectl/pipectl/stages/storage"
)

// RemoteCheck is how long a Validate may ask servers.
const RemoteCheck = 10 * time.Second

// validateRemote reports a folder that can't be listed.
func (c ClassFolder) validateRemote() []Problem {
	ctx, cancel := context.WithTimeout(storage.FirstLook(context.Background()), RemoteCheck)
	defer cancel()
	client := storage.New()
	defer client.Close()
	err := client.CheckFolder(ctx, string(c.Path))
	shown := storage.Redacted(string(c.Path))
	summary, detail := "", ""
	switch {
	case err == nil:
		return nil
	case errors.Is(err, errors.ErrUnsupported):
		summary, detail = "No list of files", fmt.Sprintf("A web server doesn't list the files in %q. Copy them to a folder or to an S3 bucket, whose path is s3://bucket/folder; "+
			"or name them one by one in the file of a load \"csv\".", shown)
	case errors.Is(err, fs.ErrNotExist):
		summary, detail = "Folder not found", fmt.Sprintf("There is no folder %q: %v.", shown, withoutPath(err))
	case errors.Is(err, context.DeadlineExceeded):
		summary, detail = "Unreachable folder", fmt.Sprintf("The folder %q can't be listed within %s. Check the network and, if the endpoint isn't Amazon's own, AWS_ENDPOINT_URL: %v.",
			shown, RemoteCheck, withoutPath(err))
	default:
		summary, detail = "Unreadable folder", fmt.Sprintf("The folder %q can't be listed: %v.", shown, withoutPath(err))
	}
	return []Problem{{Attribute: "path", Summary: summary, Detail: detail}}
}

// openRemote lists the files on a server, in the order of a folder of this machine.
func (c ClassFolder) openRemote(ctx context.Context) (Source, error) {
	client := storage.New()
	src, err := c.listRemote(ctx, client)
	if err != nil {
		client.Close()
		return nil, err
	}
	src.client = client
	return src, nil
}

func (c ClassFolder) listRemote(ctx context.Context, client *storage.Client) (*folderSource, error) {
	entries, err := client.List(ctx, string(c.Path))
	if err != nil {
		return nil, err
	}
	root := strings.TrimSuffix(string(c.Path), "/") + "/"
	files := make(map[string][]string)
	versions := make(map[string]string, len(entries))
	var classes []string
	for _, e := range entries {
		name := strings.TrimPrefix(e.Path, root)
		class, _, ok := strings.Cut(name, "/")
		if !ok || strings.HasPrefix(name, ".") || strings.Contains(name, "/.") {
			continue
		}
		if _, known := files[class]; !known {
			classes = append(classes, class)
			files[class] = nil
		}
		if c.Match(path.Base(name)) {
			files[class] = append(files[class], e.Path)
			versions[e.Path] = e.Version
		}
	}
	slices.Sort(classes)
	src, err := c.source(classes, func(class string) ([]string, error) {
		slices.SortFunc(files[class], func(a, b string) int {
			x, y := strings.LastIndexByte(a, '/'), strings.LastIndexByte(b, '/')
			return cmp.Or(cmp.Compare(a[:x], b[:y]), cmp.Compare(a[x:], b[y:]))
		})
		return files[class], nil
	})
	if err != nil {
		return nil, err
	}
	for i := range src.items {
		src.items[i].version = versions[src.items[i].path]
	}
	return src, nil
}

// Versions yields the remote files with their versions. It is nil for files of this machine, and where the server doesn't tell one.
func (s *folderSource) Versions() iter.Seq2[string, string] {
	if slices.ContainsFunc(s.items, func(it folderItem) bool { return it.version == "" }) {
		return nil
	}
	return func(yield func(path, version string) bool) {
		for _, it := range s.items {
			if !yield(it.path, it.version) {
				return
			}
		}
	}
}

// readRemote makes out the bytes of a file on a server.
func (s *folderSource) readRemote(ctx context.Context, path string, out *Element) error {
	err := s.client.ReadFile(ctx, path, func(size int64) ([]byte, error) {
		if size > maxFile {
			return nil, s.tooLarge(size)
		}
		return out.Bytes(Type{Kind: Encoded}, int(size)), nil
	})
	return withoutPath(err)
}
