experiment "shared" {
  load "folder" "a" {
    path    = "photos"
    workers = 2
  }
  checkpoint "between" {} # error: Checkpoint between load blocks
  load "folder" "b" {
    path     = "photos"
    workers  = 3 # error: Misplaced attribute
    prefetch = 9 # error: Misplaced attribute
    weight   = 0 # error: Value out of range
  }
  load "folder" "b" { path = "photos" } # error: Duplicate name
  prepare "decode" "decode" { weight = 2 } # error: Unknown attribute
  batch { size = 1 }
  train "step" "step" {}
}

experiment "apart" {
  load "folder" "a" { path = "photos" }
  pool "workers" {
    load "folder" "b" { path = "photos" } # error: Load blocks apart
  }
  batch { size = 1 }
  train "step" "step" {}
}
