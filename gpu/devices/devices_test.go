package devices

import (
	"strings"
	"testing"
)

func TestOpen(t *testing.T) {
	for _, tc := range []struct{ want, kind, why, err string }{
		{want: "cpu", kind: "cpu", why: "The step asks for the CPU. "},
		{want: "auto", kind: "cpu", why: `device = "auto" takes the CPU, because this build has no CUDA support. `},
		{want: "cuda", err: `device = "cuda" can't be used: this build has no CUDA support; set it to "auto" or "cpu" to train on the CPU`},
		{want: "tpu", err: `there is no device "tpu": take "auto", "cuda" or "cpu"`},
	} {
		d, err := Open(tc.want)
		if err != nil {
			if err.Error() != tc.err {
				t.Errorf("Open(%q): error:\n%v\nwant:\n%v", tc.want, err, tc.err)
			}
			continue
		}
		if info := d.Info(); tc.err != "" || info.Kind != tc.kind || !strings.HasPrefix(info.Why, tc.why) {
			t.Errorf("Open(%q) gives %+v, want a %s with %q or the error %q", tc.want, info, tc.kind, tc.why, tc.err)
		}
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	}
}
