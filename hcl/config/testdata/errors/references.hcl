# Mistakes in expressions.
locals {
  circle  = local.round     # error: Circular reference
  round   = local.circle + 1
  self    = local.self      # error: Circular reference
  missing = local.mising    # error: Undeclared local
  stage   = batch.size      # error: Reference outside an experiment
  bare    = word            # error: Unknown name
  called  = mxa(1, 2)       # error: Call to unknown function
  argument = max("a")       # error: Invalid function argument
  complex  = pow(-1, 0.5)   # error: Error in function call
  few     = basename()      # error: Not enough function arguments
  index   = [1, 2][2]       # error: Invalid index
  decoded = jsondecode("{") # error: Error in function call
  whole   = local           # error: Incomplete reference
  none    = var             # error: Incomplete reference
  add     = 1 + "one"       # error: Invalid operand
  good    = 3
}

locals {
  good = 4 # error: Duplicate name
  block {} # error: Unknown block
}

locals "named" {} # error: Wrong labels

experiment "references" {
  seed = prepare.small.size + missing.size # error: Unknown name
  load "folder" "photos" {
    path     = batch.path # error: Reference to a missing attribute
    workers  = prepare.decode.workers # error: Circular reference
    prefetch = env("PIPECTL_TEST_UNSET") # error: Null value
  }
  prepare "decode" "decode" {
    workers  = load.photos.workers
    prefetch = local.missing # its mistake is reported once, there
  }
  prepare "scale" "small" {
    size = prepare.large.size # error: Reference to a missing block
    mean = prepare.decode     # error: Incomplete reference
    seed = load.photos.0      # error: Incomplete reference
  }
  prepare "wait" "late" {
    time   = "${local.good}" # error: Duration without a unit
    jitter = local.good.part # error: Unsupported attribute
    mode   = each.key        # error: Unknown name
    speed  = word            # error: Unknown attribute # error: Unknown name
  }
  batch { size = batch.size } # error: Circular reference
  train "step" "step" {}
}
