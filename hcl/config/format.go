package config

import (
	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/hashicorp/hcl/v2/hclwrite"
)

// Format returns src in the canonical layout. Text that can't be parsed is returned as it is, with what is wrong with it.
func Format(src []byte, filename string) ([]byte, hcl.Diagnostics) {
	if d := excess(src, filename); d != nil {
		return src, hcl.Diagnostics{d}
	}
	if _, diags := hclsyntax.ParseConfig(src, filename, hcl.InitialPos); diags.HasErrors() {
		return src, diags
	}
	return hclwrite.Format(src), nil
}
