// Command server is an S3 server for tests, with its objects in memory. It prints its URL, and ends when its standard input does, so
// that it can't outlive the test that started it.
//
// The objects are github.com/johannesboyne/gofakes3's, which takes any signature. So it is checked here, against the specification:
// https://docs.aws.amazon.com/AmazonS3/latest/API/sig-v4-header-based-auth.html.
package main

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/xml"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"
)

func main() {
	if len(os.Args) != 4 {
		log.Fatal("usage: server ACCESS_KEY SECRET_KEY REGION")
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("http://%s\n", l.Addr())
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}()
	g := guard{os.Args[1], os.Args[2], os.Args[3], gofakes3.New(s3mem.New()).Server()}
	log.Fatal(http.Serve(l, g))
}

// guard lets requests through that are signed, and those to read from the bucket "public".
type guard struct {
	access, secret, region string
	next                   http.Handler
}

func (g guard) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	fail := func(status int, code string) {
		w.WriteHeader(status)
		_ = xml.NewEncoder(w).Encode(struct {
			XMLName xml.Name `xml:"Error"`
			Code    string
			Message string
		}{Code: code, Message: "as the test wants it"})
	}
	if r.Header.Get("Authorization") == "" && r.Method == http.MethodGet && strings.HasPrefix(r.URL.Path, "/public/") {
		g.next.ServeHTTP(w, r)
		return
	}
	fields := make(map[string]string)
	algorithm, rest, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	for field := range strings.SplitSeq(rest, ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(field), "=")
		fields[name] = value
	}
	scope := strings.Split(fields["Credential"], "/")
	signed := strings.Split(fields["SignedHeaders"], ";")
	sent, err := time.Parse("20060102T150405Z", r.Header.Get("X-Amz-Date"))
	switch {
	case algorithm != "AWS4-HMAC-SHA256" || len(scope) != 5:
		fail(http.StatusForbidden, "AccessDenied")
	case scope[2] != g.region:
		w.Header().Set("X-Amz-Bucket-Region", g.region)
		fail(http.StatusBadRequest, "AuthorizationHeaderMalformed")
	case scope[0] != g.access:
		fail(http.StatusForbidden, "InvalidAccessKeyId")
	case err != nil || time.Since(sent).Abs() > 15*time.Minute:
		fail(http.StatusForbidden, "RequestTimeTooSkewed")
	case !slices.Contains(signed, "host") || !slices.Contains(signed, "x-amz-date") ||
		!hmac.Equal([]byte(g.signature(r, scope[1:], signed)), []byte(fields["Signature"])):
		fail(http.StatusForbidden, "SignatureDoesNotMatch")
	default:
		g.next.ServeHTTP(w, r)
	}
}

func (g guard) signature(r *http.Request, scope, signed []string) string {
	var query []string
	for name, values := range r.URL.Query() {
		for _, v := range values {
			query = append(query, escape(name, "")+"="+escape(v, ""))
		}
	}
	slices.Sort(query)
	request := []string{r.Method, escape(r.URL.Path, "/"), strings.Join(query, "&")}
	for _, name := range signed {
		value := strings.Join(r.Header.Values(name), ",")
		if name == "host" {
			value = r.Host
		}
		request = append(request, name+":"+strings.TrimSpace(value))
	}
	request = append(request, "", strings.Join(signed, ";"), r.Header.Get("X-Amz-Content-Sha256"))
	hash := sha256.Sum256([]byte(strings.Join(request, "\n")))
	text := strings.Join([]string{"AWS4-HMAC-SHA256", r.Header.Get("X-Amz-Date"), strings.Join(scope, "/"), hex.EncodeToString(hash[:])}, "\n")
	key := []byte("AWS4" + g.secret)
	for _, part := range append(slices.Clone(scope), text) {
		mac := hmac.New(sha256.New, key)
		mac.Write([]byte(part))
		key = mac.Sum(nil)
	}
	return hex.EncodeToString(key)
}

// escape escapes all bytes but letters, digits, "-._~" and others.
func escape(s, others string) string {
	var b strings.Builder
	for _, c := range []byte(s) {
		if 'A' <= c && c <= 'Z' || 'a' <= c && c <= 'z' || '0' <= c && c <= '9' || strings.IndexByte("-._~"+others, c) >= 0 {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}
