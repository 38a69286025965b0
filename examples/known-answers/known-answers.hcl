# Pipelines whose right answer is known before the run: stages that only wait, each with one worker, and a training step
# of 30 ms. The line runs at the pace of its slowest part. From the queue experiments that the SPDL project published.
#
#   pipectl run examples/known-answers -e all

locals {
  step = "30ms"
}

# 25 items/s: the third stage holds the step back.
experiment "a1" {
  load "synthetic" "items" {
    kind  = "bytes"
    bytes = "1KiB"
  }
  prepare "sleep" "first" { time = "10ms" }
  prepare "sleep" "second" { time = "25ms" }
  prepare "sleep" "third" { time = "40ms" }
  batch { size = 1 }
  train "emulated" "step" { time = local.step }
  expect { bottleneck = "prepare.third" }
}

# The same stages the other way round: still 25 items/s, and now the first stage is at fault.
experiment "a2" {
  load "synthetic" "items" {
    kind  = "bytes"
    bytes = "1KiB"
  }
  prepare "sleep" "first" { time = "40ms" }
  prepare "sleep" "second" { time = "25ms" }
  prepare "sleep" "third" { time = "10ms" }
  batch { size = 1 }
  train "emulated" "step" { time = local.step }
  expect { bottleneck = "prepare.first" }
}

# A second worker in a1's slowest stage: 33 items/s, the pace of the step.
experiment "a3" {
  load "synthetic" "items" {
    kind  = "bytes"
    bytes = "1KiB"
  }
  prepare "sleep" "first" { time = "10ms" }
  prepare "sleep" "second" { time = "25ms" }
  prepare "sleep" "third" {
    time    = "40ms"
    workers = 2
  }
  batch { size = 1 }
  train "emulated" "step" { time = local.step }
  expect { bottleneck = "train.step" }
}

# One stage, a little faster than the step …
experiment "a4_faster" {
  load "synthetic" "items" {
    kind  = "bytes"
    bytes = "1KiB"
  }
  prepare "sleep" "only" { time = "25ms" }
  batch { size = 1 }
  train "emulated" "step" { time = local.step }
  expect { bottleneck = "train.step" }
}

# … and a little slower.
experiment "a4_slower" {
  load "synthetic" "items" {
    kind  = "bytes"
    bytes = "1KiB"
  }
  prepare "sleep" "only" { time = "35ms" }
  batch { size = 1 }
  train "emulated" "step" { time = local.step }
  expect { bottleneck = "prepare.only" }
}
