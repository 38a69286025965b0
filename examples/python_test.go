//go:build linux && !core

package examples_test

import (
	"testing"

	"github.com/pipectl/pipectl/internal/testpython"
)

func TestPyTorch(t *testing.T) {
	bin, python := build(t, "../cmd/pipectl"), testpython.Interpreter(t, "torch", "torchvision")
	got := run(t, bin, "pytorch", "-e", "loader", "--var", "python="+python)
	if len(got) != 1 {
		t.Fatalf("%d verdicts", len(got))
	}
	notWrong(t, got[0], "augment.gaussian_blur")
	measured(t, run(t, bin, "pytorch", "-e", "loader_fixed", "--var", "python="+python, "--probe", "baseline"))
}

func TestText(t *testing.T) {
	bin := build(t, "../cmd/pipectl")
	got := run(t, bin, "text", "-e", "text")
	if len(got) != 1 {
		t.Fatalf("%d verdicts", len(got))
	}
	notWrong(t, got[0], "prepare.tokenize")
	measured(t, run(t, bin, "text", "-e", "text_fixed", "--probe", "baseline"))
	if got := run(t, bin, "text", "-e", "text_native", "--epochs", "1"); len(got) != 1 {
		t.Errorf("%d verdicts of training natively", len(got))
	}
}

func TestAudio(t *testing.T) {
	bin, python := build(t, "../cmd/pipectl"), testpython.Interpreter(t, "torch", "torchvision")
	got := run(t, bin, "audio", "-e", "audio_python", "--var", "python="+python)
	if len(got) != 1 {
		t.Fatalf("%d verdicts", len(got))
	}
	notWrong(t, got[0], "prepare.spectrogram")
	measured(t, run(t, bin, "audio", "-e", "audio", "--probe", "baseline"))
}
