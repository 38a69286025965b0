package stages

import (
	"errors"
	"fmt"
	"math"
)

// Standardize holds the attributes of `prepare "standardize"`.
type Standardize struct {
	Mean []float64 `hcl:"mean,optional" doc:"What is subtracted: a number, or one for each value of a tensor. Default: the mean of the sample's own values."`
	Std  []float64 `hcl:"std,optional" min:"0" doc:"What the difference is divided by: a number, or one for each value of a tensor, where 0 counts as 1. Default: the standard deviation of the sample's own values."`
}

func standardizeOperator() Operator {
	return Operator{
		Block:   Prepare,
		Type:    "standardize",
		Summary: "Shifts and scales a sample's values to mean 0 and standard deviation 1.",
		Doc: `Without attributes, each sample by its own mean and standard deviation over all its values, as TensorFlow's ` + "`tf.image.per_image_standardization`" + `: the deviation
counts as 1/√n at least, for n values, so that a sample of equal values becomes 0. Sums are taken in float64; TensorFlow takes them in float32, so results agree
to about 1e-5. It takes a tensor, or an image, which becomes a tensor.

With ` + "`mean`" + ` and ` + "`std`" + `, each value of a tensor by the data set's statistics for it, as scikit-learn's ` + "`StandardScaler`" + ` once it is fitted (its ` + "`mean_`" + ` and
` + "`scale_`" + `), bit for bit (1.2). For statistics of an image's channels there is ` + "`normalize`" + `.`,
		New: func() any { return new(Standardize) },
	}
}

// Validate reports one statistic without the other.
func (s *Standardize) Validate() []Problem {
	missing, given := "mean", "std"
	if len(s.Mean) > 0 {
		missing, given = given, missing
	}
	if len(s.Mean) > 0 == (len(s.Std) > 0) {
		return nil
	}
	return []Problem{{
		Attribute: given,
		Summary:   "Half of the statistics",
		Detail:    fmt.Sprintf("Give %s too, or neither: then each sample is standardized by its own.", missing),
	}}
}

// given reports whether the statistics are.
func (s *Standardize) given() bool { return len(s.Mean) > 0 }

// Output returns a tensor's type.
func (s *Standardize) Output(in Type) (Type, error) {
	if err := accept(in, Tensor, Image); err != nil {
		return Type{}, err
	}
	if in.Kind == Image {
		if s.given() {
			return Type{}, errors.New("It gets " + in.String() + `, and has the data set's mean and std. For images that is the work of prepare "normalize".`)
		}
		return TensorType(3, in.Shape[0], in.Shape[1]), nil
	}
	if n := in.Len(); n > 0 && s.given() {
		if err := s.check(n); err != nil {
			return Type{}, errors.New("It gets " + in.String() + ", but " + err.Error() + ". Give one number, or one for each value.")
		}
	}
	return in, nil
}

// check reports statistics of more than one value, but not of as many as there are.
func (s *Standardize) check(values int) error {
	if n := len(s.Mean); n != 1 && n != values {
		return fmt.Errorf("mean has %d values for a sample of %d", n, values)
	}
	if n := len(s.Std); n != 1 && n != values {
		return fmt.Errorf("std has %d values for a sample of %d", n, values)
	}
	return nil
}

// New makes an instance for one worker.
func (s *Standardize) New() (Stage, error) { return &standardizer{spec: *s}, nil }

type standardizer struct {
	spec  Standardize
	float floater // for images
}

func (s *standardizer) Process(c *Call, in, out *Element) error {
	if in.Type.Kind == Image {
		s.tabulate(in.U8)
		return s.float.Process(c, in, out)
	}
	src := in.F32
	dst := out.Tensor(in.Type.Shape[0], in.Type.Shape[1], in.Type.Shape[2])[:len(src)]
	if s.spec.given() {
		if err := s.spec.check(len(src)); err != nil {
			return err
		}
		s.spec.scale(dst, src)
		return nil
	}
	mean, std := statistics(src)
	for i, v := range src {
		dst[i] = (v - mean) / std
	}
	return nil
}

// scale fills dst with src, standardized by the given statistics. The steps are taken in float64, and each is rounded, because
// scikit-learn does so.
func (s *Standardize) scale(dst, src []float32) {
	of := func(statistic []float64, i int) float64 {
		if len(statistic) == 1 {
			i = 0
		}
		return statistic[i]
	}
	for i, v := range src {
		std := of(s.Std, i)
		if std == 0 {
			std = 1
		}
		shifted := float32(float64(v) - of(s.Mean, i))
		dst[i] = float32(float64(shifted) / std)
	}
}

// statistics returns the mean of values and their standard deviation, which is 1/√n at least.
func statistics(values []float32) (mean, std float32) {
	sum := 0.0
	for _, v := range values {
		sum += float64(v)
	}
	n := float64(len(values))
	middle := sum / n
	squares := 0.0
	for _, v := range values {
		d := float64(v) - middle
		squares += product(d, d)
	}
	return float32(middle), float32(max(math.Sqrt(squares/n), 1/math.Sqrt(n)))
}

// tabulate makes s.float turn each byte of an image into what it is once standardized.
func (s *standardizer) tabulate(src []byte) {
	sum, squares := 0, 0
	for _, v := range src {
		sum += int(v)
		squares += int(v) * int(v)
	}
	n := float64(len(src))
	mean := float64(sum) / n
	std := max(math.Sqrt(max(float64(squares)/n-product(mean, mean), 0)), 1/math.Sqrt(n))
	for v := range s.float[0] {
		s.float[0][v] = (float32(v) - float32(mean)) / float32(std)
	}
	s.float[1], s.float[2] = s.float[0], s.float[0]
}
