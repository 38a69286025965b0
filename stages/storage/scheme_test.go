package storage

import (
	"strings"
	"testing"
)

func TestCheckScheme(t *testing.T) {
	for path, want := range map[string]string{
		"ftp://host/a.tar":        "Copy the files to one of these",
		"hdfs://host/a.tar":       "Copy the files to one of these",
		"file:///data/a.tar":      "write its path alone",
		"gs://bucket/a.tar":       "AWS_ENDPOINT_URL_S3=https://storage.googleapis.com",
		"az://container/a.tar":    "Give the file's https:// URL",
		"s3a://bucket/a.tar":      "Write s3:// in place of s3a://",
		"S3://bucket/a.tar":       "lower case: s3://",
		"HTTPS://host/a.tar":      "lower case: https://",
		"https://host/a.tar":      "",
		"s3://bucket/a.tar":       "",
		"data/a.tar":              "",
		"./ftp://host":            "",
		"C://data/a.tar":          "",
		"one part/two://a":        "",
		"https://host/?u=ftp://x": "",
	} {
		if got := CheckScheme(path); !strings.Contains(got, want) || (got == "") != (want == "") {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
	}
}
