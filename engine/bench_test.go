package engine

import (
	"context"
	"fmt"
	"testing"
)

// BenchmarkEngineOverhead measures what the engine itself costs: five stages that do nothing, each with its own worker,
// payloads passed by reference, in order, with the accounting on. ns/item-stage counts the five; batching comes on top.
func BenchmarkEngineOverhead(b *testing.B) {
	for _, size := range []int{64, 1} {
		b.Run(fmt.Sprintf("batch=%d", size), func(b *testing.B) {
			benchmarkChain(b, size, 128)
		})
	}
	b.Run("batch=64/prefetch=16", func(b *testing.B) { benchmarkChain(b, 64, defaultPrefetch) })
}

func benchmarkChain(b *testing.B, size, prefetch int) {
	e := chain(&countSource{items: 1 << 20, shared: true}, size, nothing,
		prepare("a", pass), prepare("b", pass), prepare("c", pass), prepare("d", pass), prepare("e", pass))
	for i := range 6 {
		e.Stages[i].Prefetch = prefetch
	}
	p := openTest(b, e)
	if _, err := p.Measure(context.Background(), Probe{}, 1, 1000); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	b.ResetTimer()
	iv, err := p.Measure(context.Background(), Probe{}, 0, (b.N+size-1)/size)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(iv.Elapsed.Nanoseconds())/float64(iv.Samples)/5, "ns/item-stage")
}
