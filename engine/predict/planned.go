package predict

import "github.com/pipectl/pipectl/engine"

// Planned predicts the rate of the pipeline as another plan of the same stages groups them and staffs them.
func (m *Model) Planned(plan *engine.Plan) Prediction {
	return m.predict(variant{segments: plan.Segments})
}
