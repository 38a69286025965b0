//go:build openblas

package cpu

// #cgo LDFLAGS: -lopenblas
// void openblas_set_num_threads(int);
import "C"

import "gonum.org/v1/netlib/blas/netlib"

// library is the BLAS in use: OpenBLAS.
type library = netlib.Implementation

// BLAS names the library.
const BLAS = "OpenBLAS"

// OpenBLAS blocks by itself.
const maxRows, maxColumns = 1 << 20, 1 << 20

// oneThread keeps each product on the thread that asks for it: the step's workers have the cores already.
func oneThread() { C.openblas_set_num_threads(1) }
