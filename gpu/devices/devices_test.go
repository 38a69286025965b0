package devices

import (
	"fmt"
	"strings"
	"testing"
)

// Whether a machine has a GPU only the machine knows: that both wishes follow from it is what is tested.
func TestOpen(t *testing.T) {
	type test struct{ want, kind, why, err string }
	tests := []test{
		{want: "cpu", kind: "cpu", why: "The step asks for the CPU. "},
		{want: "tpu", err: `there is no device "tpu": take "auto", "cuda" or "cpu"`},
	}
	if d, err := openCUDA(""); err != nil {
		tests = append(tests,
			test{want: "auto", kind: "cpu", why: fmt.Sprintf(`device = "auto" takes the CPU, because %v. `, err)},
			test{want: "cuda", err: fmt.Sprintf(`device = "cuda" can't be used: %v; set it to "auto" or "cpu" to train on the CPU`, err)})
	} else {
		tests = append(tests,
			test{want: "auto", kind: "cuda", why: `device = "auto" takes CUDA where it can be used.`},
			test{want: "cuda", kind: "cuda", why: "The step asks for CUDA."})
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	}
	for _, tc := range tests {
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
