// Package tests3 runs an S3 server for tests.
package tests3

import (
	"bufio"
	"bytes"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/minio/minio-go/v7/pkg/s3utils"
	"github.com/minio/minio-go/v7/pkg/signer"
)

// What the server asks for. Start puts it into the environment.
const (
	AccessKey = "test-access-key"
	SecretKey = "test/secret+key"
	Region    = "test-region-1"
)

// Server is an S3 server in a process of its own.
type Server struct {
	t   testing.TB
	URL string
}

// Start runs a server until the test ends. The test's environment, until then, is that of a user of the server. Objects in the bucket
// "public" can be read by anyone. Where the server can't be built or run the test fails.
func Start(t testing.TB) *Server {
	t.Helper()
	_, file, _, _ := runtime.Caller(0)
	cmd := exec.Command("go", "run", ".", AccessKey, SecretKey, Region)
	cmd.Dir = filepath.Join(filepath.Dir(file), "server") // a module of its own, so that its libraries aren't the product's
	cmd.Env = append(os.Environ(), "GOFLAGS=", "GOWORK=off")
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close()
		_ = cmd.Wait()
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("the S3 server doesn't start: %v", err)
	}
	s := &Server{t, strings.TrimSpace(line)}
	for name, value := range map[string]string{
		"AWS_ACCESS_KEY_ID": AccessKey, "AWS_SECRET_ACCESS_KEY": SecretKey, "AWS_REGION": Region, "AWS_ENDPOINT_URL": s.URL,
		"AWS_DEFAULT_REGION": "", "AWS_ENDPOINT_URL_S3": "", "AWS_SESSION_TOKEN": "", "AWS_PROFILE": "", "AWS_EC2_METADATA_DISABLED": "true",
		"AWS_CONFIG_FILE": os.DevNull, "AWS_SHARED_CREDENTIALS_FILE": os.DevNull,
	} {
		t.Setenv(name, value)
	}
	for _, bucket := range []string{"bucket", "public"} {
		s.put("/"+bucket, nil)
	}
	return s
}

// Put makes an object of a bucket, "bucket" or "public".
func (s *Server) Put(bucket, key string, data []byte) {
	s.t.Helper()
	s.put("/"+bucket+"/"+key, data)
}

func (s *Server) put(path string, data []byte) {
	s.t.Helper()
	u, err := url.Parse(s.URL)
	if err != nil {
		s.t.Fatal(err)
	}
	u.Path, u.RawPath = path, s3utils.EncodePath(path)
	req, err := http.NewRequestWithContext(s.t.Context(), http.MethodPut, u.String(), bytes.NewReader(data))
	if err != nil {
		s.t.Fatal(err)
	}
	req.Header.Set("X-Amz-Content-Sha256", "UNSIGNED-PAYLOAD")
	resp, err := http.DefaultClient.Do(signer.SignV4(*req, AccessKey, SecretKey, "", Region))
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		s.t.Fatalf("putting %s: %s", path, resp.Status)
	}
}
