package cli

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/pipectl/pipectl/gpu/cpu"
	"github.com/pipectl/pipectl/stages"
)

const modulePath = "github.com/pipectl/pipectl"

// versionView is the output of `pipectl version`.
type versionView struct {
	FormatVersion int    `json:"format_version"`
	Type          string `json:"type"` // "version"
	Version       string `json:"version"`
	Commit        string `json:"commit"`
	CommitTime    string `json:"commit_time"`
	Modified      bool   `json:"modified"`
	Go            string `json:"go"`
	Platform      string `json:"platform"`
	JPEGDecoder   string `json:"jpeg_decoder"`
	BLAS          string `json:"blas"`
}

func newVersionCommand(s *state) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Show the version and what this program was built with",
		Args:  atMost(0),
		RunE: func(*cobra.Command, []string) error {
			v := buildVersion()
			if s.json {
				return s.writeJSON(v)
			}
			fmt.Fprintf(s.stdout, "pipectl %s\n", v.Version)
			if v.Commit != "" {
				modified := ""
				if v.Modified {
					modified = ", with changes"
				}
				fmt.Fprintf(s.stdout, "commit        %s of %s%s\n", v.Commit, v.CommitTime, modified)
			}
			fmt.Fprintf(s.stdout, "Go            %s, %s\n", v.Go, v.Platform)
			fmt.Fprintf(s.stdout, "JPEG decoder  %s\n", v.JPEGDecoder)
			fmt.Fprintf(s.stdout, "BLAS          %s\n", v.BLAS)
			return nil
		},
	}
	s.jsonFlag(cmd, "write one JSON object")
	return cmd
}

// buildVersion returns what the linker wrote into this program.
func buildVersion() versionView {
	v := versionView{
		FormatVersion: formatVersion,
		Type:          "version",
		Version:       "(devel)",
		Go:            runtime.Version(),
		Platform:      runtime.GOOS + "/" + runtime.GOARCH,
		JPEGDecoder:   stages.JPEGDecoder,
		BLAS:          cpu.BLAS,
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return v
	}
	if info.Main.Path != modulePath { // a custom build: the commit is another project's
		for _, dep := range info.Deps {
			if dep.Path == modulePath {
				v.Version = dep.Version
			}
		}
		return v
	}
	if info.Main.Version != "" {
		v.Version = info.Main.Version
	}
	for _, setting := range info.Settings {
		switch setting.Key {
		case "vcs.revision":
			v.Commit = setting.Value
		case "vcs.time":
			v.CommitTime = setting.Value
		case "vcs.modified":
			v.Modified = setting.Value == "true"
		}
	}
	return v
}
