package cpu

import (
	"math"

	"github.com/pipectl/pipectl/gpu"
	"github.com/pipectl/pipectl/stages"
)

// referenceLoss computes the mean loss of a network on a batch in double precision, straight from the definitions.
func referenceLoss(n *gpu.Net, params []float64, b *stages.Batch) float64 {
	total := 0.0
	for i := range b.Len {
		// at(c, y, x) is 0 outside the picture.
		size := b.Sample.Len()
		sample, planes, rows, columns := b.F32[i*size:][:size], b.Sample.Shape[0], b.Sample.Shape[1], b.Sample.Shape[2]
		picture := make([]float64, size)
		for j, v := range sample {
			picture[j] = float64(v)
		}
		at := func(c, y, x int) float64 {
			if y < 0 || y >= rows || x < 0 || x >= columns {
				return 0
			}
			return picture[(c*rows+y)*columns+x]
		}
		for _, conv := range n.Blocks {
			h, w := conv.Pooled()
			out := make([]float64, conv.Out*h*w)
			for o := range conv.Out {
				for p := range h * w {
					best := 0.0 // ReLU
					for j := range 4 {
						y, x := (2*(p/w)+j/2)*conv.Stride, (2*(p%w)+j%2)*conv.Stride
						sum := params[conv.Bias+o]
						for ky := range 3 {
							for kx := range 3 {
								for c := range planes {
									sum += params[conv.Weights+((o*3+ky)*3+kx)*planes+c] * at(c, y+ky-1, x+kx-1)
								}
							}
						}
						best = max(best, sum)
					}
					out[o*h*w+p] = best
				}
			}
			picture, planes, rows, columns = out, conv.Out, h, w
		}
		logits := make([]float64, n.Classes)
		sum := 0.0
		for k := range logits {
			logits[k] = params[n.Bias+k]
			for p := range rows * columns {
				for c := range planes {
					logits[k] += params[n.Weights+k*n.Features+p*planes+c] * picture[c*rows*columns+p]
				}
			}
			sum += math.Exp(logits[k])
		}
		total += math.Log(sum) - logits[b.Labels[i]]
	}
	return total / float64(b.Len)
}
