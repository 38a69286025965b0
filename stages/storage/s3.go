package storage

import (
	"cmp"
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/minio/minio-go/v7/pkg/credentials"
	"github.com/minio/minio-go/v7/pkg/s3utils"
	"github.com/minio/minio-go/v7/pkg/signer"
	"gopkg.in/ini.v1"
)

// s3 sends requests to a service that speaks S3's protocol.
// https://docs.aws.amazon.com/AmazonS3/latest/API/API_Operations_Amazon_Simple_Storage_Service.html
type s3 struct {
	http     *http.Client
	endpoint *url.URL // nil for Amazon's own, which depends on the region
	region   string

	mu        sync.Mutex
	creds     *credentials.Credentials
	anonymous bool              // no credentials were found
	regions   map[string]string // of buckets that are in another one
}

// newS3 reads the settings from where Amazon's own tools look for them: the environment, and the profile's section of the
// configuration files.
func newS3(client *http.Client) (*s3, error) {
	profile := readProfile()
	s := &s3{
		region:  cmp.Or(os.Getenv("AWS_REGION"), os.Getenv("AWS_DEFAULT_REGION"), profile("region"), "us-east-1"),
		regions: make(map[string]string),
	}
	s.http = &http.Client{
		Transport: client.Transport,
		// The signature holds for one host.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	if e := cmp.Or(os.Getenv("AWS_ENDPOINT_URL_S3"), os.Getenv("AWS_ENDPOINT_URL"), profile("endpoint_url")); e != "" {
		u, err := url.Parse(e)
		if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
			return nil, fmt.Errorf("the endpoint %q of S3 (AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL or endpoint_url) is not a URL such as https://host:9000", e)
		}
		s.endpoint = u
	}
	providers := []credentials.Provider{&credentials.EnvAWS{}, &credentials.FileAWSCredentials{}}
	if os.Getenv("AWS_EC2_METADATA_DISABLED") != "true" {
		providers = append(providers, &credentials.IAM{})
	}
	s.creds = credentials.NewChainCredentials(providers)
	return s, nil
}

// readProfile returns the settings of the profile in Amazon's configuration file.
func readProfile() func(key string) string {
	path := os.Getenv("AWS_CONFIG_FILE")
	if home, err := os.UserHomeDir(); path == "" && err == nil {
		path = filepath.Join(home, ".aws", "config")
	}
	file, err := ini.LooseLoad(path)
	if err != nil {
		file = ini.Empty() // as where there is none: what lacks shows at the first request
	}
	section := cmp.Or(os.Getenv("AWS_PROFILE"), "default")
	if section != "default" {
		section = "profile " + section
	}
	return func(key string) string { return file.Section(section).Key(key).String() }
}

// metadataTimeout bounds the question for a machine's role, which most machines have nobody to answer to.
const metadataTimeout = 2 * time.Second

// credentials returns the keys to sign with, none where there are none.
func (s *s3) credentials(ctx context.Context) (credentials.Value, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.anonymous {
		return credentials.Value{}, nil
	}
	client := &http.Client{Transport: s.http.Transport, Timeout: metadataTimeout}
	v, err := s.creds.GetWithContext(&credentials.CredContext{Client: client, Context: ctx})
	if ctx.Err() != nil {
		return v, context.Cause(ctx)
	}
	s.anonymous = err == nil && v.AccessKeyID == ""
	return v, err
}

// do sends a request for an object, or for the bucket's list where key is "". A reply that isn't one of the object is an error,
// but for the one that a range can't be had.
func (s *s3) do(ctx context.Context, bucket, key string, query url.Values, h http.Header) (*http.Response, error) {
	keys, err := s.credentials(ctx)
	if err != nil {
		return nil, fmt.Errorf("looking for credentials: %w", err)
	}
	for moved := false; ; moved = true {
		s.mu.Lock()
		region := cmp.Or(s.regions[bucket], s.region)
		s.mu.Unlock()
		req := &http.Request{Method: http.MethodGet, URL: s.url(bucket, key, region), Header: h.Clone()}
		req.Host = req.URL.Host
		req.URL.RawQuery = query.Encode()
		const noBody = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855" // SHA-256
		req.Header.Set("X-Amz-Content-Sha256", noBody)
		req = signer.SignV4(*req.WithContext(ctx), keys.AccessKeyID, keys.SecretAccessKey, keys.SessionToken, region)
		resp, err := s.http.Do(req)
		if err != nil {
			return nil, err
		}
		switch resp.StatusCode {
		case http.StatusOK, http.StatusPartialContent, http.StatusRequestedRangeNotSatisfiable:
			return resp, nil
		}
		other, problem := s.problem(resp)
		resp.Body.Close()
		if other != "" && other != region && !moved {
			s.mu.Lock()
			s.regions[bucket] = other
			s.mu.Unlock()
			continue
		}
		return nil, problem
	}
}

// url returns where an object is. Amazon wants the bucket in the host's name; other services, and certificates where the bucket's
// name has a dot, want it in the path.
func (s *s3) url(bucket, key, region string) *url.URL {
	u := url.URL{Scheme: "https", Host: "s3." + region + ".amazonaws.com"}
	if strings.HasPrefix(region, "cn-") {
		u.Host += ".cn"
	}
	path := "/" + key
	switch {
	case s.endpoint != nil:
		u = *s.endpoint
		path = strings.TrimSuffix(u.Path, "/") + "/" + bucket + path
	case strings.Contains(bucket, "."):
		path = "/" + bucket + path
	default:
		u.Host = bucket + "." + u.Host
	}
	u.Path, u.RawPath = path, s3utils.EncodePath(path)
	return &u
}

// problem returns what a reply says is wrong, and in which region the bucket is if it says so.
func (s *s3) problem(resp *http.Response) (region string, err error) {
	e := newStatusError(resp)
	var details struct{ Code, Message, Region string }
	if xml.NewDecoder(io.LimitReader(resp.Body, 64<<10)).Decode(&details) == nil {
		e.message = strings.Trim(details.Code+": "+details.Message, ":. ")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if errors.Is(e, os.ErrPermission) && s.anonymous {
		e.message = strings.TrimPrefix(e.message+"; ", "; ") +
			"no credentials were found: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE"
	}
	return cmp.Or(resp.Header.Get("X-Amz-Bucket-Region"), details.Region), e
}

// splitS3 splits an object's URL.
func splitS3(path string) (bucket, key string) {
	bucket, key, _ = strings.Cut(strings.TrimPrefix(path, "s3://"), "/")
	return bucket, key
}

// listS3 lists the objects whose keys start as the folder does, all or the first page of them.
func (c *Client) listS3(ctx context.Context, folder string, all bool) ([]Entry, error) {
	s, err := c.s3()
	if err != nil {
		return nil, failed("list", folder, err)
	}
	bucket, prefix := splitS3(folder)
	if bucket == "" {
		return nil, failed("list", folder, errors.New("a folder's URL is s3://bucket/folder"))
	}
	if prefix != "" && !strings.HasSuffix(prefix, "/") {
		prefix += "/"
	}
	var entries []Entry
	some, token := false, ""
	for {
		var page listPage
		err := retry(ctx, func() (_ int, err error) {
			page, err = s.list(ctx, bucket, prefix, token)
			return 0, err
		})
		if err != nil {
			return nil, failed("list", folder, err)
		}
		for _, object := range page.Contents {
			some = true
			// An empty object whose key ends in a slash is what some tools make to stand for a folder.
			if object.Size > 0 || !strings.HasSuffix(object.Key, "/") {
				entries = append(entries, Entry{"s3://" + bucket + "/" + object.Key, object.Size, object.ETag})
			}
		}
		if !page.IsTruncated || !all {
			break
		}
		if page.NextContinuationToken == "" || page.NextContinuationToken == token {
			return nil, failed("list", folder, errors.New("the server says that its list goes on, but not where"))
		}
		token = page.NextContinuationToken
	}
	if !some && prefix != "" {
		return nil, failed("list", folder, &statusError{status: http.StatusNotFound, message: "no object's key starts with " + prefix})
	}
	slices.SortFunc(entries, func(a, b Entry) int { return cmp.Compare(a.Path, b.Path) })
	return entries, nil
}

// listPage is a page of a bucket's list.
type listPage struct {
	Contents []struct {
		Key, ETag string
		Size      int64
	}
	EncodingType          string
	IsTruncated           bool
	NextContinuationToken string
}

// list asks for the page of a bucket's list at token.
func (s *s3) list(ctx context.Context, bucket, prefix, token string) (listPage, error) {
	var page listPage
	query := url.Values{"list-type": {"2"}, "encoding-type": {"url"}, "prefix": {prefix}}
	if token != "" {
		query.Set("continuation-token", token)
	}
	a := newAttempt(ctx)
	defer a.end()
	resp, err := s.do(a.ctx, bucket, "", query, http.Header{"User-Agent": {"pipectl"}})
	if err != nil {
		return page, a.cause(err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(&body{resp.Body, a})
	if err != nil {
		return page, err
	}
	if err := xml.Unmarshal(data, &page); err != nil {
		return page, fmt.Errorf("the server's list can't be read: %w", err)
	}
	if page.EncodingType != "url" {
		return page, nil
	}
	for i := range page.Contents {
		if page.Contents[i].Key, err = url.QueryUnescape(page.Contents[i].Key); err != nil {
			return page, fmt.Errorf("the server's list can't be read: %w", err)
		}
	}
	return page, nil
}
