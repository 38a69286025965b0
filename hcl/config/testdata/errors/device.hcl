# Mistakes in stages on the device and in caches beside them.
experiment "places" {
  load "folder" "photos" { path = "photos" }
  prepare "decode" "decode" {
    device = true # error: Not for the device
  }
  augment "mirror" "above" {
    device = true # error: Device stage above the transfer
  }
  pool "p" {
    augment "mirror" "pooled" {
      device = true # error: Not for the device
    }
  }
  batch { size = 4 }
  augment "mirror" "between" { device = true } # error: Augment after batch
  transfer {}
  prepare "float" "host" {}                           # error: Prepare after transfer
  prepare "decode" "late" {}                          # error: Prepare after transfer
  augment "mirror" "off" { device = false }           # error: Augment after transfer
  augment "mirror" "unknown" { device = var.nothing } # error: Undeclared variable
  augment "mirror" "text" { device = "yes" }          # error: Wrong type
  augment "mirror" "workers" {
    device    = true
    workers   = 2      # error: Misplaced attribute
    prefetch  = 2      # error: Misplaced attribute
    on_error  = "fail" # error: Misplaced attribute
    max_skips = 3      # error: Misplaced attribute
  }
  augment "flip" "unable" { device = true } # error: Not for the device
  train "step" "step" {}
  augment "mirror" "last" { device = true } # error: Augment after train
}

experiment "no_transfer" {
  load "folder" "photos" {
    path   = "photos"
    device = true # error: Unknown attribute
  }
  augment "mirror" "mirror" { device = true } # error: Device stage without a transfer
  checkpoint "pinned" { store = "pinned" }    # error: Misplaced store
  batch { size = 4 }
  checkpoint "device" { store = "device" } # error: Misplaced store
  train "step" "step" {}
}

experiment "stores" {
  load "folder" "photos" { path = "photos" }
  batch { size = 4 }
  checkpoint "batch" { store = "pinned" } # error: Batches aren't pinned
  transfer {
    pinned  = false
    convert = "host" # error: Unknown value
  }
  checkpoint "copied" { store = "device" } # error: Misplaced store
  augment "mirror" "mirror" { device = true }
  checkpoint "mirrored" { store = "pinned" } # error: Misplaced store
  train "step" "step" {}
}
