package storage

import "strings"

// CheckScheme returns what to do about a path that is a URL of a kind that this package doesn't read, in words that follow the path; "" where it is none.
func CheckScheme(path string) string {
	scheme, _, ok := strings.Cut(path, "://")
	if !ok || Remote(path) || len(scheme) < 2 || strings.Trim(strings.ToLower(scheme), "abcdefghijklmnopqrstuvwxyz0123456789+-.") != "" {
		return ""
	}
	const are = "is a URL of a kind that isn't read: paths are names of files, https://…, http://… and s3://bucket/…"
	lower := strings.ToLower(scheme)
	if Remote(lower + "://") {
		return "is a URL whose start is written in lower case: " + lower + "://"
	}
	switch lower {
	case "file":
		return "is a URL of a file on this machine: write its path alone, without file://"
	case "gs", "gcs":
		return are + ". Google's storage speaks S3's protocol too: write s3:// in place of " + lower +
			"://, and set AWS_ENDPOINT_URL_S3=https://storage.googleapis.com and, as AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, an HMAC key"
	case "az", "abfs", "abfss", "adl", "wasb", "wasbs":
		return are + ". Give the file's https:// URL, with a shared access signature if it isn't public"
	case "s3a", "s3n":
		return are + ". Write s3:// in place of " + lower + "://"
	}
	return are + ". Copy the files to one of these, or mount what they lie on"
}
