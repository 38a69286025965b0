// Package sources holds the load operators that read data sets in the formats that they are published in.
package sources

import "github.com/pipectl/pipectl/stages"

// Add adds the operators to a registry.
func Add(r *stages.Registry) {
	r.Add(
		webDatasetOperator(),
		csvOperator(),
		cifarOperator(),
		npyOperator(),
		textLinesOperator(),
		tfRecordOperator(),
		parquetOperator(),
	)
}
