# Uses the operator that main.go adds.
#
#   go run ./examples/custom-operator run examples/custom-operator

experiment "custom" {
  load "synthetic" "images" {
    items = 2000
    shape = [128, 128, 3]
  }
  augment "posterize" "posterize" { bits = 3 }
  prepare "normalize" "normalize" {}
  batch { size = 32 }
  train "emulated" "step" { time = "2ms" }
}
