package stages

// Builtin returns a fresh registry with the operators of this package: the one list of them. The train operators are
// added by package gpu.
func Builtin() *Registry {
	r := new(Registry)
	r.Add(
		imageFolderOperator(),
		idxOperator(),
		syntheticOperator(),
		decodeJPEGOperator(),
		decodeImageOperator(),
		sleepOperator(),
		spinOperator(),
		resizeOperator(),
		centerCropOperator(),
		toFloatOperator(),
		normalizeOperator(),
		randomResizedCropOperator(),
		decodeRandomResizedCropOperator(),
		randomFlipOperator(),
		colorJitterOperator(),
		randomRotationOperator(),
		gaussianBlurOperator(),
		randomGrayscaleOperator(),
		randomErasingOperator(),
		trivialAugmentOperator(),
		randAugmentOperator(),
		standardizeOperator(),
		oneHotOperator(),
	)
	return r
}
