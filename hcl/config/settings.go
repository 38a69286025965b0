package config

import (
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2/hclwrite"

	"github.com/pipectl/pipectl/engine"
)

// Render writes the experiment as an HCL file in which every value is resolved and every default written out. Paths
// stay as the author wrote them, so the text doesn't depend on where the files are. Loading it gives the same Settings.
func Render(e *engine.Experiment) string {
	var s strings.Builder
	fmt.Fprintf(&s, "experiment %q {\n", e.Name)
	pool := ""
	for settings := e.Settings; len(settings) > 0; {
		address := settings[0].Address
		n := slices.IndexFunc(settings, func(s engine.Setting) bool { return s.Address != address })
		if n < 0 {
			n = len(settings)
		}
		if inside := poolOf(e, address); inside != pool && pool != "" {
			s.WriteString("}\n")
		}
		pool = poolOf(e, address)
		if address != "" {
			kind, name, _ := strings.Cut(address, ".")
			s.WriteString("\n" + kind)
			if settings[0].Attribute == "" {
				s.WriteString(" " + settings[0].Value)
			}
			if name != "" {
				fmt.Fprintf(&s, " %q", name)
			}
			s.WriteString(" {\n")
		}
		for _, v := range settings[:n] {
			if v.Attribute != "" {
				fmt.Fprintf(&s, "%s = %s\n", v.Attribute, v.Value)
			}
		}
		if address != "" && !strings.HasPrefix(address, poolBlock+".") {
			s.WriteString("}\n")
		}
		settings = settings[n:]
	}
	if pool != "" {
		s.WriteString("}\n")
	}
	s.WriteString("}\n")
	return string(hclwrite.Format([]byte(s.String())))
}

// poolOf returns the pool around the block at an address, "" if there is none. A checkpoint at a pool's end counts as
// outside.
func poolOf(e *engine.Experiment, address string) string {
	if name, ok := strings.CutPrefix(address, poolBlock+"."); ok {
		return name
	}
	for i, s := range e.Stages {
		switch {
		case s.Address == address:
			return s.Pool
		case s.Checkpoint != nil && checkpointBlock+"."+s.Checkpoint.Name == address:
			if i+1 < len(e.Stages) && e.Stages[i+1].Pool == s.Pool {
				return s.Pool
			}
			return ""
		}
	}
	return ""
}
