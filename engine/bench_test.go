package engine

import (
	"context"
	"fmt"
	"testing"
)

// BenchmarkEngineOverhead measures what the engine itself costs: five stages that do nothing, each with its own worker,
// payloads passed by reference, in order, with the accounting on. ns/item-stage counts the five; the batches of 64 and
// their steps are in it. Fused, the five share the two workers of one pool.
func BenchmarkEngineOverhead(b *testing.B) {
	for _, prefetch := range []int{128, defaultPrefetch} {
		b.Run(fmt.Sprintf("prefetch=%d", prefetch), func(b *testing.B) { benchmarkChain(b, 64, prefetch, 1) })
	}
	b.Run("fused", func(b *testing.B) { benchmarkChain(b, 64, 128, Auto) })
}

// BenchmarkBatchOverhead is the same with a batch and a step for every item.
func BenchmarkBatchOverhead(b *testing.B) { benchmarkChain(b, 1, 128, 1) }

func benchmarkChain(b *testing.B, size, prefetch, workers int) {
	e := chain(&countSource{items: 1 << 20, shared: true}, size, nothing,
		prepare("a", pass), prepare("b", pass), prepare("c", pass), prepare("d", pass), prepare("e", pass))
	for i := range 6 {
		e.Stages[i].Prefetch = prefetch
		e.Stages[i].Workers = workers
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
