//go:build !openblas

package cpu

import "gonum.org/v1/gonum/blas/gonum"

// library is the BLAS in use: gonum's, in Go and assembly. Its matrix product skips the zeros of the left factor, and
// most of a gradient behind a max pooling is zeros.
type library = gonum.Implementation

// BLAS names the library.
const BLAS = "gonum"

// gonum shares a product of four or more blocks of 64×64 out to goroutines of its own. Stay below: the step's workers
// have the cores already.
const maxRows, maxColumns = 64, 192

// oneThread has nothing to do: small products stay on the thread that asks for them.
func oneThread() {}
