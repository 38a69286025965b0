package cpu

import "gonum.org/v1/gonum/blas"

// gemm computes C = A·B + beta·C, with A or B transposed first where tA or tB says so. C is m×n, and k is what A and B
// share. All are stored by rows, which are lda, ldb and ldc apart.
func gemm(tA, tB blas.Transpose, m, n, k int, a []float32, lda int, b []float32, ldb int, beta float32, c []float32, ldc int) {
	for i := 0; i < m; i += maxRows {
		rows := i * lda
		if tA == blas.Trans {
			rows = i
		}
		for j := 0; j < n; j += maxColumns {
			columns := j
			if tB == blas.Trans {
				columns = j * ldb
			}
			library{}.Sgemm(tA, tB, min(maxRows, m-i), min(maxColumns, n-j), k, 1, a[rows:], lda, b[columns:], ldb, beta, c[i*ldc+j:], ldc)
		}
	}
}

// add adds scale·x to y.
func add(scale float32, x, y []float32) { library{}.Saxpy(len(x), scale, x, 1, y, 1) }
