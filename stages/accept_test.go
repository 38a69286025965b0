package stages

import "testing"

func TestAccept(t *testing.T) {
	encoded, opaque, tokens := Type{Kind: Encoded}, Type{Opaque, Shape{16}}, Type{Tokens, Shape{128}}
	image, tensor := ImageType(0, 0), TensorType(3, 224, 224)
	tests := []struct {
		in    Type
		kinds []Kind
		want  string
	}{
		{image, []Kind{Image}, ""},
		{tensor, []Kind{Image, Tensor}, ""},
		{Type{}, []Kind{Image}, ""},
		{encoded, []Kind{Image}, `It takes an image, and gets encoded bytes. Put a decode stage (prepare "decode_jpeg") above it.`},
		{encoded, []Kind{Image, Tensor}, `It takes an image or a tensor, and gets encoded bytes. Put a decode stage (prepare "decode_jpeg") above it.`},
		{tensor, []Kind{Image}, `It takes an image, and gets float32 3×224×224. Move it above the stage that makes the tensor (prepare "to_float" or "normalize").`},
		{image, []Kind{Tensor}, `It takes a tensor, and gets uint8 image ?×?×3. Put the stage that makes a tensor (prepare "to_float" or "normalize") above it.`},
		{image, []Kind{Tokens}, `It takes tokens, and gets uint8 image ?×?×3. Remove it, or put it below what gives tokens.`},
		{tokens, []Kind{Tokens}, ""},
		{tokens, []Kind{Image, Tensor}, `It takes an image or a tensor, and gets int32 tokens [128]. Remove it, or load images.`},
		{opaque, []Kind{Image}, `It takes an image, and gets opaque bytes [16]. Remove it, or load images.`},
	}
	for _, tt := range tests {
		got := ""
		if err := accept(tt.in, tt.kinds...); err != nil {
			got = err.Error()
		}
		if got != tt.want {
			t.Errorf("accept(%v, %v):\n got %s\nwant %s", tt.in, tt.kinds, got, tt.want)
		}
	}
}
